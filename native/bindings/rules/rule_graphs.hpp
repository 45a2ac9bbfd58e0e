// Least fixed points over the rules of a grammar, and searches of graphs of rules. Terms: rule_bodies.hpp.
//
// Invariant: the results are those of tests/reference/grammars/rule_graphs.py. Cost: linear in nodes and edges.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/rules/components.hpp"
#include "bindings/rules/rule_bodies.hpp"

namespace tokenfst {

// The nodes that have a word, or the empty word, as the least solution of the equations of their operators: see `graph.least_true`.
class LeastTrue {
 public:
  // `leaf(node)`: whether the property holds for a node that is neither plain nor composed. `is_nullable`: whether the property
  // is to have the empty word; else it is to have a word.
  LeastTrue(nb::handle leaf, bool is_nullable) : leaf_(leaf), is_nullable_(is_nullable) {}

  // The ids of all nodes with the property in these bodies, as a frozenset. `bodies`: the RuleBody of each rule. To be called once.
  nb::object of(nb::dict bodies) {
    size_t rules = 0;
    for (auto [name, body] : bodies) numbers_[name] = rules++;
    callers_.resize(rules);
    is_known_.resize(rules, false);
    size_t rule = 0;
    for (auto [name, body] : bodies) {
      const RuleBody& own = nb::cast<const RuleBody&>(body);
      for (PyObject* node : own.outer()) add(node);
      const size_t root = place_.find(own.body());
      roots_[root].push_back(rule);
      if (holds_[root]) {
        is_known_[rule] = true;
        ready_.insert(ready_.end(), callers_[rule].begin(), callers_[rule].end());
      }
      ++rule;
    }
    spread();
    nb::object found = nb::steal(PyFrozenSet_New(nullptr));
    place_.for_each([&](const void* node, uint32_t place) {
      // A frozen set that nobody else has may still be filled.
      const nb::object id = nb::steal(PyLong_FromVoidPtr(const_cast<void*>(node)));
      if (holds_[place] && PySet_Add(found.ptr(), id.ptr()) < 0) throw nb::python_error();
    });
    return found;
  }

 private:
  size_t vertex(bool holds) {
    holds_.push_back(holds);
    missing_.push_back(0);
    users_.emplace_back();
    return holds_.size() - 1;
  }

  // Adds a node whose operands have been added. If these decide it already, it is set at once; otherwise it waits for
  // `missing_` more of them.
  void add(PyObject* node) {
    if (!place_.add(node, static_cast<uint32_t>(holds_.size()))) return;
    const size_t own = vertex(false);
    const Op op = rule_nodes::op_of(node);
    if (op == Op::Call) {
      PyObject* const number = PyDict_GetItemWithError(numbers_.ptr(), rule_nodes::at(node).value);
      if (!number && PyErr_Occurred()) throw nb::python_error();
      if (!number) return;
      const size_t rule = nb::cast<size_t>(nb::handle(number));
      holds_[own] = is_known_[rule];
      callers_[rule].push_back(own);
    } else if (!rule_nodes::is_composed(node)) {
      const ExprNode& fields = rule_nodes::at(node);
      holds_[own] = fields.size != 0 ? !is_nullable_ || fields.nullable : nb::cast<bool>(leaf_(nb::handle(node)));
    } else if (op == Op::Unordered) {
      add_unordered(node, own);
    } else {
      add_composed(node, own, op);
    }
  }

  void add_composed(PyObject* node, size_t own, Op op) {
    std::vector<size_t> unmet;
    const Py_ssize_t count = rule_nodes::count_of(node);
    for (Py_ssize_t k = 0; k < count; ++k) {
      const size_t part = place_.find(rule_nodes::arg_of(node, k));
      if (!holds_[part]) unmet.push_back(part);
    }
    holds_[own] = unmet.empty() || (op == Op::Union && static_cast<Py_ssize_t>(unmet.size()) < count) ||
                  (op == Op::Repeat && rule_nodes::bounds_of(node).first == 0);
    if (holds_[own]) return;
    missing_[own] = op == Op::Concat ? static_cast<int64_t>(unmet.size()) : 1;
    for (size_t part : unmet) users_[part].push_back(own);
  }

