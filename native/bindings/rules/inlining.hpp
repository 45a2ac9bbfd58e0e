// Replacement of calls by expressions in rules without left recursion: see tokenfst.automata.rules.inlining and pushdown.
//
// Terms. A *family* is a set of rules that call each other in tail position: a strongly connected component of the graph of
// tail calls that has a cycle. The rules of a family become the variables of one *system* of regular equations; any other rule
// is a system by itself. A call is *hard* if it is not a tail call inside a family: it is replaced by the callee's expression,
// or stays a call. The *head* of a component of the graph of hard calls is the rule that is entered first.
//
// Rules are numbers here. A grammar of 30 rules has some hundred calls, and each pass visits all of them.
//
// Invariant: the results, and their orders, are those of tests/reference/grammars/rule_inlining.py. Cost: linear in the rules,
// for each level of nested heads, and in a body each time that its expression is made.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "bindings/rules/components.hpp"
#include "bindings/rules/rule_bodies.hpp"

namespace tokenfst {

class Inlining {
 public:
  // `bodies`: by name, the `RuleBody` of each rule, with all rules that they call. `start`: the rule whose expression is
  // wanted. Raises KeyError if a rule is missing.
  Inlining(nb::dict bodies, nb::handle start) : bodies_(std::move(bodies)) {
    for (auto [name, body] : bodies_) {
      numbers_[name] = rules_.size();
      rules_.push_back({.name = nb::borrow(name), .body = &nb::cast<const RuleBody&>(body)});
    }
    Targets tails(rules_.size());
    for (size_t rule = 0; rule < rules_.size(); ++rule) {
      Rule& own = rules_[rule];
      own.callees.resize(own.body->length(), 0);
      for (size_t k = 0; k < own.body->length(); ++k) {
        if (own.body->op(k) == Op::Call) own.callees[k] = number_of(rule_nodes::at(own.body->outer()[k]).value);
      }
      for (const auto& [k, is_last] : own.body->placed_calls()) {
        own.calls.emplace_back(own.callees[k], is_last);
        if (is_last) tails[rule].push_back(own.callees[k]);
      }
    }
    for (const std::vector<uint32_t>& part : strong_components(tails)) {
      if (!has_cycle(tails, part)) continue;
      for (const uint32_t rule : part) rules_[rule].family = static_cast<int32_t>(families_.size());
      families_.push_back(part);
    }
    start_ = number_of(start);
    find_hard();
  }

  // For each rule that the start reaches by hard calls, the rules that its system calls by hard calls.
  nb::dict hard() const {
    nb::dict found;
    for (const uint32_t rule : order_) {
      nb::list names;
      for (const uint32_t callee : hard_of(rule)) names.append(rules_[callee].name);
      found[rules_[rule].name] = names;
    }
    return found;
  }

  // For the same rules, the heads of the nested components that contain the rule, outermost first. `charge(count, name)` counts
  // `count` new nodes against the budget of nodes, and checks that of time; it may raise.
  nb::dict heads(nb::handle charge) const {
    const Targets around = heads_around(charge);
    nb::dict found;
    for (const uint32_t rule : order_) {
      nb::list names;
      for (const uint32_t head : around[rule]) names.append(rules_[head].name);
      found[rules_[rule].name] = nb::tuple(names);
    }
    return found;
  }

  // The expressions of a rule and of the other rules of its system. `hard`: the expressions that replace its hard calls.
  // `rebuilt`: see RuleBody::with.
  nb::dict expressions(nb::handle entry, nb::dict hard, nb::handle rebuilt, nb::handle charge) const {
    std::vector<nb::object> done(rules_.size());
    const auto resolved = [&](uint32_t callee) { return nb::object(hard[rules_[callee].name]); };
    nb::dict found;
    for (const uint32_t rule : write(number_of(entry), resolved, done, rebuilt, charge)) found[rules_[rule].name] = done[rule];
    return found;
  }

  // The expressions of the start and of the rules that stay called: heads, and rules whose replacement would make expressions
  // too large. A rule may grow to `large` positions, or to twice its own body if that is more; while it would be larger, its
  // largest callees stay called. If a rule calls another one twice in a row, the callee stays called where `doublings` such
  // calls are on one path.
  nb::dict called(int64_t large, size_t doublings, nb::handle rebuilt, nb::handle charge) const {
    std::vector<bool> kept(rules_.size(), false);
    kept[start_] = true;
    const Targets around = heads_around(charge);
    for (const uint32_t rule : order_) kept[rule] = kept[rule] || (!around[rule].empty() && around[rule].back() == rule);
    keep_doubled(doublings, kept);
    std::vector<nb::object> done(rules_.size()), calls(rules_.size());
    std::vector<int64_t> sizes(rules_.size(), kUnknown);
    for (const uint32_t rule : callees_first(kept)) {
      if (done[rule].is_valid()) continue;
      keep_large(group_of(rule), large, sizes, kept);
      const auto resolved = [&](uint32_t callee) {
        if (!kept[callee]) return made_before(done[callee]);
        if (!calls[callee].is_valid()) calls[callee] = nodes::call(rules_[callee].name);
        return calls[callee];
      };
      write(rule, resolved, done, rebuilt, charge);
    }
    nb::dict found;
    for (const uint32_t rule : order_) {
      if (kept[rule]) found[rules_[rule].name] = done[rule];
    }
    return found;
  }

