// The bodies of rules as lists of nodes, and what the analyses of a grammar ask of one body.
//
// A grammar is analysed in several passes (tokenfst.automata.rules), of which each looks at every node of every body. Here the nodes are
// listed once for a body, and each question is one pass over them.
//
// Invariant: the answers, and their orders, are those of tests/reference/grammars/rule_graphs.py. Cost: linear in the body, for each question.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "python/building_nodes.hpp"
#include "python/expression_node.hpp"

namespace tokenfst {

namespace nb = nanobind;

namespace rule_nodes {

inline const ExprNode& at(PyObject* node) { return *reinterpret_cast<const ExprNode*>(node); }
inline Op op_of(PyObject* node) { return static_cast<Op>(at(node).code); }
inline Py_ssize_t count_of(PyObject* node) { return PyTuple_Size(at(node).args); }
inline PyObject* arg_of(PyObject* node, Py_ssize_t k) { return PyTuple_GetItem(at(node).args, k); }

// Whether the operands of an operator may contain calls: `graph.COMPOSED`.
inline bool may_call(Op op) { return op == Op::Concat || op == Op::Union || op == Op::Repeat || op == Op::Unordered; }
inline bool is_composed(PyObject* node) { return at(node).size == 0 && may_call(op_of(node)); }

// The bounds of a repetition.
inline std::pair<int64_t, int64_t> bounds_of(PyObject* node) {
  const int64_t low = PyLong_AsLongLong(PyTuple_GetItem(at(node).value, 0)), high = PyLong_AsLongLong(PyTuple_GetItem(at(node).value, 1));
  if (PyErr_Occurred()) throw nb::python_error();
  return {low, high};
}
inline int64_t copies_of(PyObject* node) {
  const auto [low, high] = bounds_of(node);
  return high < 0 ? std::max<int64_t>(low, 1) : high;
}

// The nodes below `roots`, each once, operands first. `inner(node)`: whether its operands are included.
template <class Inner>
std::vector<PyObject*> below(const std::vector<PyObject*>& roots, Inner inner) {
  std::vector<PyObject*> found;
  std::unordered_set<PyObject*> seen;
  std::vector<std::pair<PyObject*, bool>> stack;  // whether everything below the node is done
  for (auto root = roots.rbegin(); root != roots.rend(); ++root) stack.emplace_back(*root, false);
  while (!stack.empty()) {
    const auto [node, is_done] = stack.back();
    stack.pop_back();
    if (is_done) {
      found.push_back(node);
    } else if (seen.insert(node).second) {
      node_of(node);  // checks the type
      const Py_ssize_t count = count_of(node);
      if (count == 0 || !inner(node)) {
        found.push_back(node);
        continue;
      }
      stack.emplace_back(node, true);
      for (Py_ssize_t k = count; k-- > 0;) stack.emplace_back(arg_of(node, k), false);
    }
  }
  return found;
}

inline nb::list list_of(const std::vector<PyObject*>& nodes) {
  nb::list found;
  for (PyObject* node : nodes) found.append(nb::handle(node));
  return found;
}

}  // namespace rule_nodes

class RuleBody {
 public:
  explicit RuleBody(nb::object body) : body_(std::move(body)) {
    nodes_ = rule_nodes::below({body_.ptr()}, rule_nodes::is_composed);
    for (size_t k = 0; k < nodes_.size(); ++k) place_.emplace(nodes_[k], k);
    list_ = rule_nodes::list_of(nodes_);
    size_ = measured();
  }

  const nb::list& nodes() const { return list_; }
  const std::vector<PyObject*>& outer() const { return nodes_; }
  PyObject* body() const { return body_.ptr(); }

