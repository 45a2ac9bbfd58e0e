// The names of JSON objects as expressions: a name alone, a name with a colon and a value, and all names but some.
//
// A name has one spelling if JSON has no escapes for its characters and the schema allows none. The nodes of such names are
// made here; Python makes those of all others.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bindings/schemas/plain_reader.hpp"
#include "python/building_nodes.hpp"

namespace tokenfst {

namespace nb = nanobind;

// A name between quotation marks. Empty if the name is empty, or if it has a character that is not ASCII, a control character,
// a quotation mark or a backslash: such a name is spelled otherwise, or in several ways.
inline std::string plainly_quoted(nb::handle name) {
  Py_ssize_t length = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(name.ptr(), &length);
  if (!text) PyErr_Clear();  // a lone surrogate
  const auto is_plain = [](char each) { return each >= 0x20 && each < 0x7f && each != '"' && each != '\\'; };
  if (length == 0 || !text || !std::all_of(text, text + length, is_plain)) return {};
  std::string bytes;
  bytes.reserve(static_cast<size_t>(length) + 2);
  bytes.append("\"").append(text, static_cast<size_t>(length)).append("\"");
  return bytes;
}

// The texts of names under one setting of spellings. The expression of a name is made once, and shared wherever the name is
// listed, required or excluded.
class NameTexts {
 public:
  // `every`: the texts of all strings. `has_plain_names`: whether plainly_quoted() is the only text of a name for which it is
  // not empty. `one(name)`, `several(names)`: the texts of one name, or of any of a list. More than `few` names become a prefix
  // tree, by `several`.
  NameTexts(nb::object every, bool has_plain_names, nb::object one, nb::object several, size_t few)
      : every_(every), has_plain_names_(has_plain_names), one_(one), several_(several), few_(few) {}

  nb::object of(nb::handle name) {
    return kept(names_, name, kMostNames, [&] {
      const std::string text = has_plain_names_ ? plainly_quoted(name) : std::string();
      return text.empty() ? nb::object(one_(name)) : nodes::literal(text);
    });
  }

  // The texts of all strings but `names`, a frozenset.
  nb::object without(nb::handle names) {
    if (PySet_Size(names.ptr()) == 0) return every_;
    return kept(without_, names, kMostSets, [&] {
      const nb::object made = nodes::made(Op::Intersect, {every_, nodes::made(Op::Complement, {any_of(names)})});
      nodes::assure(made);  // more texts than are excluded
      return made;
    });
  }

 private:
  static constexpr Py_ssize_t kMostNames = 4096, kMostSets = 512;

  // The value of a key in `known`; it is made if there is none. If there are then more than `most` keys, the oldest is removed.
  template <class Make>
  static nb::object kept(nb::dict& known, nb::handle key, Py_ssize_t most, Make&& make) {
    if (PyObject* const found = PlainReader::item(known.ptr(), key.ptr())) return nb::borrow(found);
    nb::object made = make();
    if (PyDict_SetItem(known.ptr(), key.ptr(), made.ptr()) < 0) throw nb::python_error();
    if (PyDict_Size(known.ptr()) > most) {
      Py_ssize_t at = 0;
      PyObject *oldest, *value;
      if (PyDict_Next(known.ptr(), &at, &oldest, &value)) {
        const nb::object held = nb::borrow(oldest);
        if (PyDict_DelItem(known.ptr(), held.ptr()) < 0) PyErr_Clear();  // another thread made room
      }
    }
    return made;
  }
  nb::object any_of(nb::handle names) {
    const nb::list sorted = nb::steal<nb::list>(PySequence_List(names.ptr()));
    if (!sorted.is_valid() || PyList_Sort(sorted.ptr()) < 0) throw nb::python_error();
    if (sorted.size() > few_) return several_(sorted);
    std::vector<nb::object> words;
    std::vector<PyObject*> parts;
    for (nb::handle name : sorted) parts.push_back(words.emplace_back(of(name)).ptr());
    return nodes::either(parts);
  }

