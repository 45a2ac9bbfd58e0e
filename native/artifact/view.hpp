// The content of an artifact as it lies in memory, and the only place where all of it is checked
// (docs/serving/format.md).
//
// A file is untrusted. After check_view() it is safe to walk: every number that is used as an index or an offset is within
// its bounds, look-ups end, and rows have the order that their readers expect. The meaning of the numbers is not checked:
// with a wrong distance a decoder gives wrong answers, but never reads outside of the arrays.
#pragma once

#include <memory>
#include <span>
#include <unordered_set>

#include "token_automata/learned.hpp"
#include "vocabulary/vocabulary.hpp"

namespace tokenfst {

// Bits of the kinds of a mark, beside those of `MarkKind`: DistinctFacts::few_endings and DistinctFacts::values.
constexpr uint32_t kFewEndingsBit = 4, kValuesBit = 8;

// The arrays of a push-down automaton, which lie in a file.
struct StackView {
  std::span<const uint32_t> states, effects, pushes, reveals, frames, chains, asks;
  bool empty() const { return states.empty(); }
};

// The arrays of an automaton, which lie in a file; `owner` keeps them alive.
struct View {
  const uint8_t* classes;
  std::span<const uint32_t> table, mask, distance, worst, mask_row, flip_offsets, flips, rows;
  std::span<const uint8_t> accepting;
  uint32_t num_classes, start, inner_start;
  std::shared_ptr<void> owner;
  StackView stacks{};
  std::span<const uint32_t> marks{};
  std::span<const uint32_t> columns{};
};

// Raises Corrupt with a rule of docs/serving/format.md that a file violates.
inline void require(bool holds, const char* rule) {
  if (!holds) throw Error(Fault::Corrupt, rule);
}
// Checks rows of three numbers: they are sorted by their first two numbers, and no two rows agree in both.
void require_ascending(std::span<const uint32_t> rows, const char* rule);

// Checks everything that steps and look-ups on the stack rely on: indices are within bounds, and each step of a look-up
// goes one node further down the stack.
void check_stacks(const StackView& view, size_t states, std::span<const uint32_t> roots, std::span<const uint32_t> worst, size_t masks);

// Whether all values are below a bound. The loop has no branch, so it runs at the speed of memory.
bool all_below(std::span<const uint32_t> values, size_t bound);

// Checks the masks of a file: rows and flips exist, and flips ascend within the vocabulary. O(size of the arrays).
void check_masks(std::span<const uint32_t> mask_row, std::span<const uint32_t> flip_offsets, std::span<const uint32_t> flips,
                 std::span<const uint32_t> rows, const Vocabulary& vocabulary);

// Raises Fault::Corrupt if a rule of docs/serving/format.md is violated. O(size of the arrays).
void check_view(const View& view, const Vocabulary& vocabulary);

// Checks learned facts (docs/serving/format.md, version 5): indices are within bounds, and look-ups end. O(size of the
// arrays).
void check_learned(const LearnedView& view, const Vocabulary& vocabulary);

}  // namespace tokenfst
