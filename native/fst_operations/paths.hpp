// Best paths, in semirings whose sum chooses one operand: the n best ones, all that are not much worse than the best,
// and random ones.
//
// The n best: a search from the start by the weight so far times the distance to acceptance. That estimate is exact, so
// paths are finished in the order of their weights, and each state is expanded at most n times. The result is the tree
// of the search without the branches that were not finished. Cost: the distances, and n times the neighbourhood of the
// paths, times a logarithm.
#pragma once

#include <algorithm>
#include <queue>
#include <random>
#include <vector>

#include "fst_operations/determinize.hpp"
#include "fst/distances.hpp"
#include "fst_operations/rmepsilon.hpp"

namespace tokenfst::fst {

// Refuses other semirings; `what` names the call in the error.
template <class S>
void require_path(const char* what) {
  if constexpr (!S::kPath) {
    refuse(std::string(what) +
           " needs a semiring whose sum is one of its terms (standard, tropical64, minmax, minmax64, boolean); map the arcs with "
           "arcmap(map_type=\"to_std\")");
  }
}

// What may be kept: paths as good as the best one times `weight` (Zero: all), and at most that many states (kNone:
// all).
template <class S>
struct Threshold {
  typename S::Weight weight = S::zero();
  int64_t states = kNone;
  bool any() const { return weight != S::zero() || states != kNone; }
};

// Whether a path is as good as `best` times the threshold. Sums of the same numbers in a different order differ by
// rounding, hence the slack.
template <class S>
class Limit {
 public:
  using Wide = typename S::Wide;
  using Weight = typename Wide::Weight;
  Limit(Weight best, typename S::Weight threshold)
      : limit_(Wide::times(best, threshold)),
        slack_(1e-12 * std::max(1.0, std::isfinite(static_cast<double>(limit_)) ? std::abs(static_cast<double>(limit_)) : 1.0)) {}
  bool stays(Weight w) const { return w != Wide::zero() && (!Wide::better(limit_, w) || Wide::near(limit_, w, slack_)); }

