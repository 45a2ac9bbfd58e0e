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
  m.def("is_plain_json", [](nb::handle value) { return is_plain_json(value.ptr()); }, "value"_a.none());
}

}  // namespace tokenfst
