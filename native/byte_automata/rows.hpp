// The rows of a byte automaton: one state for each column, made when a walk comes to it.
//
// A row is published as soon as it is known which columns lead on at all; those are pending. Most are never walked: of a
// string before what follows it, say, the characters of every length, in every state that ends one. Whoever walks a pending
// column makes it, under the automaton's mutex, and others that lead where it leads; what was made never changes. Readers
// take no lock: an entry is one word, stored and loaded at once.
// Rejected: rows made whole, which spent most of their time on states that no token enters.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>

#include "support/reused_memory.hpp"

namespace tokenfst {

using State = uint32_t;
constexpr State kDead = 0;
constexpr State kPending = 1u << 31;  // no number of a state: an entry that is not made yet

inline State load_entry(const State* row, uint32_t column) {
  return std::atomic_ref(const_cast<State&>(row[column])).load(std::memory_order_acquire);
}
inline State store_entry(State* row, uint32_t column, State state) {
  std::atomic_ref(row[column]).store(state, std::memory_order_release);
  return state;
}

// Where rows lie, in blocks: they never move.
class Rows {
 public:
  // A row of so many columns, all DEAD.
  State* add(uint32_t columns) {
    if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < columns) {
      blocks_.emplace_back().reserve(std::max<size_t>(columns, std::clamp(memory_ / sizeof(State), kLeastBlock, kBlock)));
      memory_ += blocks_.back().capacity() * sizeof(State);
    }
    auto& block = blocks_.back();
    block.resize(block.size() + columns);
    return block.data() + block.size() - columns;
  }
  size_t memory() const { return memory_; }

 private:
  static constexpr size_t kLeastBlock = 256, kBlock = 16384;  // entries; as many as there are, so that few rows take little

  std::deque<ReusedVector<State>> blocks_;  // which do not grow
  size_t memory_ = 0;
};

}  // namespace tokenfst
