// Finds numbered objects by their hashes: open addressing, at most half full. The slot keeps a part of the hash, which
// rules most other objects out without comparing them, and which gives the new slot when the table grows.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include "support/reused_memory.hpp"

namespace tokenfst {

class HashIndex {
 public:
  static constexpr uint32_t kNothing = UINT32_MAX;

  size_t memory() const { return slots_.capacity() * sizeof(Slot); }
  bool is_full() const { return (size_ + 1) * 2 > slots_.size(); }  // adding one more doubles the table

  // The number of an object with this hash that `is` accepts, or kNothing.
  template <class Is>
  uint32_t find(uint32_t hash, Is&& is) const {
    const size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask; slots_[at].number != kNothing; at = (at + 1) & mask) {
      if (slots_[at].hash == hash && is(slots_[at].number)) return slots_[at].number;
    }
    return kNothing;
  }
  void add(uint32_t hash, uint32_t number) {
    if (is_full()) grow(slots_.size() * 2);
    ++size_;
    place({hash, number});
  }
  // Makes room for `count` objects in all, at once; `room_for` says how many bytes that takes.
  void expect(size_t count) {
    if (const size_t wanted = slots_for(count); wanted > slots_.size()) grow(wanted);
  }
  size_t room_for(size_t count) const {
    const size_t wanted = slots_for(count);
    return wanted > slots_.size() ? (wanted - slots_.size()) * sizeof(Slot) : 0;
  }

 private:
  struct Slot {
    uint32_t hash = 0, number = kNothing;
  };
  static size_t slots_for(size_t count) { return std::bit_ceil(2 * count); }
  void grow(size_t slots) {
    const ReusedVector<Slot> before = std::exchange(slots_, ReusedVector<Slot>(slots));
    for (const Slot& slot : before) {
      if (slot.number != kNothing) place(slot);
    }
  }
  void place(Slot made) {
    const size_t mask = slots_.size() - 1;
    size_t at = made.hash & mask;
    while (slots_[at].number != kNothing) at = (at + 1) & mask;
    slots_[at] = made;
  }

  ReusedVector<Slot> slots_ = ReusedVector<Slot>(64);  // the size is a power of two; an automaton of few states takes little
  size_t size_ = 0;
};

}  // namespace tokenfst
