// The names of JSON objects as nodes: alone, with a colon and a value, and all names but some.
//
// A name that JSON spells as it stands, and in no other way, is written here; all others are asked for.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bindings/schemas/plain_reader.hpp"
#include "python/building_nodes.hpp"

namespace tokenfst {

namespace nb = nanobind;

// A name between quotation marks; empty where that is not how it is spelled, or not the only way: then it has a letter that is not of
// ASCII, a control character, a quotation mark or a backslash.
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

// The texts of names in one spelling, each once: a name is one node wherever it is listed, required or excluded.
class NameTexts {
 public:
  // `every`: the texts of all strings. `has_plain_names`: whether most of ASCII is spelled as it is, and in no other way. `one(name)`
  // and `several(names)`: the texts of names. More than `few` of them share their beginnings.
  NameTexts(nb::object every, bool has_plain_names, nb::object one, nb::object several, size_t few)
      : every_(every), has_plain_names_(has_plain_names), one_(one), several_(several), few_(few) {}

  nb::object of(nb::handle name) {
    return kept(names_, name, kMostNames, [&] {
      const std::string text = has_plain_names_ ? plainly_quoted(name) : std::string();
      return text.empty() ? nb::object(one_(name)) : nodes::literal(text);
    });
  }

  // All strings but these, a frozenset.
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

  // What a dict has for a key, which is made if it has nothing. The oldest goes first, one at a time.
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

// Members with listed names as nodes: a name with its colon, and a value.
class MemberNodes {
 public:
  // `colon`: of the layout. `has_plain_names`: as of `NameTexts`.
  MemberNodes(nb::object colon, bool has_plain_names) {
    const ExprNode& node = node_of(colon);
    const bool is_joined = static_cast<Op>(node.code) == Op::Concat;
    const nb::handle first = is_joined ? nb::handle(PyTuple_GetItem(node.args, 0)) : nb::handle(colon);
    if (!has_plain_names || static_cast<Op>(node_of(first).code) != Op::Literal) return;
    const auto sign = nb::borrow<nb::bytes>(node_of(first).value);
    sign_.assign(sign.c_str(), sign.size());
    for (Py_ssize_t k = 1; is_joined && k < PyTuple_Size(node.args); ++k) after_.push_back(nb::borrow(PyTuple_GetItem(node.args, k)));
  }

  // The member with a name and a formula of its values. What is known already, and grows: `known_names`, names with their colons;
  // `members`, by the name and the id of the formula. `value_of(formula)` and `name_of(name)` give what else there is.
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

  // The members of these names, in their order. `formulas`: of each name that of its values; `texts`: those of formulas that are known.
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

  std::string sign_;  // with which a colon begins; empty: it does not begin with one text
  std::vector<nb::object> after_;  // what follows it
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