  // Members in any order have the property if all required members and enough members in all have it, and the separator, if
  // there are two or more. A member that may be repeated counts any number of times.
  void add_unordered(PyObject* node, size_t own) {
    const nb::handle value = rule_nodes::at(node).value;
    const auto low = nb::cast<int64_t>(value.attr("low")), required = nb::cast<int64_t>(value.attr("required"));
    const auto repeats = nb::cast<int64_t>(value.attr("repeats"));
    std::vector<size_t> members;
    for (Py_ssize_t k = 1, count = rule_nodes::count_of(node); k < count; ++k) members.push_back(place_.find(rule_nodes::arg_of(node, k)));
    const size_t again = repeats != 0 ? members.back() : 0;
    if (repeats != 0) members.pop_back();
    std::vector<size_t> unmet;
    for (size_t k = 0; k < static_cast<size_t>(required); ++k) {
      if (!holds_[members[k]]) unmet.push_back(members[k]);
    }
    const size_t separator = place_.find(rule_nodes::arg_of(node, 0));
    if (low > 1 && !holds_[separator]) unmet.push_back(separator);
    const int64_t some = low - std::ranges::count_if(members, [&](size_t part) { return holds_[part]; });
    const bool is_enough = some <= 0 || (repeats == 1 && holds_[again]);
    holds_[own] = low == 0 || (is_enough && unmet.empty());
    if (holds_[own]) return;
    missing_[own] = static_cast<int64_t>(unmet.size()) + (is_enough ? 0 : 1);
    for (size_t part : unmet) users_[part].push_back(own);
    if (is_enough) return;
    const size_t several = vertex(false), either = vertex(false);  // enough members have it; several, or the repeated member has it
    missing_[several] = some;
    for (size_t part : members) {
      if (!holds_[part]) users_[part].push_back(several);
    }
    missing_[either] = 1;
    users_[several].push_back(either);
    if (repeats == 1) users_[again].push_back(either);
    users_[either].push_back(own);
  }

  // Propagates the property from the nodes in `ready_` to the nodes that wait for them.
  void spread() {
    while (!ready_.empty()) {
      const size_t place = ready_.back();
      ready_.pop_back();
      if (holds_[place]) continue;
      holds_[place] = true;
      for (size_t user : users_[place]) {
        if (--missing_[user] == 0) ready_.push_back(user);
      }
      const auto root = roots_.find(place);
      if (root == roots_.end()) continue;
      for (size_t rule : root->second) ready_.insert(ready_.end(), callers_[rule].begin(), callers_[rule].end());
    }
  }

