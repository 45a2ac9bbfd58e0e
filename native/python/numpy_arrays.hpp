// Arrays of the core as numpy arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>
#include <vector>

namespace tokenfst {

// Read only: automata walk such arrays without looking twice.
template <class T>
nanobind::ndarray<nanobind::numpy, const T> to_numpy(std::vector<T>&& values, std::vector<size_t> shape) {
  auto* owned = new std::vector<T>(std::move(values));
  nanobind::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nanobind::ndarray<nanobind::numpy, const T>(owned->data(), shape.size(), shape.data(), owner);
}

}  // namespace tokenfst
