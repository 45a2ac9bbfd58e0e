// Compares two machines: equal, isomorphic (equal up to the numbers of states), or equivalent.
#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

#include "fst_operations/minimize.hpp"

namespace tokenfst::fst {

// Equal: the same states and arcs in the same order, with weights within `delta`.
template <class S>
bool equal(const Machine<S>& one, const Machine<S>& other, double delta) {
  if (one.num_states() != other.num_states() || one.start() != other.start()) return false;
  for (Id s = 0; s < one.num_states(); ++s) {
    const auto a = one.arcs(s), b = other.arcs(s);
    if (a.size() != b.size() || !S::near(one.final(s), other.final(s), delta)) return false;
    for (size_t k = 0; k < a.size(); ++k) {
      if (a[k].ilabel != b[k].ilabel || a[k].olabel != b[k].olabel || a[k].nextstate != b[k].nextstate ||
          !S::near(a[k].weight, b[k].weight, delta))
        return false;
    }
  }
  return true;
}

// Isomorphic: equal up to the numbers of states and the order of arcs. Requires that the arcs of a state differ in
// labels or weight.
template <class S>
bool isomorphic(Machine<S> one, Machine<S> other, double delta, Meter& meter) {
  if (one.num_states() != other.num_states() || one.num_arcs() != other.num_arcs()) return false;
  if (one.start() == kNone || other.start() == kNone) return one.start() == other.start();
  meter.bytes(one.memory() + other.memory() + 3 * one.num_states() * sizeof(Id));  // both are sorted as copies
  const auto key = [delta](const auto& arc) { return std::tuple(arc.ilabel, arc.olabel, S::key(arc.weight, delta)); };
  for (Machine<S>* each : {&one, &other}) {
    for (Id s = 0; s < each->num_states(); ++s) {
      const auto arcs = each->arcs(s);
      sort_stably(arcs, [delta](const auto& arc) { return SortKey(S::key(arc.weight, delta)); });
      sort_arcs(arcs, false);
      for (size_t k = 1; k < arcs.size(); ++k) {
        if (key(arcs[k]) == key(arcs[k - 1]))
          refuse("isomorphic: state " + std::to_string(s) +
                 " has two arcs with the same labels and weight: which one stands for which is not decided here");
      }
      meter.step(1 + arcs.size());
    }
  }
  std::vector<Id> paired(one.num_states(), kNone), back(one.num_states(), kNone), stack = {one.start()};
  paired[one.start()] = other.start();
  back[other.start()] = one.start();
  while (!stack.empty()) {
    const Id s = stack.back(), t = paired[s];
    stack.pop_back();
    const auto a = one.arcs(s), b = other.arcs(t);
    if (a.size() != b.size() || !S::near(one.final(s), other.final(t), delta)) return false;
    for (size_t k = 0; k < a.size(); ++k) {
      if (a[k].ilabel != b[k].ilabel || a[k].olabel != b[k].olabel || !S::near(a[k].weight, b[k].weight, delta)) return false;
      const Id x = a[k].nextstate, y = b[k].nextstate;
      if (paired[x] == kNone && back[y] == kNone) {
        paired[x] = y;
        back[y] = x;
        stack.push_back(x);
      } else if (paired[x] != y) {
        return false;
      }
    }
    meter.step(1 + a.size());
  }
  return true;
}

// Equivalent: both give the same weights to the same words. Deterministic acceptors without epsilons only. Weights are
// pushed to the start, where they are unique; then states that read the same words are merged (Hopcroft and Karp).
// Nearly linear.
template <class S>
bool equivalent(const Machine<S>& first, const Machine<S>& second, double delta, Meter& meter) {
  using Wide = typename S::Wide;
  Machine<S> sides[2] = {connect(without_zeros(first), meter), connect(without_zeros(second), meter)};
  std::vector<WideWeight<S>> potentials[2];
  for (int side = 0; side < 2; ++side) {
    Machine<S>& each = sides[side];
    const char* name = side ? "the second machine" : "the first machine";
    for (Id s = 0; s < each.num_states(); ++s) {
      for (const auto& arc : each.arcs(s)) {
        if (arc.ilabel != arc.olabel) refuse(std::string("equivalent: ") + name + " is not an acceptor: project it first");
        if (arc.ilabel == 0) refuse(std::string("equivalent: ") + name + " has epsilon arcs: rmepsilon and determinize it first");
      }
    }
    if (!is_deterministic(each)) refuse(std::string("equivalent: ") + name + " is not deterministic: determinize it first");
    arcsort(each, false, meter);
    potentials[side] = shortest_distance(each, true, 1e-12, meter);
  }
  const bool none = sides[0].start() == kNone;
  if (none || sides[1].start() == kNone) return none && sides[1].start() == kNone;
  const Id offset = sides[0].num_states();
  std::vector<Id> parent(offset + sides[1].num_states());
  for (size_t k = 0; k < parent.size(); ++k) parent[k] = static_cast<Id>(k);
  const auto root = [&](Id s) {
    while (parent[s] != s) s = parent[s] = parent[parent[s]];
    return s;
  };
  const auto near = [&](WideWeight<S> a, WideWeight<S> b) { return Wide::near(a, b, delta); };
  if (!near(potentials[0][sides[0].start()], potentials[1][sides[1].start()])) return false;
  std::vector<std::pair<Id, Id>> stack = {{sides[0].start(), sides[1].start() + offset}};
  parent[stack[0].second] = stack[0].first;
  const auto machine = [&](Id s) -> const Machine<S>& { return sides[s >= offset]; };
  const auto own = [&](Id s) { return s >= offset ? s - offset : s; };
  const auto potential = [&](Id s) { return potentials[s >= offset][own(s)]; };
  while (!stack.empty()) {
    const auto [s, t] = stack.back();
    stack.pop_back();
    const auto a = machine(s).arcs(own(s)), b = machine(t).arcs(own(t));
    const auto pushed = [&](Id from, WideWeight<S> w) { return Wide::divide(w, potential(from)); };
    if (a.size() != b.size() || !near(pushed(s, machine(s).final(own(s))), pushed(t, machine(t).final(own(t))))) return false;
    for (size_t k = 0; k < a.size(); ++k) {
      const Id x = a[k].nextstate + (s >= offset ? offset : 0), y = b[k].nextstate + (t >= offset ? offset : 0);
      if (a[k].ilabel != b[k].ilabel) return false;
      if (!near(pushed(s, Wide::times(a[k].weight, potential(x))), pushed(t, Wide::times(b[k].weight, potential(y))))) return false;
      const Id p = root(x), q = root(y);
      if (p == q) continue;
      parent[q] = p;
      stack.emplace_back(x, y);
    }
    meter.step(1 + a.size());
  }
  return true;
}

}  // namespace tokenfst::fst
