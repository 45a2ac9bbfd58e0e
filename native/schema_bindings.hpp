// Looks at JSON schemas as Python values that a front end would look at node by node.
#pragma once

#include <nanobind/nanobind.h>

namespace tokenfst {

namespace nb = nanobind;

inline constexpr int kDeepestPlain = 200;

// Whether a value is made of what `json.loads` makes, without subclasses, and nested no deeper than that.
inline bool is_plain_json(PyObject* value, int depth = 0) {
  PyTypeObject* const type = Py_TYPE(value);
  if (type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type || value == Py_None) return true;
  if (depth == kDeepestPlain) return false;
  if (type == &PyDict_Type) {
    Py_ssize_t at = 0;
    PyObject *name, *member;
    while (PyDict_Next(value, &at, &name, &member)) {
      if (Py_TYPE(name) != &PyUnicode_Type || !is_plain_json(member, depth + 1)) return false;
    }
    return true;
  }
  if (type != &PyList_Type) return false;
  for (Py_ssize_t k = 0; k < PyList_Size(value); ++k) {
    if (!is_plain_json(PyList_GetItem(value, k), depth + 1)) return false;
  }
  return true;
}

inline void bind_schema(nb::module_& m) {
  using namespace nb::literals;
  m.def("is_plain_json", [](nb::handle value) { return is_plain_json(value.ptr()); }, "value"_a.none());
}

}  // namespace tokenfst
