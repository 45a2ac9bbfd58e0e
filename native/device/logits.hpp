// Applies token bitmasks to rows of logits, in place: forbidden logits become -inf.
//
// Idea. Bit t of a mask row says whether token t is allowed (convention 6). The row is processed in blocks of 512
// (AVX-512) or 256 (AVX2) columns. A block of ones is skipped (it is read only if NaN is searched for), a block of zeros
// is only written, and a mixed block is loaded, blended with -inf under the mask bits and stored. If NaN is not searched
// for, AVX-512 does that only for the vectors that contain a forbidden column. Columns from min(vocab_size, 32 *
// words) on have no mask bit and are set to -inf, so no token outside the mask can be chosen.
//
// Invariant. An allowed logit keeps its bit pattern; every other column of a processed row becomes -inf, also if a NaN
// is found. Neither buffer needs an alignment. 16-bit types are handled as bit patterns.
//
// Cost. One pass, with at most one read and one write of the row. Writing a float32 row of 131,072 takes 4.9 us out of
// L2; the blend adds 0.3 us and the NaN test 0.6 us (AVX-512, Zen 4). Figures: docs/decoding/masks.md.
//
// Rejected. A branch for each 32-bit word mispredicts at middling densities (8 us). Masked stores in place of
// load-blend-store: 7.4 us with the NaN test, no gain without, and microcoded in their AVX2 form on some CPUs. Stores
// past the caches (streaming) for all-zeros blocks: 7% less time for 34 MB, twice the time for the 17 MB that a cache
// holds; and the size of the cache is not known (a virtual machine reports the host's 320 MiB when its share is 32
// MiB). Blocks from the beginning of the row instead of from a vector's alignment: 8.9 us for numpy's arrays, which
// begin 16 bytes off. A global -march flag: the wheel must run on any x86-64, so each path is compiled for its own
// target and chosen at run time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "threads/in_parallel.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define TOKENFST_LOGITS_X86 1
#include <immintrin.h>
#endif

namespace tokenfst {

static_assert(std::endian::native == std::endian::little, "bitmasks are little-endian");

enum class LogitsType : int { kFloat32 = 0, kFloat16 = 1, kBfloat16 = 2 };
enum class SimdLevel : int { kScalar = 0, kAvx2 = 1, kAvx512 = 2 };

// Rows of logits that the caller owns.
struct LogitsView {
  std::byte* data;
  LogitsType type;
  size_t rows, width;
  std::ptrdiff_t stride;  // bytes between the beginnings of two rows
};

// Rows of masks that the caller owns.
struct BitmaskView {
  const std::byte* data;
  size_t rows, words;
  std::ptrdiff_t stride;  // bytes between the beginnings of two rows; 0: one mask for all rows
};

struct LogitsPosition {
  size_t row, column;
};

// Whether this computer has the instructions of a level; and the best level that it has.
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

// An element type as its bit pattern: the pattern of -inf, and the greatest magnitude that is not NaN.
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

// Masks the columns [0, known) without intrinsics and without a branch, one mask word at a time: 0.7-0.9 ns for each
// column.
template <class F, bool kCheck>
bool mask_scalar(std::byte* row, const std::byte* mask, size_t known) {
  using Bits = typename F::Bits;
  Bits nan = 0;
  const auto columns = [&](size_t word, size_t count) {
    const uint32_t allowed = load_word(mask, word);
    Bits x[32] = {};
    std::memcpy(x, row + 32 * word * sizeof(Bits), count * sizeof(Bits));
    for (size_t i = 0; i < 32; ++i) {
      const auto keep = static_cast<Bits>(0 - ((allowed >> i) & 1));
      x[i] = static_cast<Bits>((x[i] & keep) | (F::kMinusInf & ~keep));
      // Infinity minus the magnitude of a NaN borrows from the sign bit.
      if constexpr (kCheck) nan |= static_cast<Bits>(F::kInf - (x[i] & F::kMagnitude));
    }
    std::memcpy(row + 32 * word * sizeof(Bits), x, count * sizeof(Bits));
  };
  for (size_t word = 0; word < known / 32; ++word) columns(word, 32);
  if (known % 32) columns(known / 32, known % 32);
  return nan > F::kMagnitude;
}

// The first NaN at an allowed column; called only after one was found.
template <class F>
std::optional<size_t> find_nan(const std::byte* row, const std::byte* mask, size_t end) {
  for (size_t c = 0; c < end; ++c)
    if (((load_word(mask, c / 32) >> (c % 32)) & 1) && is_nan<F>(row, c)) return c;
  return std::nullopt;
}

#ifdef TOKENFST_LOGITS_X86

// A block is the columns that one vector of mask bits covers. The functions below mask `blocks` of them in a row, whose
// mask bits begin `shift` < 8 bits into `mask`, so that processing can begin at a cache line; they read 8 bytes more of
// the mask than they use. They return whether there is a NaN at an allowed column.
constexpr size_t kSlack = 8;

inline uint32_t load_shifted(const std::byte* mask, size_t w, unsigned shift) {
  uint64_t bits;
  std::memcpy(&bits, mask + 4 * w, 8);
  return static_cast<uint32_t>(bits >> shift);
}

// A vector filled with the 32 bits of one element's pattern.
template <class F>
constexpr int lanes(typename F::Bits bits) {
  return static_cast<int>(sizeof bits == 4 ? bits : bits * 0x10001u);
}

struct Avx512 {
  static constexpr size_t kBytes = 64;            // bytes of a vector
  static constexpr size_t kColumns = 8 * kBytes;  // columns of a block

