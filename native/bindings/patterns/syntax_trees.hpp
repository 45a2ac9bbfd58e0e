// Syntax trees of notations, as the parser makes them, without a Python object for each node and token.
//
// Most of the text of a grammar is bodies of rules, and most of their tokens occur more than once. So nodes and tokens are
// numbers here, and Python objects are made only of those that are requested. SyntaxTree::rule makes the expression of the body
// of a rule, in a notation with the kinds of nodes that Lark has (tokenfst.automata.notations): sequences, alternatives,
// `[...]` and repetitions by a sign are made here; Python makes the expressions of names, literals and rarer nodes.
//
// Invariant: the trees are those of lark's parser; the expressions are those of tests/reference/grammars/lark_rules.py.
// Cost: linear in the tree. No function is recursive, since a text may nest deeper than Python's stack.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "python/building_nodes.hpp"

namespace tokenfst {

namespace nb = nanobind;

// The nodes and tokens of a text, operands first.
struct SyntaxNodes {
  // The names of kinds of nodes and types of tokens, and the Python classes of both.
  struct Names {
    std::vector<nb::object> kinds, types;  // of nodes, and of tokens
    nb::object node, late, token;  // classes
    int32_t late_kind = -1;  // outermost nodes of this kind become `late` objects, which hold a SyntaxTree
    nb::object type = nb::steal(PyUnicode_InternFromString("type")), start = nb::steal(PyUnicode_InternFromString("start_pos"));
  };
  struct Node {
    bool is_token = false;
    int32_t kind = 0;  // a place in `kinds` or `types`
    uint32_t begin = 0, end = 0;  // of a node: its children, in `below`; of a token: its place in the text
    Py_ssize_t start = 0;  // of a token: where it stands for errors
  };

  SyntaxNodes(std::shared_ptr<const Names> own, nb::str whole) : names(std::move(own)), text(std::move(whole)) {}

  // Both return the number of what was added. `children`: numbers.
  uint32_t add_token(size_t type, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t start) {
    nodes.push_back({true, static_cast<int32_t>(type), static_cast<uint32_t>(begin), static_cast<uint32_t>(end), start});
    return static_cast<uint32_t>(nodes.size() - 1);
  }
  uint32_t add_node(int32_t kind, std::span<const uint32_t> children) {
    const auto begin = static_cast<uint32_t>(below.size());
    below.insert(below.end(), children.begin(), children.end());
    nodes.push_back({false, kind, begin, static_cast<uint32_t>(below.size())});
    return static_cast<uint32_t>(nodes.size() - 1);
  }

  // The text of a token, and the token as a Python object.
  nb::object spelled(const Node& token) const { return nb::steal(PyUnicode_Substring(text.ptr(), token.begin, token.end)); }
  nb::object token(const Node& own) const {
    nb::object made = names->token(spelled(own));
    made.attr(names->type) = names->types[static_cast<size_t>(own.kind)];
    made.attr(names->start) = own.start;
    return made;
  }

  std::shared_ptr<const Names> names;
  nb::str text;
  std::vector<Node> nodes;
  std::vector<uint32_t> below;
};

// One node of a text, with those below it.
class SyntaxTree {
 public:
  SyntaxTree(std::shared_ptr<const SyntaxNodes> nodes, uint32_t root) : nodes_(std::move(nodes)), root_(root) {}

  // The tree of a Python object: of a node with `data` and `children`, whose leaves are tokens.
  static SyntaxTree of(nb::handle root) {
    struct Begun {
      nb::object kind;
      nb::list items;
      size_t next = 0;
      std::vector<uint32_t> children = {};
    };
    auto names = std::make_shared<SyntaxNodes::Names>();
    names->node = nb::borrow(root.type());
    const auto place = [](std::vector<nb::object>& known, const nb::object& name) {
      const auto found = std::ranges::find_if(known, [&](const nb::object& each) { return each.equal(name); });
      const auto at = static_cast<size_t>(found - known.begin());
      if (found == known.end()) known.push_back(name);
      return at;
    };
    SyntaxNodes made(names, nb::str(""));
    nb::list texts;
    Py_ssize_t length = 0;
    const auto opened = [](nb::handle node) {
      return Begun{.kind = node.attr("data"), .items = nb::cast<nb::list>(node.attr("children"))};
    };
    std::vector<Begun> open{};
    open.push_back(opened(root));
    while (true) {
      Begun& own = open.back();
      if (own.next < own.items.size()) {
        const nb::object item = own.items[own.next++];
        if (!PyUnicode_Check(item.ptr())) {
          open.push_back(opened(item));
          continue;
        }
        names->token = nb::borrow(item.type());
        const Py_ssize_t begin = length;
        length += PyUnicode_GetLength(item.ptr());
        texts.append(item);
        own.children.push_back(
            made.add_token(place(names->types, item.attr(names->type)), begin, length, nb::cast<Py_ssize_t>(item.attr(names->start))));
        continue;
      }
      const uint32_t node = made.add_node(static_cast<int32_t>(place(names->kinds, own.kind)), own.children);
      open.pop_back();
      if (open.empty()) {
        made.text = nb::steal<nb::str>(PyUnicode_Join(made.text.ptr(), texts.ptr()));
        return {std::make_shared<const SyntaxNodes>(std::move(made)), node};
      }
      open.back().children.push_back(node);
    }
  }

