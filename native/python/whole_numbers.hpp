// Integers, and lists of them, as arguments of a public call.
//
// Integers of 64 bits, also numpy's, and lists of them are read here. All else goes to Python (tokenfst.common.arguments,
// tokenfst.common.token_ids), which reads arrays, and refuses the rest with an error that names the call and the argument.
// nanobind alone would take True for 1 and round an array of floats. Declare such a parameter `.none()`, so that None is
// refused here as well, and give the function a signature in which it is an int.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "python/texts.hpp"

namespace tokenfst {

class WholeNumber {
 public:
  explicit WholeNumber(nanobind::handle given) : given_(given), known_(number(given)) {}

  // The number; none if only Python's reader can decide. Arrays are left to it, since every one-element array has an __index__.
  static std::optional<int64_t> number(nanobind::handle given) {
    PyObject* const object = given.ptr();
    int64_t value = 0;
    if (PyLong_CheckExact(object)) return nanobind::try_cast(given, value, false) ? std::optional(value) : std::nullopt;
    if (PyBool_Check(object) || !PyIndex_Check(object) || PySequence_Check(object)) return std::nullopt;
    const nanobind::object index = nanobind::steal(PyNumber_Index(object));
    if (!index) PyErr_Clear();
    return index && nanobind::try_cast(index, value, false) ? std::optional(value) : std::nullopt;
  }
  // The number; an error names the call and the argument.
  int64_t read(const char* call, const char* name) const {
    return known_ ? *known_
                  : nanobind::cast<int64_t>(nanobind::module_::import_("tokenfst.common.arguments").attr("whole")(call, name, given_));
  }

 private:
  nanobind::handle given_;  // the caller of the function holds it
  std::optional<int64_t> known_;
};

class WholeNumbers {
 public:
  explicit WholeNumbers(nanobind::handle given) : given_(given) {}

  // The numbers; an error names the call and the argument.
  std::vector<int64_t> read(const char* call, const char* name) const {
    std::vector<int64_t> found;
    if (PyList_CheckExact(given_.ptr())) {
      if (read_list(given_, found)) return found;
    } else if (PyObject_CheckBuffer(given_.ptr()) && (read_array<int64_t>(given_, found) || read_array<int32_t>(given_, found))) {
      return found;
    }
    const nanobind::object list = nanobind::module_::import_("tokenfst.common.token_ids").attr("whole_list")(call, name, given_);
    return nanobind::cast<std::vector<int64_t>>(list);
  }

 private:
  template <class T>
  static bool read_array(nanobind::handle given, std::vector<int64_t>& found) {
    Vector<T> array;
    if (!nanobind::try_cast(given, array, false)) return false;
    found.assign(array.data(), array.data() + array.size());
    return true;
  }
  // By index, with a reference to each: __index__ of one of them may change the list.
  static bool read_list(nanobind::handle list, std::vector<int64_t>& found) {
    found.reserve(nanobind::len(list));
    for (Py_ssize_t at = 0; at < PyList_Size(list.ptr()); ++at) {
      const nanobind::object each = nanobind::steal(PySequence_GetItem(list.ptr(), at));
      if (!each) throw nanobind::python_error();
      const std::optional<int64_t> number = WholeNumber::number(each);
      if (!number) return false;
      found.push_back(*number);
    }
    return true;
  }

  nanobind::handle given_;
};

}  // namespace tokenfst

namespace nanobind::detail {

// Takes any object, which the function reads itself.
template <class T>
struct caster_of_any {
  template <typename>
  using Cast = T;
  template <typename>
  static constexpr bool can_cast() {
    return true;
  }
  bool from_python(handle given, uint8_t, cleanup_list*) noexcept {
    given_ = given;
    return true;
  }
  explicit operator T() { return T(given_); }

 private:
  handle given_;
};

template <>
struct type_caster<tokenfst::WholeNumber> : caster_of_any<tokenfst::WholeNumber> {
  static constexpr auto Name = const_name("int");
};

template <>
struct type_caster<tokenfst::WholeNumbers> : caster_of_any<tokenfst::WholeNumbers> {
  static constexpr auto Name = const_name("collections.abc.Sequence[int]");
};

}  // namespace nanobind::detail
