// The masking loop over device tables (their content: decoding/device/tables/tables.py) for tensors in host memory:
// advance states by tokens, mask rows of logits, choose greedily. The specification is
// decoding/device/kernels/plain.py; results are equal bit for bit.
//
// A step reads as few logits as possible: a mask is a row XOR flips. Flips of a dense row are applied to a copy of its
// words, which rows of the batch with the same mask share; for a list of flips, the listed logits are saved while -inf
// is stored. The greatest allowed logit is found from the row's words and the flips. Numbers are compared in the order
// of integers, with NaN greatest and the first of equal ones chosen, as in torch.argmax.
//
// States and tokens are range-checked before they index anything: out of range counts as dead.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "device/logits.hpp"

namespace tokenfst {

// Borrowed tables: the owner keeps them alive, and has checked that all numbers in them are in range.
struct DeviceTables {
  static constexpr int32_t kDead = 0, kEnded = 1;
  static constexpr int32_t kAccepting = 1, kFirst = 2;
  static constexpr size_t kMostFlips = 512;  // flips of one mask

  struct StateRecord {
    int32_t row, classes, mask, layers_begin, layers_end, flags, after_empty, distance;
  };
  struct TokenRecord {
    int32_t begin, length, first_begin, first_length;  // a length of -1: an end token
  };
  struct MaskRecord {
    int32_t row, flips_begin, flips_end, count;
  };
  struct Layer {
    int32_t least, mask;
  };

  const StateRecord* states;
  const int32_t* table;
  const uint8_t* classes;
  const uint8_t* bytes;
  const TokenRecord* tokens;
  const MaskRecord* masks;
  const uint32_t* rows;
  const int32_t* flips;
  const Layer* layers;
  int32_t num_states, vocab_size, words;

  // The state after a token: kDead if it has no arc, kEnded after an end token in an accepting state. O(bytes of the token).
  int32_t advance(int32_t state, int64_t token) const {
    if (state == kEnded) return kEnded;
    if (state <= kDead || state >= num_states || token < 0 || token >= vocab_size) return kDead;
    const StateRecord& from = states[state];
    const TokenRecord& text = tokens[token];
    if (text.length < 0) return from.flags & kAccepting ? kEnded : kDead;
    const bool first = from.flags & kFirst;
    int32_t begin = first ? text.first_begin : text.begin, length = first ? text.first_length : text.length;
    if (length == 0) return text.length > 0 ? from.after_empty : kDead;
    const uint8_t* const class_of = classes + from.classes;
    int32_t row = from.row;
    for (const uint8_t *byte = bytes + begin, *end = byte + length; byte != end && row != 0; ++byte) row = table[row + 1 + class_of[*byte]];
    return table[row];
  }

  // The mask of a state with `left` tokens left; negative: no limit. O(log layers).
  const MaskRecord& mask(int32_t state, int32_t left) const {
    if (state < 0 || state >= num_states) return masks[0];
    const StateRecord& at = states[state];
    if (left < 0) return masks[at.mask];
    const Layer* found = std::upper_bound(layers + at.layers_begin, layers + at.layers_end, left - 1,
                                          [](int32_t n, const Layer& layer) { return n < layer.least; });
    return masks[found == layers + at.layers_begin ? 0 : found[-1].mask];
  }
  // The row of a mask, without its flips; and the whole mask, written into `words` words.
  const uint32_t* row_of(const MaskRecord& mask) const { return rows + size_t{static_cast<uint32_t>(mask.row)} * words; }

