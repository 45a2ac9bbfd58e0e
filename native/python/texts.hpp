// Texts as bytes objects, and one-dimensional arrays, as bindings take and return them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <string_view>

namespace tokenfst {

// A contiguous one-dimensional array argument in host memory.
template <class T>
using Vector = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

// A bytes object with a copy of a text; and the text of a bytes object, valid while that is held.
inline nanobind::bytes to_bytes(const std::string& text) { return nanobind::bytes(text.data(), text.size()); }
inline std::string_view from_bytes(const nanobind::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

}  // namespace tokenfst
