// Splits an expression into parts that decide whether the whole has a word, without a search of the whole.
//
// A concatenation has a word if all its parts have one. An intersection has none if two of its parts have no common
// word. A search of the whole would visit the product of all its parts before it finds that: 20,000 states for "one of
// seven words" in a string that must differ from another one. Neither holds if the words of a part depend on its
// context.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "expressions/arena.hpp"

namespace tokenfst {

constexpr uint16_t kDependent = kHasBehind | kHasVar | kHasToken | kHasMark | kHasFresh;

// The parts of a concatenation that may have no word. No value for other expressions, and if such a part depends on its context.
inline std::optional<std::vector<NodeId>> uncertain_parts(const Arena& arena, NodeId whole) {
  if (arena[whole].kind != Kind::Concat) return std::nullopt;
  std::vector<NodeId> uncertain;
  for (NodeId rest = whole;; rest = arena[rest].b) {
    const bool last = arena[rest].kind != Kind::Concat;
    const NodeId part = last ? rest : arena[rest].a;
    if (!arena[part].certain && !arena[part].nullable) uncertain.push_back(part);
    if (last) break;
  }
  if (std::ranges::any_of(uncertain, [&](NodeId part) { return arena[part].has(kDependent); })) return std::nullopt;
  return uncertain;
}

// The pairs of parts of an intersection of more than two that may have no common word, at most `limit`. Pairs of
// complements are left out: they mostly have one.
inline std::vector<std::pair<NodeId, NodeId>> pairs_of_parts(const Arena& arena, NodeId whole, size_t limit) {
  std::vector<std::pair<NodeId, NodeId>> pairs;
  if (arena[whole].kind != Kind::And || arena[whole].b <= 2 || arena[whole].has(kDependent)) return pairs;
  const auto is_complement = [&](NodeId part) { return arena[part].kind == Kind::Not; };
  const std::span<const uint32_t> parts = arena.list(whole);
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t k = i + 1; k < parts.size() && pairs.size() < limit; ++k) {
      if (!is_complement(parts[i]) || !is_complement(parts[k])) pairs.emplace_back(parts[i], parts[k]);
    }
  }
  return pairs;
}

}  // namespace tokenfst
