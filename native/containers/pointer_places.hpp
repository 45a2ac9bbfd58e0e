// A map from pointers to numbers: open addressing, at most half full. Nothing is removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/bytes.hpp"

namespace tokenfst {

class PointerPlaces {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  size_t size() const { return size_; }
  // The number of a pointer that is not null, or kNone.
  uint32_t find(const void* pointer) const { return slots_.empty() ? kNone : slots_[slot_of(pointer)].second; }
  // Adds a pointer that is not null, unless it is there; returns whether it was added.
  bool add(const void* pointer, uint32_t number) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[slot_of(pointer)];
    if (slot.first) return false;
    slot = {pointer, number};
    ++size_;
    return true;
  }
  // Makes room for `count` pointers in all.
  void expect(size_t count) {
    while (count * 2 > slots_.size()) grow();
  }
  // Calls f(pointer, number) for each entry, in no particular order.
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [pointer, number] : slots_) {
      if (pointer) f(pointer, number);
    }
  }

 private:
  using Slot = std::pair<const void*, uint32_t>;
  static constexpr size_t kFirst = 64;

  // The slot of a pointer, or the one where it is to be.
  size_t slot_of(const void* pointer) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = mix(0, reinterpret_cast<uintptr_t>(pointer)) & mask;
    while (slots_[slot].first && slots_[slot].first != pointer) slot = (slot + 1) & mask;
    return slot;
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? kFirst : slots_.size() * 2, Slot{nullptr, kNone});
    std::swap(before, slots_);
    for (const Slot& each : before) {
      if (each.first) slots_[slot_of(each.first)] = each;
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace tokenfst
