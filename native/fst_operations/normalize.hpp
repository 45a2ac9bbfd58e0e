// Moves the labels of a transducer along its paths: synchronization, and moving output-only arcs after arcs that read.
//
// Both constructions carry strings of labels that are still to be read or written, and make a state for each pair of a
// state and the carried strings. If a cycle carries more with every round, there is no end: the budget raises.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "fst_operations/determinize.hpp"
#include "fst_operations/rmepsilon.hpp"

namespace tokenfst::fst {

// Reads and writes a label on one arc for as long as possible: the delay between input and output is zero, or grows up
// to the end (Mohri 2003).
template <class S>
Machine<S> synchronize(const Machine<S>& machine, Meter& meter) {
  using Place = std::tuple<Id, Id, Id>;  // a state (kNone: after the end), labels to be read, labels to be written
  Machine<S> out;
  if (machine.start() == kNone) return out;
  Strings strings;
  std::map<Place, Id> numbers;
  std::vector<Place> places;
  const auto number = [&](Id s, Id in, Id written) {
    const auto [at, is_new] = numbers.try_emplace({s, in, written}, static_cast<Id>(places.size()));
    if (is_new) places.emplace_back(s, in, written);
    return at->second;
  };
  out.set_start(number(machine.start(), Strings::kEmpty, Strings::kEmpty));
  for (size_t at = 0; at < places.size(); ++at) {
    const auto [s, in, written] = places[at];
    const Id here = out.add_state();
    const bool carries = in != Strings::kEmpty || written != Strings::kEmpty;
    const auto emit = [&](typename S::Weight w, Id next, Id x, Id y) {
      out.add_arc(here, {strings.first(x), strings.first(y), w, number(next, strings.rest(x), strings.rest(y))});
    };
    if (s == kNone || machine.is_final(s)) {
      const auto w = s == kNone ? S::one() : machine.final(s);
      if (carries) emit(w, kNone, in, written);
      else out.set_final(here, w);
    }
    if (s != kNone) {
      for (const auto& arc : machine.arcs(s)) {
        const Id x = strings.concat(in, strings.of(arc.ilabel)), y = strings.concat(written, strings.of(arc.olabel));
        if (x != Strings::kEmpty && y != Strings::kEmpty) emit(arc.weight, arc.nextstate, x, y);
        else out.add_arc(here, {0, 0, arc.weight, number(arc.nextstate, x, y)});
      }
      meter.step(1 + machine.arcs(s).size());
    }
    meter.made(out, strings.memory() + places.size() * 96);
  }
  return out;
}

// Moves every arc that reads nothing after an arc that reads and has more than one label to write; or to the very
// beginning, for a path that reads nothing at all. Paths that read nothing are summed by their output, so such a cycle
// must not write.
template <class S>
Machine<S> epsnormalize(const Machine<S>& given, double delta, Meter& meter) {
  using Wide = typename S::Wide;
  using W = typename S::Weight;
  const Machine<S> machine = rmepsilon(given, true, delta, meter);
  Machine<S> out;
  if (machine.start() == kNone) return out;
  const Components silent =
      components(Forward<S>{machine}, machine.start(), [&](Id s, uint32_t at) { return machine.arcs(s)[at].ilabel == 0; }, meter);
  for (Id s = 0; s < machine.num_states(); ++s) {
    if (silent.is_cyclic[silent.of[s]])
      refuse("epsnormalize: a cycle through state " + std::to_string(s) + " reads nothing and writes: its outputs have no end");
    out.add_state();
  }
  out.set_start(machine.start());
  Strings strings;
  for (Id s = 0; s < machine.num_states(); ++s) {
    // All states that can be reached without reading, with the output on the way, component by component, so that sums
    // are complete before they are used.
    std::map<std::pair<Id, Id>, std::pair<Id, WideWeight<S>>, std::greater<>> reach;  // (component, string) to (state, weight)
    const auto add = [&](Id state, Id string, WideWeight<S> w) {
      const auto [at, is_new] = reach.try_emplace({silent.of[state], string}, state, w);
      if (!is_new) at->second.second = Wide::plus(at->second.second, w);
    };
    std::map<std::tuple<Id, Id, Id>, WideWeight<S>> arcs;  // (input, output string, target)
    std::map<Id, WideWeight<S>> ends;
    const auto collect = [&](auto& where, const auto& key, WideWeight<S> w) {
      const auto [at, is_new] = where.try_emplace(key, w);
      if (!is_new) at->second = Wide::plus(at->second, w);
    };
    add(s, Strings::kEmpty, Wide::one());
    while (!reach.empty()) {
      const auto [key, value] = *reach.begin();
      reach.erase(reach.begin());
      const auto [state, w] = value;
      if (machine.is_final(state)) collect(ends, key.second, Wide::times(w, machine.final(state)));
      for (const auto& arc : machine.arcs(state)) {
        const Id string = strings.concat(key.second, strings.of(arc.olabel));
        const auto through = Wide::times(w, arc.weight);
        if (arc.ilabel == 0) add(arc.nextstate, string, through);
        else collect(arcs, std::tuple(arc.ilabel, string, arc.nextstate), through);
      }
      meter.step(1 + machine.arcs(state).size());
      meter.bytes(out.memory() + strings.memory() + (reach.size() + arcs.size() + ends.size()) * 96);
    }
    for (const auto& [key, w] : arcs)
      add_string_arc(out, s, std::get<0>(key), std::get<1>(key), static_cast<W>(w), std::get<2>(key), strings);
    for (const auto& [string, w] : ends) {
      if (string == Strings::kEmpty) {
        out.set_final(s, static_cast<W>(w));
      } else {
        const Id last = out.add_state(S::one());
        add_string_arc(out, s, 0, string, static_cast<W>(w), last, strings);
      }
    }
    meter.made(out, strings.memory());
  }
  return connect(std::move(out), meter);
}

}  // namespace tokenfst::fst
