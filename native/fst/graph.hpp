// Searches of a machine's graph: reachable states, strongly connected components, topological order. Linear, and
// without recursion.
//
// A view defines the edges of a state: `view.each(s, f)` calls `f(next, weight)`, `view.degree(s)` is their number, and
// `view.edge(s, k)` one of them. Forward is the machine itself; Backward is its reversal, which has a copy of all arcs.
//
// Functions with a Meter raise BudgetExceeded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "fst/machine.hpp"
#include "fst/meter.hpp"

namespace tokenfst::fst {

template <class S>
struct Forward {
  const Machine<S>& machine;
  Id size() const { return machine.num_states(); }
  Id name(Id s) const { return s; }  // the name of a state in errors
  template <class F>
  void each(Id s, F&& f) const {
    for (const auto& arc : machine.arcs(s)) f(arc.nextstate, arc.weight);
  }
  uint32_t degree(Id s) const { return static_cast<uint32_t>(machine.arcs(s).size()); }
  std::pair<Id, typename S::Weight> edge(Id s, uint32_t at) const {
    const auto& arc = machine.arcs(s)[at];
    return {arc.nextstate, arc.weight};
  }
};

template <class S>
class Backward {
 public:
  using Weight = typename S::Weight;
  Backward(const Machine<S>& machine, Meter& meter) : offsets_(machine.num_states() + 1, 0) {
    const Id n = machine.num_states();
    meter.bytes(machine.memory() + machine.num_arcs() * sizeof(edges_[0]) + offsets_.size() * 4);
    if (machine.num_arcs() > UINT32_MAX) throw BudgetExceeded("arcs", UINT32_MAX, meter.what());
    for (Id s = 0; s < n; ++s) {
      for (const auto& arc : machine.arcs(s)) ++offsets_[arc.nextstate + 1];
    }
    for (Id s = 0; s < n; ++s) offsets_[s + 1] += offsets_[s];
    edges_.resize(machine.num_arcs());
    std::vector<uint32_t> at(offsets_.begin(), offsets_.end() - 1);
    for (Id s = 0; s < n; ++s) {
      for (const auto& arc : machine.arcs(s)) edges_[at[arc.nextstate]++] = {s, arc.weight};
      meter.step();
    }
  }
  Id size() const { return static_cast<Id>(offsets_.size()) - 1; }
  Id name(Id s) const { return s; }
  template <class F>
  void each(Id s, F&& f) const {
    for (uint32_t at = offsets_[s]; at < offsets_[s + 1]; ++at) f(edges_[at].first, edges_[at].second);
  }
  uint32_t degree(Id s) const { return offsets_[s + 1] - offsets_[s]; }
  std::pair<Id, Weight> edge(Id s, uint32_t at) const { return edges_[offsets_[s] + at]; }

