// Applying token bitmasks to rows of logits, in place: forbidden logits become -inf.
//
// Idea. Bit t of a mask row says whether token t is allowed (convention 6). The mask is read in blocks of 512
// (AVX-512) or 256 (AVX2) tokens. An all-ones block is skipped (and only read when NaN is looked for), an all-zeros
// block is only written, and a mixed block is loaded, blended with -inf under the mask bits and stored. Columns from
// min(vocab_size, 32 * words) on carry no mask bit and are set to -inf: no token that the mask does not know can win.
//
// Invariant. An allowed logit keeps its bit pattern; every other column of a processed row ends as -inf, also when a
// NaN is found. Buffers need no alignment. 16-bit types are handled as bit patterns.
//
// Cost. One pass, at most one read and one write of the row; see docs/masks.md for figures.
//
// Rejected. A branch per 32-bit word mispredicts at middling densities (8 us per row with the NaN test, instead of
// 6). Masked stores in place of load-blend-store: 7.4 us instead of 6.0 with the NaN test, and microcoded in their
// AVX2 form on some CPUs. A global -march flag: the wheel must run on any x86-64, so each path is compiled for its own target
// and chosen at run time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__)
#define TOKENFST_LOGITS_X86 1
#include <immintrin.h>
#endif

namespace tokenfst {

static_assert(std::endian::native == std::endian::little, "bitmasks are little-endian");

enum class LogitsType : int { kFloat32 = 0, kFloat16 = 1, kBfloat16 = 2 };
enum class SimdLevel : int { kScalar = 0, kAvx2 = 1, kAvx512 = 2 };

struct LogitsView {
  std::byte* data;
  LogitsType type;
  size_t rows, width;
  std::ptrdiff_t stride;  // bytes between the beginnings of two rows
};

struct BitmaskView {
  const std::byte* data;
  size_t rows, words;
  std::ptrdiff_t stride;  // bytes between the beginnings of two rows; 0: one mask for all rows
};

struct LogitsPosition {
  size_t row, column;
};

inline bool simd_supported(SimdLevel level) {
#ifdef TOKENFST_LOGITS_X86
  if (level == SimdLevel::kAvx512) return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  if (level == SimdLevel::kAvx2) return __builtin_cpu_supports("avx2");
#endif
  return level == SimdLevel::kScalar;
}

inline SimdLevel best_simd() {
  static const SimdLevel best = simd_supported(SimdLevel::kAvx512) ? SimdLevel::kAvx512
                                : simd_supported(SimdLevel::kAvx2) ? SimdLevel::kAvx2
                                                                   : SimdLevel::kScalar;
  return best;
}

namespace logits_detail {

constexpr uint32_t kAllOnes = ~uint32_t{0};

inline uint32_t load_word(const std::byte* mask, size_t w) {
  uint32_t word;
  std::memcpy(&word, mask + 4 * w, 4);
  return word;
}

// An element type as its bit pattern: what -inf is, and the greatest magnitude that is not NaN.
struct Float32 {
  using Bits = uint32_t;
  static constexpr Bits kMinusInf = 0xFF800000u, kMagnitude = 0x7FFFFFFFu, kInf = 0x7F800000u;
};
struct Float16 {
  using Bits = uint16_t;
  static constexpr Bits kMinusInf = 0xFC00u, kMagnitude = 0x7FFFu, kInf = 0x7C00u;
};
struct Bfloat16 {
  using Bits = uint16_t;
  static constexpr Bits kMinusInf = 0xFF80u, kMagnitude = 0x7FFFu, kInf = 0x7F80u;
};

template <class F>
bool is_nan(const std::byte* row, size_t column) {
  typename F::Bits bits;
  std::memcpy(&bits, row + column * sizeof bits, sizeof bits);
  return (bits & F::kMagnitude) > F::kInf;
}

template <class F>
void fill_minus_inf(std::byte* row, size_t begin, size_t end) {
  constexpr typename F::Bits kValue = F::kMinusInf;
  for (size_t c = begin; c < end; ++c) std::memcpy(row + c * sizeof kValue, &kValue, sizeof kValue);
}

// Columns [begin, end) one by one; true iff NaN stands at an allowed one. All paths end their rows with it.
template <class F, bool kCheck>
bool mask_scalar(std::byte* row, const std::byte* mask, size_t begin, size_t end) {
  constexpr typename F::Bits kValue = F::kMinusInf;
  bool nan = false;
  for (size_t c = begin; c < end; ++c) {
    const bool allowed = (load_word(mask, c / 32) >> (c % 32)) & 1;
    if (!allowed) std::memcpy(row + c * sizeof kValue, &kValue, sizeof kValue);
    if constexpr (kCheck) nan |= allowed && is_nan<F>(row, c);
  }
  return nan;
}

// The first NaN at an allowed column; asked only after one was seen.
template <class F>
std::optional<size_t> find_nan(const std::byte* row, const std::byte* mask, size_t end) {
  for (size_t c = 0; c < end; ++c)
    if (((load_word(mask, c / 32) >> (c % 32)) & 1) && is_nan<F>(row, c)) return c;
  return std::nullopt;
}

#ifdef TOKENFST_LOGITS_X86

constexpr size_t kWords512 = 16, kWords256 = 8;  // mask words in a block

// 32 bits of a vector filled with one element's pattern.
template <class F>
constexpr int lanes(typename F::Bits bits) {
  return static_cast<int>(sizeof bits == 4 ? bits : bits * 0x10001u);
}

// `blocks` blocks of 512 columns. True iff NaN stands at an allowed column: `largest` gathers, lane by lane, the
// greatest magnitude of what was left in the row (-inf included), and NaN is a magnitude above infinity's.
template <class F, bool kCheck>
__attribute__((target("avx512f,avx512bw"))) bool mask_avx512(std::byte* row, const std::byte* mask, size_t blocks) {
  constexpr size_t kElement = sizeof(typename F::Bits), kLanes = 64 / kElement;
  constexpr bool kWide = kElement == 4;
  constexpr size_t kVectors = 32 * kWords512 / kLanes;  // in a block
  const __m512i minus_inf = _mm512_set1_epi32(lanes<F>(F::kMinusInf));
  const __m512i magnitude = _mm512_set1_epi32(lanes<F>(F::kMagnitude)), inf = _mm512_set1_epi32(lanes<F>(F::kInf));
  __m512i largest = _mm512_setzero_si512();
  for (size_t b = 0; b < blocks; ++b) {
    std::byte* const block = row + b * kVectors * 64;
    const std::byte* const words = mask + b * 64;
    const __m512i bits = _mm512_loadu_si512(words);
    if (_mm512_test_epi32_mask(bits, bits) == 0) {
      for (size_t v = 0; v < kVectors; ++v) _mm512_storeu_si512(block + 64 * v, minus_inf);
      continue;
    }
    const bool all = _mm512_cmpneq_epi32_mask(bits, _mm512_set1_epi32(-1)) == 0;
    if (all && !kCheck) continue;
    for (size_t v = 0; v < kVectors; ++v) {
      const uint32_t word = load_word(words, v * kLanes / 32) >> (v * kLanes % 32);
      __m512i x = _mm512_loadu_si512(block + 64 * v);
      if (!all) {
        if constexpr (kWide) x = _mm512_mask_blend_epi32(static_cast<__mmask16>(word), minus_inf, x);
        else x = _mm512_mask_blend_epi16(word, minus_inf, x);
        _mm512_storeu_si512(block + 64 * v, x);
      }
      if constexpr (kCheck) {
        const __m512i size = _mm512_and_si512(x, magnitude);
        // The form with a (full) lane mask: g++ 12 warns about the plain one's own header.
        largest = kWide ? _mm512_mask_max_epi32(largest, 0xFFFF, largest, size) : _mm512_max_epi16(largest, size);
      }
    }
  }
  return (kWide ? _mm512_cmpgt_epi32_mask(largest, inf) : _mm512_cmpgt_epi16_mask(largest, inf)) != 0;
}

// Blocks of 256 columns, in the same way. Mask bits are spread over a vector by testing each lane's own bit.
template <class F, bool kCheck>
__attribute__((target("avx2"))) bool mask_avx2(std::byte* row, const std::byte* mask, size_t blocks) {
  constexpr size_t kElement = sizeof(typename F::Bits), kLanes = 32 / kElement;
  constexpr bool kWide = kElement == 4;
  constexpr size_t kVectors = 32 * kWords256 / kLanes;  // in a block
  const __m256i minus_inf = _mm256_set1_epi32(lanes<F>(F::kMinusInf));
  const __m256i magnitude = _mm256_set1_epi32(lanes<F>(F::kMagnitude)), inf = _mm256_set1_epi32(lanes<F>(F::kInf));
  const __m256i lane_bit = kWide ? _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128)
                                 : _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192,
                                                     16384, static_cast<short>(0x8000));
  __m256i largest = _mm256_setzero_si256();
  for (size_t b = 0; b < blocks; ++b) {
    auto* const block = reinterpret_cast<__m256i*>(row + b * kVectors * 32);
    const std::byte* const words = mask + b * 32;
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
    if (_mm256_testz_si256(bits, bits)) {
      for (size_t v = 0; v < kVectors; ++v) _mm256_storeu_si256(block + v, minus_inf);
      continue;
    }
    const bool all = _mm256_testc_si256(bits, _mm256_set1_epi32(-1));
    if (all && !kCheck) continue;
    for (size_t v = 0; v < kVectors; ++v) {
      const uint32_t word = load_word(words, v * kLanes / 32) >> (v * kLanes % 32);
      __m256i x = _mm256_loadu_si256(block + v);
      if (!all) {
        const __m256i spread =
            kWide ? _mm256_set1_epi32(static_cast<int>(word)) : _mm256_set1_epi16(static_cast<short>(word));
        __m256i allowed = _mm256_and_si256(spread, lane_bit);
        allowed = kWide ? _mm256_cmpeq_epi32(allowed, lane_bit) : _mm256_cmpeq_epi16(allowed, lane_bit);
        x = _mm256_blendv_epi8(minus_inf, x, allowed);
        _mm256_storeu_si256(block + v, x);
      }
      if constexpr (kCheck) {
        const __m256i size = _mm256_and_si256(x, magnitude);
        largest = kWide ? _mm256_max_epi32(largest, size) : _mm256_max_epi16(largest, size);
      }
    }
  }
  const __m256i over = kWide ? _mm256_cmpgt_epi32(largest, inf) : _mm256_cmpgt_epi16(largest, inf);
  return !_mm256_testz_si256(over, over);
}