  // The node as a Python object. `is_late`: outermost nodes of the late kind become `late` objects. `tick()`, if it is given,
  // is called after each 64 nodes and tokens.
  nb::object tree(bool is_late, nb::handle tick = {}) const {
    struct Begun {
      uint32_t node, next;
      nb::list built = {};
    };
    std::vector<Begun> open{};
    open.push_back({root_, at(root_).begin});
    size_t count = 0;
    while (true) {
      Begun& own = open.back();
      const Node& node = at(own.node);
      if (own.next < node.end) {
        if (tick.is_valid() && ++count % 64 == 0) tick();
        const uint32_t child = nodes_->below[own.next++];
        if (at(child).is_token) {
          own.built.append(nodes_->token(at(child)));
        } else if (is_late && at(child).kind == names().late_kind) {
          own.built.append(names().late(names().kinds[static_cast<size_t>(at(child).kind)], nb::cast(SyntaxTree(nodes_, child))));
        } else {
          open.push_back({child, at(child).begin});
        }
        continue;
      }
      nb::object made = names().node(names().kinds[static_cast<size_t>(node.kind)], own.built);
      open.pop_back();
      if (open.empty()) return made;
      open.back().built.append(std::move(made));
    }
  }

  // The children of the node, as Python objects.
  nb::object children() const { return tree(false).attr("children"); }

  // The tokens of a type, in the order of the text.
  nb::list tokens(nb::handle type) const {
    nb::list found;
    std::vector<uint32_t> stack{root_};
    while (!stack.empty()) {
      const Node& node = at(stack.back());
      stack.pop_back();
      if (node.is_token) {
        if (names().types[static_cast<size_t>(node.kind)].equal(type)) found.append(nodes_->token(node));
      } else {
        for (uint32_t k = node.end; k-- > node.begin;) stack.push_back(nodes_->below[k]);
      }
    }
    return found;
  }

  // The words of a terminal, if each of its alternatives is one string literal of printable ASCII, without escapes and flags;
  // else None.
  nb::object words() const {
    nb::list found;
    const Node& own = at(root_);
    for (uint32_t k = own.begin; k < own.end; ++k) {
      const Node& way = at(nodes_->below[k]);
      if (way.is_token || way.end != way.begin + 1) return nb::none();
      const Node& token = at(nodes_->below[way.begin]);
      if (!token.is_token || !is_word(token)) return nb::none();
      found.append(nb::steal(PyUnicode_Substring(nodes_->text.ptr(), token.begin + 1, token.end - 1)));
    }
    return found;
  }

  // The expression of the body of a rule. `values`: a dict of expressions by the texts of tokens; its `__missing__` is called
  // with a token that it lacks. `part(kind, children)` is called for a node of another kind. It returns the expression of the
  // node, or a pair of the expression and its name, which arguments of templates need, or any object that only the node above
  // uses. Expressions among `children` are such pairs. `tick(count)` counts `work` for each node, some nodes at once.
  nb::object rule(nb::dict values, nb::handle part, nb::handle tick, size_t work) const {
    std::vector<Open> open{{root_, at(root_).begin, 0}};
    std::vector<Built> built;  // of the children of all open nodes
    std::vector<nb::object> parts;
    size_t count = 0;
    while (true) {
      Open& own = open.back();
      const Node& node = at(own.node);
      if (own.next < node.end) {
        const uint32_t child = nodes_->below[own.next++];
        if (at(child).is_token) {
          built.push_back({.token = child});
        } else {
          open.push_back({child, at(child).begin, built.size()});
        }
        continue;
      }
      if (++count == kCounted || open.size() == 1) {
        tick(count * work);
        count = 0;
      }
      nb::object made = written(node, std::span(built).subspan(own.built), values, part, parts);
      built.resize(own.built);
      open.pop_back();
      if (open.empty()) return PyTuple_Check(made.ptr()) ? nb::object(made[0]) : made;
      built.push_back({.value = std::move(made)});
    }
  }

