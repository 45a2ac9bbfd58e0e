// A set of bytes as 256 bits, together with up to 64 symbols that are not bytes: the special tokens that a language
// names.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace tokenfst {

struct ByteSet {
  static constexpr uint32_t kMaxSymbols = 64;
  std::array<uint64_t, 5> words{};

  // The set of all bytes and of the symbols 0 to `symbols` - 1.
  static ByteSet all(uint32_t symbols = 0) { return {{~0ull, ~0ull, ~0ull, ~0ull, symbols == 0 ? 0 : ~0ull >> (64 - symbols)}}; }
  static ByteSet single(uint8_t byte) {
    ByteSet set;
    set.add(byte);
    return set;
  }
  // The set of the bytes b for which bit b % 8 of bits[b / 8] is 1; `bits` has 32 bytes.
  static ByteSet from_bytes(const uint8_t* bits) {
    ByteSet set;
    std::memcpy(set.words.data(), bits, 32);
    return set;
  }

  bool has(uint8_t byte) const { return words[byte >> 6] >> (byte & 63) & 1; }
  void add(uint8_t byte) { words[byte >> 6] |= 1ull << (byte & 63); }
  bool has_symbol(uint32_t symbol) const { return words[4] >> symbol & 1; }
  void add_symbol(uint32_t symbol) { words[4] |= 1ull << symbol; }
  bool has_symbols() const { return words[4] != 0; }
  bool empty() const { return (words[0] | words[1] | words[2] | words[3] | words[4]) == 0; }
  // The number of bytes and symbols.
  int size() const {
    int count = 0;
    for (uint64_t word : words) count += std::popcount(word);
    return count;
  }
  // The least byte of a set that contains a byte.
  uint8_t first() const {
    int k = 0;
    while (words[k] == 0) ++k;
    return static_cast<uint8_t>(k * 64 + std::countr_zero(words[k]));
  }
  bool operator==(const ByteSet&) const = default;

  ByteSet operator&(const ByteSet& other) const {
    return combine(other, [](auto a, auto b) { return a & b; });
  }
  ByteSet operator|(const ByteSet& other) const {
    return combine(other, [](auto a, auto b) { return a | b; });
  }
  ByteSet operator-(const ByteSet& other) const {
    return combine(other, [](auto a, auto b) { return a & ~b; });
  }
  // The bytes that are not in the set; the complement has no symbols.
  ByteSet operator~() const { return all() - *this; }

 private:
  template <class F>
  ByteSet combine(const ByteSet& other, F f) const {
    ByteSet result;
    for (size_t i = 0; i < words.size(); ++i) result.words[i] = f(words[i], other.words[i]);
    return result;
  }
};

// Adds a value to a hash.
inline uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 29);
}

}  // namespace tokenfst
