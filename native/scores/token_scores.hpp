// The score of every token at a position of a weighted automaton: the log of what the weights of the paths add up to behind the
// token's bytes, divided by what they add up to before.
//
// One walk of the vocabulary's trie with the position as its state; tokens that share a beginning share its steps, and where no path is
// left the subtree is skipped. Where all paths are in one state that every byte leads back to at no cost, the subtree has one score.
// Cost: O(nodes that are reached x states of their positions).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scores/weighted_bytes.hpp"
#include "vocabulary/trie.hpp"

namespace tokenfst {

// Writes the scores of the tokens in `trie`; those of others stay.
inline void token_scores(const WeightedBytes& machine, const Trie& trie, std::span<const Weighted> start, std::span<float> scores,
                         Pace& pace) {
  const double before = log_sum(start);
  WeightedSteps steps(machine);
  std::vector<Weighted> all(start.begin(), start.end());
  std::vector<std::pair<size_t, size_t>> places(trie.max_depth() + 1);  // of the position at each depth
  places[0] = {0, all.size()};
  const uint32_t count = static_cast<uint32_t>(trie.num_nodes());
  for (uint32_t i = 1; i < count;) {
    const TrieNode& node = trie.node(i);
    const auto [begin, end] = places[node.depth - 1u];
    all.resize(end);
    steps.step(all, begin, end, node.byte);
    pace.step(1 + static_cast<uint32_t>(end - begin));
    if (all.size() == end) {
      i = node.end;
      continue;
    }
    places[node.depth] = {end, all.size()};
    const bool rests = all.size() == end + 1 && machine.rests(all[end].state);
    const uint32_t first = node.first, last = trie.node(rests ? node.end : i + 1).first;
    if (last > first) {
      const float score = static_cast<float>(log_sum({all.data() + end, all.size() - end}) - before);
      for (uint32_t k = first; k < last; ++k) scores[trie.string_at(k)] = score;
    }
    i = rests ? node.end : i + 1;
  }
}

}  // namespace tokenfst