 private:
  struct Rule {
    nb::object name;
    const RuleBody* body;
    int32_t family = -1;  // -1: it is in none
    size_t system = 0;  // the index of its hard calls in `hard_`; the same for all rules of a family
    std::vector<uint32_t> callees = {};  // by place in the body, the rule that a call names
    std::vector<std::pair<uint32_t, bool>> calls = {};  // the callee of each call, and whether the call is in tail position
  };

  uint32_t number_of(nb::handle name) const {
    PyObject* const number = PyDict_GetItemWithError(numbers_.ptr(), name.ptr());
    if (!number && PyErr_Occurred()) throw nb::python_error();
    if (!number) throw nb::key_error("there is no such rule");
    return nb::cast<uint32_t>(nb::handle(number));
  }
  std::vector<uint32_t> group_of(uint32_t rule) const {
    const int32_t family = rules_[rule].family;
    return family < 0 ? std::vector<uint32_t>{rule} : families_[static_cast<size_t>(family)];
  }

  const std::vector<uint32_t>& hard_of(uint32_t rule) const { return hard_[rules_[rule].system]; }
  static nb::object made_before(const nb::object& found) {
    if (!found.is_valid()) throw nb::key_error("a rule is called before it has an expression");
    return found;
  }

  void find_hard() {
    hard_.resize(families_.size());
    std::vector<bool> is_found(rules_.size(), false), is_written(families_.size(), false);
    std::vector<uint32_t> round(rules_.size(), UINT32_MAX);  // the last rule whose calls include this one
    std::vector<uint32_t> found{start_};
    for (size_t next = 0; next < found.size(); ++next) {
      const uint32_t rule = found[next];
      if (is_found[rule]) continue;
      is_found[rule] = true;
      order_.push_back(rule);
      const int32_t family = rules_[rule].family;
      if (family < 0) {
        rules_[rule].system = hard_.size();
        hard_.emplace_back();
      } else {
        rules_[rule].system = static_cast<size_t>(family);
        if (is_written[static_cast<size_t>(family)]) continue;
        is_written[static_cast<size_t>(family)] = true;
      }
      std::vector<uint32_t>& hard = hard_[rules_[rule].system];
      for (const uint32_t each : group_of(rule)) {
        for (const auto& [callee, is_last] : rules_[each].calls) {
          if ((is_last && family >= 0 && rules_[callee].family == family) || round[callee] == rule) continue;
          round[callee] = rule;
          hard.push_back(callee);
        }
      }
      found.insert(found.end(), hard.begin(), hard.end());
    }
  }

  // The rules in depth-first order from the start.
  std::vector<uint32_t> depth_first() const {
    std::vector<bool> is_found(rules_.size(), false);
    std::vector<uint32_t> found, stack{start_};
    while (!stack.empty()) {
      const uint32_t rule = stack.back();
      stack.pop_back();
      if (is_found[rule]) continue;
      is_found[rule] = true;
      found.push_back(rule);
      stack.insert(stack.end(), hard_of(rule).rbegin(), hard_of(rule).rend());
    }
    return found;
  }

  // The subgraph of hard calls between these rules; a vertex is a rule's index in `vertices`. `is_kept`: calls of these rules
  // are left out. `place`: scratch memory, -1 for each rule before and after.
  Targets among(const std::vector<uint32_t>& vertices, const std::vector<bool>& is_kept, std::vector<int32_t>& place) const {
    for (size_t k = 0; k < vertices.size(); ++k) place[vertices[k]] = static_cast<int32_t>(k);
    Targets found;
    for (const uint32_t vertex : vertices) {
      std::vector<uint32_t>& own = found.emplace_back();
      for (const uint32_t callee : hard_of(vertex)) {
        if (place[callee] >= 0 && !is_kept[callee]) own.push_back(static_cast<uint32_t>(place[callee]));
      }
    }
    for (const uint32_t vertex : vertices) place[vertex] = -1;
    return found;
  }

