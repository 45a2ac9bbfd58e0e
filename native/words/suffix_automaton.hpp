// The suffix automaton of a text, which accepts its substrings: all of them, or those that begin and end at marked places.
//
// Blumer et al., "The smallest automaton recognizing the subwords of a text" (TCS 1985): a state is a set of places at
// which its words end. Two such sets are disjoint, or one contains the other, so there are at most 2n - 1 states for n
// bytes, and 3n - 4 edges. Appending one byte changes few states, so construction takes linear time in all.
//
// Marked beginnings: every byte has a mark in its symbol (bit 8) if words may begin there. The automaton of the marked
// text is built, words begin with a marked symbol, and then the marks are removed: if a byte has an edge with and an
// edge without a mark, both targets are followed, as a set. A mark depends only on this character and the one before,
// so two targets differ within one character at most, and the bound of 2n - 1 holds for marked places too (Inenaga and
// Takeda, "On-line linear-time construction of word suffix trees", CPM 2006, for the tree).
//
// Cost: linear in the text; an edge takes 12 bytes during construction, and 8 in the result.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "calls/budget.hpp"

namespace tokenfst {

// A deterministic automaton as lists of edges. State 0 is dead and 1 the start; every other state reaches acceptance.
struct SparseTables {
  std::array<uint8_t, 256> classes{};
  std::vector<uint32_t> offsets;  // the index of each state's first edge; one more than there are states
  std::vector<uint32_t> edges;    // pairs (class, next state), ascending classes within a state
  std::vector<uint8_t> accepting;
};

class SuffixAutomaton {
 public:
  // `begins` and `ends`: for each place from 0 to the length of the text, whether a word may begin, or end, there.
  SuffixAutomaton(std::string_view text, std::span<const uint8_t> begins, std::span<const uint8_t> ends) {
    states_.reserve(2 * text.size() + 2);
    edges_.reserve(3 * text.size() + 2);
    states_.push_back({});
    root_.fill(kNone);
    for (size_t i = 0; i <= text.size(); ++i) states_[0].accepting |= begins[i] && ends[i];
    uint32_t last = 0;
    for (size_t i = 0; i < text.size(); ++i) last = extend(last, static_cast<uint8_t>(text[i]) | (begins[i] ? kMark : 0), ends[i + 1]);
    // If a word ends at a place, every shorter word of its chain of suffix links ends there too.
    std::vector<uint32_t> shorter(text.size() + 2), order(states_.size());
    for (const State& state : states_) ++shorter[state.length + 1];
    for (size_t length = 1; length < shorter.size(); ++length) shorter[length] += shorter[length - 1];
    for (uint32_t q = 0; q < order.size(); ++q) order[shorter[states_[q].length]++] = q;
    for (size_t k = order.size(); k-- > 1;) {
      if (uint32_t link = states_[order[k]].link) states_[link].accepting |= states_[order[k]].accepting;
    }
  }

