// The subschemas of plain JSON schemas, read as formulas (automata/json_schema/sets/formula.py): a subschema becomes the atom
// that says "valid here", and equal subschemas become one atom.
//
// Most of the time from a schema to its first mask is spent in a few steps for each property: which keywords it has,
// whether an equal subschema is known, its formula and place, its name as a node. Here these steps are done for all
// properties of an object in one call. Unusual forms are left to Python: unknown references, subschemas with an
// identifier, long addresses, values that `marshal` cannot encode.
//
// An *address* is the JSON pointer of a subschema. A *place* is the Python object for a subschema at its address (`Place`).
//
// Invariant: the formulas are those of `Meaning.entered`, under the same keys, and the nodes those of `writer`
// (tests/automata/json_schema/writing/test_plain_reader.py compares both). Cost: linear in the keywords.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "python/expression_node.hpp"

namespace tokenfst {

namespace nb = nanobind;

// Immutable, and used by all schemas of a process.
class PlainReader {
 public:
  static constexpr uint64_t kPlaced = uint64_t{1} << 63;  // a keyword that makes a subschema a resource of its own

  // `bits`: for each keyword a bit below 63, or kPlaced. `scalars`: the names of the types whose values have no parts.
  // `type_key`: what precedes such a name in the keys of formulas. `place`, `formula`: the Python classes; `atom`: the kind of
  // formulas that are atoms; `any`, `none`: the formulas true and false. `dumps(value, version)`: `marshal.dumps`. `far_down`:
  // a subschema is left to Python if its address has more characters than this.
  PlainReader(nb::dict bits, nb::object scalars, nb::object type_key, nb::object place, nb::object formula, nb::object atom, nb::object any,
              nb::object none, nb::object dumps, Py_ssize_t far_down)
      : bits_(bits), scalars_(scalars), type_key_(type_key), place_(place), formula_(formula), atom_(atom), any_(any), none_(none),
        dumps_(dumps), far_down_(far_down), type_(nb::str("type")), ref_(nb::str("$ref")), properties_(nb::str("/properties")),
        type_bit_(bit(type_.ptr())), ref_bit_(bit(ref_.ptr())) {
    for (const char* name : {"kind", "parts", "atom"}) of_formulas_.push_back(interned(name));
    for (const char* name : {"value", "pointer", "resource", "scope", "closed"}) of_places_.push_back(interned(name));
  }

  Py_ssize_t far_down() const { return far_down_; }
  bool is_any(nb::handle formula) const { return formula.is(any_); }
  bool is_none(nb::handle formula) const { return formula.is(none_); }
  bool is_place(nb::handle atom) const { return reinterpret_cast<PyObject*>(Py_TYPE(atom.ptr())) == place_.ptr(); }
  bool is_scalar(PyObject* type) const { return Py_TYPE(type) == &PyUnicode_Type && PySet_Contains(scalars_.ptr(), type) == 1; }
  uint64_t bit(PyObject* name) const {
    PyObject* const found = item(bits_.ptr(), name);
    return found ? PyLong_AsUnsignedLongLong(found) : 0;
  }
  // The value of a key, a borrowed reference; null if there is none.
  static PyObject* item(PyObject* dict, PyObject* key) {
    PyObject* const found = PyDict_GetItemWithError(dict, key);
    if (!found && PyErr_Occurred()) throw nb::python_error();
    return found;
  }

  // The same for a dict that other threads may change, as a reference of its own; not valid if there is none.
  static nb::object item_of_shared(const nb::dict& dict, nb::handle key) {
#ifdef Py_GIL_DISABLED
    PyObject* found = nullptr;
    if (PyDict_GetItemRef(dict.ptr(), key.ptr(), &found) < 0) throw nb::python_error();
    return nb::steal(found);
#else
    return nb::borrow(item(dict.ptr(), key.ptr()));
#endif
  }

  // The bits of the keywords that a schema, a dict, has.
  uint64_t said(const nb::dict& schema) const {
    uint64_t found = 0;
    Py_ssize_t at = 0;
    PyObject *name, *value;
    while (PyDict_Next(schema.ptr(), &at, &name, &value)) found |= bit(name);
    return found & ~kPlaced;
  }

