// Finite sets of words as minimal acyclic automata.
//
// A Lexicon is built from sorted words in one pass (Daciuk, Mihov, B. Watson, R. Watson, "Incremental construction of
// minimal acyclic finite-state automata", Computational Linguistics 2000). The part of the last word that a new word
// does not share can never change again, so its states are looked up in a register of all finished states, and only
// states that differ from all of them are kept. In addition a state holds the number of words that end in it or below,
// and an arc the number of words that come before it in its state. Summed along a path, these numbers give a word's
// position in byte order, without a table of words (Lucchesi, Kowaltowski, "Applications of finite automata
// representing large vocabularies", 1993). Memory: 9 bytes for each arc, 13 for each state. Rejected: dense tables,
// with an entry for each byte class of each state, since most states have one arc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calls/budget.hpp"
#include "support/bytes.hpp"

namespace tokenfst {

class Lexicon {
 public:
  // Builds the automaton of words in any order, none of them empty; duplicates count once. O(total length) after
  // sorting. Throws BudgetExceeded.
  Lexicon(std::vector<std::string_view> words, uint64_t bytes, double seconds) : bytes_limit_(bytes) {
    if (!std::ranges::is_sorted(words)) std::ranges::sort(words);
    words.erase(std::unique(words.begin(), words.end()), words.end());
    if (!words.empty() && words[0].empty()) throw Error(Fault::Constraint, "a set of words must not hold the empty word");
    Deadline deadline(seconds);
    std::vector<Open> path(1);
    std::string_view previous;
    register_.assign(1024, kFree);
    for (std::string_view word : words) total_length_ += word.size();
    for (size_t k = 0; k < words.size(); ++k) {
      if (k % 1024 == 0 && deadline.expired()) throw BudgetExceeded("seconds", seconds, "a set of words");
      std::string_view word = words[k];
      size_t common =
          std::mismatch(word.begin(), word.begin() + std::min(word.size(), previous.size()), previous.begin()).first - word.begin();
      freeze(path, previous.size(), common);
      if (path.size() < word.size() + 1) path.resize(word.size() + 1);
      for (size_t depth = common; depth < word.size(); ++depth) {
        path[depth].arcs.push_back({static_cast<uint8_t>(word[depth]), 0});
        path[depth + 1].arcs.clear();
        path[depth + 1].accepting = false;
      }
      path[word.size()].accepting = true;
      previous = word;
    }
    freeze(path, previous.size(), 0);
    root_ = intern(path[0]);
    register_ = {};
    for (auto* each : {&first_, &targets_, &skips_, &counts_, &nearest_}) each->shrink_to_fit();
  }

  struct Arc {
    uint8_t byte;
    uint32_t target;
    uint32_t skip;  // how many words of the source state come before those of this arc
  };
  uint32_t root() const { return root_; }  // the start state
  size_t num_states() const { return accepting_.size(); }
  size_t num_arcs() const { return labels_.size(); }
  uint32_t size() const { return counts_[root_]; }  // the number of words
  bool accepting(uint32_t state) const { return accepting_[state]; }    // whether a word ends here
  uint32_t count(uint32_t state) const { return counts_[state]; }      // how many words end here or below
  uint32_t nearest(uint32_t state) const { return nearest_[state]; }   // bytes to the end of the shortest continuation
  bool has_arcs(uint32_t state) const { return first_[state] != end_of(state); }
  // Calls f for each arc, in ascending order of bytes.
  template <class F>
  void each_arc(uint32_t state, F&& f) const {
    for (uint32_t k = first_[state], end = end_of(state); k < end; ++k) f(Arc{labels_[k], targets_[k], skips_[k]});
  }
  // The bytes of all arcs.
  std::span<const uint8_t> labels() const { return labels_; }
  // The bytes of all words together.
  size_t total_length() const { return total_length_; }
  size_t memory() const {
    return (first_.capacity() + targets_.capacity() + skips_.capacity() + counts_.capacity() + nearest_.capacity() + register_.capacity()) *
               4 +
           accepting_.capacity() + labels_.capacity();
  }

  // All words, in byte order.
  std::vector<std::string> words() const {
    std::vector<std::string> found;
    std::string word;
    struct Place {
      uint32_t state, arc;
    };
    std::vector<Place> path;
    auto enter = [&](uint32_t state) {
      if (accepting_[state]) found.push_back(word);
      path.push_back({state, first_[state]});
    };
    for (enter(root_); !path.empty();) {
      auto& [state, arc] = path.back();
      if (arc == end_of(state)) {
        path.pop_back();
        if (!word.empty()) word.pop_back();
        continue;
      }
      word += static_cast<char>(labels_[arc]);
      enter(targets_[arc++]);
    }
    return found;
  }