  // For each rule, the heads of the components that contain it (a weak topological order, Bourdoncle 1993): see
  // `graph.nested_heads`.
  Targets heads_around(nb::handle charge) const {
    std::vector<size_t> order(rules_.size(), 0);
    const std::vector<uint32_t> reached = depth_first();
    for (size_t k = 0; k < reached.size(); ++k) order[reached[k]] = k;
    const std::vector<bool> none(rules_.size(), false);
    std::vector<int32_t> place(rules_.size(), -1);
    Targets around(rules_.size());
    std::vector<std::vector<uint32_t>> work{order_};
    while (!work.empty()) {
      const std::vector<uint32_t> vertices = std::move(work.back());
      work.pop_back();
      const Targets graph = among(vertices, none, place);
      for (std::vector<uint32_t> part : strong_components(graph)) {
        if (!has_cycle(graph, part)) continue;
        for (uint32_t& each : part) each = vertices[each];
        const uint32_t head = *std::ranges::min_element(part, {}, [&](uint32_t rule) { return order[rule]; });
        for (const uint32_t rule : part) around[rule].push_back(head);
        charge(0, rules_[head].name);
        std::erase(part, head);
        work.push_back(std::move(part));
      }
    }
    return around;
  }

  // The rules in an order in which the callees of hard calls come before their callers, except for callees that stay called
  // (`kept`).
  std::vector<uint32_t> callees_first(const std::vector<bool>& kept) const {
    std::vector<uint32_t> found;
    std::vector<int32_t> place(rules_.size(), -1);
    for (const std::vector<uint32_t>& part : strong_components(among(order_, kept, place))) {
      for (const uint32_t each : part) found.push_back(order_[each]);
    }
    return found;
  }

  // The rules that a body calls twice in a row, in ascending order. Either call may be one of the alternatives of a union.
  static std::vector<uint32_t> doubled(const Rule& rule) {
    const RuleBody& body = *rule.body;
    std::vector<uint32_t> found, before, after;
    for (size_t k = 0; k < body.length(); ++k) {
      if (body.op(k) != Op::Concat) continue;
      before.clear();
      for (const uint32_t part : body.operands(k)) {
        after.clear();
        if (body.op(part) == Op::Call) after.push_back(rule.callees[part]);
        if (body.op(part) == Op::Union) {
          for (const uint32_t way : body.operands(part)) {
            if (body.op(way) == Op::Call) after.push_back(rule.callees[way]);
          }
        }
        std::ranges::sort(after);
        std::ranges::set_intersection(before, after, std::back_inserter(found));
        std::swap(before, after);
      }
    }
    std::ranges::sort(found);
    found.erase(std::ranges::unique(found).begin(), found.end());
    return found;
  }

  // Sets `kept` for callees that occur twice in a row in a rule, if some path of calls has at least `doublings` such calls.
  void keep_doubled(size_t doublings, std::vector<bool>& kept) const {
    Targets twice(rules_.size());
    for (const uint32_t rule : order_) {
      if (rules_[rule].family < 0) twice[rule] = doubled(rules_[rule]);
    }
    if (std::ranges::all_of(twice, &std::vector<uint32_t>::empty)) return;
    const std::vector<uint32_t> order = callees_first(kept);
    const auto doubles = [&](uint32_t rule, uint32_t callee) { return size_t{std::ranges::binary_search(twice[rule], callee)}; };
    std::vector<size_t> below(rules_.size(), 0), above(rules_.size(), 0);
    for (const uint32_t rule : order) {
      for (const uint32_t callee : hard_of(rule)) {
        if (!kept[callee]) below[rule] = std::max(below[rule], below[callee] + doubles(rule, callee));
      }
    }
    std::vector<uint32_t> found;
    for (size_t k = order.size(); k-- > 0;) {
      const uint32_t rule = order[k];
      for (const uint32_t callee : hard_of(rule)) {
        if (kept[callee]) continue;
        const size_t more = doubles(rule, callee);
        above[callee] = std::max(above[callee], above[rule] + more);
        if (more > 0 && above[rule] + 1 + below[callee] >= doublings && rules_[callee].family < 0) found.push_back(callee);
      }
    }
    for (const uint32_t rule : found) kept[rule] = true;
  }