#endif  // TOKENFST_LOGITS_X86

// One row: vector blocks, then the rest column by column, then the columns that the mask does not know.
template <class F, bool kCheck>
bool mask_row(std::byte* row, size_t width, const std::byte* mask, size_t known, [[maybe_unused]] SimdLevel level) {
  size_t done = 0;
  bool nan = false;
#ifdef TOKENFST_LOGITS_X86
  if (level == SimdLevel::kAvx512) {
    const size_t blocks = known / (32 * kWords512);
    nan = mask_avx512<F, kCheck>(row, mask, blocks);
    done = blocks * 32 * kWords512;
  } else if (level == SimdLevel::kAvx2) {
    const size_t blocks = known / (32 * kWords256);
    nan = mask_avx2<F, kCheck>(row, mask, blocks);
    done = blocks * 32 * kWords256;
  }
#endif
  nan |= mask_scalar<F, kCheck>(row, mask, done, known);
  fill_minus_inf<F>(row, known, width);
  return nan;
}

template <class F, bool kCheck>
std::optional<LogitsPosition> mask_rows(const LogitsView& logits, const BitmaskView& mask, size_t known,
                                        const std::vector<size_t>* indices, size_t begin, size_t end,
                                        SimdLevel level) {
  std::optional<LogitsPosition> first;
  for (size_t i = begin; i < end; ++i) {
    const auto r = static_cast<std::ptrdiff_t>(indices ? (*indices)[i] : i);
    std::byte* const row = logits.data + r * logits.stride;
    const std::byte* const bits = mask.data + r * mask.stride;
    if (mask_row<F, kCheck>(row, logits.width, bits, known, level) && !first)
      if (const auto column = find_nan<F>(row, bits, known)) first = LogitsPosition{static_cast<size_t>(r), *column};
  }
  return first;
}

}  // namespace logits_detail

