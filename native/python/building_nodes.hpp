// Builds nodes of expressions exactly as tokenfst.automata.expressions.expression does: the same nodes, sizes and
// simplifications. An error of Python is rethrown.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "python/expression_node.hpp"

namespace tokenfst::nodes {

inline nb::object checked(PyObject* made) {
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

inline bool is_empty(nb::handle node) { return node.ptr() == expression_nodes::empty; }
inline nb::object empty() { return nb::borrow(expression_nodes::empty); }
inline nb::object epsilon() { return nb::borrow(expression_nodes::epsilon); }

inline nb::object concat(std::span<PyObject* const> parts) {
  return checked(expression_nodes::concat(nullptr, parts.data(), static_cast<Py_ssize_t>(parts.size())));
}
inline nb::object either(std::span<PyObject* const> parts) {
  return checked(expression_nodes::union_of(nullptr, parts.data(), static_cast<Py_ssize_t>(parts.size())));
}
inline nb::object concat(std::initializer_list<nb::handle> parts) {
  std::vector<PyObject*> given;
  for (nb::handle part : parts) given.push_back(part.ptr());
  return concat(given);
}
inline nb::object either(std::initializer_list<nb::handle> parts) {
  std::vector<PyObject*> given;
  for (nb::handle part : parts) given.push_back(part.ptr());
  return either(given);
}

inline nb::object literal(std::string_view text) {
  const nb::bytes data(text.data(), text.size());
  return checked(expression_nodes::literal(nullptr, data.ptr()));
}

// A node that is not plain (`Expr` says which nodes are).
inline nb::object made(Op op, std::initializer_list<nb::handle> parts, nb::handle value = nb::none()) {
  PyObject* const args = PyTuple_New(static_cast<Py_ssize_t>(parts.size()));
  if (!args) throw nb::python_error();
  Py_ssize_t at = 0;
  for (nb::handle part : parts) PyTuple_SetItem(args, at++, Py_NewRef(part.ptr()));
  return checked(expression_nodes::make(op, args, value.ptr(), 0, false));
}

inline nb::object call(nb::handle name) { return made(Op::Call, {}, name); }

// `low` to `high` words of a part, one after the other; `high` -1: without an upper bound.
inline nb::object repeat(nb::handle part, int64_t low, int64_t high) {
  if (low == 1 && high == 1) return nb::borrow(part);
  if (high == 0 || part.ptr() == expression_nodes::epsilon) return epsilon();
  const ExprNode& node = node_of(part);
  const int64_t copies = high < 0 ? std::max<int64_t>(low, 1) : high, most = ExprNode::kMostPositions;
  const int64_t size = node.size > most / copies ? most : node.size * copies;
  const nb::tuple bounds = nb::make_tuple(low, high);
  PyObject* const args = PyTuple_Pack(1, part.ptr());
  if (!args) throw nb::python_error();
  return checked(expression_nodes::make(Op::Repeat, args, bounds.ptr(), size, size > 0 && (low == 0 || node.nullable)));
}

// A copy of a node with the rule of this name as its source. The node must not be a VARIABLE.
inline nb::object labelled(nb::handle node, nb::handle rule) {
  const ExprNode& own = node_of(node);
  nb::object copy = checked(expression_nodes::make(static_cast<Op>(own.code), Py_NewRef(own.args), own.value, own.size, own.nullable != 0));
  auto& made = *reinterpret_cast<ExprNode*>(copy.ptr());
  PyObject* const source = PyUnicode_FromFormat("the rule %R", rule.ptr());
  if (!source) throw nb::python_error();
  Py_DECREF(made.source);
  made.source = source;
  return copy;
}

// Declares that a node has a word, so that no search decides it.
inline void assure(nb::handle node) { reinterpret_cast<ExprNode*>(node.ptr())->known = ExprNode::kHasWord; }

}  // namespace tokenfst::nodes