 private:
  std::vector<uint32_t> offsets_;
  std::vector<std::pair<Id, Weight>> edges_;
};

// Marks all states that can be reached from the states in `stack`.
template <class View>
std::vector<uint8_t> reached(const View& view, std::vector<Id> stack, Meter& meter) {
  std::vector<uint8_t> seen(view.size(), 0);
  for (Id s : stack) seen[s] = 1;
  while (!stack.empty()) {
    const Id s = stack.back();
    stack.pop_back();
    view.each(s, [&](Id next, auto) {
      if (!seen[next]) {
        seen[next] = 1;
        stack.push_back(next);
      }
    });
    meter.step(1 + view.degree(s));
  }
  return seen;
}

// Marks the states that can be reached from the start.
template <class S>
std::vector<uint8_t> accessible(const Machine<S>& machine, Meter& meter) {
  std::vector<Id> from;
  if (machine.start() != kNone) from.push_back(machine.start());
  return reached(Forward<S>{machine}, std::move(from), meter);
}

// Marks the states from which a final state can be reached. A sweep over the states marks each state that has an arc to a
// marked one. After two sweeps, in opposite directions, few states are left, and only their arcs are reversed. Linear.
template <class S>
std::vector<uint8_t> coaccessible(const Machine<S>& machine, Meter& meter) {
  const Id n = machine.num_states();
  meter.bytes(machine.memory() + static_cast<uint64_t>(n) * (1 + sizeof(Id)));
  std::vector<uint8_t> seen(n, 0);
  std::vector<Id> open;
  for (Id s = n; s-- > 0;) {
    if (machine.is_final(s)) seen[s] = 1;
    else open.push_back(s);
  }
  const auto marked = [&](const auto& arc) { return seen[arc.nextstate] != 0; };
  for (int sweep = 0; sweep < 2; ++sweep) {
    size_t left = 0;
    for (Id s : open) {
      const auto arcs = machine.arcs(s);
      if (std::any_of(arcs.begin(), arcs.end(), marked)) seen[s] = 1;
      else open[left++] = s;
      meter.step(1 + arcs.size());
    }
    if (left == open.size()) return seen;  // nothing leads on from them
    open.resize(left);
    std::reverse(open.begin(), open.end());
  }
  std::vector<std::pair<Id, Id>> turned;  // arcs between states that are left, by target
  std::vector<Id> waiting;
  for (Id s : open) {
    bool leads = false;
    for (const auto& arc : machine.arcs(s)) {
      if (marked(arc)) leads = true;
      else turned.emplace_back(arc.nextstate, s);
    }
    if (leads) waiting.push_back(s);
    meter.step(1 + machine.arcs(s).size());
    meter.bytes(machine.memory() + turned.capacity() * sizeof(turned[0]));
  }
  for (Id s : waiting) seen[s] = 1;
  std::vector<uint64_t> begin(static_cast<size_t>(n) + 1, 0);
  for (const auto& [target, source] : turned) ++begin[target + 1];
  for (Id s = 0; s < n; ++s) begin[s + 1] += begin[s];
  std::vector<Id> sources(turned.size());
  std::vector<uint64_t> at(begin.begin(), begin.end() - 1);
  for (const auto& [target, source] : turned) sources[at[target]++] = source;
  while (!waiting.empty()) {
    const Id s = waiting.back();
    waiting.pop_back();
    for (uint64_t k = begin[s]; k < begin[s + 1]; ++k) {
      if (!std::exchange(seen[sources[k]], 1)) waiting.push_back(sources[k]);
    }
    meter.step(1 + begin[s + 1] - begin[s]);
  }
  return seen;
}

// Strongly connected components, numbered such that an edge leads to the same number or a smaller one. `of`: the component
// of each state; `order`: the states sorted by component; `is_cyclic`: whether some edge stays inside a component.
struct Components {
  std::vector<Id> of, order;
  std::vector<uint32_t> begin;  // the first index of each component in `order`, and the end
  std::vector<uint8_t> is_cyclic;
  Id size() const { return static_cast<Id>(is_cyclic.size()); }
  bool acyclic() const { return std::find(is_cyclic.begin(), is_cyclic.end(), 1) == is_cyclic.end(); }
  std::pair<const Id*, const Id*> states(Id component) const {
    return {order.data() + begin[component], order.data() + begin[component + 1]};
  }
};

// The components of a graph (Tarjan's algorithm). `first`: the state at which the search begins, or kNone. `keep(s, at)`:
// whether edge number `at` of `s` belongs to the graph.
template <class View, class Keep>
Components components(const View& view, Id first, Keep&& keep, Meter& meter) {
  const Id n = view.size();
  Components found;
  found.of.assign(n, kNone);
  found.order.reserve(n);
  found.begin.push_back(0);
  std::vector<Id> number(n, kNone), low(n), open;
  std::vector<std::pair<Id, uint32_t>> path;
  Id next_number = 0;
  const auto enter = [&](Id s) {
    number[s] = low[s] = next_number++;
    open.push_back(s);
    path.emplace_back(s, 0);
  };
  for (Id root = first == kNone ? 0 : -1; root < n; ++root) {
    const Id from = root < 0 ? first : root;
    if (number[from] != kNone) continue;
    enter(from);
    while (!path.empty()) {
      meter.step();
      const Id s = path.back().first;
      const uint32_t degree = view.degree(s);
      bool entered = false;
      while (path.back().second < degree) {
        const uint32_t at = path.back().second++;
        if (!keep(s, at)) continue;
        const Id to = view.edge(s, at).first;
        if (number[to] == kNone) {
          enter(to);
          entered = true;
          break;
        }
        if (found.of[to] == kNone) low[s] = std::min(low[s], number[to]);
      }
      if (entered) continue;
      path.pop_back();
      if (!path.empty()) low[path.back().first] = std::min(low[path.back().first], low[s]);
      if (low[s] != number[s]) continue;
      const Id component = found.size();
      Id member;
      do {
        member = open.back();
        open.pop_back();
        found.of[member] = component;
        found.order.push_back(member);
      } while (member != s);
      bool cyclic = found.order.size() - found.begin.back() > 1;
      if (!cyclic) {
        for (uint32_t at = 0; at < degree && !cyclic; ++at) cyclic = keep(s, at) && view.edge(s, at).first == s;
      }
      found.is_cyclic.push_back(cyclic);
      found.begin.push_back(static_cast<uint32_t>(found.order.size()));
    }
  }
  return found;
}

template <class View>
Components components(const View& view, Id first, Meter& meter) {
  return components(view, first, [](Id, uint32_t) { return true; }, meter);
}

// Whether each edge leads to a larger number (with `down`: to a smaller one).
template <class View>
bool edges_go(const View& view, bool down) {
  for (Id s = 0; s < view.size(); ++s) {
    bool fits = true;
    view.each(s, [&](Id next, auto) { fits &= down ? next < s : next > s; });
    if (!fits) return false;
  }
  return true;
}

// The machine in which state s has the number `place[s]`; states with kNone are left out. It has `count` states.
template <class S>
Machine<S> renumbered(const Machine<S>& machine, const std::vector<Id>& place, Id count, Meter& meter) {
  std::vector<Id> origin(count);
  for (Id s = 0; s < machine.num_states(); ++s) {
    if (place[s] != kNone) origin[place[s]] = s;
  }
  Machine<S> out;
  out.reserve(count, machine.num_arcs());
  for (Id t = 0; t < count; ++t) {
    const Id s = origin[t];
    out.add_state(machine.final(s));
    for (auto arc : machine.arcs(s)) {
      arc.nextstate = place[arc.nextstate];
      if (arc.nextstate != kNone) out.add_arc(t, arc);
    }
    meter.step();
  }
  if (machine.start() != kNone) out.set_start(place[machine.start()]);
  return out;
}

// The machine without the arcs of weight Zero, which no path of weight other than Zero takes.
template <class S>
Machine<S> without_zeros(Machine<S> machine) {
  for (Id s = 0; s < machine.num_states(); ++s) {
    const auto arcs = machine.arcs(s);
    const auto end = std::remove_if(arcs.begin(), arcs.end(), [](const auto& arc) { return arc.weight == S::zero(); });
    machine.shrink_arcs(s, static_cast<size_t>(end - arcs.begin()));
  }
  return machine;
}

// For each state, its new number if it is on a path from the start to a final state, else kNone; `count`: how many
// there are.
template <class S>
std::vector<Id> connected_places(const Machine<S>& machine, Id& count, Meter& meter) {
  const auto access = accessible(machine, meter), coaccess = coaccessible(machine, meter);
  std::vector<Id> place(machine.num_states(), kNone);
  count = 0;
  for (Id s = 0; s < machine.num_states(); ++s) {
    if (access[s] && coaccess[s]) place[s] = count++;
  }
  return place;
}

// The machine without the states that are on no path from the start to a final state; the others keep their order.
template <class S>
Machine<S> connect(const Machine<S>& machine, Meter& meter) {
  Id count = 0;
  const std::vector<Id> place = connected_places(machine, count, meter);
  if (count == machine.num_states()) return machine;
  return renumbered(machine, place, count, meter);
}

// The same for a machine that is moved in. It is returned as it is if there are no such states, and changed in place if
// at least half of the arcs stay.
template <class S>
Machine<S> connect(Machine<S>&& machine, Meter& meter) {
  Id count = 0;
  const std::vector<Id> place = connected_places(machine, count, meter);
  if (count == machine.num_states()) return std::move(machine);
  uint64_t arcs = 0;
  for (Id s = 0; s < machine.num_states(); ++s) {
    if (place[s] != kNone) arcs += machine.arcs(s).size();
  }
  if (arcs < machine.num_arcs() / 2) return renumbered(machine, place, count, meter);
  machine.keep_states(place, count);
  return std::move(machine);
}

// The machine with its states in topological order, and `done` = true. If it is cyclic, the machine as it is, and `done` =
// false.
template <class S>
Machine<S> topsort(const Machine<S>& machine, bool& done, Meter& meter) {
  const Components found = components(Forward<S>{machine}, machine.start(), meter);
  done = found.acyclic();
  if (!done) return machine;
  std::vector<Id> place(machine.num_states());
  for (Id s = 0; s < machine.num_states(); ++s) place[s] = found.size() - 1 - found.of[s];
  return renumbered(machine, place, machine.num_states(), meter);
}

}  // namespace tokenfst::fst