  // The formula of the subschema under `keyword`; None if it must be made in Python. `atoms`: the known atoms, by key;
  // `targets`: the formulas of the targets of references; both are filled. `resource`: the schema resource that contains it;
  // `closed`: `Place.closed`, which stops evaluation from outside; `pointer`: the address of the schema around it.
  nb::object formula(nb::handle schema, nb::dict atoms, nb::dict targets, nb::handle resource, nb::handle closed, nb::str pointer,
                     nb::str keyword) const {
    const SchemaContext context(*this, atoms, targets, resource, closed, pointer);
    nb::object found = context.formula(schema, keyword);
    return found.is_valid() ? found : nb::none();
  }

  // The formulas of all `properties` of a schema, by name. `otherwise(schema, name)` makes those that are left to Python.
  template <class Otherwise>
  nb::dict formulas(nb::dict properties, nb::dict atoms, nb::dict targets, nb::handle resource, nb::handle closed, nb::str pointer,
                    Otherwise&& otherwise) const {
    const SchemaContext context(*this, atoms, targets, resource, closed,
                                nb::steal<nb::str>(PyUnicode_Concat(pointer.ptr(), properties_.ptr())));
    nb::dict made;
    Py_ssize_t at = 0;
    PyObject *name, *schema;
    while (PyDict_Next(properties.ptr(), &at, &name, &schema)) {
      // Python code runs below, and another thread may change the dict.
      const nb::object held_name = nb::borrow(name), held_schema = nb::borrow(schema);
      nb::object found = context.formula(held_schema, held_name);
      if (!found.is_valid()) found = otherwise(held_schema, held_name);
      if (PyDict_SetItem(made.ptr(), held_name.ptr(), found.ptr()) < 0) throw nb::python_error();
    }
    return made;
  }

