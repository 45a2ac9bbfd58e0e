// A growing array whose elements never move, so that they can be read without a lock.
//
// Chunk k holds kFirst << k elements. One writer appends (under the owner's mutex); any thread may read an index that
// was published to it. Any thread may allocate the next chunk beforehand, so that the writer need not do it under the
// mutex. The chunk of an index follows from the number of its leading zeros. The object itself holds the
// pointers to the first kNear chunks. The pointers to later chunks lie in an array that is allocated together with the
// first of these chunks, since most arrays stay small.
#pragma once

#include <algorithm>
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
    for (size_t k = 0; k < kChunks && is_made(k); ++k) discard(pointer_to(k).load(std::memory_order_relaxed), k);
    delete[] far_.load(std::memory_order_relaxed);
  }

  size_t size() const { return size_.load(std::memory_order_acquire); }
  size_t memory() const {
    size_t chunks = size() == 0 ? 0 : chunk_of(size() - 1) + 1;
    if (is_made(chunks)) ++chunks;
    return first_of(chunks) * sizeof(T);
  }
  // The bytes that the next element allocates: 0 unless it is the first of a chunk.
  size_t growth() const { return growth_at(size()); }
  // The bytes that prepare() allocates: 0 unless few elements are left until the next chunk.
  size_t growth_soon() const {
    const size_t next = size();
    return growth_at(next + std::min(next / 8, kSoon));
  }
  // Allocates the chunk of growth_soon(). Any thread may call it.
  void prepare() {
    const size_t next = size();
    make(chunk_of(next + std::min(next / 8, kSoon)));
  }
  T& operator[](size_t index) { return *locate(index); }
  const T& operator[](size_t index) const { return *locate(index); }

  // Appends a value-initialized element and returns its index.
  size_t grow() {
    size_t index = size_.load(std::memory_order_relaxed);
    const size_t k = chunk_of(index);
    if (index == first_of(k)) make(k);
    size_.store(index + 1, std::memory_order_release);
    return index;
  }

 private:
  static constexpr size_t kFirst = 16, kNear = 6, kChunks = 29;  // up to 2^32 elements, of which 1,008 are in near chunks
  static constexpr size_t kSoon = 64;  // elements
  static size_t chunk_of(size_t index) { return static_cast<size_t>(std::bit_width(index / kFirst + 1)) - 1; }
  static size_t first_of(size_t chunk) { return kFirst * ((size_t{1} << chunk) - 1); }
  size_t growth_at(size_t index) const {
    const size_t k = chunk_of(index);
    return is_made(k) ? 0 : (kFirst << k) * sizeof(T);
  }
  bool is_made(size_t chunk) const {
    if (chunk >= kNear && !far_.load(std::memory_order_acquire)) return false;
    return pointer_to(chunk).load(std::memory_order_acquire) != nullptr;
  }
  // Makes a chunk, unless it is there. If several threads do, the first one that is ready stores it.
  void make(size_t chunk) {
    if (is_made(chunk)) return;
    if (chunk >= kNear && !far_.load(std::memory_order_acquire)) {
      auto pointers = std::make_unique<std::atomic<T*>[]>(kChunks - kNear);
      std::atomic<T*>* other = nullptr;
      if (far_.compare_exchange_strong(other, pointers.get(), std::memory_order_acq_rel)) pointers.release();
    }
    T* const made = Reused<T>().allocate(kFirst << chunk);
    std::uninitialized_value_construct_n(made, kFirst << chunk);
    T* other = nullptr;
    if (!pointer_to(chunk).compare_exchange_strong(other, made, std::memory_order_acq_rel)) discard(made, chunk);
  }
  static void discard(T* made, size_t chunk) {
    std::destroy_n(made, kFirst << chunk);
    Reused<T>().deallocate(made, kFirst << chunk);
  }
  T* locate(size_t index) const {
    const size_t k = chunk_of(index);
    return pointer_to(k).load(std::memory_order_acquire) + (index - first_of(k));
  }
  const std::atomic<T*>& pointer_to(size_t chunk) const {
    return chunk < kNear ? near_[chunk] : far_.load(std::memory_order_acquire)[chunk - kNear];
  }
  std::atomic<T*>& pointer_to(size_t chunk) { return const_cast<std::atomic<T*>&>(std::as_const(*this).pointer_to(chunk)); }

  std::atomic<T*> near_[kNear] = {};            // each stored once, when its elements are constructed
  std::atomic<std::atomic<T*>*> far_{nullptr};  // stored once, and the pointers in it as those of near chunks
  std::atomic<size_t> size_{0};                 // stored after the chunk of the last element
};

}  // namespace tokenfst
