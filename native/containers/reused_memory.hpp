// Memory blocks that an automaton returns for the next one to use.
//
// The tables of an automaton grow by doubling, to some hundred kilobytes, and are freed with it. Fresh pages cost more
// than what is written into them: the system maps and clears each page at its first touch, in the middle of computing a
// mask. So freed blocks of 2 KiB to 1 MiB are kept for the next automaton, at most 4 MiB in the process, in one list for
// each size. There are eight sizes from each power of two to the next, so that little of a block is left empty.
// Any thread may allocate and free. No thread waits for another one: while the lists are locked, blocks come from the
// default allocator and return to it. (In a process that was forked while they were locked, they stay locked.) Rejected:
// keeping the blocks of each automaton for itself, since that only holds blocks that its tables have outgrown.
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
  // Allocates `bytes` bytes; raises std::bad_alloc.
  static void* take(size_t bytes) {
    if (!is_kept(bytes)) return ::operator new(bytes);
    ReusedMemory& all = instance();
    if (const std::unique_lock lock(all.mutex_, std::try_to_lock); lock) {
      if (Free*& first = all.of_size(bytes)) {
        all.held_ -= rounded(bytes);
        return std::exchange(first, first->next);
      }
    }
    return ::operator new(rounded(bytes));
  }
  // Frees a block of take(), given the same number of bytes.
  static void give(void* block, size_t bytes) noexcept {
    if (is_kept(bytes)) {
      ReusedMemory& all = instance();
      if (const std::unique_lock lock(all.mutex_, std::try_to_lock); lock && all.held_ + rounded(bytes) <= kMostHeld) {
        all.held_ += rounded(bytes);
        Free*& first = all.of_size(bytes);
        first = new (block) Free{first};
        return;
      }
    }
    ::operator delete(block);
  }

 private:
  static constexpr int kStepBits = 3;
  static constexpr size_t kSteps = 1 << kStepBits;  // sizes from a power of two to the next
  static constexpr size_t kLeast = 2048, kMost = 1 << 20, kMostHeld = 4 << 20;  // bytes of a kept block, and of all of them

  struct Free {
    Free* next;
  };

  // Never destroyed: automata may outlive everything that runs at the end of a process.
  static ReusedMemory& instance() {
    static ReusedMemory& made = *new ReusedMemory;
    return made;
  }
  static bool is_kept(size_t bytes) { return bytes >= kLeast && bytes <= kMost; }
  // The number of the list for blocks of so many bytes: eight lists from each power of two to the next.
  static size_t size_number(size_t bytes) {
    const int width = static_cast<int>(std::bit_width(bytes - 1)) - 1;
    return kSteps * static_cast<size_t>(width) + ((bytes - 1) >> (width - kStepBits)) - kSteps + 1;
  }
  // The size of the block for so many bytes.
  static size_t rounded(size_t bytes) {
    const size_t step = size_t{1} << (static_cast<int>(std::bit_width(bytes - 1)) - 1 - kStepBits);
    return (bytes + step - 1) & ~(step - 1);
  }
  Free*& of_size(size_t bytes) { return free_[size_number(bytes)]; }

  std::mutex mutex_;
  std::array<Free*, kSteps * std::bit_width(kMost)> free_{};  // free blocks by size
  size_t held_ = 0;
};

// The allocator of containers in such memory.
template <class T>
struct Reused {
  using value_type = T;
  Reused() = default;
  template <class U>
  Reused(const Reused<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(ReusedMemory::take(count * sizeof(T))); }
  void deallocate(T* block, size_t count) noexcept { ReusedMemory::give(static_cast<void*>(block), count * sizeof(T)); }
  bool operator==(const Reused&) const = default;
};
template <class T>
using ReusedVector = std::vector<T, Reused<T>>;

// By how many bytes a vector grows if `more` elements are added: 0 while there is room.
template <class T, class Memory>
size_t growth(const std::vector<T, Memory>& vector, size_t more) {
  const size_t room = vector.capacity() - vector.size();
  return room < more ? (std::max(vector.size(), more) - room) * sizeof(T) : 0;
}

}  // namespace tokenfst