  template <class F, bool kCheck>
  __attribute__((target("avx512f,avx512bw"))) static bool mask_blocks(std::byte* row, const std::byte* mask, unsigned shift,
                                                                      size_t blocks) {
    constexpr bool kWide = sizeof(typename F::Bits) == 4;
    constexpr size_t kVectors = kColumns * sizeof(typename F::Bits) / kBytes;
    const __m512i minus_inf = _mm512_set1_epi32(lanes<F>(F::kMinusInf)), inf = _mm512_set1_epi32(lanes<F>(F::kInf));
    const __m512i magnitude = _mm512_set1_epi32(lanes<F>(F::kMagnitude));
    __mmask16 nan = 0;
    __m512i largest = _mm512_setzero_si512();  // 16-bit types: for each lane, the greatest magnitude of an allowed column
    for (size_t b = 0; b < blocks; ++b, row += kVectors * kBytes, mask += kBytes) {
      const __m512i bits = _mm512_loadu_si512(mask);
      const auto beyond = shift ? static_cast<uint8_t>(mask[kBytes]) : 0;
      if (_mm512_test_epi32_mask(bits, bits) == 0 && beyond == 0) {
        for (size_t v = 0; v < kVectors; ++v) _mm512_storeu_si512(row + kBytes * v, minus_inf);
        continue;
      }
      const bool all = _mm512_cmpneq_epi32_mask(bits, _mm512_set1_epi32(-1)) == 0 && (!shift || beyond == 0xFF);
      if (all && !kCheck) continue;
      if (!kCheck && shift == 0) {
        // Only the vectors that contain a forbidden column: a vector of 4-byte logits has 16 columns, of 2-byte ones
        // 32.
        const __m512i ones = _mm512_set1_epi32(-1);
        for (uint32_t some = kWide ? _mm512_cmpneq_epi16_mask(bits, ones) : _mm512_cmpneq_epi32_mask(bits, ones); some != 0;
             some &= some - 1) {
          const int v = std::countr_zero(some);
          std::byte* const at = row + kBytes * v;
          const __m512i x = _mm512_loadu_si512(at);
          if constexpr (kWide) {
            uint16_t word;
            std::memcpy(&word, mask + size_t{2} * v, 2);
            _mm512_storeu_si512(at, _mm512_mask_blend_epi32(word, minus_inf, x));
          } else {
            _mm512_storeu_si512(at, _mm512_mask_blend_epi16(load_word(mask, v), minus_inf, x));
          }
        }
        continue;
      }
      for (size_t v = 0; v < kVectors; v += kWide ? 2 : 1) {
        const uint32_t word = load_shifted(mask, kWide ? v / 2 : v, shift);
        __m512i x = _mm512_loadu_si512(row + kBytes * v);
        if constexpr (kWide) {
          __m512i y = _mm512_loadu_si512(row + kBytes * (v + 1));
          if (!all) {
            x = _mm512_mask_blend_epi32(static_cast<__mmask16>(word), minus_inf, x);
            y = _mm512_mask_blend_epi32(static_cast<__mmask16>(word >> 16), minus_inf, y);
            _mm512_storeu_si512(row + kBytes * v, x);
            _mm512_storeu_si512(row + kBytes * (v + 1), y);
          }
          // The comparison is unordered if one of the two is NaN.
          if constexpr (kCheck)
            nan = static_cast<__mmask16>(nan | _mm512_cmp_ps_mask(_mm512_castsi512_ps(x), _mm512_castsi512_ps(y), _CMP_UNORD_Q));
        } else {
          if (!all) {
            x = _mm512_mask_blend_epi16(word, minus_inf, x);
            _mm512_storeu_si512(row + kBytes * v, x);
          }
          if constexpr (kCheck) largest = _mm512_max_epi16(largest, _mm512_and_si512(x, magnitude));
        }
      }
    }
    return nan != 0 || _mm512_cmpgt_epi16_mask(largest, inf) != 0;
  }
};

struct Avx2 {
  static constexpr size_t kBytes = 32, kColumns = 8 * kBytes;

