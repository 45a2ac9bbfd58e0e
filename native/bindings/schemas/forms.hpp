// Measures and checks JSON schemas, given as Python values. In Python the same traversals would take many times as long.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tokenfst {

namespace nb = nanobind;

inline constexpr int kDeepestPlain = 200;
inline constexpr uint64_t kMostParts = uint64_t{1} << 62;

// Counts the values of a JSON document, at most kMostParts. A value that occurs at several places counts at each of them, so
// values that are shared on many levels count exponentially often. 0 if a value has a type that `json.loads` does not return,
// or if values are nested deeper than kDeepestPlain. Linear in the number of objects, however much they are shared.
class PlainParts {
 public:
  uint64_t of(PyObject* value, int depth = 0) {
    PyTypeObject* const type = Py_TYPE(value);
    if (type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type || value == Py_None) return 1;
    if ((type != &PyDict_Type && type != &PyList_Type) || depth == kDeepestPlain) return 0;
    const bool shared = Py_REFCNT(value) > 1;  // unshared: only its one holder leads to it
    if (shared) {
      const auto [found, is_new] = known_.try_emplace(value, 0);  // also 0 if it contains itself
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

// Whether these are a dict from strings to schemas, and a list of strings, as `json.loads` returns them.
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

// Checks that the values of a schema's keywords have the right forms, if everything is as `json.loads` returns it, which holds
// for almost every schema. True is certain; after false the front end checks again in Python, and reports the error. Each
// object is visited once, even if several documents contain it. Linear.
class PlainForms {
 public:
  // The forms, in the order of their numbers in json_schema/documents/forms.py.
  enum class Form : long { Anything, String, Boolean, Schema, Table, Schemas, Items, Types, Count, Names, List, Number, Positive };

  // Whether all keywords have the right form. `forms`: for each keyword the number of its form; if that is none of the above, the
  // answer is false.
  bool hold(nb::handle document, const nb::dict& forms) {
    open_.assign(1, document.ptr());
    while (!open_.empty()) {
      PyObject* const schema = open_.back();
      open_.pop_back();
      if (PyBool_Check(schema)) continue;
      if (Py_TYPE(schema) != &PyDict_Type) return false;
      if (!seen_.insert(schema).second) continue;
      Py_ssize_t at = 0;
      PyObject *name, *value;
      while (PyDict_Next(schema, &at, &name, &value)) {
        if (Py_TYPE(name) != &PyUnicode_Type) return false;
        PyObject* const form = PyDict_GetItemWithError(forms.ptr(), name);
        if (!form && PyErr_Occurred()) throw nb::python_error();
        if (form && !has(static_cast<Form>(PyLong_AsLong(form)), value)) return false;
        if (schema != document.ptr() && PyUnicode_CompareWithASCIIString(name, "$schema") == 0) return false;  // a different draft
      }
    }
    return true;
  }

 private:
  bool has(Form form, PyObject* value) {
    switch (form) {
      case Form::Anything: return true;
      case Form::String: return is_text(value);
      case Form::Boolean: return PyBool_Check(value);
      case Form::Schema: return is_schema(value);
      case Form::Table: return is_table(value);
      case Form::Schemas: return is_schemas(value);
      case Form::Items: return is_schema(value) || is_schemas(value);
      case Form::Types: return is_types(value);
      case Form::Count: return is_count(value);
      case Form::Names: return is_names(value);
      case Form::List: return Py_TYPE(value) == &PyList_Type && PyList_Size(value) > 0;
      case Form::Number: return is_number(value, false);
      case Form::Positive: return is_number(value, true);
    }
    return false;
  }
  static bool is_text(PyObject* value) { return Py_TYPE(value) == &PyUnicode_Type; }
  bool is_schema(PyObject* value) {
    if (PyBool_Check(value)) return true;
    if (Py_TYPE(value) != &PyDict_Type) return false;
    open_.push_back(value);
    return true;
  }
  bool is_table(PyObject* value) {
    if (Py_TYPE(value) != &PyDict_Type) return false;
    Py_ssize_t at = 0;
    PyObject *name, *schema;
    while (PyDict_Next(value, &at, &name, &schema)) {
      if (!is_text(name) || !is_schema(schema)) return false;
    }
    return true;
  }
  bool is_schemas(PyObject* value) {
    if (Py_TYPE(value) != &PyList_Type || PyList_Size(value) == 0) return false;
    for (Py_ssize_t k = 0; k < PyList_Size(value); ++k) {
      if (!is_schema(PyList_GetItem(value, k))) return false;
    }
    return true;
  }
  static bool is_type(PyObject* value) {
    static constexpr const char* kTypes[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    return is_text(value) &&
           std::ranges::any_of(kTypes, [&](const char* type) { return PyUnicode_CompareWithASCIIString(value, type) == 0; });
  }
  static bool is_types(PyObject* value) {
    if (is_type(value)) return true;
    if (Py_TYPE(value) != &PyList_Type) return false;
    const Py_ssize_t count = PyList_Size(value);
    for (Py_ssize_t k = 0; k < count; ++k) {
      if (!is_type(PyList_GetItem(value, k))) return false;
    }
    return count == 1 || (count > 0 && count < 8 && all_differ(value));
  }
  static bool all_differ(PyObject* list) {
    const nb::object set = nb::steal(PySet_New(list));
    if (!set.is_valid()) throw nb::python_error();
    return PySet_Size(set.ptr()) == PyList_Size(list);
  }
  static bool is_names(PyObject* value) {
    if (Py_TYPE(value) != &PyList_Type || PyList_Size(value) == 0) return false;
    for (Py_ssize_t k = 0; k < PyList_Size(value); ++k) {
      if (!is_text(PyList_GetItem(value, k))) return false;
    }
    return all_differ(value);
  }
  static bool is_count(PyObject* value) {
    if (Py_TYPE(value) != &PyLong_Type) return false;
    int overflow = 0;
    return PyLong_AsLongLongAndOverflow(value, &overflow) >= 0 && overflow == 0;
  }
  static bool is_number(PyObject* value, bool positive) {
    double number = 0;
    if (Py_TYPE(value) == &PyFloat_Type) {
      number = PyFloat_AsDouble(value);
    } else if (Py_TYPE(value) == &PyLong_Type) {
      int overflow = 0;
      number = static_cast<double>(PyLong_AsLongLongAndOverflow(value, &overflow));
      if (overflow != 0) return false;
    } else {
      return false;
    }
    return std::isfinite(number) && (number > 0 || !positive);
  }

  std::unordered_set<PyObject*> seen_;
  std::vector<PyObject*> open_;
};

inline void bind_forms(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PlainForms>(m, "PlainForms", "Checks whether the keywords of a document have the usual forms.")
      .def(nb::init<>())
      .def("hold", &PlainForms::hold, "document"_a.none(), "forms"_a);
  m.def("plain_parts", [](nb::handle value) { return PlainParts().of(value.ptr()); }, "value"_a.none());
}

}  // namespace tokenfst
