// Token masks, each distinct set stored once (interned).
//
// A mask is a base row XOR a short sorted list of token ids (`flips`). The base is either empty or a dense row of
// ceil(V/32) words that many masks share. Small masks are lists on the empty base; the masks of one fragment in many
// contexts are lists on the fragment's row. Cost of writing a mask: one memcpy (or memset), and one operation for each
// flip.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <unordered_map>
#include <vector>

#include "containers/hash_index.hpp"
#include "containers/stable_vector.hpp"
#include "support/bytes.hpp"

namespace tokenfst {

using MaskId = uint32_t;

struct Mask {
  const uint32_t* base = nullptr;  // the words of the row, or null for the empty row
  uint32_t base_index = 0;         // 1-based; 0 for the empty row
  const uint32_t* flips = nullptr;
  uint32_t num_flips = 0;
  uint32_t count = 0;  // allowed tokens
};

// The hash of a set of tokens, given as one bit for each token. Four words at a time, so that the operations do not
// wait for each other.
inline uint64_t hash_of_row(std::span<const uint32_t> row) {
  std::array<uint64_t, 4> lanes{};
  size_t i = 0;
  for (; i + 4 <= row.size(); i += 4) {
    for (size_t k = 0; k < 4; ++k) lanes[k] = mix(lanes[k], row[i + k]);
  }
  for (; i < row.size(); ++i) lanes[0] = mix(lanes[0], row[i]);
  return mix(mix(mix(lanes[0], lanes[1]), lanes[2]), lanes[3]);
}
// The number of tokens in the set, in operations that every x86-64 has as vector instructions; std::popcount would be a
// library call for each word.
inline uint32_t count_of_row(std::span<const uint32_t> row) {
  uint32_t count = 0;
  for (uint32_t x : row) {
    x -= x >> 1 & 0x55555555;
    x = (x & 0x33333333) + (x >> 2 & 0x33333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f;
    x += x >> 8;
    count += (x + (x >> 16)) & 63;
  }
  return count;
}

// A set of tokens with its hash and size. The rows of fragments are shared by many pools.
struct TokenRow {
  std::vector<uint32_t> words;
  uint64_t hash = 0;
  uint32_t count = 0;

  TokenRow() = default;
  explicit TokenRow(std::vector<uint32_t> set) : words(std::move(set)), hash(hash_of_row(words)), count(count_of_row(words)) {}
};

// The masks of one vocabulary, by number; mask 0 is the empty one. Memory: 32 bytes for each mask, 4 for each flip, and
// 4 * ceil(V/32) for each row that the pool owns. Masks are only added, and stay where they are. One thread at a time adds
// masks; others may read those whose numbers they have.
class MaskPool {
 public:
  static constexpr size_t kMaxFlips = 512;  // the most flips of a mask that add_dense() makes

  explicit MaskPool(size_t vocab_size) : vocab_size_(vocab_size), words_((vocab_size + 31) / 32) { masks_.grow(); }

  size_t words() const { return words_; }
  size_t vocab_size() const { return vocab_size_; }
  size_t size() const { return masks_.size(); }
  size_t num_rows() const { return rows_.size(); }
  size_t memory() const { return owned_bytes_ + masks_.size() * sizeof(Mask) + index_.memory(); }
  const Mask& operator[](MaskId id) const { return masks_[id]; }
  const uint32_t* row(uint32_t base_index) const { return rows_[base_index - 1]; }

  // Writes a mask as a row of words() words.
  void fill(MaskId id, uint32_t* out) const {
    const Mask& mask = masks_[id];
    if (mask.base) std::memcpy(out, mask.base, words_ * 4);
    else std::memset(out, 0, words_ * 4);
    for (uint32_t i = 0; i < mask.num_flips; ++i) out[mask.flips[i] >> 5] ^= 1u << (mask.flips[i] & 31);
  }
  // Inverts the tokens of a mask in a row: row XOR mask.
  void flip(MaskId id, uint32_t* out) const {
    const Mask& mask = masks_[id];
    if (mask.base) {
      for (size_t k = 0; k < words_; ++k) out[k] ^= mask.base[k];
    }
    for (uint32_t i = 0; i < mask.num_flips; ++i) out[mask.flips[i] >> 5] ^= 1u << (mask.flips[i] & 31);
  }
  // Whether a mask has a token. O(log flips).
  bool allows(MaskId id, uint32_t token) const {
    const Mask& mask = masks_[id];
    bool bit = mask.base && (mask.base[token >> 5] >> (token & 31) & 1);
    return bit != std::binary_search(mask.flips, mask.flips + mask.num_flips, token);
  }

  // Returns the mask that is the row `base_index` XOR `flips` (sorted, distinct).
  MaskId add(uint32_t base_index, std::span<const uint32_t> flips) {
    uint64_t hash = mix(17, base_index);
    for (uint32_t token : flips) hash = mix(hash, token);
    const MaskId known = index_.find(static_cast<uint32_t>(hash), [&](MaskId id) {
      const Mask& mask = masks_[id];
      return mask.base_index == base_index && std::ranges::equal(std::span(mask.flips, mask.num_flips), flips);
    });
    if (known != HashIndex::kNothing) return known;
    const MaskId id = adopt(base_index, keep(flips), static_cast<uint32_t>(flips.size()));
    index_.add(static_cast<uint32_t>(hash), id);
    return id;
  }

  // Returns the mask with the dense row `row`. It is stored as a difference to the empty row, or to one of the newest rows
  // (kBasesTried), if that has at most kMaxFlips tokens; else as a row of its own.
  MaskId add_dense(const uint32_t* row) {
    std::vector<uint32_t> flips;
    for (uint32_t k = 0; k <= rows_.size() && k <= kBasesTried; ++k) {
      uint32_t base_index = k == 0 ? 0 : static_cast<uint32_t>(rows_.size() + 1 - k);
      if (difference(base_index ? rows_[base_index - 1] : nullptr, row, flips)) return add(base_index, flips);
    }
    const uint64_t hash = hash_of_row({row, words_});
    if (const uint32_t known = known_row(row, hash)) return add(known, {});
    return add(adopt_row(keep({row, words_}), hash, count_of_row({row, words_})), {});
  }

  // Registers a dense row, which stays owned by the caller, as a base. If an equal row is registered already, returns
  // that one.
  uint32_t add_row(const TokenRow& row) {
    const uint32_t known = known_row(row.words.data(), row.hash);
    return known ? known : adopt_row(row.words.data(), row.hash, row.count);
  }

  // The same with a copy of the row.
  uint32_t copy_row(std::span<const uint32_t> row) {
    const uint64_t hash = hash_of_row(row);
    const uint32_t known = known_row(row.data(), hash);
    return known ? known : adopt_row(keep(row), hash, count_of_row(row));
  }

  // For artifacts: add a row or a mask without looking for an equal one. Rows and flips stay owned by the caller.
  uint32_t adopt_row(const uint32_t* row) { return adopt_row(row, 0, count_of_row({row, words_})); }
  MaskId adopt(uint32_t base_index, const uint32_t* flips, uint32_t num_flips) {
    MaskId id = static_cast<MaskId>(masks_.grow());
    Mask& mask = masks_[id];
    mask.base_index = base_index;
    mask.base = base_index ? rows_[base_index - 1] : nullptr;
    mask.flips = flips;
    mask.num_flips = num_flips;
    mask.count = base_index ? row_counts_[base_index - 1] : 0;
    for (uint32_t i = 0; i < num_flips; ++i) {
      bool set = mask.base && (mask.base[flips[i] >> 5] >> (flips[i] & 31) & 1);
      mask.count += set ? -1 : 1;
    }
    return id;
  }

 private:
  static constexpr size_t kBasesTried = 8;
  static constexpr size_t kLeastBlock = 512, kBlock = 16384;  // words; a block is as large as all before it

  uint32_t adopt_row(const uint32_t* row, uint64_t hash, uint32_t count) {
    rows_.push_back(row);
    row_counts_.push_back(count);
    row_index_.emplace(hash, static_cast<uint32_t>(rows_.size()));
    return static_cast<uint32_t>(rows_.size());
  }
  // Returns the number of an equal row; 0: there is none.
  uint32_t known_row(const uint32_t* row, uint64_t hash) const {
    auto [first, last] = row_index_.equal_range(hash);
    while (first != last && std::memcmp(rows_[first->second - 1], row, words_ * 4) != 0) ++first;
    return first == last ? 0 : first->second;
  }

  // Writes the tokens in which two rows differ; false if they are more than kMaxFlips.
  bool difference(const uint32_t* base, const uint32_t* row, std::vector<uint32_t>& flips) const {
    flips.clear();
    for (size_t i = 0; i < words_; ++i) {
      uint32_t word = row[i] ^ (base ? base[i] : 0);
      if (word == 0) continue;
      if (flips.size() + std::popcount(word) > kMaxFlips) return false;
      for (; word; word &= word - 1) flips.push_back(static_cast<uint32_t>(i * 32 + std::countr_zero(word)));
    }
    return true;
  }

  // Copies words to an address that stays valid.
  const uint32_t* keep(std::span<const uint32_t> words) {
    if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < words.size()) {
      blocks_.emplace_back().reserve(std::max(words.size(), std::clamp<size_t>(owned_bytes_ / 4, kLeastBlock, kBlock)));
      owned_bytes_ += blocks_.back().capacity() * 4;
    }
    auto& block = blocks_.back();
    block.insert(block.end(), words.begin(), words.end());
    return block.data() + block.size() - words.size();
  }

  size_t vocab_size_, words_;
  StableVector<Mask> masks_;  // mask 0 is the empty one, and means "not made yet" where states point to masks
  std::vector<const uint32_t*> rows_;
  std::vector<uint32_t> row_counts_;
  HashIndex index_;
  std::unordered_multimap<uint64_t, uint32_t> row_index_;
  std::vector<ReusedVector<uint32_t>> blocks_;  // which never grow, so that addresses stay valid
  size_t owned_bytes_ = 0;
};

}  // namespace tokenfst
