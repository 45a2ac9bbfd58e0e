// Finds numbered objects by their hashes: open addressing, at most half full. The slot keeps a part of the hash, which
// rules most other objects out without comparing them, and which gives the new slot when the table grows.
//
// A table grows at once, or little by little: then a larger table that is prepared elsewhere takes the place of the old
// one, each addition moves some slots of the old table to the new one, and look-ups search both until all are moved.
//
// Threads. After share(), others may search by find_known() while one thread, with exclusive use, adds. Tables that have been
// outgrown then stay until the index goes, since others may still search them: together they are smaller than the last one.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "containers/reused_memory.hpp"
#include "support/cache_line.hpp"

namespace tokenfst {

class HashIndex {
 public:
  static constexpr uint32_t kNothing = UINT32_MAX;

  // Written at once, after the object, and then never changed.
  struct alignas(8) Slot {
    uint32_t hash = 0, number = kNothing;
  };
  using Slots = ReusedVector<Slot>;

  // In bytes.
  size_t memory() const { return (slots_.capacity() + before_.capacity() + (shared_ ? shared_->outgrown : 0)) * sizeof(Slot); }
  size_t slots() const { return slots_.size(); }
  // Whether the next addition doubles the table.
  bool is_full() const { return (size_ + 1) * 2 > slots_.size(); }
  // The bytes that the next addition allocates: 0 while there is room.
  size_t growth() const { return is_full() ? 2 * slots_.size() * sizeof(Slot) : 0; }
  // From now on others may search while one thread adds. Called while nobody else uses it.
  void share() {
    if (shared_) return;
    move(before_.size());
    shared_ = std::make_unique<Shared>();
    shared_->publish(shared_->make(slots_));
  }

  // The number of an object with this hash that `is` accepts, or kNothing. With exclusive use.
  template <class Is>
  uint32_t find(uint32_t hash, Is&& is) const {
    const uint32_t found = find_in(slots_.data(), slots_.size() - 1, hash, is);
    return found == kNothing && !before_.empty() ? find_in(before_.data(), before_.size() - 1, hash, is) : found;
  }
  // The same without exclusive use, in an index that is shared. It may miss an object that is being added. What the other thread wrote
  // before it added the object can be read.
  template <class Is>
  uint32_t find_known(uint32_t hash, Is&& is) const {
    const Table* const table = shared_->table.load(std::memory_order_acquire);
    const uint32_t found = find_in(table->slots, table->mask, hash, is);
    const Table* const before = found == kNothing ? table->before : nullptr;
    return before ? find_in(before->slots, before->mask, hash, is) : found;
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
    std::unique_ptr<Table> table = shared_ ? shared_->make(larger) : nullptr;
    before_ = std::exchange(slots_, std::move(larger));
    moved_ = 0;
    if (table) shared_->publish(std::move(table));
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

  // A table as others search it: all its slots that are not in it yet are in the one before.
  struct Table {
    Slot* slots;
    size_t mask;
    const Table* before;
  };
  // What a shared index keeps for those that search without exclusive use.
  struct Shared {
    std::atomic<const Table*> table{nullptr};  // stored when it is complete; its slots are filled later
    std::vector<std::unique_ptr<Table>> tables;  // all so far
    std::vector<Slots> slots;                    // of tables that have been outgrown
    size_t outgrown = 0;                         // how many slots these are

    // A table to publish. Then there is room to keep it, and to keep the slots that it replaces.
    std::unique_ptr<Table> make(Slots& of) {
      tables.reserve(tables.size() + 1);
      slots.reserve(tables.size() + 1);
      return std::make_unique<Table>(Table{of.data(), of.size() - 1, table.load(std::memory_order_relaxed)});
    }
    void publish(std::unique_ptr<Table> made) {
      table.store(made.get(), std::memory_order_release);
      tables.push_back(std::move(made));
    }
    void keep(Slots&& old) {
      outgrown += old.capacity();
      slots.push_back(std::move(old));
    }
  };

  template <class Is>
  static uint32_t find_in(const Slot* slots, size_t mask, uint32_t hash, Is& is) {
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      const Slot slot = std::atomic_ref(const_cast<Slot&>(slots[at])).load(std::memory_order_acquire);
      if (slot.number == kNothing || (slot.hash == hash && is(slot.number))) return slot.number;
    }
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
    if (moved_ < before_.size()) return;
    if (shared_ && !before_.empty()) shared_->keep(std::move(before_));
    before_ = Slots(), moved_ = 0;
  }
  void place(Slot made) {
    const size_t mask = slots_.size() - 1;
    size_t at = made.hash & mask;
    while (slots_[at].number != kNothing) at = (at + 1) & mask;
    std::atomic_ref(slots_[at]).store(made, std::memory_order_release);
  }

  Slots slots_ = Slots(16);  // the size is a power of two; an automaton of few states takes little
  Slots before_;             // the table before, until all of its slots have been moved
  std::unique_ptr<Shared> shared_;
  // These change with each addition: on a cache line apart from what others read.
  alignas(kCacheLine) size_t moved_ = 0;  // how many slots of the table before have been moved
  size_t size_ = 0;
};

}  // namespace tokenfst
