// Memory blocks that an automaton returns for the next one to use.
//
// The tables of an automaton grow by doubling, to some hundred kilobytes, and are freed with it. Fresh pages cost more
// than what is written into them: the system maps and clears each page at its first touch, in the middle of computing a
// mask. So freed blocks of 2 KiB to 1 MiB are kept for the next automaton, at most 4 MiB in the process, in one list for
// each size. There are eight sizes from each power of two to the next, so that little of a block is left empty.
// Larger blocks are mappings of their own on Linux, which go back to the system at once: an allocator keeps such blocks,
// and those that tables had outgrown were a tenth of a large automaton's memory.
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
#include <type_traits>
#include <utility>
#include <vector>

// Sanitizers watch the default allocator's memory alone.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TOKENFST_MAPS_LARGE_BLOCKS
#include <sys/mman.h>
#endif

namespace tokenfst {

class ReusedMemory {
 public:
  static constexpr size_t kMost = 1 << 20;  // bytes of a kept block

  // Allocates `bytes` bytes; raises std::bad_alloc.
  static void* take(size_t bytes) {
    if (bytes > kMost) return map(bytes);
    if (bytes < kLeast) return ::operator new(bytes);
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
    if (bytes > kMost) return unmap(block, bytes);
    if (bytes >= kLeast) {
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
  // Says that the bytes from `begin` to `end` of a block of `bytes` bytes are not needed any more, nor those before `begin`. If the
  // block is large, the system gets their pages back.
  static void drop(void* block, size_t bytes, size_t begin, size_t end) noexcept {
    const size_t first = begin / kPages * kPages, last = end / kPages * kPages;
    if (bytes > kMost && first < last) unmap_content(static_cast<char*>(block) + first, last - first);
  }

 private:
  static constexpr int kStepBits = 3;
  static constexpr size_t kSteps = 1 << kStepBits;  // sizes from a power of two to the next
  static constexpr size_t kLeast = 2048, kMostHeld = 4 << 20;  // bytes of a kept block, and of all of them
  static constexpr size_t kPages = 1 << 16;  // bytes, a multiple of every usual page's

  struct Free {
    Free* next;
  };

  // Never destroyed: automata may outlive everything that runs at the end of a process.
  static ReusedMemory& instance() {
    static ReusedMemory& made = *new ReusedMemory;
    return made;
  }
#ifdef TOKENFST_MAPS_LARGE_BLOCKS
  static void* map(size_t bytes) {
    void* const block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? throw std::bad_alloc() : block;
  }
  static void unmap(void* block, size_t bytes) noexcept { munmap(block, bytes); }
  static void unmap_content(void* pages, size_t bytes) noexcept { madvise(pages, bytes, MADV_DONTNEED); }
#else
  static void* map(size_t bytes) { return ::operator new(bytes); }
  static void unmap(void* block, size_t) noexcept { ::operator delete(block); }
  static void unmap_content(void*, size_t) noexcept {}
#endif
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

// Moves a vector to a larger block. The pages of a large old block are given back while it is moved, so the process takes little more
// meanwhile than it takes afterwards.
template <class T>
void move_to_larger(ReusedVector<T>& vector, size_t capacity) {
  static_assert(std::is_trivially_copyable_v<T>);
  constexpr size_t kPart = std::max<size_t>(1, ReusedMemory::kMost / sizeof(T));
  ReusedVector<T> larger;
  larger.reserve(capacity);
  for (size_t begin = 0; begin < vector.size(); begin += kPart) {
    const size_t end = std::min(begin + kPart, vector.size());
    larger.insert(larger.end(), vector.data() + begin, vector.data() + end);
    ReusedMemory::drop(static_cast<void*>(vector.data()), vector.capacity() * sizeof(T), begin * sizeof(T), end * sizeof(T));
  }
  vector.swap(larger);
}

// Makes room for `more` further elements; about_to_take(bytes) is called before memory is allocated.
template <class T, class F>
void make_room(ReusedVector<T>& vector, size_t more, F&& about_to_take) {
  const size_t bytes = growth(vector, more);
  if (bytes == 0) return;
  about_to_take(bytes);
  move_to_larger(vector, vector.capacity() + bytes / sizeof(T));
}

}  // namespace tokenfst
