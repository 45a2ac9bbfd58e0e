// Converts arrays of the core to numpy arrays, and back.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>
#include <utility>
#include <vector>

namespace tokenfst {

// A contiguous array argument of any shape, in C order, in host memory.
template <class T>
using Array = nanobind::ndarray<const T, nanobind::c_contig, nanobind::device::cpu>;

// Its elements. Valid while the array is held.
template <class T>
std::span<const T> view(const Array<T>& array) {
  return {array.data(), array.size()};
}

// Moves values into a numpy array of this shape. It is read-only, because automata walk such arrays without checking them
// again.
template <class T>
nanobind::ndarray<nanobind::numpy, const T> to_numpy(std::vector<T>&& values, std::vector<size_t> shape) {
  auto* owned = new std::vector<T>(std::move(values));
  nanobind::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nanobind::ndarray<nanobind::numpy, const T>(owned->data(), shape.size(), shape.data(), owner);
}

}  // namespace tokenfst