  // Sets `kept` for callees that must stay called so that the rules of one system stay small, and sets the sizes of these
  // rules. An inlined family counts once, however often its variables occur, because all occurrences share its bodies.
  void keep_large(const std::vector<uint32_t>& group, int64_t large, std::vector<int64_t>& sizes, std::vector<bool>& kept) const {
    struct Grown {
      int64_t size = 0;
      std::vector<uint32_t> callees = {};
    };
    int64_t total = 0;
    for (const uint32_t rule : group) total = RuleBody::plus(total, rules_[rule].body->size());
    const int64_t allowed = std::max(large, RuleBody::times(total, 2));
    std::vector<Grown> grown;
    std::map<uint32_t, size_t> places;  // in `grown`, of a callee, or of the first rule of its family
    for (const uint32_t rule : group) {
      for (const auto& [callee, count] : counted(rules_[rule])) {
        if (sizes[callee] == kUnknown || kept[callee]) continue;
        const bool is_shared = rules_[callee].family >= 0;
        const auto [place, is_new] = places.try_emplace(group_of(callee)[0], grown.size());
        if (is_new) grown.emplace_back();
        Grown& own = grown[place->second];
        own.size = is_shared ? sizes[callee] : RuleBody::plus(own.size, RuleBody::times(sizes[callee] - 1, count));
        own.callees.push_back(callee);
      }
    }
    std::ranges::stable_sort(grown, std::ranges::greater(), &Grown::size);
    std::vector<int64_t> left(grown.size() + 1, total);  // the size, by how many of the largest callees stay calls
    for (size_t k = grown.size(); k-- > 0;) left[k] = RuleBody::plus(left[k + 1], grown[k].size);
    size_t stay = 0;
    for (; stay < grown.size() && left[stay] > allowed; ++stay) {
      for (const uint32_t callee : grown[stay].callees) kept[callee] = true;
    }
    for (const uint32_t rule : group) sizes[rule] = left[stay];
  }
  // Each callee of a rule, in the order of the calls from the last to the first, and how often it is called with counted
  // repetitions expanded.
  static std::vector<std::pair<uint32_t, int64_t>> counted(const Rule& rule) {
    const std::vector<int64_t> counts = rule.body->counts();
    std::vector<std::pair<uint32_t, int64_t>> found;
    std::map<uint32_t, size_t> places;
    for (size_t k = counts.size(); k-- > 0;) {
      if (rule.body->op(k) != Op::Call) continue;
      const auto [place, is_new] = places.try_emplace(rule.callees[k], found.size());
      if (is_new) found.emplace_back(rule.callees[k], 0);
      int64_t& count = found[place->second].second;
      count = RuleBody::plus(count, counts[k]);
    }
    return found;
  }

  // Writes the expressions of a rule and of the other rules of its system into `done`; returns these rules. `hard(callee)`: the
  // expression for a hard call.
  template <class Hard>
  std::vector<uint32_t> write(uint32_t entry, Hard hard, std::vector<nb::object>& done, nb::handle rebuilt, nb::handle charge) const {
    const std::vector<uint32_t> group = group_of(entry);
    const Rule& first = rules_[entry];
    if (first.family < 0) {
      charge(first.body->length(), first.name);
      done[entry] = named(first.body->with([&](size_t k) { return hard(first.callees[k]); }, rebuilt), first.name);
      return group;
    }
    for (const uint32_t rule : group) done[rule] = nodes::made(Op::Variable, {});
    for (const uint32_t rule : group) {
      const Rule& own = rules_[rule];
      const auto called = [&](size_t k, bool is_last) -> nb::object {
        const uint32_t callee = own.callees[k];
        return is_last && rules_[callee].family == own.family ? done[callee] : hard(callee);
      };
      const auto [body, made] = own.body->with_tails(called, rebuilt);
      charge(made, own.name);
      // The variables of one system name each other, so all are made before their bodies.
      done[rule].attr("finish")(named(body, own.name));
    }
    return group;
  }

  // The expression labelled with its rule, so that an exceeded budget can name it.
  static nb::object named(nb::object expr, nb::handle name) {
    const ExprNode& node = node_of(expr);
    const bool has_source = node.source != Py_None && PyUnicode_GetLength(node.source) > 0;
    return rule_nodes::may_call(static_cast<Op>(node.code)) && !has_source ? nodes::labelled(expr, name) : expr;
  }

  static constexpr int64_t kUnknown = -1;  // a size that has not been computed

  nb::dict bodies_, numbers_;
  std::vector<Rule> rules_;
  std::vector<std::vector<uint32_t>> families_;
  uint32_t start_ = 0;
  Targets hard_;  // by system
  std::vector<uint32_t> order_;  // the rules that the start reaches by hard calls
};

inline void bind_inlining(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Inlining>(m, "Inlining")
      .def(nb::init<nb::dict, nb::handle>(), "bodies"_a, "start"_a)
      .def_prop_ro("hard", &Inlining::hard)
      .def("heads", &Inlining::heads, "charge"_a)
      .def("expressions", &Inlining::expressions, "entry"_a, "hard"_a, "rebuilt"_a, "charge"_a)
      .def("called", &Inlining::called, "large"_a, "doublings"_a, "rebuilt"_a, "charge"_a);
}

}  // namespace tokenfst
