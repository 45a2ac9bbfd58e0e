// Keeps only the best states: pruning by weight and number of states, and determinization that computes only what is
// kept.
//
// A search from the start by the weight of the best path through a state, as in OpenFst's Prune: a state is kept while
// there is room, and if it lies on a path as good as the best one times the threshold; ties go to the smaller number.
// So determinization with a threshold never computes the subsets that it would drop. Cost: the kept states and their
// neighbours, times a logarithm, and the distances.
#pragma once

#include <queue>
#include <vector>

#include "fst_operations/paths.hpp"

namespace tokenfst::fst {

// The machine of the states that are kept. `Graph`: as for best_paths.
template <class S, class Graph>
Machine<S> kept_best(Graph& graph, Threshold<S> threshold, Meter& meter) {
  using Wide = typename S::Wide;
  using Weight = typename Wide::Weight;
  struct Entry {
    Weight bound;
    Id state;
  };
  const auto later = [](const Entry& a, const Entry& b) {
    if (Wide::better(b.bound, a.bound)) return true;
    return !Wide::better(a.bound, b.bound) && b.state < a.state;
  };
  Machine<S> out;
  if (graph.start() == kNone || threshold.states == 0 || graph.to_acceptance(graph.start()) == Wide::zero()) return out;
  const Limit<S> limit(graph.to_acceptance(graph.start()), threshold.weight);
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> queue(later);
  std::vector<Weight> before;
  std::vector<Id> place;  // the number in `out`, or kNone
  std::vector<uint8_t> taken, visited;
  int64_t count = 0;
  const auto meet = [&](Id s, Weight w) {
    if (static_cast<size_t>(s) >= before.size()) {
      before.resize(static_cast<size_t>(s) * 2 + 1, Wide::zero());
      place.resize(before.size(), kNone);
      taken.resize(before.size(), 0);
      visited.resize(before.size(), 0);
    }
    const bool is_better = Wide::better(w, before[s]);
    if (is_better) before[s] = w;
    if (visited[s]) return;
    if (!taken[s]) {
      if (threshold.states != kNone && count >= threshold.states) return;
      taken[s] = 1;
      place[s] = out.add_state();
      ++count;
    } else if (!is_better) {
      return;
    }
    queue.push({Wide::times(before[s], graph.to_acceptance(s)), s});
  };
  meet(graph.start(), Wide::one());
  std::vector<Arc<typename S::Weight>> arcs;
  std::vector<std::pair<Id, Arc<typename S::Weight>>> kept;
  while (!queue.empty()) {
    const Id s = queue.top().state;
    queue.pop();
    if (visited[s]) continue;
    visited[s] = 1;
    auto final = S::zero();
    graph.expand(s, arcs, final);
    const Weight here = before[s];
    if (final != S::zero() && limit.stays(Wide::times(here, final))) out.set_final(place[s], final);
    for (const auto& arc : arcs) {
      const Weight through = Wide::times(here, arc.weight);
      if (!limit.stays(Wide::times(through, graph.to_acceptance(arc.nextstate)))) continue;
      meet(arc.nextstate, through);
      kept.emplace_back(place[s], arc);
    }
    meter.step(1 + arcs.size());
    meter.made(out, before.size() * 32 + kept.size() * sizeof kept[0] + queue.size() * sizeof(Entry));
  }
  for (auto& [from, arc] : kept) {
    arc.nextstate = place[arc.nextstate];
    if (arc.nextstate != kNone) out.add_arc(from, arc);
  }
  out.set_start(0);
  return connect(std::move(out), meter);
}

template <class S>
Machine<S> prune(const Machine<S>& machine, Threshold<S> threshold, Meter& meter) {
  require_path<S>("prune");
  if (threshold.states == kNone) return prune(machine, threshold.weight, meter);
  PlainGraph<S> graph(machine, meter);
  return kept_best<S>(graph, threshold, meter);
}

// With a threshold, acceptors are determinized only as far as they are kept.
template <class S>
Machine<S> determinize(const Machine<S>& machine, Outputs outputs, Id subsequential, bool increment, Threshold<S> threshold, double delta,
                       Meter& meter) {
  if (!threshold.any()) return determinize(machine, outputs, subsequential, increment, delta, meter);
  require_path<S>("determinize(weight=, nstate=)");
  if (outputs != Outputs::Acceptor) return prune(determinize(machine, outputs, subsequential, increment, delta, meter), threshold, meter);
  SubsetGraph<S> graph(connect(machine, meter), delta, meter);
  return kept_best<S>(graph, threshold, meter);
}

template <class S>
Machine<S> rmepsilon(const Machine<S>& machine, bool trim, Threshold<S> threshold, double delta, Meter& meter) {
  if (!threshold.any()) return rmepsilon(machine, trim, delta, meter);
  require_path<S>("rmepsilon(weight=, nstate=)");
  return prune(rmepsilon(machine, trim, delta, meter), threshold, meter);
}

}  // namespace tokenfst::fst