 private:
  using Node = SyntaxNodes::Node;
  static constexpr size_t kCounted = 64;
  struct Open {
    uint32_t node, next;
    size_t built;  // the index in `built` of the value of its first child
  };
  // An expression, a pair, or a token.
  struct Built {
    nb::object value = {};
    uint32_t token = 0;
  };

  const Node& at(uint32_t node) const { return nodes_->nodes[node]; }
  const SyntaxNodes::Names& names() const { return *nodes_->names; }

  // Whether a token is a string that stands for its characters.
  bool is_word(const Node& token) const {
    if (token.end < token.begin + 3 || text_of(names().types[static_cast<size_t>(token.kind)]) != "STRING") return false;
    for (uint32_t k = token.begin; k < token.end; ++k) {
      const Py_UCS4 each = PyUnicode_ReadChar(nodes_->text.ptr(), k);
      const bool is_mark = k == token.begin || k + 1 == token.end;
      if (is_mark != (each == '"') || each < ' ' || each > '~' || each == '\\') return false;
    }
    return true;
  }

  static std::string_view text_of(nb::handle text) {
    Py_ssize_t length = 0;
    const char* const found = PyUnicode_AsUTF8AndSize(text.ptr(), &length);
    if (!found) throw nb::python_error();
    return {found, static_cast<size_t>(length)};
  }

  nb::object expr(const Built& each, const nb::dict& values) const {
    if (!each.value.is_valid()) {
      const nb::object text = nodes_->spelled(at(each.token));
      if (PyObject* const known = PyDict_GetItemWithError(values.ptr(), text.ptr())) return nb::borrow(known);
      if (PyErr_Occurred()) throw nb::python_error();
      return nodes::checked(PyObject_GetItem(values.ptr(), nodes_->token(at(each.token)).ptr()));
    }
    return PyTuple_Check(each.value.ptr()) ? nb::object(each.value[0]) : each.value;
  }

  // The expression of a node, or what `part` returns, given the values of its children.
  nb::object written(const Node& node, std::span<const Built> built, const nb::dict& values, nb::handle part,
                     std::vector<nb::object>& parts) const {
    const nb::object& kind = names().kinds[static_cast<size_t>(node.kind)];
    const std::string_view name = text_of(kind);
    const bool is_sequence = name == "alternative";
    if (is_sequence || name == "expansions") {
      parts.clear();
      std::vector<PyObject*> borrowed;
      borrowed.reserve(built.size());
      for (const Built& each : built) borrowed.push_back(parts.emplace_back(expr(each, values)).ptr());
      return is_sequence ? nodes::concat(borrowed) : nodes::either(borrowed);
    }
    if (name == "maybe") return nodes::either({expr(built[0], values), nodes::epsilon()});
    if (name == "quantified") {
      const Py_UCS4 sign = PyUnicode_ReadChar(nodes_->text.ptr(), at(built[1].token).begin);
      return nodes::repeat(expr(built[0], values), sign == '+', sign == '?' ? 1 : -1);
    }
    if (name == "alias") return nodes::epsilon();
    nb::list children;
    for (const Built& each : built) {
      if (!each.value.is_valid()) {
        children.append(nodes_->token(at(each.token)));
      } else if (expression_nodes::is_node(each.value.ptr())) {
        children.append(nb::make_tuple(each.value, ""));
      } else {
        children.append(each.value);
      }
    }
    return part(kind, children);
  }

  std::shared_ptr<const SyntaxNodes> nodes_;
  uint32_t root_;
};

inline void bind_syntax_trees(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<SyntaxTree>(m, "SyntaxTree")
      .def_static("of", &SyntaxTree::of, "tree"_a)
      .def("children", &SyntaxTree::children)
      .def("tokens", &SyntaxTree::tokens, "type"_a)
      .def("words", &SyntaxTree::words)
      .def("rule", &SyntaxTree::rule, "values"_a, "part"_a, "tick"_a, "work"_a);
}

}  // namespace tokenfst
