// A set of bytes as 256 bits.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace tokenfst {

struct ByteSet {
  std::array<uint64_t, 4> words{};

  static ByteSet all() { return {{~0ull, ~0ull, ~0ull, ~0ull}}; }
  static ByteSet single(uint8_t byte) {
    ByteSet set;
    set.add(byte);
    return set;
  }
  static ByteSet from_bytes(const uint8_t* bits) {
    ByteSet set;
    std::memcpy(set.words.data(), bits, 32);
    return set;
  }

  bool has(uint8_t byte) const { return words[byte >> 6] >> (byte & 63) & 1; }
  void add(uint8_t byte) { words[byte >> 6] |= 1ull << (byte & 63); }
  bool empty() const { return (words[0] | words[1] | words[2] | words[3]) == 0; }
  int size() const {
    return std::popcount(words[0]) + std::popcount(words[1]) + std::popcount(words[2]) + std::popcount(words[3]);
  }
  // The least byte of a set that is not empty.
  uint8_t first() const {
    int k = 0;
    while (words[k] == 0) ++k;
    return static_cast<uint8_t>(k * 64 + std::countr_zero(words[k]));
  }
  bool operator==(const ByteSet&) const = default;

  ByteSet operator&(const ByteSet& other) const { return combine(other, [](auto a, auto b) { return a & b; }); }
  ByteSet operator|(const ByteSet& other) const { return combine(other, [](auto a, auto b) { return a | b; }); }
  ByteSet operator-(const ByteSet& other) const { return combine(other, [](auto a, auto b) { return a & ~b; }); }
  ByteSet operator~() const { return all() - *this; }

 private:
  template <class F>
  ByteSet combine(const ByteSet& other, F f) const {
    ByteSet result;
    for (int i = 0; i < 4; ++i) result.words[i] = f(words[i], other.words[i]);
    return result;
  }
};

inline uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 29);
}

}  // namespace tokenfst
