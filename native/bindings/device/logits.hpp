// Binds logits.hpp: `_native.apply_bitmask` and `row_without_choice`, which decoding/masks/bitmask.py calls after checking the
// buffers.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/logits.hpp"

namespace tokenfst {

// A level by its name; "auto" is the best that this CPU supports. Raises ValueError for another name, and for a level that the
// CPU does not support.
inline SimdLevel simd_by_name(std::string_view name) {
  if (name == "auto") return best_simd();
  SimdLevel level;
  if (name == "avx512") level = SimdLevel::kAvx512;
  else if (name == "avx2") level = SimdLevel::kAvx2;
  else if (name == "scalar") level = SimdLevel::kScalar;
  else throw std::invalid_argument("level must be auto, avx512, avx2 or scalar, not " + std::string(name));
  if (!simd_supported(level)) throw std::invalid_argument("this CPU does not support " + std::string(name));
  return level;
}

inline void bind_logits(nanobind::module_& m) {
  namespace nb = nanobind;
  m.def(
      "apply_bitmask",
      [](uintptr_t logits, int type, size_t rows, size_t width, std::ptrdiff_t stride, uintptr_t mask, size_t mask_rows, size_t words,
         std::ptrdiff_t mask_stride, size_t vocab_size, const std::optional<std::vector<size_t>>& indices, bool check_nan, size_t threads,
         const char* level) -> std::optional<std::pair<size_t, size_t>> {
        const LogitsView view{reinterpret_cast<std::byte*>(logits), static_cast<LogitsType>(type), rows, width, stride};
        const BitmaskView bits{reinterpret_cast<const std::byte*>(mask), mask_rows, words, mask_stride};
        const SimdLevel simd = simd_by_name(level);
        std::optional<LogitsPosition> nan;
        {
          nb::gil_scoped_release unlocked;
          nan = apply_bitmask(view, bits, vocab_size, indices ? &*indices : nullptr, check_nan, simd, threads);
        }
        if (!nan) return std::nullopt;
        return std::pair{nan->row, nan->column};
      },
      nb::arg("logits"), nb::arg("type"), nb::arg("rows"), nb::arg("width"), nb::arg("stride"), nb::arg("mask"), nb::arg("mask_rows"),
      nb::arg("words"), nb::arg("mask_stride"), nb::arg("vocab_size"), nb::arg("indices").none(), nb::arg("check_nan"), nb::arg("threads"),
      nb::arg("level"),
      "Masks rows of logits in place and returns the (row, column) of the first NaN at an allowed column, or None.\n\n"
      "Addresses and strides (bytes) are not checked here: tokenfst.decoding.masks.bitmask checks them. type: 0 float32,\n"
      "1 float16, 2 bfloat16. level: auto, avx512, avx2 or scalar.");
  m.def(
      "row_without_choice",
      [](uintptr_t logits, int type, size_t rows, size_t width, std::ptrdiff_t stride, uintptr_t mask, size_t mask_rows, size_t words,
         std::ptrdiff_t mask_stride, size_t vocab_size, const std::optional<std::vector<size_t>>& indices) {
        const LogitsView view{reinterpret_cast<std::byte*>(logits), static_cast<LogitsType>(type), rows, width, stride};
        const BitmaskView bits{reinterpret_cast<const std::byte*>(mask), mask_rows, words, mask_stride};
        return row_without_choice(view, bits, vocab_size, indices ? &*indices : nullptr);
      },
      nb::arg("logits"), nb::arg("type"), nb::arg("rows"), nb::arg("width"), nb::arg("stride"), nb::arg("mask"), nb::arg("mask_rows"),
      nb::arg("words"), nb::arg("mask_stride"), nb::arg("vocab_size"), nb::arg("indices").none(),
      "The first row in which every allowed logit is -inf, or None. Takes the arguments of apply_bitmask, which are not checked here.");
  m.def(
      "buffer_address",
      [](nb::handle array) {
        Py_buffer buffer;
        if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_STRIDES) != 0) throw nb::python_error();
        const auto address = reinterpret_cast<uintptr_t>(buffer.buf);
        PyBuffer_Release(&buffer);
        return address;
      },
      nb::arg("array"), "The address of a numpy array's first element; many times faster than `array.ctypes.data`.");
  m.def(
      "simd_levels",
      [] {
        std::vector<std::string> names;
        for (const auto& [level, name] :
             {std::pair{SimdLevel::kAvx512, "avx512"}, std::pair{SimdLevel::kAvx2, "avx2"}, std::pair{SimdLevel::kScalar, "scalar"}})
          if (simd_supported(level)) names.emplace_back(name);
        return names;
      },
      "The levels that this CPU supports, best first.");
}

}  // namespace tokenfst
