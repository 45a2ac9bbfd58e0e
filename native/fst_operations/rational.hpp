// Union, concatenation, closure, reversal, and sorting of arcs; states are numbered as by OpenFst. Linear (sorting: m
// log m).
#pragma once

#include <algorithm>
#include <vector>

#include "fst/graph.hpp"
#include "fst/sorting.hpp"

namespace tokenfst::fst {

// Appends the states of `other` to `out`; returns the new number of its state 0.
template <class S>
Id append(Machine<S>& out, const Machine<S>& other, Meter& meter) {
  const Id offset = out.num_states();
  out.reserve(offset + other.num_states(), out.num_arcs() + other.num_arcs());
  for (Id s = 0; s < other.num_states(); ++s) {
    const Id made = out.add_state(other.final(s));
    for (auto arc : other.arcs(s)) {
      arc.nextstate += offset;
      out.add_arc(made, arc);
    }
    meter.step();
    meter.made(out);
  }
  return offset;
}

// Whether no arc enters the start.
template <class S>
bool initial_acyclic(const Machine<S>& machine, Meter& meter) {
  if (machine.start() == kNone) return true;
  std::vector<Id> from;
  for (const auto& arc : machine.arcs(machine.start())) from.push_back(arc.nextstate);
  return !reached(Forward<S>{machine}, std::move(from), meter)[machine.start()];
}

// The union of two relations.
template <class S>
Machine<S> set_union(const Machine<S>& one, const Machine<S>& other, Meter& meter) {
  if (other.start() == kNone) return one;
  Machine<S> out = one;
  const Id offset = append(out, other, meter);
  if (one.start() == kNone) {
    out.set_start(other.start() + offset);
  } else if (initial_acyclic(one, meter)) {
    out.add_arc(one.start(), {0, 0, S::one(), other.start() + offset});
  } else {
    const Id start = out.add_state();
    out.set_start(start);
    out.add_arc(start, {0, 0, S::one(), one.start()});
    out.add_arc(start, {0, 0, S::one(), other.start() + offset});
  }
  return out;
}

// Paths of the first machine followed by paths of the second.
template <class S>
Machine<S> concat(const Machine<S>& one, const Machine<S>& other, Meter& meter) {
  if (one.start() == kNone) return one;
  Machine<S> out = one;
  const Id offset = append(out, other, meter);
  for (Id s = 0; s < one.num_states(); ++s) {
    if (!one.is_final(s)) continue;
    if (other.start() != kNone) out.add_arc(s, {0, 0, one.final(s), other.start() + offset});
    out.set_final(s, S::zero());
  }
  return out;
}

// Any number of paths, one after the other; with `plus` at least one.
template <class S>
Machine<S> closure(const Machine<S>& machine, bool plus, Meter& meter) {
  Machine<S> out = machine;
  if (machine.start() != kNone) {
    for (Id s = 0; s < machine.num_states(); ++s) {
      if (machine.is_final(s)) out.add_arc(s, {0, 0, machine.final(s), machine.start()});
      meter.step();
    }
  }
  if (!plus) {
    const Id start = out.add_state(S::one());
    out.set_start(start);
    if (machine.start() != kNone) out.add_arc(start, {0, 0, S::one(), machine.start()});
  }
  meter.made(out);
  return out;
}

// Reverses a machine. State s becomes s + 1, after a new start. It stays s if exactly one state is final, its weight
// is One, and `superinitial` is false.
template <class S>
Machine<S> reverse(const Machine<S>& machine, bool superinitial, Meter& meter) {
  if (machine.num_states() == 0) return machine;
  Id last = kNone, finals = 0;
  for (Id s = 0; s < machine.num_states(); ++s) {
    if (machine.is_final(s)) {
      last = s;
      ++finals;
    }
  }
  const bool extra = superinitial || finals != 1 || machine.final(last) != S::one();
  const Id offset = extra ? 1 : 0, n = machine.num_states();
  Machine<S> out;
  meter.bytes(machine.memory() + machine.num_arcs() * 2 * sizeof(Arc<typename S::Weight>));
  out.reserve(n + offset, machine.num_arcs() + finals);
  if (extra) out.add_state();
  for (Id s = 0; s < n; ++s) out.add_state();
  for (Id s = 0; s < n; ++s) {
    if (machine.start() == s) out.set_final(s + offset, S::one());
    if (extra && machine.is_final(s)) out.add_arc(0, {0, 0, machine.final(s), s + 1});
  }
  // Adds the arcs in the order of the states that they will leave, so that no state moves.
  std::vector<uint64_t> begin(n + 1, 0);
  for (Id s = 0; s < n; ++s) {
    for (const auto& arc : machine.arcs(s)) ++begin[arc.nextstate + 1];
  }
  for (Id s = 0; s < n; ++s) begin[s + 1] += begin[s];
  std::vector<Arc<typename S::Weight>> entering(machine.num_arcs());
  std::vector<uint64_t> at(begin.begin(), begin.end() - 1);
  for (Id s = 0; s < n; ++s) {
    for (auto arc : machine.arcs(s)) {
      const Id from = arc.nextstate;
      arc.nextstate = s + offset;
      entering[at[from]++] = arc;
    }
    meter.step();
  }
  for (Id s = 0; s < n; ++s) {
    for (uint64_t a = begin[s]; a < begin[s + 1]; ++a) out.add_arc(s + offset, entering[a]);
  }
  out.set_start(extra ? 0 : last);
  meter.made(out);
  return out;
}

// Whether the arcs of each state are sorted by input (or output) label.
template <class S>
bool is_sorted(const Machine<S>& machine, bool by_output) {
  for (Id s = 0; s < machine.num_states(); ++s) {
    const auto arcs = machine.arcs(s);
    for (size_t at = 1; at < arcs.size(); ++at) {
      if (by_output ? arcs[at].olabel < arcs[at - 1].olabel : arcs[at].ilabel < arcs[at - 1].ilabel) return false;
    }
  }
  return true;
}

// Sorts by input label, then by output label (or the other way round); stable.
template <class S>
void arcsort(Machine<S>& machine, bool by_output, Meter& meter) {
  for (Id s = 0; s < machine.num_states(); ++s) {
    const auto arcs = machine.arcs(s);
    meter.step(1 + arcs.size());
    sort_arcs(arcs, by_output);
  }
}

}  // namespace tokenfst::fst