  // A mask word is spread over vectors by testing each lane's own bit.
  template <class F, bool kCheck>
  __attribute__((target("avx2"))) static bool mask_blocks(std::byte* row, const std::byte* mask, unsigned shift, size_t blocks) {
    constexpr bool kWide = sizeof(typename F::Bits) == 4;
    constexpr size_t kLanes = kBytes / sizeof(typename F::Bits), kVectors = kColumns / kLanes;
    const __m256i minus_inf = _mm256_set1_epi32(lanes<F>(F::kMinusInf)), inf = _mm256_set1_epi32(lanes<F>(F::kInf));
    const __m256i magnitude = _mm256_set1_epi32(lanes<F>(F::kMagnitude));
    const __m256i lane_bit =
        kWide ? _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128)
              : _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, static_cast<short>(0x8000));
    __m256i largest = _mm256_setzero_si256();  // for each lane, the greatest magnitude of an allowed column
    for (size_t b = 0; b < blocks; ++b, row += kVectors * kBytes, mask += kBytes) {
      auto* const vectors = reinterpret_cast<__m256i*>(row);
      const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(mask));
      const auto beyond = shift ? static_cast<uint8_t>(mask[kBytes]) : 0;
      if (_mm256_testz_si256(bits, bits) && beyond == 0) {
        for (size_t v = 0; v < kVectors; ++v) _mm256_storeu_si256(vectors + v, minus_inf);
        continue;
      }
      const bool all = _mm256_testc_si256(bits, _mm256_set1_epi32(-1)) && (!shift || beyond == 0xFF);
      if (all && !kCheck) continue;
      for (size_t w = 0; w < kColumns / 32; ++w) {
        const uint32_t word = load_shifted(mask, w, shift);
#pragma GCC unroll 4
        for (size_t i = 0; i < 32 / kLanes; ++i) {
          __m256i* const p = vectors + w * (32 / kLanes) + i;
          __m256i x = _mm256_loadu_si256(p);
          if (!all) {
            __m256i allowed;
            if constexpr (kWide) {
              const __m256i bit = _mm256_slli_epi32(lane_bit, static_cast<int>(i * kLanes));
              allowed = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(word)), bit), bit);
            } else {
              const __m256i spread = _mm256_set1_epi16(static_cast<short>(word >> (i * kLanes)));
              allowed = _mm256_cmpeq_epi16(_mm256_and_si256(spread, lane_bit), lane_bit);
            }
            x = _mm256_blendv_epi8(minus_inf, x, allowed);
            _mm256_storeu_si256(p, x);
          }
          if constexpr (kCheck) {
            const __m256i size = _mm256_and_si256(x, magnitude);
            largest = kWide ? _mm256_max_epi32(largest, size) : _mm256_max_epi16(largest, size);
          }
        }
      }
    }
    const __m256i over = kWide ? _mm256_cmpgt_epi32(largest, inf) : _mm256_cmpgt_epi16(largest, inf);
    return !_mm256_testz_si256(over, over);
  }
};

// Masks one block, which may begin at any column, using a copy of its mask bits with slack after them.
template <class Simd, class F, bool kCheck>
bool mask_one_block(std::byte* row, const std::byte* mask, size_t mask_bytes, size_t column) {
  std::byte bits[Simd::kColumns / 8 + 1 + kSlack] = {};
  std::memcpy(bits, mask + column / 8, std::min(mask_bytes - column / 8, sizeof bits));
  return Simd::template mask_blocks<F, kCheck>(row + column * sizeof(typename F::Bits), bits, column % 8, 1);
}

// Masks the columns [0, known): one block at the beginning, whole blocks from the first column at a vector's alignment
// on, and blocks that end with the last columns. Blocks overlap there, which is harmless: masking twice has the effect
// of masking once.
template <class Simd, class F, bool kCheck>
bool mask_blockwise(std::byte* row, const std::byte* mask, size_t mask_bytes, size_t known) {
  constexpr size_t kElement = sizeof(typename F::Bits), kBlock = Simd::kColumns;
  if (known < kBlock) return mask_scalar<F, kCheck>(row, mask, known);
  bool nan = false;
  size_t column = 0;
  if (const size_t past = reinterpret_cast<uintptr_t>(row) % Simd::kBytes; past != 0 && past % kElement == 0) {
    nan |= mask_one_block<Simd, F, kCheck>(row, mask, mask_bytes, 0);
    column = (Simd::kBytes - past) / kElement;
  }
  const size_t readable = mask_bytes - column / 8;
  const size_t blocks = std::min((known - column) / kBlock, readable > kSlack ? (readable - kSlack) / (kBlock / 8) : size_t{0});
  nan |= Simd::template mask_blocks<F, kCheck>(row + column * kElement, mask + column / 8, column % 8, blocks);
  for (column += blocks * kBlock; column < known; column += kBlock) {
    column = std::min(column, known - kBlock);
    nan |= mask_one_block<Simd, F, kCheck>(row, mask, mask_bytes, column);
  }
  return nan;
}

