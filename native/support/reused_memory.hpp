// Memory that automata leave to those that come after them.
//
// An automaton's tables grow by doubling, to some hundred kilobytes, and go when it goes. Fresh pages cost more than what is
// written into them: the system maps and clears each at its first touch, in the midst of some mask. So blocks that are given
// back are kept for the next automaton, up to a bound for the process, by sizes that are powers of two.
// Any thread may take and give. Nobody waits: where another one is at it, and in a process forked meanwhile, a block is the
// allocator's own. Rejected: one block for each automaton, which holds what its tables have outgrown.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace tokenfst {

class ReusedMemory {
 public:
  static void* take(size_t bytes) {
    if (!is_kept(bytes)) return ::operator new(bytes);
    ReusedMemory& all = instance();
    if (const std::unique_lock lock(all.mutex_, std::try_to_lock); lock) {
      if (Free*& first = all.of_size(bytes)) {
        all.held_ -= std::bit_ceil(bytes);
        return std::exchange(first, first->next);
      }
    }
    return ::operator new(std::bit_ceil(bytes));
  }
  static void give(void* block, size_t bytes) noexcept {
    if (is_kept(bytes)) {
      ReusedMemory& all = instance();
      if (const std::unique_lock lock(all.mutex_, std::try_to_lock); lock && all.held_ + std::bit_ceil(bytes) <= kMostHeld) {
        all.held_ += std::bit_ceil(bytes);
        Free*& first = all.of_size(bytes);
        first = new (block) Free{first};
        return;
      }
    }
    ::operator delete(block);
  }

 private:
  static constexpr size_t kLeast = 2048, kMost = 1 << 20, kMostHeld = 4 << 20;  // bytes: of a block that is kept, and of all

  struct Free {
    Free* next;
  };

  // Never destroyed: automata may outlive whatever runs at the end of a process.
  static ReusedMemory& instance() {
    static ReusedMemory& made = *new ReusedMemory;
    return made;
  }
  static bool is_kept(size_t bytes) { return bytes >= kLeast && bytes <= kMost; }
  Free*& of_size(size_t bytes) { return free_[std::bit_width(bytes - 1)]; }

  std::mutex mutex_;
  std::array<Free*, std::bit_width(kMost)> free_{};  // by size
  size_t held_ = 0;
};

// The allocator of containers that are made so.
template <class T>
struct Reused {
  using value_type = T;
  Reused() = default;
  template <class U>
  Reused(const Reused<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(ReusedMemory::take(count * sizeof(T))); }
  void deallocate(T* block, size_t count) noexcept { ReusedMemory::give(block, count * sizeof(T)); }
  bool operator==(const Reused&) const = default;
};
template <class T>
using ReusedVector = std::vector<T, Reused<T>>;

// Bytes that a vector is larger by when it has taken so many elements more: none while there is room.
template <class T, class Memory>
size_t growth(const std::vector<T, Memory>& vector, size_t more) {
  const size_t room = vector.capacity() - vector.size();
  return room < more ? (std::max(vector.size(), more) - room) * sizeof(T) : 0;
}

}  // namespace tokenfst
