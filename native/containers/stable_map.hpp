// A growing hash map from 64-bit keys to non-zero 32-bit values, which can be read without a lock.
//
// One writer inserts, under the owner's mutex; nothing is removed. Growing makes a table of four times the size and keeps
// the old one for readers that are still using it. All old tables together have less than a third of the last one's
// slots.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "support/bytes.hpp"

namespace tokenfst {

class StableMap {
 public:
  // The value of `key`, or 0 if there is none. An insertion that runs at the same time may be missed.
  uint32_t find(uint64_t key) const {
    const Table* table = current_.load(std::memory_order_acquire);
    if (!table) return 0;
    for (size_t slot = mix(0, key) & table->mask;; slot = (slot + 1) & table->mask) {
      uint32_t value = table->slots[slot].value.load(std::memory_order_acquire);
      if (value == 0) return 0;
      if (table->slots[slot].key == key) return value;
    }
  }

  // `key` must be new, and `value` must not be 0.
  void insert(uint64_t key, uint32_t value) {
    Table* table = current_.load(std::memory_order_relaxed);
    if (!table || (size_ + 1) * 2 > table->mask + 1) table = grow(table);
    place(*table, key, value);
    ++size_;
  }

  size_t size() const { return size_; }
  size_t memory() const { return slots_.load(std::memory_order_relaxed) * sizeof(Slot); }
  // Calls f(key, value) for each entry, in no particular order.
  template <class F>
  void for_each(F&& f) const {
    const Table* table = current_.load(std::memory_order_acquire);
    for (size_t slot = 0; table && slot <= table->mask; ++slot) {
      if (uint32_t value = table->slots[slot].value.load(std::memory_order_relaxed)) f(table->slots[slot].key, value);
    }
  }

 private:
  struct Slot {
    uint64_t key = 0;
    std::atomic<uint32_t> value{0};  // written last
  };
  struct Table {
    size_t mask;
    std::unique_ptr<Slot[]> slots;
  };

  Table* grow(const Table* old) {
    size_t slots = old ? (old->mask + 1) * 4 : 16;
    tables_.push_back(std::make_unique<Table>(Table{slots - 1, std::make_unique<Slot[]>(slots)}));
    Table* table = tables_.back().get();
    slots_.fetch_add(slots, std::memory_order_relaxed);
    if (old) for_each([&](uint64_t key, uint32_t value) { place(*table, key, value); });
    current_.store(table, std::memory_order_release);
    return table;
  }
  static void place(Table& table, uint64_t key, uint32_t value) {
    size_t slot = mix(0, key) & table.mask;
    while (table.slots[slot].value.load(std::memory_order_relaxed)) slot = (slot + 1) & table.mask;
    table.slots[slot].key = key;
    table.slots[slot].value.store(value, std::memory_order_release);
  }

  std::atomic<Table*> current_{nullptr};
  std::vector<std::unique_ptr<Table>> tables_;
  size_t size_ = 0;
  std::atomic<size_t> slots_{0};  // slots of all tables together
};

}  // namespace tokenfst
