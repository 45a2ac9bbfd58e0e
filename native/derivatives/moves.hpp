// Moves, the arcs of a derivative's linear form: disjoint byte sets, each with the expression that is left after it.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "expressions/arena.hpp"

namespace tokenfst {

struct Move {
  ByteSet set;
  NodeId target;
};
using Moves = std::vector<Move>;

// Merges moves with equal targets; the result is sorted by target.
inline Moves merge_equal(Moves moves) {
  if (!std::ranges::is_sorted(moves, {}, &Move::target)) std::ranges::stable_sort(moves, {}, &Move::target);
  size_t kept = 0;
  for (size_t i = 1; i < moves.size(); ++i) {
    if (moves[i].target == moves[kept].target) moves[kept].set = moves[kept].set | moves[i].set;
    else moves[++kept] = moves[i];
  }
  if (!moves.empty()) moves.resize(kept + 1);
  return moves;
}

// Appends the moves of a part, each followed by `rest`.
inline void append(Arena& arena, Moves& all, const Moves& part, NodeId rest) {
  all.reserve(all.size() + part.size());
  for (const Move& move : part) {
    if (NodeId target = arena.concat(move.target, rest); target != kEmpty) all.push_back({move.set, target});
  }
}

// Makes overlapping moves disjoint: an overlap leads to the union of the targets.
inline Moves unite(Arena& arena, const Moves& all) {
  std::vector<std::pair<ByteSet, std::vector<NodeId>>> parts;
  for (const Move& move : all) {
    ByteSet left = move.set;
    for (size_t i = 0, n = parts.size(); i < n && !left.empty(); ++i) {
      ByteSet both = parts[i].first & left;
      if (both.empty()) continue;
      left = left - both;
      if (both == parts[i].first) {
        parts[i].second.push_back(move.target);
      } else {
        parts[i].first = parts[i].first - both;
        auto targets = parts[i].second;
        targets.push_back(move.target);
        parts.emplace_back(both, std::move(targets));
      }
    }
    if (!left.empty()) parts.emplace_back(left, std::vector<NodeId>{move.target});
  }
  Moves result;
  for (auto& [set, targets] : parts) result.push_back({set, targets.size() == 1 ? targets[0] : arena.any_of(targets)});
  return merge_equal(result);
}

// The moves of an intersection: both parts move by the same byte.
inline Moves product(Arena& arena, const Moves& xs, const Moves& ys) {
  Moves result;
  for (const Move& x : xs) {
    for (const Move& y : ys) {
      ByteSet both = x.set & y.set;
      if (both.empty()) continue;
      NodeId parts[] = {x.target, y.target};
      if (NodeId target = arena.all_of(parts); target != kEmpty) result.push_back({both, target});
    }
  }
  return result;
}

}  // namespace tokenfst
