// OpenFst's property bits of a machine, all of them computed. Linear.
#pragma once

#include "fst_operations/minimize.hpp"

namespace tokenfst::fst {

template <class S>
uint64_t properties(const Machine<S>& machine, Meter& meter) {
  using W = typename S::Weight;
  // Sets bit `at` if the property holds, the next bit if not.
  uint64_t found = 0;
  const auto say = [&](int at, bool holds) { found |= 1ull << (holds ? at : at + 1); };
  bool acceptor = true, epsilons = false, inputs = false, outputs = false, weighted = false, string = true;
  const auto is_weighted = [](W w) { return w != S::one(); };
  for (Id s = 0; s < machine.num_states(); ++s) {
    for (const auto& arc : machine.arcs(s)) {
      acceptor &= arc.ilabel == arc.olabel;
      epsilons |= arc.ilabel == 0 && arc.olabel == 0;
      inputs |= arc.ilabel == 0;
      outputs |= arc.olabel == 0;
      weighted |= is_weighted(arc.weight) && arc.weight != S::zero();
      string &= arc.nextstate == s + 1;
    }
    const bool final = machine.is_final(s);
    weighted |= final && is_weighted(machine.final(s));
    const bool last = s + 1 == machine.num_states();
    string &= machine.arcs(s).size() == (last ? 0 : 1) && final == last;
    meter.step(1 + machine.arcs(s).size());
  }
  const Forward<S> view{machine};
  const Components parts = components(view, machine.start(), meter);
  bool weighted_cycles = false;
  for (Id s = 0; s < machine.num_states(); ++s) {
    for (const auto& arc : machine.arcs(s)) weighted_cycles |= parts.of[s] == parts.of[arc.nextstate] && is_weighted(arc.weight);
  }
  const auto all = [](const std::vector<uint8_t>& seen) { return std::find(seen.begin(), seen.end(), 0) == seen.end(); };
  say(16, acceptor);
  say(18, is_deterministic(machine));
  say(20, is_deterministic(machine, true));
  say(22, epsilons);
  say(24, inputs);
  say(26, outputs);
  say(28, is_sorted(machine, false));
  say(30, is_sorted(machine, true));
  say(32, weighted);
  say(34, !parts.acyclic());
  say(36, !initial_acyclic(machine, meter));
  say(38, edges_go(view, false));
  say(40, all(accessible(machine, meter)));
  say(42, all(coaccessible(machine, meter)));
  say(44, string && (machine.num_states() == 0 || machine.start() == 0));
  say(46, weighted_cycles);
  return found | 3;  // the bits "expanded" and "mutable"
}

}  // namespace tokenfst::fst