// Masks `logits` in place: row r of the mask goes to row r of the logits, for all rows, or for those in `indices`
// (which the caller has checked against both row counts). Returns, with `check_nan`, the first NaN at an allowed
// column, in the order of the rows processed; all rows are masked all the same. `level` must be supported.
// `threads` > 1 splits the rows into equal runs.
inline std::optional<LogitsPosition> apply_bitmask(const LogitsView& logits, const BitmaskView& mask, size_t vocab_size,
                                                   const std::vector<size_t>* indices, bool check_nan, SimdLevel level,
                                                   size_t threads) {
  using namespace logits_detail;
  const size_t known = std::min({vocab_size, logits.width, 32 * mask.words});
  const auto run = [&](size_t begin, size_t end) {
    const auto with = [&]<class F>() {
      return check_nan ? mask_rows<F, true>(logits, mask, known, indices, begin, end, level)
                       : mask_rows<F, false>(logits, mask, known, indices, begin, end, level);
    };
    switch (logits.type) {
      case LogitsType::kFloat32: return with.template operator()<Float32>();
      case LogitsType::kFloat16: return with.template operator()<Float16>();
      default: return with.template operator()<Bfloat16>();
    }
  };
  const size_t rows = indices ? indices->size() : logits.rows;
  const size_t parts = std::clamp<size_t>(threads, 1, std::max<size_t>(rows, 1));
  if (parts == 1) return run(0, rows);

  std::vector<std::optional<LogitsPosition>> found(parts);
  {
    std::vector<std::jthread> workers;
    workers.reserve(parts - 1);
    for (size_t p = 1; p < parts; ++p)
      workers.emplace_back([&, p] { found[p] = run(rows * p / parts, rows * (p + 1) / parts); });
    found[0] = run(0, rows / parts);
  }
  for (const auto& position : found)
    if (position) return position;
  return std::nullopt;
}

}  // namespace tokenfst