  nb::handle leaf_;
  bool is_nullable_;
  nb::dict numbers_;  // of the rules, by name
  std::vector<std::vector<size_t>> callers_;
  std::vector<bool> is_known_;  // of a rule: its body has the property
  PointerPlaces place_;
  std::unordered_map<size_t, std::vector<size_t>> roots_;  // of a body, its rules
  std::vector<bool> holds_;
  std::vector<int64_t> missing_;
  std::vector<std::vector<size_t>> users_;
  std::vector<size_t> ready_;
};

// The strongly connected components of a graph, in reverse topological order. `graph`: by vertex, the vertices that its edges
// lead to; those that are no keys are ignored.
inline nb::list components(nb::dict graph) {
  nb::dict numbers;
  std::vector<nb::handle> names;
  Targets targets;
  for (auto [name, ends] : graph) {
    numbers[name] = names.size();
    names.push_back(name);
  }
  for (auto [name, ends] : graph) {
    std::vector<uint32_t>& own = targets.emplace_back();
    for (nb::handle end : ends) {
      PyObject* const number = PyDict_GetItemWithError(numbers.ptr(), end.ptr());
      if (!number && PyErr_Occurred()) throw nb::python_error();
      if (number) own.push_back(nb::cast<uint32_t>(nb::handle(number)));
    }
  }
  nb::list found;
  for (const std::vector<uint32_t>& each : strong_components(targets)) {
    nb::list part;
    for (const uint32_t vertex : each) part.append(names[vertex]);
    found.append(part);
  }
  return found;
}

// The RuleBody of each rule, by name. `known`: those that were made before, by the ids of their expressions; new ones are added.
inline nb::dict rule_bodies(nb::dict rules, nb::dict known) {
  nb::dict found;
  for (auto [name, body] : rules) {
    const nb::object id = nb::steal(PyLong_FromVoidPtr(body.ptr()));
    if (!known.contains(id)) known[id] = nb::cast(RuleBody(nb::borrow(body)));
    found[name] = known[id];
  }
  return found;
}

// The first rule that has a call where none may stand, or a call of a rule that is not in `bodies`, or more than `most`
// positions; None if there is no such rule.
inline nb::object first_fault(nb::dict bodies, int64_t most) {
  for (auto [name, body] : bodies) {
    const RuleBody& own = nb::cast<const RuleBody&>(body);
    if (!own.calls_only(bodies) || own.size() > most) return nb::borrow(name);
  }
  return nb::none();
}

// The rules that a graph leads to from a start, in depth-first order.
inline nb::list reachable(nb::dict graph, nb::handle start) {
  nb::dict found;
  std::vector<nb::object> stack{nb::borrow(start)};
  while (!stack.empty()) {
    const nb::object name = std::move(stack.back());
    stack.pop_back();
    if (found.contains(name)) continue;
    found[name] = nb::none();
    const auto ends = nb::cast<nb::list>(nb::object(graph[name]));
    for (size_t k = ends.size(); k-- > 0;) stack.push_back(ends[k]);
  }
  return nb::list(found);
}

// The ids of nodes that are known to have a word because the rules have one: the leaves of `bodies` that are among `alive`, and
// the variables below `roots`, the expressions that rules became. Not included: plain nodes, which all have a word, and what is
// inside of a leaf.
inline nb::set with_words(nb::dict bodies, nb::list roots, nb::handle alive) {
  nb::set found;
  std::vector<PyObject*> leaves, given;
  const auto add = [&](PyObject* node) { found.add(nb::steal(PyLong_FromVoidPtr(node))); };
  for (auto [name, body] : bodies) {
    for (PyObject* node : nb::cast<const RuleBody&>(body).outer()) {
      if (rule_nodes::at(node).size != 0 || rule_nodes::may_call(rule_nodes::op_of(node))) continue;
      if (RuleBody::holds(alive, node)) add(node);
      if (rule_nodes::count_of(node) > 0) leaves.push_back(node);
    }
  }
  PointerPlaces inside;
  for (PyObject* node : rule_nodes::below(leaves, [](PyObject*) { return true; })) inside.add(node, 0);
  const auto is_inside = [&](PyObject* node) { return inside.find(node) != PointerPlaces::kNone; };
  for (nb::handle root : roots) given.push_back(root.ptr());
  for (PyObject* node : rule_nodes::below(given, [&](PyObject* each) { return rule_nodes::at(each).size == 0 && !is_inside(each); })) {
    if (rule_nodes::op_of(node) == Op::Variable && !is_inside(node)) add(node);
  }
  return found;
}

inline void bind_rule_graphs(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<RuleBody>(m, "RuleBody")
      .def(nb::init<nb::object>(), "body"_a)
      .def("nodes", &RuleBody::nodes)
      .def_prop_ro("length", &RuleBody::length)
      .def("leaves", &RuleBody::leaves)
      .def("calls_only", &RuleBody::calls_only, "rules"_a)
      .def_prop_ro("size", &RuleBody::size)
      .def("calls", &RuleBody::calls)
      .def("left_edge", &RuleBody::left_edge, "empty"_a);
  m.def(
      "least_true", [](nb::dict bodies, nb::handle leaf, bool is_nullable) { return LeastTrue(leaf, is_nullable).of(std::move(bodies)); },
      "bodies"_a, "leaf"_a, "is_nullable"_a);
  m.def("components", &components, "graph"_a);
  m.def("rule_bodies", &rule_bodies, "rules"_a, "known"_a);
  m.def("first_fault", &first_fault, "bodies"_a, "most"_a);
  m.def(
      "are_within",
      [](nb::dict bodies, nb::handle ids) {
        return std::ranges::all_of(nb::cast<nb::list>(bodies.values()),
                                   [&](nb::handle body) { return nb::cast<const RuleBody&>(body).is_within(ids); });
      },
      "bodies"_a, "ids"_a, "Whether the ids of all nodes of the bodies are among `ids`.");
  m.def(
      "operators",
      [](nb::dict bodies) {
        int64_t found = 0;
        for (auto [name, body] : bodies) found |= nb::cast<const RuleBody&>(body).ops();
        return found;
      },
      "bodies"_a, "The operators of all nodes: bit k is set if some node has operator k.");
  m.def(
      "call_graph",
      [](nb::dict bodies) {
        nb::dict found;
        for (auto [name, body] : bodies) found[name] = nb::cast<const RuleBody&>(body).calls();
        return found;
      },
      "bodies"_a, "The rules that each rule calls.");
  m.def(
      "left_edges",
      [](nb::dict bodies, nb::handle empty) {
        nb::dict found;
        for (auto [name, body] : bodies) found[name] = nb::cast<const RuleBody&>(body).left_edge(empty);
        return found;
      },
      "bodies"_a, "empty"_a, "The rules that each rule can call before it has read a byte.");
  m.def("reachable", &reachable, "graph"_a, "start"_a);
  m.def("with_words", &with_words, "bodies"_a, "roots"_a, "alive"_a);
  m.def(
      "has_calls",
      [](nb::list roots) {
        std::vector<PyObject*> given;
        for (nb::handle root : roots) given.push_back(root.ptr());
        return std::ranges::any_of(rule_nodes::below(given, [](PyObject* node) { return rule_nodes::at(node).size == 0; }),
                                   [](PyObject* node) { return rule_nodes::op_of(node) == Op::Call; });
      },
      "roots"_a, "Whether a root, or a node below it that is not below a plain node, is a call.");
  m.def(
      "nodes_below",
      [](nb::list roots, bool is_whole) {
        std::vector<PyObject*> given;
        for (nb::handle root : roots) {
          node_of(root);
          given.push_back(root.ptr());
        }
        return rule_nodes::list_of(rule_nodes::below(given, [&](PyObject* node) { return is_whole || rule_nodes::at(node).size == 0; }));
      },
      "roots"_a, "is_whole"_a,
      "The roots and the nodes below them, each once, operands first. Unless `is_whole`, nodes below plain nodes are left out.");
}

}  // namespace tokenfst