  // The operators of the nodes, as bits.
  int64_t ops() const {
    int64_t found = 0;
    for (PyObject* node : nodes_) found |= int64_t{1} << rule_nodes::at(node).code;
    return found;
  }
  // The nodes that are neither plain nor composed.
  nb::list leaves() const {
    nb::list found;
    for (PyObject* node : nodes_) {
      if (rule_nodes::at(node).size == 0 && !rule_nodes::may_call(rule_nodes::op_of(node))) found.append(nb::handle(node));
    }
    return found;
  }
  // Whether the leaves that hold calls are calls, of some of the rules: then calls stand only where a grammar can have them.
  bool calls_only(nb::dict rules) const {
    return std::ranges::all_of(nodes_, [&](PyObject* node) {
      const ExprNode& own = rule_nodes::at(node);
      if (own.size != 0 || rule_nodes::may_call(rule_nodes::op_of(node))) return true;
      if (rule_nodes::op_of(node) == Op::Call) return rules.contains(nb::handle(own.value));
      if (rule_nodes::count_of(node) == 0) return true;
      return std::ranges::none_of(rule_nodes::below({node}, [](PyObject*) { return true; }),
                                  [](PyObject* each) { return rule_nodes::op_of(each) == Op::Call; });
    });
  }
  // Whether the ids of all nodes are among `ids`.
  bool is_within(nb::handle ids) const {
    return std::ranges::all_of(nodes_, [&](PyObject* node) { return holds(ids, node); });
  }

  // The number of positions with counted repetitions expanded, at most `ExprNode::kMostPositions`; a call is one.
  int64_t size() const { return size_; }

  // The distinct rules that the body calls, in the order of its nodes.
  nb::list calls() const {
    nb::dict found;
    for (PyObject* node : nodes_) {
      if (rule_nodes::op_of(node) == Op::Call) found[nb::handle(rule_nodes::at(node).value)] = nb::none();
    }
    return nb::list(found);
  }

  // Every call, and whether it is in tail position.
  nb::list placed_calls() const {
    nb::list found;
    std::vector<char> seen(nodes_.size(), 0);
    std::vector<std::pair<PyObject*, bool>> stack{{body_.ptr(), true}};
    while (!stack.empty()) {
      const auto [node, is_last] = stack.back();
      stack.pop_back();
      char& known = seen[place_of(node)];
      const char bit = is_last ? 2 : 1;
      if (known & bit) continue;
      known = static_cast<char>(known | bit);
      const Op op = rule_nodes::op_of(node);
      if (op == Op::Call) {
        found.append(nb::make_tuple(nb::handle(rule_nodes::at(node).value), is_last));
      } else if (rule_nodes::is_composed(node)) {
        const Py_ssize_t count = rule_nodes::count_of(node);
        for (Py_ssize_t k = count; k-- > 0;) { stack.emplace_back(rule_nodes::arg_of(node, k), is_last && is_tail(node, k)); }
      }
    }
    return found;
  }

  // How often the body calls each rule if counted repetitions are written out, at most `ExprNode::kMostPositions`.
  nb::dict call_counts() const {
    std::vector<int64_t> counts(nodes_.size(), 0);
    counts.back() = 1;
    nb::dict found;
    for (size_t k = nodes_.size(); k-- > 0;) {  // users before operands
      PyObject* const node = nodes_[k];
      if (rule_nodes::op_of(node) == Op::Call) {
        const nb::handle name = rule_nodes::at(node).value;
        const nb::object before = found.attr("get")(name, 0);
        found[name] = plus(nb::cast<int64_t>(before), counts[k]);
      } else if (rule_nodes::is_composed(node)) {
        const int64_t inner = rule_nodes::op_of(node) == Op::Repeat ? times(counts[k], rule_nodes::copies_of(node)) : counts[k];
        for (Py_ssize_t n = 0, count = rule_nodes::count_of(node); n < count; ++n) {
          int64_t& part = counts[place_of(rule_nodes::arg_of(node, n))];
          part = plus(part, inner);
        }
      }
    }
    return found;
  }

  // The rules that the body calls twice in a row; either call may be one of several alternatives.
  nb::set doubled() const {
    nb::set found;
    std::vector<PyObject*> before, after;  // names
    for (PyObject* node : nodes_) {
      if (rule_nodes::op_of(node) != Op::Concat) continue;
      before.clear();
      for (Py_ssize_t k = 0, count = rule_nodes::count_of(node); k < count; ++k) {
        after.clear();
        PyObject* const part = rule_nodes::arg_of(node, k);
        const bool is_choice = rule_nodes::op_of(part) == Op::Union && rule_nodes::at(part).size == 0;
        for (Py_ssize_t n = 0, ways = is_choice ? rule_nodes::count_of(part) : 1; n < ways; ++n) {
          PyObject* const way = is_choice ? rule_nodes::arg_of(part, n) : part;
          if (rule_nodes::op_of(way) == Op::Call) after.push_back(rule_nodes::at(way).value);
        }
        add_common(before, after, found);
        std::swap(before, after);
      }
    }
    return found;
  }