  // The part that can be reached, with marks removed. Throws BudgetExceeded beyond `limit` states.
  SparseTables tables(uint64_t limit) const {
    SparseTables out;
    number_bytes(out);
    std::vector<uint32_t> single(states_.size(), 0);
    std::map<std::vector<uint32_t>, uint32_t> several;
    std::vector<uint32_t> members{0, 0}, first{0, 1, 2};  // the members of each state, from first[state] on
    members.reserve(states_.size() + 2);
    first.reserve(states_.size() + 2);
    out.accepting = {0, states_[0].accepting};
    out.offsets = {0, 0};
    auto numbered = [&](const std::vector<uint32_t>& set) {
      uint32_t& known = set.size() == 1 ? single[set[0]] : several.try_emplace(set, 0).first->second;
      if (known == 0) {
        known = static_cast<uint32_t>(out.accepting.size());
        if (known > limit) throw BudgetExceeded("states", static_cast<double>(limit), "substring_of(...)");
        out.accepting.push_back(std::ranges::any_of(set, [&](uint32_t q) { return states_[q].accepting != 0; }));
        members.insert(members.end(), set.begin(), set.end());
        first.push_back(static_cast<uint32_t>(members.size()));
      }
      return known;
    };
    std::vector<std::pair<uint32_t, uint32_t>> found;  // class, target
    std::vector<uint32_t> set;
    for (uint32_t state = 1; state < out.accepting.size(); ++state) {
      found.clear();
      for (uint32_t k = first[state]; k < first[state + 1]; ++k) {
        each_edge(members[k], [&](uint32_t symbol, uint32_t target) {
          if (state > 1 || symbol & kMark) found.emplace_back(out.classes[symbol & 0xff], target);
        });
      }
      std::ranges::sort(found);
      for (size_t i = 0; i < found.size();) {
        set.clear();
        size_t end = i;
        for (; end < found.size() && found[end].first == found[i].first; ++end) {
          if (set.empty() || set.back() != found[end].second) set.push_back(found[end].second);
        }
        out.edges.push_back(found[i].first);
        out.edges.push_back(numbered(set));
        i = end;
      }
      out.offsets.push_back(static_cast<uint32_t>(out.edges.size() / 2));
    }
    return out;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX, kMark = 256;
  struct State {
    // The length of the longest word; the state of its longest proper suffix in another state; the first edge of its list.
    uint32_t length = 0, link = 0, head = kNone;
    uint8_t accepting = 0;
  };
  struct Edge {
    uint32_t symbol, target, next;
  };

  template <class F>
  void each_edge(uint32_t state, F f) const {
    for (uint32_t e = states_[state].head; e != kNone; e = edges_[e].next) f(edges_[e].symbol, edges_[e].target);
  }
  uint32_t find(uint32_t state, uint32_t symbol) const {
    if (state == 0) return root_[symbol];
    uint32_t e = states_[state].head;
    while (e != kNone && edges_[e].symbol != symbol) e = edges_[e].next;
    return e;
  }
  void add(uint32_t state, uint32_t symbol, uint32_t target) {
    if (state == 0) root_[symbol] = static_cast<uint32_t>(edges_.size());
    edges_.push_back({symbol, target, states_[state].head});
    states_[state].head = static_cast<uint32_t>(edges_.size() - 1);
  }
  uint32_t add_state(uint32_t length, uint8_t accepting) {
    states_.push_back({length, 0, kNone, accepting});
    return static_cast<uint32_t>(states_.size() - 1);
  }

  // Appends one symbol to the text; `last` is the state of the whole text. Returns the new state of the whole text.
  uint32_t extend(uint32_t last, uint32_t symbol, uint8_t accepting) {
    const uint32_t now = add_state(states_[last].length + 1, accepting);
    uint32_t q = last;
    for (;; q = states_[q].link) {
      if (uint32_t e = find(q, symbol); e != kNone) {
        states_[now].link = cloned(q, symbol, edges_[e].target);
        return now;
      }
      add(q, symbol, now);
      if (q == 0) return now;
    }
  }

  // Returns the state of the longest word of `q` followed by `symbol`: `target`, or a copy that is split off from it.
  uint32_t cloned(uint32_t q, uint32_t symbol, uint32_t target) {
    if (states_[target].length == states_[q].length + 1) return target;
    const uint32_t clone = add_state(states_[q].length + 1, 0);
    for (uint32_t e = states_[target].head; e != kNone; e = edges_[e].next) {
      const Edge edge = edges_[e];
      add(clone, edge.symbol, edge.target);
    }
    states_[clone].link = states_[target].link;
    states_[target].link = clone;
    for (;; q = states_[q].link) {
      uint32_t e = find(q, symbol);
      if (e == kNone || edges_[e].target != target) break;
      edges_[e].target = clone;
      if (q == 0) break;
    }
    return clone;
  }

  // Makes each byte of the text a class, and all other bytes together one class.
  void number_bytes(SparseTables& out) const {
    std::array<bool, 256> used{};
    each_edge(0, [&](uint32_t symbol, uint32_t) { used[symbol & 0xff] = true; });
    uint32_t count = 0;
    for (int byte = 0; byte < 256; ++byte) {
      if (used[byte]) out.classes[byte] = static_cast<uint8_t>(count++);
    }
    for (int byte = 0; byte < 256; ++byte) {
      if (!used[byte]) out.classes[byte] = static_cast<uint8_t>(count);
    }
  }

  std::vector<State> states_;
  std::vector<Edge> edges_;
  std::array<uint32_t, 512> root_;
};

}  // namespace tokenfst
