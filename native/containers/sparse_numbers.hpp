// Non-zero numbers by keys 0, 1, 2, ..., most of which have none. They can be read without a lock.
//
// One writer sets numbers, under the owner's mutex. Blocks of keys are made when one of their keys gets a number, and never
// move: little memory where few keys have one. The pointers to the blocks lie in a directory. A larger directory takes the place of
// a full one, which stays for readers that still use it. All old directories together have at most twice the pointers of the last
// one. Cost: three reads for a look-up.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tokenfst {

class SparseNumbers {
 public:
  SparseNumbers() = default;
  SparseNumbers(const SparseNumbers&) = delete;
  SparseNumbers& operator=(const SparseNumbers&) = delete;

  // The number of a key; 0: it has none. A number that is set at the same time may be missed. What the writer wrote before it set the
  // number can be read by whoever finds it.
  uint32_t find(uint32_t key) const {
    const Directory* const directory = directory_.load(std::memory_order_acquire);
    const size_t block = key / kKeys;
    if (!directory || block >= directory->size()) return 0;
    const Block* const numbers = (*directory)[block].load(std::memory_order_acquire);
    return numbers ? (*numbers)[key % kKeys].load(std::memory_order_acquire) : 0;
  }
  void set(uint32_t key, uint32_t number) {
    const size_t block = key / kKeys;
    std::atomic<Block*>& place = room_for(block)[block];
    Block* numbers = place.load(std::memory_order_relaxed);
    if (!numbers) {
      blocks_.push_back(std::make_unique<Block>());
      place.store(numbers = blocks_.back().get(), std::memory_order_release);
    }
    (*numbers)[key % kKeys].store(number, std::memory_order_release);
  }
  // For the writer.
  size_t memory() const { return blocks_.size() * (sizeof(Block) + sizeof blocks_[0]) + places_ * sizeof(std::atomic<Block*>); }

 private:
  static constexpr uint32_t kKeys = 32;
  using Block = std::array<std::atomic<uint32_t>, kKeys>;
  using Directory = std::vector<std::atomic<Block*>>;  // its size never changes

  Directory& room_for(size_t block) {
    const size_t size = directories_.empty() ? 0 : directories_.back()->size();
    if (block < size) return *directories_.back();
    auto larger = std::make_unique<Directory>(std::max(block + 1, size + size / 2));
    for (size_t k = 0; k < size; ++k)
      (*larger)[k].store((*directories_.back())[k].load(std::memory_order_relaxed), std::memory_order_relaxed);
    places_ += larger->size();
    directories_.push_back(std::move(larger));
    directory_.store(directories_.back().get(), std::memory_order_release);
    return *directories_.back();
  }

  std::atomic<const Directory*> directory_{nullptr};  // the last one, stored when it has all blocks
  std::vector<std::unique_ptr<Directory>> directories_;
  std::vector<std::unique_ptr<Block>> blocks_;
  size_t places_ = 0;  // pointers of all directories together
};

}  // namespace tokenfst