  // The rules that the body can call with only empty words before them. `empty`: the ids of the nodes that have the empty word.
  nb::list left_edge(nb::handle empty) const {
    nb::dict found;
    std::vector<char> seen(nodes_.size(), 0);
    std::vector<PyObject*> stack{body_.ptr()};
    while (!stack.empty()) {
      PyObject* const node = stack.back();
      stack.pop_back();
      char& known = seen[place_of(node)];
      if (known) continue;
      known = 1;
      const Op op = rule_nodes::op_of(node);
      if (op == Op::Call) {
        found[nb::handle(rule_nodes::at(node).value)] = nb::none();
      } else if (rule_nodes::is_composed(node)) {
        for (Py_ssize_t k = op == Op::Unordered ? 1 : 0, count = rule_nodes::count_of(node); k < count; ++k) {
          PyObject* const part = rule_nodes::arg_of(node, k);
          stack.push_back(part);
          if (op == Op::Concat && !holds(empty, part)) break;
        }
      }
    }
    return nb::list(found);
  }

  // The body with each call replaced by the expression of its rule; unchanged parts are shared. `rebuilt(node, args)`: a node for members
  // in any order with other operands.
  nb::object with(nb::dict expressions, nb::handle rebuilt) const {
    std::vector<nb::object> done(nodes_.size());
    std::vector<PyObject*> args;
    for (size_t k = 0; k < nodes_.size(); ++k) {
      PyObject* const node = nodes_[k];
      if (rule_nodes::op_of(node) == Op::Call) {
        done[k] = expressions[nb::handle(rule_nodes::at(node).value)];
        continue;
      }
      done[k] = nb::borrow(node);
      if (!rule_nodes::is_composed(node)) continue;
      args.clear();
      bool is_same = true;
      for (Py_ssize_t n = 0, count = rule_nodes::count_of(node); n < count; ++n) {
        PyObject* const part = rule_nodes::arg_of(node, n);
        args.push_back(done[place_of(part)].ptr());
        is_same = is_same && args.back() == part;
      }
      if (!is_same) done[k] = remade(node, args, rebuilt);
    }
    return done.back();
  }

  // The same, where calls in tail position become those of `tails`, if they are there; and the number of nodes that were made anew.
  nb::tuple with_tails(nb::dict tails, nb::dict expressions, nb::handle rebuilt) const {
    const size_t count = nodes_.size();
    std::vector<char> calls(count, 0), wanted(count, 0);  // whether a node holds a call; where it stands: in tail position (2), or not (1)
    for (size_t k = 0; k < count; ++k) {
      calls[k] = rule_nodes::op_of(nodes_[k]) == Op::Call;
      if (!rule_nodes::is_composed(nodes_[k])) continue;
      for_args(nodes_[k], [&](Py_ssize_t, size_t part) { calls[k] = calls[k] || calls[part]; });
    }
    wanted.back() = 2;
    for (size_t k = count; k-- > 0;) {  // users before operands
      PyObject* const node = nodes_[k];
      if (!calls[k] || !rule_nodes::is_composed(node)) continue;
      for_args(node, [&](Py_ssize_t n, size_t part) {
        wanted[part] = static_cast<char>(wanted[part] | (is_tail(node, n) ? wanted[k] : static_cast<char>(wanted[k] != 0)));
      });
    }
    std::vector<std::array<nb::object, 2>> done(count);
    std::vector<PyObject*> args;
    int64_t made = 0;
    for (size_t k = 0; k < count; ++k) {
      PyObject* const node = nodes_[k];
      for (const bool is_last : {false, true}) {
        nb::object& own = done[k][is_last];
        if (!(wanted[k] & (is_last ? 2 : 1))) continue;
        if (!calls[k]) {
          own = nb::borrow(node);
        } else if (rule_nodes::op_of(node) == Op::Call) {
          const nb::handle name = rule_nodes::at(node).value;
          own = is_last && tails.contains(name) ? tails[name] : expressions[name];
        } else {
          args.clear();
          for_args(node, [&](Py_ssize_t n, size_t part) { args.push_back(done[part][is_last && is_tail(node, n)].ptr()); });
          own = remade(node, args, rebuilt);
          ++made;
        }
      }
    }
    return nb::make_tuple(done.back()[1], made);
  }