  // The shortest unused word that begins with the path to `state`: its position in byte order, and the bytes that follow the
  // path. `offset` words come before the words of the state, and `used` has positions, ascending. Best-first search by
  // `nearest`. Raises an Error if no unused word is left.
  struct Word {
    uint32_t place, length;
  };
  Word shortest_unused(uint32_t state, uint32_t offset, std::span<const uint32_t> used) const {
    struct Item {
      uint32_t total, length, state, offset;
      bool operator>(const Item& other) const { return total > other.total; }
    };
    std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
    queue.push({nearest_[state], 0, state, offset});
    while (!queue.empty()) {
      const Item item = queue.top();
      queue.pop();
      if (item.state == kFree) return {item.offset, item.length};
      if (accepting_[item.state] && !std::ranges::binary_search(used, item.offset))
        queue.push({item.length, item.length, kFree, item.offset});
      each_arc(item.state, [&](Arc arc) {
        if (left(arc.target, item.offset + arc.skip, used) > 0) {
          queue.push({item.length + 1 + nearest_[arc.target], item.length + 1, arc.target, item.offset + arc.skip});
        }
      });
    }
    throw Error(Fault::Constraint, "no unused word is left");
  }
  // How many of the words that begin with the path to `state` are not used (arguments as above).
  uint32_t left(uint32_t state, uint32_t offset, std::span<const uint32_t> used) const {
    auto begin = std::ranges::lower_bound(used, offset);
    auto end = std::lower_bound(begin, used.end(), offset + counts_[state]);
    return counts_[state] - static_cast<uint32_t>(end - begin);
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Open {  // a state on the path of the last word, which may still grow
    bool accepting = false;
    std::vector<std::pair<uint8_t, uint32_t>> arcs;
  };

  uint32_t end_of(uint32_t state) const { return state + 1 < first_.size() ? first_[state + 1] : static_cast<uint32_t>(labels_.size()); }

  // Finishes the states of the path below `kept`, deepest first.
  void freeze(std::vector<Open>& path, size_t length, size_t kept) {
    for (size_t depth = length; depth > kept; --depth) path[depth - 1].arcs.back().second = intern(path[depth]);
  }

  uint32_t intern(const Open& open) {
    size_t slot = hash(open.accepting, open.arcs) & (register_.size() - 1);
    for (; register_[slot] != kFree; slot = (slot + 1) & (register_.size() - 1)) {
      if (same(register_[slot], open)) return register_[slot];
    }
    const uint32_t state = static_cast<uint32_t>(accepting_.size());
    uint32_t count = open.accepting, nearest = open.accepting ? 0 : kFree;
    first_.push_back(static_cast<uint32_t>(labels_.size()));
    for (auto [byte, target] : open.arcs) {
      labels_.push_back(byte);
      targets_.push_back(target);
      skips_.push_back(count);
      count += counts_[target];
      nearest = std::min(nearest, nearest_[target] + 1);
    }
    accepting_.push_back(open.accepting);
    counts_.push_back(count);
    nearest_.push_back(nearest);
    register_[slot] = state;
    if (accepting_.size() * 2 > register_.size()) {
      if (memory() + register_.size() * 8 > bytes_limit_)
        throw BudgetExceeded("bytes", static_cast<double>(bytes_limit_), "a set of words");
      std::vector<uint32_t> larger(register_.size() * 4, kFree);
      for (uint32_t known : register_) {
        if (known == kFree) continue;
        size_t at = hash_of(known) & (larger.size() - 1);
        while (larger[at] != kFree) at = (at + 1) & (larger.size() - 1);
        larger[at] = known;
      }
      register_ = std::move(larger);
    }
    return state;
  }
  bool same(uint32_t state, const Open& open) const {
    const uint32_t begin = first_[state];
    if (accepting_[state] != open.accepting || end_of(state) - begin != open.arcs.size()) return false;
    for (uint32_t k = 0; k < open.arcs.size(); ++k) {
      if (labels_[begin + k] != open.arcs[k].first || targets_[begin + k] != open.arcs[k].second) return false;
    }
    return true;
  }
  static uint64_t hash(bool accepting, std::span<const std::pair<uint8_t, uint32_t>> arcs) {
    uint64_t value = accepting;
    for (auto [byte, target] : arcs) value = mix(value, uint64_t{target} << 8 | byte);
    return value;
  }
  uint64_t hash_of(uint32_t state) const {
    uint64_t value = accepting_[state];
    each_arc(state, [&](Arc arc) { value = mix(value, uint64_t{arc.target} << 8 | arc.byte); });
    return value;
  }

  uint64_t bytes_limit_;
  uint32_t root_ = 0;
  size_t total_length_ = 0;
  std::vector<uint32_t> first_, targets_, skips_, counts_, nearest_, register_;
  std::vector<uint8_t> accepting_, labels_;
};

}  // namespace tokenfst