  nb::object every_;
  bool has_plain_names_;
  nb::object one_, several_;
  size_t few_;
  nb::dict names_, without_;
};

// The expressions of members with listed names: a name with its colon, and a value.
class MemberNodes {
 public:
  // `colon`: the expression of a colon with the white space around it. `has_plain_names`: as of `NameTexts`.
  MemberNodes(nb::object colon, bool has_plain_names) {
    const ExprNode& node = node_of(colon);
    const bool is_joined = static_cast<Op>(node.code) == Op::Concat;
    const nb::handle first = is_joined ? nb::handle(PyTuple_GetItem(node.args, 0)) : nb::handle(colon);
    if (!has_plain_names || static_cast<Op>(node_of(first).code) != Op::Literal) return;
    const auto sign = nb::borrow<nb::bytes>(node_of(first).value);
    sign_.assign(sign.c_str(), sign.size());
    for (Py_ssize_t k = 1; is_joined && k < PyTuple_Size(node.args); ++k) after_.push_back(nb::borrow(PyTuple_GetItem(node.args, k)));
  }

  // The member with a name, whose values have a formula. Two caches are looked up and filled: `known_names`, names with their
  // colons; and `members`, by the name and the id of the formula. `value_of(formula)` and `name_of(name)` make the expressions
  // of values, and of names with colons that are not made here.
  template <class ValueOf>
  nb::object member(nb::handle name, nb::handle formula, nb::dict& known_names, nb::dict& members, ValueOf&& value_of,
                    nb::handle name_of) const {
    const nb::tuple key = nb::make_tuple(name, reinterpret_cast<uintptr_t>(formula.ptr()));
    if (PyObject* const found = PlainReader::item(members.ptr(), key.ptr())) return nb::borrow(found);
    const nb::object text = value_of(formula);
    nb::object made = nodes::concat({named(name, known_names, name_of), text});
    if (PyDict_SetItem(members.ptr(), key.ptr(), made.ptr()) < 0) throw nb::python_error();
    return made;
  }

  // The members of `names`, in this order, by name. `formulas`: by name, the formula of the values; `texts`: by formula, the
  // expressions that are known.
  nb::dict members(nb::list names, nb::dict formulas, nb::dict known_names, nb::dict members, nb::dict texts, nb::handle value_of,
                   nb::handle name_of) const {
    nb::dict made;
    const auto text_of = [&](nb::handle formula) {
      PyObject* const text = PlainReader::item(texts.ptr(), formula.ptr());
      return text ? nb::borrow(text) : nb::object(value_of(formula));
    };
    for (nb::handle name : names) {
      const nb::object formula = formulas[name];
      const nb::object found = member(name, formula, known_names, members, text_of, name_of);
      if (PyDict_SetItem(made.ptr(), name.ptr(), found.ptr()) < 0) throw nb::python_error();
    }
    return made;
  }

 private:
  // A name with its colon.
  nb::object named(nb::handle name, nb::dict& known_names, nb::handle name_of) const {
    if (PyObject* const found = PlainReader::item(known_names.ptr(), name.ptr())) return nb::borrow(found);
    const std::string text = sign_.empty() ? std::string() : plainly_quoted(name);
    nb::object made = text.empty() ? nb::object(name_of(name)) : with_colon(text);
    if (PyDict_SetItem(known_names.ptr(), name.ptr(), made.ptr()) < 0) throw nb::python_error();
    return made;
  }
  nb::object with_colon(const std::string& text) const {
    const nb::object first = nodes::literal(text + sign_);
    std::vector<PyObject*> parts{first.ptr()};
    for (const nb::object& each : after_) parts.push_back(each.ptr());
    return nodes::concat(parts);
  }

  std::string sign_;  // the literal with which `colon` begins; empty: names are not made here
  std::vector<nb::object> after_;  // the rest of `colon`
};

inline void bind_member_nodes(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<NameTexts>(m, "NameTexts", "The texts of names in one spelling.")
      .def(nb::init<nb::object, bool, nb::object, nb::object, size_t>(), "every"_a, "has_plain_names"_a, "one"_a, "several"_a, "few"_a)
      .def("of", &NameTexts::of, "name"_a, nb::lock_self())
      .def("without", &NameTexts::without, "names"_a, nb::lock_self());
  nb::class_<MemberNodes>(m, "MemberNodes", "Members with listed names as nodes.")
      .def(nb::init<nb::object, bool>(), "colon"_a, "has_plain_names"_a)
      .def("members", &MemberNodes::members, "names"_a, "formulas"_a, "known_names"_a, "members"_a, "texts"_a, "value_of"_a, "name_of"_a);
}

}  // namespace tokenfst
