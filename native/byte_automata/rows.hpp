// The rows of a byte automaton: one next state for each column, created when a walk reaches it.
//
// A row is published as soon as it is known which columns may lead on at all; those are pending. Most are never walked:
// for example, in every state that ends a string, the characters of strings of other lengths. Whoever walks a pending
// column creates its entry, together with the other columns that have the same target; a created entry never changes. Readers take no
// lock: an entry is one word, stored and loaded atomically. Several threads may create the same row or entry at the same time: the first
// one publishes it by an exchange, and the others use that. Rejected: creating whole rows, which spent most of the time on states that
// no token enters.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "containers/reused_memory.hpp"

namespace tokenfst {

using State = uint32_t;
constexpr State kDead = 0;
constexpr State kPending = 1u << 31;  // not the number of a state: an entry that has not been created

// Loads an entry of a row that other threads may store; stores an entry, and returns it.
inline State load_entry(const State* row, uint32_t column) {
  return std::atomic_ref(const_cast<State&>(row[column])).load(std::memory_order_acquire);
}
inline State store_entry(State* row, uint32_t column, State state) {
  std::atomic_ref(row[column]).store(state, std::memory_order_release);
  return state;
}
// Stores an entry that other threads may store, too, if it is still pending. Returns the entry that is there then.
//
// An exchange that fails only reads, so it may meet a reader of a whole row, who reads without atomics. ThreadSanitizer takes every
// exchange for a write. Its builds do the same by a load and a store in a spin lock, which orders nothing else (relaxed).
inline State publish_entry(State* row, uint32_t column, State state) {
#ifdef __SANITIZE_THREAD__
  static constinit std::atomic<bool> held{false};
  while (held.exchange(true, std::memory_order_relaxed)) {}
  const State known = load_entry(row, column);
  const State found = known == kPending ? store_entry(row, column, state) : known;
  held.store(false, std::memory_order_relaxed);
  return found;
#else
  State found = kPending;
  const bool first =
      std::atomic_ref(row[column]).compare_exchange_strong(found, state, std::memory_order_acq_rel, std::memory_order_acquire);
  return first ? state : found;
#endif
}

// The memory of rows, in blocks: rows never move. One thread at a time adds rows.
class Rows {
 public:
  // A row of `columns` columns, all DEAD.
  State* add(uint32_t columns) {
    if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < columns) {
      blocks_.emplace_back().reserve(std::max<size_t>(columns, std::clamp(memory_ / sizeof(State), kLeastBlock, kBlock)));
      memory_ += blocks_.back().capacity() * sizeof(State);
    }
    auto& block = blocks_.back();
    block.resize(block.size() + columns);
    return block.data() + block.size() - columns;
  }
  // Takes back the row that was added last, which nobody else has seen.
  void take_back(uint32_t columns) { blocks_.back().resize(blocks_.back().size() - columns); }
  size_t memory() const { return memory_; }

 private:
  static constexpr size_t kLeastBlock = 256, kBlock = 16384;  // entries; a block is as large as all before it

  std::vector<ReusedVector<State>> blocks_;  // which never grow, so that rows do not move
  size_t memory_ = 0;
};

}  // namespace tokenfst
