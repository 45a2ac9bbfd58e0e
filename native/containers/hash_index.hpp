// Finds numbered objects by their hashes: open addressing, at most half full. The slot keeps a part of the hash, which
// rules most other objects out without comparing them, and which gives the new slot when the table grows.
//
// A table grows at once, or little by little: then a larger table that is prepared elsewhere takes the place of the old
// one, each addition moves some slots of the old table to the new one, and look-ups search both until all are moved.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include "containers/reused_memory.hpp"

namespace tokenfst {

class HashIndex {
 public:
  static constexpr uint32_t kNothing = UINT32_MAX;

  struct Slot {
    uint32_t hash = 0, number = kNothing;
  };
  using Slots = ReusedVector<Slot>;

  size_t memory() const { return (slots_.capacity() + before_.capacity()) * sizeof(Slot); }
  size_t slots() const { return slots_.size(); }
  // Whether the next addition doubles the table.
  bool is_full() const { return (size_ + 1) * 2 > slots_.size(); }

  // The number of an object with this hash that `is` accepts, or kNothing.
  template <class Is>
  uint32_t find(uint32_t hash, Is&& is) const {
    const uint32_t found = find_in(slots_, hash, is);
    return found == kNothing && !before_.empty() ? find_in(before_, hash, is) : found;
  }
  // Adds an object that is not there yet.
  void add(uint32_t hash, uint32_t number) {
    if (is_full()) grow(slots_.size() * 2);
    ++size_;
    place({hash, number});
    if (!before_.empty()) move(kMovedAtOnce);
  }
  // Replaces the table by a larger one, which is empty; the slots are moved little by little.
  void grow_into(Slots&& larger) {
    move(before_.size());
    before_ = std::exchange(slots_, std::move(larger));
    moved_ = 0;
  }
  // Makes room for `count` objects in all, at once; room_for() says how many more bytes that takes.
  void expect(size_t count) {
    if (const size_t wanted = slots_for(count); wanted > slots_.size()) grow(wanted);
  }
  size_t room_for(size_t count) const {
    const size_t wanted = slots_for(count);
    return wanted > slots_.size() ? (wanted - slots_.size()) * sizeof(Slot) : 0;
  }

 private:
  static constexpr size_t kMovedAtOnce = 8;  // so all are moved long before the larger table is full

  template <class Is>
  static uint32_t find_in(const Slots& slots, uint32_t hash, Is& is) {
    const size_t mask = slots.size() - 1;
    for (size_t at = hash & mask; slots[at].number != kNothing; at = (at + 1) & mask) {
      if (slots[at].hash == hash && is(slots[at].number)) return slots[at].number;
    }
    return kNothing;
  }
  static size_t slots_for(size_t count) { return std::bit_ceil(2 * count); }
  void grow(size_t slots) {
    grow_into(Slots(slots));
    move(before_.size());
  }
  void move(size_t count) {
    for (const size_t end = std::min(before_.size(), moved_ + count); moved_ < end; ++moved_) {
      if (before_[moved_].number != kNothing) place(before_[moved_]);
    }
    if (moved_ == before_.size()) before_ = Slots(), moved_ = 0;
  }
  void place(Slot made) {
    const size_t mask = slots_.size() - 1;
    size_t at = made.hash & mask;
    while (slots_[at].number != kNothing) at = (at + 1) & mask;
    slots_[at] = made;
  }

  Slots slots_ = Slots(16);  // the size is a power of two; an automaton of few states takes little
  Slots before_;             // the table before, until all of its slots have been moved
  size_t moved_ = 0;         // how many of them have been moved
  size_t size_ = 0;
};

}  // namespace tokenfst
