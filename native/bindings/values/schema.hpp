// Looks at JSON schemas as Python values that a front end would look at node by node.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>

namespace tokenfst {

namespace nb = nanobind;

inline constexpr int kDeepestPlain = 200;
inline constexpr uint64_t kMostParts = uint64_t{1} << 62;

// How many values the text of a JSON value has: one that stands in several places counts in each of them, and what is shared in
// many levels counts exponentially often. 0 where something is not of the types that `json.loads` makes, or nested deeper than that.
// Linear in the objects, whatever is shared.
class PlainParts {
 public:
  uint64_t of(PyObject* value, int depth = 0) {
    PyTypeObject* const type = Py_TYPE(value);
    if (type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type || value == Py_None) return 1;
    if ((type != &PyDict_Type && type != &PyList_Type) || depth == kDeepestPlain) return 0;
    const bool shared = Py_REFCNT(value) > 1;  // one holder leads to it once
    if (shared) {
      const auto [found, is_new] = known_.try_emplace(value, 0);  // 0 as well where it holds itself
      if (!is_new) return found->second;
    }
    const uint64_t parts = type == &PyDict_Type ? of_members(value, depth + 1) : of_items(value, depth + 1);
    if (shared) known_[value] = parts;
    return parts;
  }

 private:
  uint64_t of_members(PyObject* value, int depth) {
    uint64_t parts = 1;
    Py_ssize_t at = 0;
    PyObject *name, *member;
    while (PyDict_Next(value, &at, &name, &member)) {
      if (Py_TYPE(name) != &PyUnicode_Type || !add(parts, of(member, depth))) return 0;
    }
    return parts;
  }
  uint64_t of_items(PyObject* value, int depth) {
    uint64_t parts = 1;
    for (Py_ssize_t k = 0; k < PyList_Size(value); ++k) {
      if (!add(parts, of(PyList_GetItem(value, k), depth))) return 0;
    }
    return parts;
  }
  static bool add(uint64_t& parts, uint64_t more) {
    parts = std::min(parts + more, kMostParts);
    return more != 0;
  }

  std::unordered_map<PyObject*, uint64_t> known_;
};

// The only one of `keywords` (a dict) that a schema (a dict) has; None if it has several, or none.
inline nb::object only_keyword(const nb::dict& schema, const nb::dict& keywords) {
  Py_ssize_t at = 0;
  PyObject *name, *value, *found = nullptr;
  while (PyDict_Next(schema.ptr(), &at, &name, &value)) {
    const int known = PyDict_Contains(keywords.ptr(), name);
    if (known < 0) throw nb::python_error();
    if (!known) continue;
    if (found) return nb::none();
    found = name;
  }
  return found ? nb::borrow(found) : nb::none();
}

// Whether these are a dict from strings to schemas, and a list of strings; all as `json.loads` makes them.
inline bool are_members(nb::handle properties, nb::handle required) {
  if (Py_TYPE(properties.ptr()) != &PyDict_Type || Py_TYPE(required.ptr()) != &PyList_Type) return false;
  Py_ssize_t at = 0;
  PyObject *name, *value;
  while (PyDict_Next(properties.ptr(), &at, &name, &value)) {
    if (Py_TYPE(name) != &PyUnicode_Type || (Py_TYPE(value) != &PyDict_Type && Py_TYPE(value) != &PyBool_Type)) return false;
  }
  for (Py_ssize_t k = 0; k < PyList_Size(required.ptr()); ++k) {
    if (Py_TYPE(PyList_GetItem(required.ptr(), k)) != &PyUnicode_Type) return false;
  }
  return true;
}

inline void bind_schema(nb::module_& m) {
  using namespace nb::literals;
  m.def("only_keyword", &only_keyword, "schema"_a, "keywords"_a);
  m.def("are_members", &are_members, "properties"_a, "required"_a);
  m.def("plain_parts", [](nb::handle value) { return PlainParts().of(value.ptr()); }, "value"_a.none());
}

}  // namespace tokenfst
