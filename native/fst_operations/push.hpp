// Moves weights and outputs along the paths, towards the start or towards acceptance; the relation stays the same.
//
// Weights: each state has a potential, its shortest distance; an arc is multiplied by the potential of its target and
// divided by that of its source. Outputs: the potential of a state is the longest common prefix of everything that it
// may still write. What arrives at the start is put onto its arcs if no arc enters the start, else onto an epsilon arc
// from a new start, as in OpenFst.
#pragma once

#include <algorithm>
#include <queue>
#include <vector>

#include "fst_operations/determinize.hpp"
#include "fst/distances.hpp"
#include "fst_operations/rational.hpp"

namespace tokenfst::fst {

// Multiplies all paths by a weight, at the start.
template <class S>
void weigh_start(Machine<S>& machine, typename S::Weight w, Meter& meter) {
  const Id start = machine.start();
  if (start == kNone || w == S::one()) return;
  if (initial_acyclic(machine, meter)) {
    for (auto& arc : machine.arcs(start)) arc.weight = S::times(w, arc.weight);
    machine.set_final(start, S::times(w, machine.final(start)));
  } else {
    const Id made = machine.add_state();
    machine.add_arc(made, {0, 0, w, start});
    machine.set_start(made);
  }
}

// Reweights by potentials, one for each state, towards the start or (`to_final`) towards acceptance. Nothing is divided by
// Zero: arcs from and to a state whose potential is Zero stay unchanged, and with `to_final` such a state becomes not
// final, as in OpenFst.
template <class S>
void reweight(Machine<S>& machine, const std::vector<WideWeight<S>>& potentials, bool to_final, Meter& meter) {
  using Wide = typename S::Wide;
  using W = typename S::Weight;
  const auto narrow = [](WideWeight<S> w, Id s) {
    if (!Wide::member(w)) refuse("reweight: the potential of state " + std::to_string(s) + " cannot divide the weights that leave it");
    return static_cast<W>(w);
  };
  for (Id s = 0; s < machine.num_states(); ++s) {
    const auto own = potentials[s];
    meter.step(1 + machine.arcs(s).size());
    if (own == Wide::zero()) {
      if (to_final) machine.set_final(s, S::zero());
      continue;
    }
    for (auto& arc : machine.arcs(s)) {
      const auto next = potentials[arc.nextstate];
      if (next == Wide::zero()) continue;
      arc.weight =
          narrow(to_final ? Wide::divide(Wide::times(own, arc.weight), next) : Wide::divide(Wide::times(arc.weight, next), own), s);
    }
    const WideWeight<S> final = machine.final(s);
    machine.set_final(s, narrow(to_final ? Wide::times(own, final) : Wide::divide(final, own), s));
  }
  if (machine.start() == kNone) return;
  const auto own = potentials[machine.start()];
  if (own == Wide::zero() || own == Wide::one()) return;
  weigh_start(machine, narrow(to_final ? Wide::divide(Wide::one(), own) : own, machine.start()), meter);
}

// Pushes weights. `remove_total`: the sum over all paths is divided out.
template <class S>
void push_weights(Machine<S>& machine, bool to_final, bool remove_total, double delta, Meter& meter) {
  using Wide = typename S::Wide;
  using W = typename S::Weight;
  const auto potentials = shortest_distance(machine, !to_final, delta, meter);
  auto total = Wide::zero();
  if (!to_final && machine.start() != kNone) total = potentials[machine.start()];
  for (Id s = 0; to_final && s < machine.num_states(); ++s) total = Wide::plus(total, Wide::times(potentials[s], machine.final(s)));
  if (total == Wide::zero()) return;  // there is no path
  const Id start = machine.start();
  reweight(machine, potentials, to_final, meter);
  if (!remove_total) return;
  if (to_final) {
    for (Id s = 0; s < machine.num_states(); ++s) machine.set_final(s, static_cast<W>(Wide::divide(machine.final(s), total)));
    return;
  }
  if (machine.start() != start) {
    for (auto& arc : machine.arcs(machine.start())) arc.weight = S::one();
    return;
  }
  for (auto& arc : machine.arcs(start)) arc.weight = static_cast<W>(Wide::divide(arc.weight, total));
  machine.set_final(start, static_cast<W>(Wide::divide(machine.final(start), total)));
}

// For each state, the longest common prefix of its outputs on all paths to acceptance, as a number of `strings`; kNone if
// there is no path.
template <class S>
std::vector<Id> common_outputs(const Machine<S>& machine, Strings& strings, Meter& meter) {
  const Forward<S> view{machine};
  const Components found = components(view, machine.start(), meter);
  std::vector<Id> potential(machine.num_states(), kNone);
  const auto of_state = [&](Id s) {
    Id common = machine.is_final(s) ? Strings::kEmpty : kNone;
    for (const auto& arc : machine.arcs(s)) {
      if (potential[arc.nextstate] == kNone) continue;
      const Id through = strings.before(arc.olabel, potential[arc.nextstate]);
      common = common == kNone ? through : strings.common(common, through);
      meter.step(1 + strings.length(common));
      if (common == Strings::kEmpty) break;
    }
    meter.bytes(strings.memory());
    return common;
  };
  for (Id c = 0; c < found.size(); ++c) {  // edges lead to smaller numbers
    const auto [begin, end] = found.states(c);
    for (bool changed = true; changed;) {
      changed = false;
      for (const Id* s = begin; s != end; ++s) {
        const Id now = of_state(*s);
        changed |= now != potential[*s];
        potential[*s] = now;
      }
      if (!found.is_cyclic[c]) break;
    }
  }
  return potential;
}

// Pushes outputs towards the start; removes states that cannot reach acceptance. `remove_common`: the longest common prefix
// of all outputs is dropped.
template <class S>
Machine<S> push_outputs(const Machine<S>& given, bool remove_common, Meter& meter) {
  Machine<S> machine = connect(given, meter);
  if (machine.start() == kNone) return machine;
  Strings strings;
  const std::vector<Id> potential = common_outputs(machine, strings, meter);
  Machine<S> out;
  for (Id s = 0; s < machine.num_states(); ++s) out.add_state(machine.final(s));
  out.set_start(machine.start());
  for (Id s = 0; s < machine.num_states(); ++s) {
    for (const auto& arc : machine.arcs(s)) {
      const Id whole = strings.before(arc.olabel, potential[arc.nextstate]);
      add_string_arc(out, s, arc.ilabel, strings.drop(whole, strings.length(potential[s])), arc.weight, arc.nextstate, strings);
    }
    meter.step();
    meter.made(out, strings.memory());
  }
  if (const Id prefix = potential[machine.start()]; prefix != Strings::kEmpty && !remove_common) {
    const Id start = out.add_state();
    add_string_arc(out, start, 0, prefix, S::one(), machine.start(), strings);
    out.set_start(start);
  }
  return out;
}

// Pushes weights, outputs or both. Outputs are pushed towards acceptance in the reversed machine.
template <class S>
Machine<S> push(const Machine<S>& given, bool weights, bool labels, bool to_final, bool remove_total, bool remove_common, double delta,
                Meter& meter) {
  Machine<S> out = given;
  if (labels) {
    out = to_final ? reverse(push_outputs(reverse(given, true, meter), remove_common, meter), true, meter)
                   : push_outputs(given, remove_common, meter);
  }
  if (weights) push_weights(out, to_final, remove_total, delta, meter);
  return out;
}

}  // namespace tokenfst::fst