  void fill(const MaskRecord& mask, uint32_t* out) const {
    std::memcpy(out, row_of(mask), size_t{4} * words);
    for (int32_t i = mask.flips_begin; i < mask.flips_end; ++i) out[flips[i] / 32] ^= 1u << (flips[i] % 32);
  }
};

// How many tokens each row has left: one number for all rows (`each` is null), or one for each row. Negative: no limit.
struct TokensLeft {
  const int32_t* each;
  int32_t all;
  int32_t operator[](size_t row) const { return each ? each[row] : all; }
};

namespace device_detail {

template <class F>
typename F::Bits load(const std::byte* row, size_t column) {
  typename F::Bits bits;
  std::memcpy(&bits, row + column * sizeof bits, sizeof bits);
  return bits;
}

// Maps numbers to integers of the same order: equal zeros are equal, every NaN is greater than all others. Without a
// branch.
template <class F>
int32_t key(typename F::Bits bits) {
  const int32_t size = bits & F::kMagnitude, negative = -int32_t{(bits & ~F::kMagnitude) != 0};
  const int32_t nan = -int32_t{size > static_cast<int32_t>(F::kInf)};
  return (((size ^ negative) - negative) & ~nan) | (std::numeric_limits<int32_t>::max() & nan);
}
constexpr int32_t kForbidden = std::numeric_limits<int32_t>::min();

// The words of the mask that was applied last.
struct MaskScratch {
  const DeviceTables::MaskRecord* of = nullptr;
  std::vector<uint32_t> words;
};

template <class F>
void mask_row(const DeviceTables& t, const DeviceTables::MaskRecord& mask, std::byte* row, size_t width, SimdLevel level,
              MaskScratch& scratch) {
  using Bits = typename F::Bits;
  auto apply = [&](const uint32_t* words) {
    logits_detail::mask_row<F, false>(row, width, reinterpret_cast<const std::byte*>(words), t.words, t.vocab_size, level);
  };
  if (mask.flips_begin == mask.flips_end) return apply(t.row_of(mask));
  if (mask.row != 0) {
    // The next row of the batch often has the same mask.
    if (scratch.of != &mask) {
      scratch.words.resize(t.words);
      t.fill(mask, scratch.words.data());
      scratch.of = &mask;
    }
    return apply(scratch.words.data());
  }
  std::array<Bits, DeviceTables::kMostFlips> kept;
  const std::span list(t.flips + mask.flips_begin, t.flips + mask.flips_end);
  for (size_t i = 0; i < list.size(); ++i) kept[i] = load<F>(row, list[i]);
  apply(t.row_of(mask));
  for (size_t i = 0; i < list.size(); ++i) std::memcpy(row + list[i] * sizeof(Bits), &kept[i], sizeof(Bits));
}

// The greatest key of 32 columns; the compiler vectorizes the loop.
template <class F>
inline int32_t greatest_of_word(const std::byte* columns, uint32_t allowed) {
  typename F::Bits x[32];
  std::memcpy(x, columns, sizeof x);
  int32_t best = kForbidden;
  for (int i = 0; i < 32; ++i) {
    const int32_t keep = -static_cast<int32_t>(allowed >> i & 1);
    best = std::max(best, (key<F>(x[i]) & keep) | (kForbidden & ~keep));
  }
  return best;
}
#ifdef TOKENFST_LOGITS_X86
template <class F>
__attribute__((target("avx2"))) int32_t greatest_of_word_avx2(const std::byte* columns, uint32_t allowed) {
  return greatest_of_word<F>(columns, allowed);
}
#endif

template <class F>
int64_t greatest(const DeviceTables& t, const DeviceTables::MaskRecord& mask, const std::byte* row) {
  int32_t best = kForbidden;
  int64_t found = 0;
  const uint32_t* const words = t.row_of(mask);
  const int32_t* flip = t.flips + mask.flips_begin;
  const int32_t* const flips_end = t.flips + mask.flips_end;
  auto look = [&](int64_t column) {
    const int32_t here = key<F>(load<F>(row, column));
    if (here > best || (here == best && column < found)) best = here, found = column;
  };
  if (mask.row == 0) {
    for (; flip != flips_end; ++flip) look(*flip);
    return found;
  }
  auto* of_word = &greatest_of_word<F>;
#ifdef TOKENFST_LOGITS_X86
  if (best_simd() != SimdLevel::kScalar) of_word = &greatest_of_word_avx2<F>;
#endif
  for (int32_t w = 0; w < t.words; ++w) {
    uint32_t allowed = words[w];
    for (; flip != flips_end && *flip / 32 == w; ++flip) allowed ^= 1u << (*flip % 32);
    if (allowed == 0) continue;
    if (std::popcount(allowed) < 4 || 32 * w + 32 > t.vocab_size) {
      for (; allowed; allowed &= allowed - 1) look(32 * w + std::countr_zero(allowed));
      continue;
    }
    if (of_word(row + size_t{32} * w * sizeof(typename F::Bits), allowed) <= best) continue;
    for (; allowed; allowed &= allowed - 1) look(32 * w + std::countr_zero(allowed));
  }
  return found;
}

template <class Run>
void in_parts(size_t rows, size_t threads, Run&& run) {
  const size_t parts = std::clamp<size_t>(threads, 1, std::max<size_t>(rows, 1));
  in_parallel(parts, [&](size_t p) { run(rows * p / parts, rows * (p + 1) / parts); });
}

template <class Run>
void with_type(LogitsType type, Run&& run) {
  switch (type) {
    case LogitsType::kFloat32: return run.template operator()<logits_detail::Float32>();
    case LogitsType::kFloat16: return run.template operator()<logits_detail::Float16>();
    default: return run.template operator()<logits_detail::Bfloat16>();
  }
}

}  // namespace device_detail

// Masks row r of the logits with the mask of states[r], in place. O(width) for each row; `threads` threads share the rows.
inline void device_mask(const DeviceTables& t, const int32_t* states, TokensLeft left, const LogitsView& logits, size_t threads) {
  const SimdLevel level = best_simd();
  device_detail::with_type(logits.type, [&]<class F>() {
    device_detail::in_parts(logits.rows, threads, [&](size_t begin, size_t end) {
      device_detail::MaskScratch scratch;
      for (size_t r = begin; r < end; ++r) {
        device_detail::mask_row<F>(t, t.mask(states[r], left[r]), logits.data + static_cast<std::ptrdiff_t>(r) * logits.stride,
                                   logits.width, level, scratch);
      }
    });
  });
}

// Writes the column of the greatest allowed logit of each row into `tokens` (0 if no token is allowed), and the state after that token
// into `next`.
inline void device_greedy(const DeviceTables& t, const int32_t* states, TokensLeft left, const LogitsView& logits, int64_t* tokens,
                          int32_t* next, size_t threads) {
  device_detail::with_type(logits.type, [&]<class F>() {
    device_detail::in_parts(logits.rows, threads, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        tokens[r] = device_detail::greatest<F>(t, t.mask(states[r], left[r]), logits.data + static_cast<std::ptrdiff_t>(r) * logits.stride);
        next[r] = t.advance(states[r], tokens[r]);
      }
    });
  });
}

}  // namespace tokenfst