 private:
  const Weight limit_;
  const double slack_;
};

// The `count` best paths of a graph, as a tree. `Graph` has: start(), to_acceptance(s) (the weight of the best path from s),
// expand(s, arcs, final). `threshold.states` limits the tree of the search.
template <class S, class Graph>
Machine<S> best_paths(Graph& graph, uint64_t count, Threshold<S> threshold, Meter& meter) {
  using Wide = typename S::Wide;
  using Weight = typename Wide::Weight;
  struct Node {
    Id state, parent;
    Arc<typename S::Weight> arc;  // the arc from the parent
    Weight weight;
    bool ends, kept;
  };
  struct Entry {
    Weight bound;
    Id node;
    bool ends;
  };
  const auto later = [](const Entry& a, const Entry& b) {
    if (Wide::better(b.bound, a.bound)) return true;
    if (Wide::better(a.bound, b.bound)) return false;
    return std::pair(!b.ends, b.node) < std::pair(!a.ends, a.node);
  };
  Machine<S> out;
  if (graph.start() == kNone || count == 0) return out;
  std::vector<Node> nodes = {{graph.start(), kNone, {}, Wide::one(), false, false}};
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> queue(later);
  std::vector<uint64_t> left;  // for each state, how often it was expanded
  const Limit<S> limit(graph.to_acceptance(graph.start()), threshold.weight);
  if (graph.to_acceptance(graph.start()) != Wide::zero()) queue.push({graph.to_acceptance(graph.start()), 0, false});
  std::vector<Arc<typename S::Weight>> arcs;
  for (uint64_t done = 0; done < count && !queue.empty();) {
    const Entry entry = queue.top();
    queue.pop();
    meter.step();
    if (!limit.stays(entry.bound)) break;
    if (entry.ends) {
      nodes[entry.node].ends = true;
      ++done;
      continue;
    }
    const Node node = nodes[entry.node];
    if (left.size() <= static_cast<size_t>(node.state)) left.resize(static_cast<size_t>(node.state) * 2 + 1, 0);
    if (left[node.state]++ >= count) continue;
    if (threshold.states != kNone && static_cast<int64_t>(nodes.size()) >= threshold.states) continue;
    auto final = S::zero();
    graph.expand(node.state, arcs, final);
    if (final != S::zero()) queue.push({Wide::times(node.weight, final), entry.node, true});
    for (const auto& arc : arcs) {
      const Weight rest = graph.to_acceptance(arc.nextstate);
      if (rest == Wide::zero() || arc.weight == S::zero()) continue;
      const Weight weight = Wide::times(node.weight, arc.weight);
      nodes.push_back({arc.nextstate, entry.node, arc, weight, false, false});
      queue.push({Wide::times(weight, rest), static_cast<Id>(nodes.size() - 1), false});
    }
    meter.step(arcs.size());
    meter.bytes(nodes.size() * (sizeof(Node) + sizeof(Entry)));
  }
  for (Id k = static_cast<Id>(nodes.size()); k-- > 0;) {
    nodes[k].kept |= nodes[k].ends;
    if (nodes[k].kept && nodes[k].parent != kNone) nodes[nodes[k].parent].kept = true;
  }
  if (!nodes[0].kept) return out;
  std::vector<Id> place(nodes.size(), kNone);
  for (size_t k = 0; k < nodes.size(); ++k) {
    if (!nodes[k].kept) continue;
    auto final = S::zero();
    if (nodes[k].ends) graph.expand(nodes[k].state, arcs, final);
    place[k] = out.add_state(final);
    meter.step();
  }
  out.set_start(0);
  for (size_t k = 1; k < nodes.size(); ++k) {
    if (!nodes[k].kept) continue;
    auto arc = nodes[k].arc;
    arc.nextstate = place[k];
    out.add_arc(place[nodes[k].parent], arc);
  }
  meter.made(out);
  return out;
}

// A graph for best_paths: the machine itself.
template <class S>
class PlainGraph {
 public:
  PlainGraph(const Machine<S>& machine, Meter& meter) : in_(machine), rest_(shortest_distance(machine, true, 1e-9, meter)) {}
  Id start() const { return in_.start(); }
  auto to_acceptance(Id s) const { return rest_[s]; }
  void expand(Id s, std::vector<Arc<typename S::Weight>>& arcs, typename S::Weight& final) const {
    arcs.assign(in_.arcs(s).begin(), in_.arcs(s).end());
    final = in_.final(s);
  }

 private:
  const Machine<S>& in_;
  const std::vector<WideWeight<S>> rest_;
};

// A graph for best_paths: an acceptor that is determinized on demand, so that each word occurs once.
template <class S>
class SubsetGraph {
 public:
  // `machine` has no states that cannot reach acceptance.
  SubsetGraph(Machine<S> machine, double delta, Meter& meter)
      : in_(std::move(machine)), rest_(shortest_distance(in_, true, delta, meter)),
        subsets_(in_, Outputs::Acceptor, delta, strings_, meter), start_(subsets_.start()) {}
  Id start() const { return start_; }
  WideWeight<S> to_acceptance(Id t) const {
    auto sum = S::Wide::zero();
    for (const auto& each : subsets_.elements(t)) sum = S::Wide::plus(sum, S::Wide::times(each.weight, rest_[each.state]));
    return sum;
  }
  void expand(Id t, std::vector<Arc<typename S::Weight>>& arcs, typename S::Weight& final) {
    using W = typename S::Weight;
    subsets_.expand(t, moves_, finals_);
    arcs.clear();
    for (const auto& move : moves_) arcs.push_back({move.label, move.label, static_cast<W>(move.weight), move.target});
    final = finals_.empty() ? S::zero() : static_cast<W>(finals_[0].weight);
  }

