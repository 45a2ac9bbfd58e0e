// Folds of the trees that the parser of notations makes, from the leaves up.
//
// `folded` needs no stack, since a text may nest deeper than Python's. `fold` calls a Python function for each node. `lark_rule` writes the
// expression of a rule in Lark's notation (tokenfst.automata.notations.lark_syntax): sequences, alternatives, `[...]` and repetitions by a
// sign are made here, and only names, literals and rarer nodes are asked for.
//
// Invariant: the expressions are those of tests/reference/grammars/lark_rules.py. Cost: linear in the tree.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "python/building_nodes.hpp"

namespace tokenfst {

namespace nb = nanobind;

namespace tree_folds {

using Built = std::vector<nb::object>;

// `build(kind, built)` for every node of a tree. `built`: what was built of the nodes below, and tokens. `tick(count)`, if it is given,
// counts the nodes, some at once.
template <class Build>
nb::object folded(nb::handle tree, Build build, nb::handle tick) {
  static constexpr size_t kCounted = 64;
  struct Open {
    nb::object kind;
    nb::list items;
    size_t next = 0;
    Built built = {};
  };
  const nb::object data = nb::steal(PyUnicode_InternFromString("data")), children = nb::steal(PyUnicode_InternFromString("children"));
  const auto opened = [&](nb::handle node) {
    return Open{.kind = nb::str(nb::object(node.attr(data))), .items = nb::cast<nb::list>(node.attr(children))};
  };
  std::vector<Open> open{};
  open.push_back(opened(tree));
  size_t count = 0;
  while (true) {
    Open& own = open.back();
    if (own.next < own.items.size()) {
      nb::object item = own.items[own.next++];
      if (PyUnicode_Check(item.ptr())) {
        own.built.push_back(std::move(item));
      } else {
        open.push_back(opened(item));
      }
      continue;
    }
    if (++count == kCounted || open.size() == 1) {
      if (!tick.is_none()) tick(count);
      count = 0;
    }
    nb::object value = build(own.kind, own.built);
    open.pop_back();
    if (open.empty()) return value;
    open.back().built.push_back(std::move(value));
  }
}

inline nb::list list_of(const Built& built) {
  nb::list found;
  for (const nb::object& each : built) found.append(each);
  return found;
}

inline nb::object fold(nb::handle tree, nb::handle build, nb::handle tick) {
  return folded(tree, [&](const nb::object& kind, const Built& built) { return build(kind, list_of(built)); }, tick);
}

// The tokens of a type in a tree, in the order of the text.
inline nb::list tokens_of(nb::handle tree, nb::handle type) {
  const nb::object types = nb::steal(PyUnicode_InternFromString("type")), children = nb::steal(PyUnicode_InternFromString("children"));
  nb::list found;
  std::vector<nb::object> stack{nb::borrow(tree)};
  while (!stack.empty()) {
    const nb::object node = std::move(stack.back());
    stack.pop_back();
    if (!PyUnicode_Check(node.ptr())) {
      const auto items = nb::cast<nb::list>(node.attr(children));
      for (size_t k = items.size(); k-- > 0;) stack.emplace_back(items[k]);
    } else if (node.attr(types).equal(type)) {
      found.append(node);
    }
  }
  return found;
}

inline std::string_view text_of(nb::handle text) {
  Py_ssize_t length = 0;
  const char* const found = PyUnicode_AsUTF8AndSize(text.ptr(), &length);
  if (!found) throw nb::python_error();
  return {found, static_cast<size_t>(length)};
}

// The expression of the body of a rule. `values`: a mapping from a token to its expression. `part(kind, children)`: a pair of the expression
// of a node of another kind and its name, which arguments of templates need; among `children`, nodes are such pairs, too.
inline nb::object lark_rule(nb::handle tree, nb::handle values, nb::handle part, nb::handle tick) {
  // Built are tokens, expressions, and pairs.
  const auto expr = [&](const nb::object& each) -> nb::object {
    if (expression_nodes::is_node(each.ptr())) return each;
    return PyTuple_Check(each.ptr()) ? nb::object(each[0]) : nb::object(values[each]);
  };
  std::vector<nb::object> parts;
  std::vector<PyObject*> borrowed;
  const auto joined = [&](const Built& built) -> std::span<PyObject* const> {
    parts.clear();
    borrowed.clear();
    for (const nb::object& each : built) borrowed.push_back(parts.emplace_back(expr(each)).ptr());
    return borrowed;
  };
  const nb::str nameless("");
  const auto build = [&](const nb::object& kind, const Built& built) -> nb::object {
    const std::string_view name = text_of(kind);
    if (name == "alternative") return nodes::concat(joined(built));
    if (name == "expansions") return nodes::either(joined(built));
    if (name == "maybe") return nodes::either({expr(built[0]), nodes::epsilon()});
    if (name == "quantified") {
      const char sign = text_of(built[1])[0];
      return nodes::repeat(expr(built[0]), sign == '+', sign == '?' ? 1 : -1);
    }
    if (name == "alias") return nodes::epsilon();
    nb::list children;
    for (const nb::object& each : built) {
      if (expression_nodes::is_node(each.ptr())) {
        children.append(nb::make_tuple(each, nameless));
      } else {
        children.append(each);
      }
    }
    return part(kind, children);
  };
  return expr(folded(tree, build, tick));
}

}  // namespace tree_folds

inline void bind_tree_folds(nb::module_& m) {
  using namespace nb::literals;
  m.def("fold", &tree_folds::fold, "tree"_a, "build"_a, "tick"_a.none());
  m.def("tokens_of", &tree_folds::tokens_of, "tree"_a, "type"_a);
  m.def("lark_rule", &tree_folds::lark_rule, "tree"_a, "values"_a, "part"_a, "tick"_a);
}

}  // namespace tokenfst