  // A key that is equal for equal schemas, as `keys.key_of`; not valid if `marshal` cannot encode a value. `keywords`: how many
  // members of the schema are keywords; others do not count.
  nb::object text_of(nb::handle schema, Py_ssize_t keywords) const {
    nb::object value = nb::borrow(schema);
    if (keywords < PyDict_Size(schema.ptr())) {
      value = nb::dict();
      Py_ssize_t at = 0;
      PyObject *name, *each;
      while (PyDict_Next(schema.ptr(), &at, &name, &each)) {
        if (bit(name) != 0 && PyDict_SetItem(value.ptr(), name, each) < 0) throw nb::python_error();
      }
    }
    try {
      return dumps_(value, 0);
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_ValueError)) throw;
      return {};
    }
  }

 private:
  // What all parts of one schema have in common.
  struct SchemaContext {
    SchemaContext(const PlainReader& reader, nb::dict atoms, nb::dict targets, nb::handle resource, nb::handle closed, nb::str head)
        : own_(reader), atoms_(atoms), targets_(targets), resource_(nb::borrow(resource)), closed_(nb::borrow(closed)),
          document_(resource.attr("document")), uri_(resource.attr("uri")), draft_(resource.attr("draft")), head_(head) {}

    // The formula of a subschema; invalid if it must be built in Python. `token`: the last part of its address.
    nb::object formula(nb::handle schema, nb::handle token) const { return formula(schema, head_, token, 0); }

   private:
    static constexpr int kLongestChain = 8;  // of references that lead to references

    // `head`: the address of what holds the subschema. `passed`: the number of references that led here.
    nb::object formula(nb::handle schema, nb::handle head, nb::handle token, int passed) const {
      if (schema.ptr() == Py_True) return own_.any_;
      if (schema.ptr() == Py_False) return own_.none_;
      if (Py_TYPE(schema.ptr()) != &PyDict_Type || !has_short_address(head, token)) return {};
      uint64_t said = 0;
      Py_ssize_t at = 0, keywords = 0;
      PyObject *name, *value;
      while (PyDict_Next(schema.ptr(), &at, &name, &value)) {
        const uint64_t found = own_.bit(name);
        said |= found;
        keywords += found != 0;
      }
      if (said & kPlaced) return {};
      if (said == 0) return own_.any_;
      if (said & own_.ref_bit_) return said == own_.ref_bit_ && passed < kLongestChain ? target(schema, passed) : nb::object();
      if (said == own_.type_bit_) {
        const nb::object named = own_.scalar_types(item(schema.ptr(), own_.type_.ptr()));
        if (named.is_valid()) return atom(nb::make_tuple(own_.type_key_, named, is_draft4()), schema, head, token);
      }
      const nb::object text = own_.text_of(schema, keywords);
      if (!text.is_valid()) return {};
      return atom(nb::make_tuple(document_, uri_, draft_, nb::tuple(), closed_, text), schema, head, token);
    }
    bool has_short_address(nb::handle head, nb::handle token) const {
      const Py_ssize_t length = PyUnicode_GetLength(token.ptr());
      return length <= own_.far_down_ - 1 - PyUnicode_GetLength(head.ptr()) && PyUnicode_FindChar(token.ptr(), '~', 0, length, 1) == -1 &&
             PyUnicode_FindChar(token.ptr(), '/', 0, length, 1) == -1;
    }
    bool is_draft4() const { return PyLong_AsLong(draft_.ptr()) == 4; }
    nb::object target(nb::handle schema, int passed) const {
      const nb::handle reference = item(schema.ptr(), own_.ref_.ptr());
      if (!closed_.is_none() || Py_TYPE(reference.ptr()) != &PyUnicode_Type) return {};
      const nb::tuple link = nb::make_tuple(resource_, reference, nb::tuple(), closed_);
      if (PyObject* const known = item(targets_.ptr(), link.ptr())) return nb::borrow(known);
      const nb::object held = nb::borrow(reference);
      nb::object made = definition(held, passed + 1);
      if (made.is_valid() && PyDict_SetItem(targets_.ptr(), link.ptr(), made.ptr()) < 0) throw nb::python_error();
      return made;
    }
    // The formula of what `#/definitions/name` refers to (`#/$defs/name` from 2019-09 on): its form was checked with its document.
    nb::object definition(nb::handle reference, int passed) const {
      Py_ssize_t length = 0;
      const char* const bytes = PyUnicode_AsUTF8AndSize(reference.ptr(), &length);
      if (!bytes) PyErr_Clear();
      const std::string_view text(bytes ? bytes : "", bytes ? static_cast<size_t>(length) : 0);
      const bool is_new = text.starts_with("#/$defs/");
      if ((!is_new && !text.starts_with("#/definitions/")) || (is_new && PyLong_AsLong(draft_.ptr()) < 2019)) return {};
      const size_t at = text.find('/', 2);
      if (text.find_first_of("%~/", at + 1) != text.npos) return {};
      const nb::object pointer = resource_.attr("pointer"), root = resource_.attr("root");
      if (Py_TYPE(pointer.ptr()) != &PyUnicode_Type || PyUnicode_CompareWithASCIIString(pointer.ptr(), "#") != 0) return {};
      const nb::str keyword(is_new ? "$defs" : "definitions"), head(is_new ? "#/$defs" : "#/definitions");
      const nb::str name(text.data() + at + 1, text.size() - at - 1);
      if (Py_TYPE(root.ptr()) != &PyDict_Type) return {};
      const nb::object table = nb::borrow(item(root.ptr(), keyword.ptr()));
      if (!table.is_valid() || Py_TYPE(table.ptr()) != &PyDict_Type || own_.is_placed(table)) return {};
      const nb::object found = nb::borrow(item(table.ptr(), name.ptr()));
      return found.is_valid() ? formula(found, head, name, passed) : nb::object();
    }
    nb::object atom(const nb::tuple& key, nb::handle schema, nb::handle head, nb::handle token) const {
      if (PyObject* const known = item(atoms_.ptr(), key.ptr()); known) return nb::borrow(known);
      const nb::object pointer = nb::steal(PyUnicode_FromFormat("%U/%U", head.ptr(), token.ptr()));
      if (!pointer.is_valid()) throw nb::python_error();
      const nb::object made = own_.atom_of(schema, pointer, resource_, closed_);
      if (PyDict_SetItem(atoms_.ptr(), key.ptr(), made.ptr()) < 0) throw nb::python_error();
      return made;
    }

    const PlainReader& own_;
    nb::dict atoms_, targets_;
    nb::object resource_, closed_, document_, uri_, draft_;
    nb::str head_;
  };

  static nb::object interned(const char* name) {
    nb::object made = nb::steal(PyUnicode_InternFromString(name));
    if (!made.is_valid()) throw nb::python_error();
    return made;
  }
  // An instance of a class whose `__init__` only sets these attributes; calling it would take ten times as long.
  static nb::object made_of(nb::handle type, const std::vector<nb::object>& names, std::initializer_list<nb::handle> values) {
    nb::object made = nb::steal(PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(type.ptr()), 0));
    if (!made.is_valid()) throw nb::python_error();
    auto name = names.begin();
    for (nb::handle value : values) {
      if (PyObject_SetAttr(made.ptr(), (name++)->ptr(), value.ptr()) < 0) throw nb::python_error();
    }
    return made;
  }
  nb::object atom_of(nb::handle schema, nb::handle pointer, nb::handle resource, nb::handle closed) const {
    const nb::tuple nothing;
    return made_of(formula_, of_formulas_, {atom_, nothing, made_of(place_, of_places_, {schema, pointer, resource, nothing, closed})});
  }
  // Whether a dict has a member that may make it a schema resource of its own.
  bool is_placed(nb::handle value) const {
    Py_ssize_t at = 0;
    PyObject *name, *each;
    while (PyDict_Next(value.ptr(), &at, &name, &each)) {
      if (bit(name) & kPlaced) return true;
    }
    return false;
  }

  // The value of `type` as a string or tuple, if it names only types without parts; else not valid. As `keywords.scalar_types`.
  nb::object scalar_types(PyObject* named) const {
    if (is_scalar(named)) return nb::borrow(named);
    if (Py_TYPE(named) != &PyList_Type) return {};
    for (Py_ssize_t k = 0; k < PyList_Size(named); ++k) {
      if (!is_scalar(PyList_GetItem(named, k))) return {};
    }
    return nb::steal(PyList_AsTuple(named));
  }

  nb::dict bits_;
  std::vector<nb::object> of_formulas_, of_places_;  // names of attributes
  nb::object scalars_, type_key_, place_, formula_, atom_, any_, none_, dumps_;
  Py_ssize_t far_down_;
  nb::str type_, ref_, properties_;
  uint64_t type_bit_, ref_bit_;
};

