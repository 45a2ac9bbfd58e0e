// Non-zero numbers by keys 0, 1, 2, ..., most of which have none.
//
// Blocks of keys are made when one of their keys gets a number, and never move: little memory where few keys have one,
// and nothing is copied when the greatest key grows. It has no lock: one thread uses it at a time. Cost: two reads for a
// look-up.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tokenfst {

class SparseNumbers {
 public:
  // The number of a key; 0: it has none.
  uint32_t find(uint32_t key) const {
    const size_t block = key / kKeys;
    return block < blocks_.size() && blocks_[block] ? (*blocks_[block])[key % kKeys] : 0;
  }
  void set(uint32_t key, uint32_t number) {
    const size_t block = key / kKeys;
    if (blocks_.size() <= block) blocks_.resize(std::max<size_t>(block + 1, blocks_.size() + blocks_.size() / 2));
    if (!blocks_[block]) {
      blocks_[block] = std::make_unique<Block>();
      ++made_;
    }
    (*blocks_[block])[key % kKeys] = number;
  }
  size_t memory() const { return made_ * sizeof(Block) + blocks_.capacity() * sizeof blocks_[0]; }

 private:
  static constexpr uint32_t kKeys = 32;
  using Block = std::array<uint32_t, kKeys>;

  std::vector<std::unique_ptr<Block>> blocks_;
  size_t made_ = 0;
};

}  // namespace tokenfst