#endif  // TOKENFST_LOGITS_X86

// Masks one row: the columns that the mask covers, then the others. The mask has `words` words.
template <class F, bool kCheck>
bool mask_row(std::byte* row, size_t width, const std::byte* mask, [[maybe_unused]] size_t words, size_t known,
              [[maybe_unused]] SimdLevel level) {
  fill_minus_inf<F>(row, known, width);
#ifdef TOKENFST_LOGITS_X86
  if (level == SimdLevel::kAvx512) return mask_blockwise<Avx512, F, kCheck>(row, mask, 4 * words, known);
  if (level == SimdLevel::kAvx2) return mask_blockwise<Avx2, F, kCheck>(row, mask, 4 * words, known);
#endif
  return mask_scalar<F, kCheck>(row, mask, known);
}

template <class F, bool kCheck>
std::optional<LogitsPosition> mask_rows(const LogitsView& logits, const BitmaskView& mask, size_t known, const std::vector<size_t>* indices,
                                        size_t begin, size_t end, SimdLevel level) {
  std::optional<LogitsPosition> first;
  for (size_t i = begin; i < end; ++i) {
    const auto r = static_cast<std::ptrdiff_t>(indices ? (*indices)[i] : i);
    std::byte* const row = logits.data + r * logits.stride;
    const std::byte* const bits = mask.data + r * mask.stride;
    if (mask_row<F, kCheck>(row, logits.width, bits, mask.words, known, level) && !first)
      if (const auto column = find_nan<F>(row, bits, known)) first = LogitsPosition{static_cast<size_t>(r), *column};
  }
  return first;
}

// Whether some allowed column is not -inf.
template <class F>
bool has_choice(const std::byte* row, const std::byte* mask, size_t known) {
  for (size_t word = 0; 32 * word < known; ++word) {
    for (uint32_t allowed = load_word(mask, word); allowed != 0; allowed &= allowed - 1) {
      const size_t column = 32 * word + static_cast<size_t>(std::countr_zero(allowed));
      if (column >= known) break;
      typename F::Bits bits;
      std::memcpy(&bits, row + column * sizeof bits, sizeof bits);
      if (bits != F::kMinusInf) return true;
    }
  }
  return false;
}

}  // namespace logits_detail

// Masks `logits` in place: row r of the mask is applied to row r of the logits, for all rows, or for those in `indices`
// (which the caller has checked against both row counts). With `check_nan`, returns the first NaN at an allowed column,
// in the order of the rows processed; all rows are masked nevertheless. `level` must be supported. `threads` > 1 splits
// the rows into equal runs.
inline std::optional<LogitsPosition> apply_bitmask(const LogitsView& logits, const BitmaskView& mask, size_t vocab_size,
                                                   const std::vector<size_t>* indices, bool check_nan, SimdLevel level, size_t threads) {
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
  in_parallel(parts, [&](size_t p) { found[p] = run(rows * p / parts, rows * (p + 1) / parts); });
  for (const auto& position : found)
    if (position) return position;
  return std::nullopt;
}

// The first row, of all or of those in `indices`, in which every allowed logit is -inf; none if there is none. A row is read
// up to its first allowed logit that is not.
inline std::optional<size_t> row_without_choice(const LogitsView& logits, const BitmaskView& mask, size_t vocab_size,
                                                const std::vector<size_t>* indices) {
  using namespace logits_detail;
  const size_t known = std::min({vocab_size, logits.width, 32 * mask.words});
  for (size_t i = 0; i < (indices ? indices->size() : logits.rows); ++i) {
    const auto r = static_cast<std::ptrdiff_t>(indices ? (*indices)[i] : i);
    const std::byte* const row = logits.data + r * logits.stride;
    const std::byte* const bits = mask.data + r * mask.stride;
    const bool some = logits.type == LogitsType::kFloat32   ? has_choice<Float32>(row, bits, known)
                      : logits.type == LogitsType::kFloat16 ? has_choice<Float16>(row, bits, known)
                                                            : has_choice<Bfloat16>(row, bits, known);
    if (!some) return static_cast<size_t>(r);
  }
  return std::nullopt;
}

}  // namespace tokenfst
