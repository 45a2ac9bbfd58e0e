// Folds of the trees that the parser of notations makes, from the leaves up.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace tokenfst {

namespace nb = nanobind;

// Calls `build(kind, children)` for every node of a tree, from the leaves up, and returns the last result. `children` are the
// results of the node's children; tokens stand for themselves. Not recursive, since a text may nest deeper than Python's stack.
// `tick(count)`, if it is given, counts the nodes, some at once.
inline nb::object fold(nb::handle tree, nb::handle build, nb::handle tick) {
  static constexpr size_t kCounted = 64;
  struct Open {
    nb::object kind;
    nb::list items;
    size_t next = 0;
    nb::list built = {};
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
      const nb::object item = own.items[own.next++];
      if (PyUnicode_Check(item.ptr())) {
        own.built.append(item);
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
    open.back().built.append(value);
  }
}

inline void bind_tree_folds(nb::module_& m) {
  using namespace nb::literals;
  m.def("fold", &fold, "tree"_a, "build"_a, "tick"_a.none());
}

}  // namespace tokenfst
