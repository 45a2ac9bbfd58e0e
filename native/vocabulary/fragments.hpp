// Fragments: the part of an expression's masks that does not depend on what follows.
//
// A state's expression is often f·r with a wide loop in f: a string's interior, a number, white space. For every
// token read from f, one of three things happens, and the first two are found once per vocabulary:
//   * the token stays inside f: it is allowed whatever r is (r is not empty);
//   * it leaves f, possibly at several places: for each exit, the residual suffix has to be read by r;
//   * it can do neither: never allowed.
// So the mask in any context is a fixed row plus a walk of the small trie of residuals from r. Exits before the first
// byte are not recorded: there the whole mask of r joins in. Where very many tokens begin alike (with a space), there is
// a fragment for what is left of those tokens, too: the text is often in a loop only behind that.
//
// A counted fragment stands for x{m,n}·b·r with any m and n, where the byte set b cannot begin x and x can be read in
// one way only. Tokens then carry the number of iterations they begin (inside) or complete (exits); masks for
// different counts are nested, and no walk is needed per count.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "threads/fork_gate.hpp"
#include "vocabulary/masks.hpp"
#include "expression_forms/splits.hpp"
#include "vocabulary/trie.hpp"

namespace tokenfst {

struct Fragment {
  static constexpr size_t kManyExits = 1'024;  // tokens

  bool usable = false;
  bool wide = false;  // more tokens stay inside than a narrow walk of the vocabulary finds
  bool crowded = false;  // more tokens leave it than that; of a split that is open, it is not built then
  bool ambiguous = false;  // a token that stays inside could also have left before its end
  bool vast = false;  // left by so many tokens that it is not built with all its exits either
  TokenRow row;                        // tokens that stay inside
  std::vector<TokenRow> nested;  // counted: the rows for at most 1, 2, ... iterations, while they differ much
  std::vector<uint32_t> longest;       // counted: tokens of `row` with more iterations than that, most first
  std::vector<uint16_t> iterations;    // counted: begun by each of `longest`
  std::unique_ptr<Trie> residuals;     // over entries; an empty residual is at the root
  std::vector<uint32_t> tokens;        // token of each entry
  std::vector<uint16_t> completed;     // counted: iterations completed before the exit, per entry
  std::vector<uint32_t> closing;  // of fragments that end in a byte: tokens of `row` behind which nothing of it is left
  std::vector<uint32_t> representatives;  // tokens that stay inside, one per distinct place they lead to
  std::vector<uint16_t> representative_iterations;
  uint32_t completion = UINT32_MAX;  // widened: from each place that tokens inside lead to, at most so many bytes complete the fragment

  // What the tokens that leave the fragment read of it: of each entry, and behind those of each closing token. Made when
  // first asked for.
  template <class Texts>
  const Trie& words_left(const Texts& texts, uint32_t top) const {
    std::lock_guard lock(mutex_);
    if (!words_left_) {
      std::vector<std::string_view> words(tokens.size());
      for (uint32_t index = 0; index < residuals->num_nodes(); ++index) {
        const TrieNode& node = residuals->node(index);
        for (uint32_t k = node.first; k < residuals->node(index + 1).first; ++k) {
          const std::string_view text = texts[tokens[residuals->string_at(k)]];
          words[residuals->string_at(k)] = text.substr(0, text.size() - node.depth);
        }
      }
      for (uint32_t token : closing) words.push_back(texts[token]);
      for (std::string_view& word : words) word.remove_prefix(top);
      std::vector<uint32_t> order(words.size());
      std::iota(order.begin(), order.end(), 0);
      words_left_ = std::make_unique<Trie>(words, std::move(order));
    }
    return *words_left_;
  }

  // Whether it is all that is to be had of the expression, also where it is wanted with all its exits.
  bool is_settled() const { return usable || vast || !crowded; }
  size_t memory() const {
    return row.words.capacity() * 4 * (1 + nested.size()) + longest.capacity() * 6 + tokens.capacity() * 6 +
           representatives.capacity() * 6 + closing.capacity() * 4 + (residuals ? residuals->memory() : 0) + sizeof(Fragment);
  }

 private:
  mutable Mutex mutex_;
  mutable std::unique_ptr<const Trie> words_left_;
};

// Whether two fragments that do not count allow the same tokens and are left by the same ones at the same places.
inline bool gives_the_same(const Fragment& a, const Fragment& b) {
  if (a.row.words != b.row.words || a.tokens.size() != b.tokens.size()) return false;
  auto exits = [](const Fragment& fragment) {
    std::vector<std::pair<uint32_t, uint32_t>> found;  // token, and how much of it is left
    const Trie& trie = *fragment.residuals;
    for (uint32_t index = 0; index < trie.num_nodes(); ++index) {
      for (uint32_t k = trie.node(index).first; k < trie.node(index + 1).first; ++k)
        found.emplace_back(fragment.tokens[trie.string_at(k)], trie.node(index).depth);
    }
    std::ranges::sort(found);
    return found;
  };
  return exits(a) == exits(b);
}

// The fragments of one vocabulary, shared by all automata over it. Bounded: past a limit, each that comes takes the place of
// those that were not asked for longest, as many as it is large (automata keep the fragments they use).
class FragmentCache {
 public:
  std::shared_ptr<const Fragment> find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto it = known_.find(key);
    if (it == known_.end()) return nullptr;
    order_.splice(order_.end(), order_, it->second.place);
    return it->second.fragment;
  }
  void insert(const std::string& key, std::shared_ptr<const Fragment> fragment) {
    std::vector<std::shared_ptr<const Fragment>> gone;  // freed behind the lock
    std::lock_guard lock(mutex_);
    const size_t size = fragment->memory() + key.size() + sizeof(Entry);
    auto [it, fresh] = known_.try_emplace(key);
    Entry& entry = it->second;
    if (fresh) {
      entry = {std::move(fragment), order_.insert(order_.end(), &it->first), size};
      bytes_ += size;
    } else if (fragment->is_settled() && !entry.fragment->is_settled()) {  // one that is no longer left out
      bytes_ += size - entry.size;
      gone.push_back(std::exchange(entry.fragment, std::move(fragment)));
      entry.size = size;
    }
    for (size_t most = kMostAtOnce; bytes_ > limit_ && most > 0 && order_.size() > 1; --most) {
      const auto oldest = known_.find(*order_.front());
      bytes_ -= oldest->second.size;
      gone.push_back(std::move(oldest->second.fragment));
      order_.pop_front();
      known_.erase(oldest);
    }
  }
  size_t memory() const {
    std::lock_guard lock(mutex_);
    return bytes_;
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return known_.size();
  }
  // In bytes. What is there beyond a lower bound goes with those that come.
  void set_limit(size_t bytes) {
    std::lock_guard lock(mutex_);
    limit_ = bytes;
  }

 private:
  struct Entry {
    std::shared_ptr<const Fragment> fragment;
    std::list<const std::string*>::iterator place;  // in order_
    size_t size;
  };
  static constexpr size_t kMostAtOnce = 16;  // that go for one that comes
  mutable Mutex mutex_;
  std::unordered_map<std::string, Entry> known_;
  std::list<const std::string*> order_;  // their keys, those that were asked for last at the end
  size_t bytes_ = 0, limit_ = 256 << 20;
};

}  // namespace tokenfst
