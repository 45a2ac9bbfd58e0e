// A cache of numbers by pairs of numbers: a new entry replaces the old one in its slot.
//
// It takes no memory before the first entry. Then it grows with the entries that are made, to fewer than eight slots for
// each object of the table that it serves. It has no lock: one thread uses it at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "containers/reused_memory.hpp"
#include "support/bytes.hpp"

namespace tokenfst {

class PairCache {
 public:
  static constexpr uint32_t kUnknown = UINT32_MAX;

  // The result for a pair, or kUnknown.
  uint32_t find(uint32_t a, uint32_t b) const {
    if (slots_.empty()) return kUnknown;
    const Slot& known = slots_[place(a, b)];
    return known.a == a && known.b == b ? known.result : kUnknown;
  }
  // Call this before `entries` entries are set. Returns the number of slots to pass to make() first, or 0 if there are
  // enough. `objects`: the number of objects in the table that the cache serves.
  size_t wanted(size_t entries, size_t objects) {
    made_ += entries;
    if (made_ <= slots_.size() || (!slots_.empty() && slots_.size() >= objects)) return 0;
    return std::max(kLeast, std::bit_ceil(std::min(2 * made_, 4 * objects)));
  }
  // Allocates so many slots, a power of two; all entries are forgotten.
  void make(size_t slots) { slots_.assign(slots, {}); }
  // Stores a result; there must be slots.
  void set(uint32_t a, uint32_t b, uint32_t result) { slots_[place(a, b)] = {a, b, result}; }
  void clear() { slots_ = {}, made_ = 0; }

  size_t memory() const { return bytes(slots_.capacity()); }
  static size_t bytes(size_t slots) { return slots * sizeof(Slot); }

 private:
  struct Slot {
    uint32_t a = 0, b = 0, result = kUnknown;
  };
  static constexpr size_t kLeast = 64;
  size_t place(uint32_t a, uint32_t b) const { return mix(a, b) & (slots_.size() - 1); }

  ReusedVector<Slot> slots_;  // none, or a power of two
  size_t made_ = 0;           // entries, replaced ones included
};

}  // namespace tokenfst
