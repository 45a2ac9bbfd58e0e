// Fragments: the part of an expression's masks that does not depend on what follows.
//
// The expression of a state is often f·r with a loop over many bytes in f: the inside of a string, a number, white space.
// For every token that is read from f, one of three things happens; the first two are found once for each vocabulary:
//   * the token stays inside f: it is allowed whatever r is (the language of r is not empty);
//   * it leaves f, possibly at several places: for each exit, r has to read the residual (the rest of the token);
//   * it can do neither: it is never allowed.
// So the mask in any context is a fixed row plus a walk of the small trie of residuals from r. Exits before the first
// byte are not recorded: for them the whole mask of r is added. If very many tokens begin with the same byte (a space),
// there is a further fragment for the rest of those tokens, because the text is often in a loop only after that byte.
//
// A counted fragment stands for x{m,n}·b·r with any m and n, where the byte set b cannot begin x, and x can be read in
// only one way. Each token then has the number of iterations that it begins (if it stays inside) or completes (at each
// exit). Masks for different counts are nested sets, so no count needs a walk of its own.
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

// What is known of one fragment. Immutable once it is in a cache, except for a trie that is made on the first call.
struct Fragment {
  static constexpr size_t kManyExits = 1'024;  // tokens

  bool usable = false;
  bool wide = false;  // more tokens stay inside than a narrow walk of the vocabulary visits
  bool crowded = false;  // more tokens leave it than that; if its split is still open, it is not built
  bool ambiguous = false;  // a token that stays inside could also have left before its end
  bool too_large = false;  // so many tokens leave it that it is not built with all its exits either
  TokenRow row;                        // tokens that stay inside
  std::vector<TokenRow> nested;  // counted: the rows for at most 1, 2, ... iterations, while they differ much
  std::vector<uint32_t> longest;       // counted: the tokens of `row` with more iterations than that, in descending order of iterations
  std::vector<uint16_t> iterations;    // counted: how many iterations each of `longest` begins
  std::unique_ptr<Trie> residuals;     // over the entries; an empty residual is at the root
  std::vector<uint32_t> tokens;        // the token of each entry
  std::vector<uint16_t> completed;     // counted: how many iterations are completed before the exit, for each entry
  std::vector<uint32_t> closing;  // of fragments that end in a byte: the tokens of `row` that end with the fragment
  std::vector<uint32_t> representatives;  // one token for each distinct place that tokens inside lead to
  std::vector<uint16_t> representative_iterations;
  uint32_t completion = UINT32_MAX;  // widened: at most so many bytes complete the fragment from any place that tokens inside lead to
  std::vector<uint32_t> few;  // the tokens of `row`, if they are few enough for a mask without a row (MaskPool::kMaxFlips)

  // The trie of the texts that tokens read inside the fragment before they leave it: one string for each entry, then one
  // for each closing token; each without its first `top` bytes, which must be the same on every call. `texts`: the tokens'
  // bytes. Made on the first call.
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

  // Whether this is all that can be built for the expression, even if it is requested with all its exits.
  bool is_settled() const { return usable || too_large || !crowded; }
  size_t memory() const {
    return row.words.capacity() * 4 * (1 + nested.size()) + longest.capacity() * 6 + tokens.capacity() * 6 +
           representatives.capacity() * 6 + (closing.capacity() + few.capacity()) * 4 + (residuals ? residuals->memory() : 0) +
           sizeof(Fragment);
  }

 private:
  mutable Mutex mutex_;
  mutable std::unique_ptr<const Trie> words_left_;
};

// Whether two fragments without counts allow the same tokens, and the same tokens leave them at the same places.
inline bool gives_the_same(const Fragment& a, const Fragment& b) {
  if (a.row.words != b.row.words || a.tokens.size() != b.tokens.size()) return false;
  auto exits = [](const Fragment& fragment) {
    std::vector<std::pair<uint32_t, uint32_t>> found;  // a token, and the length of its residual
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

// The fragments of one vocabulary, shared by all automata over it. Its size is bounded: while it exceeds the limit, each
// new fragment removes the least recently used ones, at most kMostAtOnce. Automata keep the fragments that they use alive.
class FragmentCache {
 public:
  // The fragment with a key (expression_forms/splits.hpp); null if there is none.
  std::shared_ptr<const Fragment> find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto it = known_.find(key);
    if (it == known_.end()) return nullptr;
    order_.splice(order_.end(), order_, it->second.place);
    return it->second.fragment;
  }
  // Adds a fragment. If the key has one already, that one stays, unless only the new one is_settled().
  void insert(const std::string& key, std::shared_ptr<const Fragment> fragment) {
    std::vector<std::shared_ptr<const Fragment>> gone;  // freed after the lock is released
    std::lock_guard lock(mutex_);
    const size_t size = fragment->memory() + key.size() + sizeof(Entry);
    auto [it, fresh] = known_.try_emplace(key);
    Entry& entry = it->second;
    if (fresh) {
      entry = {std::move(fragment), order_.insert(order_.end(), &it->first), size};
      bytes_ += size;
    } else if (fragment->is_settled() && !entry.fragment->is_settled()) {  // replaces one that was not built
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
  // Sets the limit in bytes. If it is lowered, fragments beyond it are removed as new ones are inserted.
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
  static constexpr size_t kMostAtOnce = 16;  // how many are removed for one new fragment
  mutable Mutex mutex_;
  std::unordered_map<std::string, Entry> known_;
  std::list<const std::string*> order_;  // keys of the fragments, the most recently used last
  size_t bytes_ = 0, limit_ = 256 << 20;
};

}  // namespace tokenfst
