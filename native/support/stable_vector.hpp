// A growing array whose elements never move, so that they can be read without a lock.
//
// Chunk k holds kFirst << k elements. One writer appends (under the owner's mutex); any thread may read an index that
// was published to it. The chunk of an index is found by one count-leading-zeros.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>

#include "support/reused_memory.hpp"

namespace tokenfst {

template <class T>
class StableVector {
 public:
  StableVector() = default;
  StableVector(const StableVector&) = delete;
  StableVector& operator=(const StableVector&) = delete;
  ~StableVector() {
    for (size_t k = 0; k < std::size(chunks_); ++k) {
      T* const chunk = chunks_[k].load(std::memory_order_relaxed);
      if (!chunk) continue;
      std::destroy_n(chunk, kFirst << k);
      Reused<T>().deallocate(chunk, kFirst << k);
    }
  }

  size_t size() const { return size_.load(std::memory_order_acquire); }
  size_t memory() const { return size() == 0 ? 0 : kFirst * ((size_t{2} << chunk_of(size() - 1)) - 1) * sizeof(T); }
  // The bytes that the next element allocates: 0 unless it is the first of a chunk.
  size_t growth() const {
    const size_t next = size();
    return next == 0 || chunk_of(next) != chunk_of(next - 1) ? (kFirst << chunk_of(next)) * sizeof(T) : 0;
  }
  T& operator[](size_t index) { return *locate(index); }
  const T& operator[](size_t index) const { return *locate(index); }

  // Appends a value-initialized element and returns its index.
  size_t grow() {
    size_t index = size_.load(std::memory_order_relaxed);
    int k = chunk_of(index);
    if (!chunks_[k].load(std::memory_order_relaxed)) {
      T* const chunk = Reused<T>().allocate(kFirst << k);
      std::uninitialized_value_construct_n(chunk, kFirst << k);
      chunks_[k].store(chunk, std::memory_order_release);
    }
    size_.store(index + 1, std::memory_order_release);
    return index;
  }

 private:
  static constexpr size_t kFirst = 16;
  static int chunk_of(size_t index) { return static_cast<int>(std::bit_width(index / kFirst + 1)) - 1; }
  T* locate(size_t index) const {
    int k = chunk_of(index);
    return chunks_[k].load(std::memory_order_acquire) + (index - kFirst * ((size_t{1} << k) - 1));
  }
  std::atomic<T*> chunks_[29] = {};  // up to 2^32 elements
  std::atomic<size_t> size_{0};
};

}  // namespace tokenfst
