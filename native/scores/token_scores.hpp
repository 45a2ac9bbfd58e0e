// The score of every token at a position of a weighted automaton: the log of the total weight of the paths after the
// token's bytes, divided by the total weight before them.
//
// One walk of the vocabulary's trie with the position as its state: tokens with a common prefix share its steps, and a
// subtree is skipped when no path is left. If all paths are in one state that every byte leads back to at no cost, the
// whole subtree has one score. Cost: O(nodes reached x states of their positions).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scores/weighted_bytes.hpp"
#include "vocabulary/trie.hpp"

namespace tokenfst {

// Writes the scores of the tokens in `trie`. Scores of tokens that no path reads, or that are not in the trie, stay
// unchanged. Raises BudgetExceeded("seconds").
inline void token_scores(const WeightedBytes& machine, const Trie& trie, std::span<const Weighted> start, std::span<float> scores,
                         TimeLimit& time_limit) {
  // The position at a depth: all[begin, end), or, if that range is empty, the single state `only`. Deeper positions lie
  // after `end`.
  struct Place {
    Weighted only;
    size_t begin, end;
    bool is_single() const { return begin == end; }
  };
  const double before = log_sum(start);
  WeightedSteps steps(machine);
  std::vector<Weighted> all(start.begin(), start.end());
  std::vector<Place> places(trie.max_depth() + 1);
  places[0] = {{0, 0}, 0, all.size()};
  const uint32_t count = static_cast<uint32_t>(trie.num_nodes());
  for (uint32_t i = 1; i < count;) {
    const TrieNode& node = trie.node(i);
    const Place& from = places[node.depth - 1u];
    Place& to = places[node.depth];
    time_limit.step(1 + static_cast<uint32_t>(from.end - from.begin));
    bool alive = true;
    double cost = from.only.weight;
    const auto arcs = from.is_single() ? machine.arcs(from.only.state, node.byte, cost) : std::span<const Weighted>();
    if (from.is_single() && arcs.size() <= 1) {
      alive = arcs.size() == 1;
      if (alive) to = {{arcs[0].state, cost + arcs[0].weight}, from.end, from.end};
    } else {
      all.resize(from.end);
      if (from.is_single()) all.push_back(from.only);
      const size_t end = all.size();
      steps.step(all, from.is_single() ? from.end : from.begin, end, node.byte);
      alive = all.size() > end;
      if (all.size() == end + 1) to = {all[end], end, end};
      else to = {{0, 0}, end, all.size()};
    }
    if (!alive) {
      i = node.end;
      continue;
    }
    const bool rests = to.is_single() && machine.rests(to.only.state);
    const uint32_t next = rests ? node.end : i + 1;
    const uint32_t first = node.first, last = trie.node(next).first;
    if (last > first) {
      const double sum = to.is_single() ? to.only.weight : log_sum({all.data() + to.begin, to.end - to.begin});
      for (uint32_t k = first; k < last; ++k) scores[trie.string_at(k)] = static_cast<float>(sum - before);
    }
    i = next;
  }
}

}  // namespace tokenfst
