// A growing array whose elements never move, so that they can be read without a lock.
//
// Chunk k holds kFirst << k elements. One writer appends (under the owner's mutex); any thread may read an index that
// was published to it. The chunk of an index follows from the number of its leading zeros. The object itself holds the
// pointers to the first kNear chunks. The pointers to later chunks lie in an array that is allocated together with the
// first of these chunks, since most arrays stay small.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "containers/reused_memory.hpp"

namespace tokenfst {

template <class T>
class StableVector {
 public:
  StableVector() = default;
  StableVector(const StableVector&) = delete;
  StableVector& operator=(const StableVector&) = delete;
  ~StableVector() {
    const size_t chunks = size() == 0 ? 0 : chunk_of(size() - 1) + 1;
    for (size_t k = 0; k < chunks; ++k) {
      T* const chunk = pointer_to(k).load(std::memory_order_relaxed);
      std::destroy_n(chunk, kFirst << k);
      Reused<T>().deallocate(chunk, kFirst << k);
    }
    delete[] far_.load(std::memory_order_relaxed);
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
    const size_t k = chunk_of(index);
    if (index == first_of(k)) {
      if (k == kNear && !far_.load(std::memory_order_relaxed))
        far_.store(new std::atomic<T*>[kChunks - kNear](), std::memory_order_release);
      T* const chunk = Reused<T>().allocate(kFirst << k);
      std::uninitialized_value_construct_n(chunk, kFirst << k);
      pointer_to(k).store(chunk, std::memory_order_release);
    }
    size_.store(index + 1, std::memory_order_release);
    return index;
  }

 private:
  static constexpr size_t kFirst = 16, kNear = 6, kChunks = 29;  // up to 2^32 elements, of which 1,008 are in near chunks
  static size_t chunk_of(size_t index) { return static_cast<size_t>(std::bit_width(index / kFirst + 1)) - 1; }
  static size_t first_of(size_t chunk) { return kFirst * ((size_t{1} << chunk) - 1); }
  T* locate(size_t index) const {
    const size_t k = chunk_of(index);
    return pointer_to(k).load(std::memory_order_acquire) + (index - first_of(k));
  }
  const std::atomic<T*>& pointer_to(size_t chunk) const {
    return chunk < kNear ? near_[chunk] : far_.load(std::memory_order_acquire)[chunk - kNear];
  }
  std::atomic<T*>& pointer_to(size_t chunk) { return const_cast<std::atomic<T*>&>(std::as_const(*this).pointer_to(chunk)); }

  std::atomic<T*> near_[kNear] = {};
  std::atomic<std::atomic<T*>*> far_{nullptr};
  std::atomic<size_t> size_{0};
};

}  // namespace tokenfst