 private:
  // Adds the names that are in both lists.
  static void add_common(const std::vector<PyObject*>& some, const std::vector<PyObject*>& others, nb::set& found) {
    if (some.empty() || others.empty()) return;
    nb::set known;
    for (PyObject* name : some) known.add(nb::handle(name));
    for (PyObject* name : others) {
      if (known.contains(nb::handle(name))) found.add(nb::handle(name));
    }
  }

  // Whether an operand of a node in tail position is in tail position.
  static bool is_tail(PyObject* node, Py_ssize_t k) {
    const Op op = rule_nodes::op_of(node);
    return op == Op::Union || (op == Op::Concat && k == rule_nodes::count_of(node) - 1);
  }
  template <class Each>
  void for_args(PyObject* node, Each each) const {
    for (Py_ssize_t k = 0, count = rule_nodes::count_of(node); k < count; ++k) each(k, place_of(rule_nodes::arg_of(node, k)));
  }

  int64_t measured() const {
    std::vector<int64_t> sizes(nodes_.size());
    for (size_t k = 0; k < nodes_.size(); ++k) {
      PyObject* const node = nodes_[k];
      int64_t total = std::max<int64_t>(rule_nodes::at(node).size, 1);
      if (rule_nodes::is_composed(node)) {
        total = 0;
        for (Py_ssize_t n = 0, count = rule_nodes::count_of(node); n < count; ++n) {
          total = plus(total, sizes[place_of(rule_nodes::arg_of(node, n))]);
        }
        if (rule_nodes::op_of(node) == Op::Repeat) total = times(total, rule_nodes::copies_of(node));
      }
      sizes[k] = total;
    }
    return sizes.back();
  }

  static constexpr int64_t kMost = ExprNode::kMostPositions;

  size_t place_of(PyObject* node) const { return place_.find(node)->second; }
  static int64_t plus(int64_t one, int64_t other) { return one > kMost - other ? kMost : one + other; }
  static int64_t times(int64_t one, int64_t other) { return other > 0 && one > kMost / other ? kMost : one * other; }
  static bool holds(nb::handle ids, PyObject* node) {
    const nb::object id = nb::steal(PyLong_FromVoidPtr(node));
    const int found = PySequence_Contains(ids.ptr(), id.ptr());
    if (found < 0) throw nb::python_error();
    return found != 0;
  }

  static nb::object remade(PyObject* node, const std::vector<PyObject*>& args, nb::handle rebuilt) {
    switch (rule_nodes::op_of(node)) {
      case Op::Concat: return nodes::concat(args);
      case Op::Union: return nodes::either(args);
      case Op::Repeat: {
        const auto [low, high] = rule_nodes::bounds_of(node);
        if (nodes::is_empty(args[0])) return low > 0 ? nodes::empty() : nodes::epsilon();
        nb::object made = nodes::repeat(args[0], low, high);
        if (rule_nodes::at(node).source != Py_None && made.ptr() != args[0] && made.ptr() != expression_nodes::epsilon) {
          auto* const own = reinterpret_cast<ExprNode*>(made.ptr());
          Py_DECREF(own->source);
          own->source = Py_NewRef(rule_nodes::at(node).source);
        }
        return made;
      }
      default: return rebuilt(nb::handle(node), rule_nodes::list_of(args));
    }
  }

  nb::object body_;
  std::vector<PyObject*> nodes_;  // the last one is the body, which keeps the others alive
  std::unordered_map<PyObject*, size_t> place_;
  nb::list list_;
  int64_t size_ = 0;
};

}  // namespace tokenfst