 private:
  const Machine<S> in_;
  const std::vector<WideWeight<S>> rest_;
  Strings strings_;
  Determinization<S> subsets_;
  const Id start_;
  std::vector<typename Determinization<S>::Move> moves_;
  std::vector<typename Determinization<S>::Final> finals_;
};

// The `count` best paths; with `unique`, for an acceptor, the best path of each of the `count` best words.
template <class S>
Machine<S> shortest_path(const Machine<S>& machine, uint64_t count, bool unique, Threshold<S> threshold, double delta, Meter& meter) {
  require_path<S>("shortestpath");
  if (!unique) {
    PlainGraph<S> graph(machine, meter);
    return best_paths<S>(graph, count, threshold, meter);
  }
  SubsetGraph<S> graph(connect(rmepsilon(machine, true, delta, meter), meter), delta, meter);
  return best_paths<S>(graph, count, threshold, meter);
}

// Removes the arcs and final weights that are on no path as good as the best one times `threshold`.
template <class S>
Machine<S> prune(const Machine<S>& machine, typename S::Weight threshold, Meter& meter) {
  using Wide = typename S::Wide;
  require_path<S>("prune");
  if (machine.start() == kNone) return machine;
  const auto before = shortest_distance(machine, false, 1e-9, meter), after = shortest_distance(machine, true, 1e-9, meter);
  const Limit<S> limit(after[machine.start()], threshold);
  Machine<S> out;
  for (Id s = 0; s < machine.num_states(); ++s) {
    out.add_state(limit.stays(Wide::times(before[s], machine.final(s))) ? machine.final(s) : S::zero());
    for (const auto& arc : machine.arcs(s)) {
      if (limit.stays(Wide::times(Wide::times(before[s], arc.weight), after[arc.nextstate]))) out.add_arc(s, arc);
    }
    meter.step(1 + machine.arcs(s).size());
  }
  out.set_start(machine.start());
  return connect(std::move(out), meter);
}

// `count` random paths, each as a chain from one common start, without weights. `by_weight`: an arc is chosen with its
// probability, exp(-weight), or the weight in a real semiring; otherwise all arcs of a state, and its end, are equally
// likely. Paths longer than `longest` are dropped. The same seed gives the same paths.
template <class S>
Machine<S> random_paths(const Machine<S>& given, uint64_t count, uint64_t seed, bool by_weight, uint64_t longest, Meter& meter) {
  const Machine<S> machine = connect(without_zeros(given), meter);
  Machine<S> out;
  if (machine.start() == kNone) return out;
  std::mt19937_64 draw(seed);
  const auto uniform = [&] { return static_cast<double>(draw() >> 11) * 0x1p-53; };
  const auto share = [&](typename S::Weight w) {
    if (!by_weight) return 1.0;
    if constexpr (std::is_same_v<typename S::Wide, Real<double>>) return static_cast<double>(w);
    else return std::exp(-static_cast<double>(w));
  };
  out.set_start(out.add_state());
  std::vector<Arc<typename S::Weight>> path;
  for (uint64_t k = 0; k < count; ++k) {
    path.clear();
    Id s = machine.start();
    for (bool ends = false; !ends && path.size() <= longest;) {
      double total = machine.is_final(s) ? share(machine.final(s)) : 0;
      const double end = total;
      for (const auto& arc : machine.arcs(s)) total += share(arc.weight);
      if (!std::isfinite(total) || total <= 0)
        refuse("randgen: the weights of state " + std::to_string(s) + " have no finite sum as probabilities");
      double at = uniform() * total - end;
      if (at < 0) {
        ends = true;
        break;
      }
      const auto arcs = machine.arcs(s);
      size_t chosen = 0;
      while (chosen + 1 < arcs.size() && (at -= share(arcs[chosen].weight)) >= 0) ++chosen;
      if (arcs.empty()) break;
      path.push_back(arcs[chosen]);
      meter.bytes(path.size() * sizeof path[0]);
      s = arcs[chosen].nextstate;
      meter.step(1 + arcs.size());
    }
    if (path.size() > longest) continue;
    Id at = 0;
    for (const auto& arc : path) {
      const Id next = out.add_state();
      out.add_arc(at, {arc.ilabel, arc.olabel, S::one(), next});
      at = next;
    }
    if (at == 0) {  // a path without arcs; each occurrence counts
      at = out.add_state();
      out.add_arc(0, {0, 0, S::one(), at});
    }
    out.set_final(at, S::one());
    meter.made(out);
  }
  return out;
}

}  // namespace tokenfst::fst
