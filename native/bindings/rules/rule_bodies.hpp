// The bodies of rules as lists of nodes, and properties of one body that the analyses of a grammar need.
//
// A grammar is analysed in several passes (tokenfst.automata.rules), and each pass visits every node of every body. Here the
// nodes of a body are listed once, operands first, and each property is computed by one pass over the list.
//
// Terms. A *plain* node has no calls below it, and its size is known (ExprNode::size is not 0). A *composed* node is not plain,
// and is a concatenation, union, repetition or list of members in any order; its operands may have calls. Below other nodes no
// call may stand.
//
// Invariant: the results, and their orders, are those of tests/reference/grammars/rule_graphs.py. Cost: linear in the body, for
// each function.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "containers/pointer_places.hpp"
#include "python/building_nodes.hpp"
#include "python/expression_node.hpp"

namespace tokenfst {

namespace nb = nanobind;

namespace rule_nodes {

inline const ExprNode& at(PyObject* node) { return *reinterpret_cast<const ExprNode*>(node); }
inline Op op_of(PyObject* node) { return static_cast<Op>(at(node).code); }
inline Py_ssize_t count_of(PyObject* node) { return PyTuple_Size(at(node).args); }
inline PyObject* arg_of(PyObject* node, Py_ssize_t k) { return PyTuple_GetItem(at(node).args, k); }

// Whether the operands of an operator may have calls (`graph.COMPOSED`), and whether a node is composed.
inline bool may_call(Op op) { return op == Op::Concat || op == Op::Union || op == Op::Repeat || op == Op::Unordered; }
inline bool is_composed(PyObject* node) { return at(node).size == 0 && may_call(op_of(node)); }

// The bounds of a repetition (-1: no upper bound), and how many copies of its operand the size counts.
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
  PointerPlaces seen;
  std::vector<std::pair<PyObject*, bool>> stack;  // whether everything below the node is done
  for (auto root = roots.rbegin(); root != roots.rend(); ++root) stack.emplace_back(*root, false);
  while (!stack.empty()) {
    const auto [node, is_done] = stack.back();
    stack.pop_back();
    if (is_done) {
      found.push_back(node);
    } else if (seen.add(node, 0)) {
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

// The body of one rule. Keeps its expression alive.
class RuleBody {
 public:
  explicit RuleBody(nb::object body) : body_(std::move(body)) {
    nodes_ = rule_nodes::below({body_.ptr()}, rule_nodes::is_composed);
    PointerPlaces places;
    places.expect(nodes_.size());
    begins_.reserve(nodes_.size() + 1);
    for (PyObject* node : nodes_) {
      begins_.push_back(static_cast<uint32_t>(operands_.size()));
      if (rule_nodes::is_composed(node)) {
        for (Py_ssize_t k = 0, count = rule_nodes::count_of(node); k < count; ++k)
          operands_.push_back(places.find(rule_nodes::arg_of(node, k)));
      }
      places.add(node, static_cast<uint32_t>(places.size()));
    }
    begins_.push_back(static_cast<uint32_t>(operands_.size()));
    size_ = measured();
  }

  // The nodes, down to those that are not composed: each once, operands first. outer(): the same, borrowed.
  nb::list nodes() const { return rule_nodes::list_of(nodes_); }
  size_t length() const { return nodes_.size(); }
  const std::vector<PyObject*>& outer() const { return nodes_; }
  PyObject* body() const { return body_.ptr(); }
  Op op(size_t k) const { return rule_nodes::op_of(nodes_[k]); }
  // The places of the operands of a composed node in `outer`; none of other nodes.
  std::span<const uint32_t> operands(size_t k) const { return std::span(operands_).subspan(begins_[k], begins_[k + 1] - begins_[k]); }

  // The operators of the nodes: bit k is set if some node has operator k.
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
  // Whether all calls are calls of `rules`, and stand where a grammar may have them: below composed nodes only.
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

  // The places of all calls in outer(), each with whether it is in tail position: nothing follows it in the body. A node that
  // stands both in tail position and elsewhere is listed twice.
  std::vector<std::pair<uint32_t, bool>> placed_calls() const {
    std::vector<std::pair<uint32_t, bool>> found;
    std::vector<char> seen(nodes_.size(), 0);
    std::vector<std::pair<uint32_t, bool>> stack{{last(), true}};
    while (!stack.empty()) {
      const auto [k, is_last] = stack.back();
      stack.pop_back();
      const char bit = is_last ? 2 : 1;
      if (seen[k] & bit) continue;
      seen[k] = static_cast<char>(seen[k] | bit);
      if (op(k) == Op::Call) found.emplace_back(k, is_last);
      const std::span<const uint32_t> parts = operands(k);
      for (size_t n = parts.size(); n-- > 0;) stack.emplace_back(parts[n], is_last && is_tail(k, n));
    }
    return found;
  }

  // How often each node stands in the body with counted repetitions expanded, at most `ExprNode::kMostPositions`.
  std::vector<int64_t> counts() const {
    std::vector<int64_t> found(nodes_.size(), 0);
    found.back() = 1;
    for (size_t k = nodes_.size(); k-- > 0;) {  // users before operands
      if (operands(k).empty()) continue;
      const int64_t inner = op(k) == Op::Repeat ? times(found[k], rule_nodes::copies_of(nodes_[k])) : found[k];
      for (const uint32_t part : operands(k)) found[part] = plus(found[part], inner);
    }
    return found;
  }

  // The rules that the body can call before it has read a byte. `empty`: the ids of the nodes that have the empty word.
  nb::list left_edge(nb::handle empty) const {
    nb::dict found;
    std::vector<char> seen(nodes_.size(), 0);
    std::vector<uint32_t> stack{last()};
    while (!stack.empty()) {
      const uint32_t k = stack.back();
      stack.pop_back();
      if (seen[k]) continue;
      seen[k] = 1;
      if (op(k) == Op::Call) found[nb::handle(rule_nodes::at(nodes_[k]).value)] = nb::none();
      const std::span<const uint32_t> parts = operands(k);
      for (size_t n = op(k) == Op::Unordered ? 1 : 0; n < parts.size(); ++n) {
        stack.push_back(parts[n]);
        if (op(k) == Op::Concat && !holds(empty, nodes_[parts[n]])) break;
      }
    }
    return nb::list(found);
  }

  // The body with each call replaced; unchanged parts are shared. `called(k)`: the expression for the call at place k.
  // `rebuilt(node, args)`: the node of members in any order, with other operands.
  template <class Called>
  nb::object with(Called called, nb::handle rebuilt) const {
    std::vector<nb::object> done(nodes_.size());
    std::vector<PyObject*> args;
    for (size_t k = 0; k < nodes_.size(); ++k) {
      if (op(k) == Op::Call) {
        done[k] = called(k);
        continue;
      }
      args.clear();
      bool is_same = true;
      for (const uint32_t part : operands(k)) {
        args.push_back(done[part].ptr());
        is_same = is_same && args.back() == nodes_[part];
      }
      done[k] = is_same ? nb::borrow(nodes_[k]) : remade(nodes_[k], args, rebuilt);
    }
    return done.back();
  }

  // The same, but a call in tail position may be replaced by another expression than elsewhere: `called(k, is_last)`. Also
  // returns the number of nodes that were made anew.
  template <class Called>
  std::pair<nb::object, int64_t> with_tails(Called called, nb::handle rebuilt) const {
    const size_t count = nodes_.size();
    // Whether a node is a call or has one below it; and where it stands, as bits: in tail position (2), elsewhere (1).
    std::vector<char> calls(count, 0), wanted(count, 0);
    for (size_t k = 0; k < count; ++k) {
      calls[k] = op(k) == Op::Call || std::ranges::any_of(operands(k), [&](uint32_t part) { return calls[part] != 0; });
    }
    wanted.back() = 2;
    for (size_t k = count; k-- > 0;) {  // users before operands
      if (!calls[k]) continue;
      for (size_t n = 0; n < operands(k).size(); ++n) {
        char& part = wanted[operands(k)[n]];
        part = static_cast<char>(part | (is_tail(k, n) ? wanted[k] : static_cast<char>(wanted[k] != 0)));
      }
    }
    std::vector<std::array<nb::object, 2>> done(count);
    std::vector<PyObject*> args;
    int64_t made = 0;
    for (size_t k = 0; k < count; ++k) {
      for (const bool is_last : {false, true}) {
        nb::object& own = done[k][is_last];
        if (!(wanted[k] & (is_last ? 2 : 1))) continue;
        if (!calls[k]) {
          own = nb::borrow(nodes_[k]);
        } else if (op(k) == Op::Call) {
          own = called(k, is_last);
        } else {
          args.clear();
          for (size_t n = 0; n < operands(k).size(); ++n) args.push_back(done[operands(k)[n]][is_last && is_tail(k, n)].ptr());
          own = remade(nodes_[k], args, rebuilt);
          ++made;
        }
      }
    }
    return {done.back()[1], made};
  }

  // Sums and products that are at most `ExprNode::kMostPositions`.
  static int64_t plus(int64_t one, int64_t other) { return one > kMost - other ? kMost : one + other; }
  static int64_t times(int64_t one, int64_t other) { return other > 0 && one > kMost / other ? kMost : one * other; }

  // Whether the id of a node is among `ids`.
  static bool holds(nb::handle ids, PyObject* node) {
    const nb::object id = nb::steal(PyLong_FromVoidPtr(node));
    const int found = PySequence_Contains(ids.ptr(), id.ptr());
    if (found < 0) throw nb::python_error();
    return found != 0;
  }

 private:
  static constexpr int64_t kMost = ExprNode::kMostPositions;

  uint32_t last() const { return static_cast<uint32_t>(nodes_.size() - 1); }
  // Whether the operand `n` of a node in tail position is in tail position.
  bool is_tail(size_t k, size_t n) const { return op(k) == Op::Union || (op(k) == Op::Concat && n + 1 == operands(k).size()); }

  int64_t measured() const {
    std::vector<int64_t> sizes(nodes_.size());
    for (size_t k = 0; k < nodes_.size(); ++k) {
      int64_t total = std::max<int64_t>(rule_nodes::at(nodes_[k]).size, 1);
      if (rule_nodes::is_composed(nodes_[k])) {
        total = 0;
        for (const uint32_t part : operands(k)) total = plus(total, sizes[part]);
        if (op(k) == Op::Repeat) total = times(total, rule_nodes::copies_of(nodes_[k]));
      }
      sizes[k] = total;
    }
    return sizes.back();
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
  std::vector<uint32_t> operands_, begins_;  // of all nodes, places of operands; where those of each node begin
  int64_t size_ = 0;
};

}  // namespace tokenfst