inline void bind_plain_reader(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PlainReader>(m, "PlainReader", "Reads the subschemas of plain schemas as formulas.")
      .def(nb::init<nb::dict, nb::object, nb::object, nb::object, nb::object, nb::object, nb::object, nb::object, nb::object, Py_ssize_t>(),
           "bits"_a, "scalars"_a, "type_key"_a, "place"_a, "formula"_a, "atom"_a, "any"_a, "none"_a, "dumps"_a, "far_down"_a)
      .def("said", &PlainReader::said, "schema"_a)
      .def("formula", &PlainReader::formula, "schema"_a.none(), "atoms"_a, "targets"_a, "resource"_a, "closed"_a.none(), "pointer"_a,
           "keyword"_a)
      .def(
          "formulas",
          [](const PlainReader& self, nb::dict properties, nb::dict atoms, nb::dict targets, nb::handle resource, nb::handle closed,
             nb::str pointer, nb::handle otherwise) {
            return self.formulas(properties, atoms, targets, resource, closed, pointer,
                                 [&](nb::handle schema, nb::handle name) { return otherwise(schema, name); });
          },
          "properties"_a, "atoms"_a, "targets"_a, "resource"_a, "closed"_a.none(), "pointer"_a, "otherwise"_a);
}

}  // namespace tokenfst
