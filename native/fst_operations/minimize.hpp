// Minimization. Weights and outputs are pushed towards the start, where they are unique; then states with the same arcs
// into the same states are merged (partition.hpp), with weights compared on a grid of `delta`. For a deterministic
// machine the result has the fewest states among the machines that are deterministic on (input, output, weight). If an
// output becomes a string, new states follow for its other labels. The weight and output that arrive at the start stay
// on its arcs; if other arcs enter the start, it gets a copy, and no epsilon arc.
#pragma once

#include <algorithm>
#include <vector>

#include "fst/partition.hpp"
#include "fst_operations/push.hpp"

namespace tokenfst::fst {

// Whether no two arcs of a state have the same input (or output) label. Epsilon counts as a label.
template <class S>
bool is_deterministic(const Machine<S>& machine, bool by_output = false) {
  std::vector<Id> labels;
  for (Id s = 0; s < machine.num_states(); ++s) {
    labels.clear();
    for (const auto& arc : machine.arcs(s)) labels.push_back(by_output ? arc.olabel : arc.ilabel);
    if (!std::is_sorted(labels.begin(), labels.end())) std::sort(labels.begin(), labels.end());
    if (std::adjacent_find(labels.begin(), labels.end()) != labels.end()) return false;
  }
  return true;
}

template <class S>
class Minimization {
 public:
  using Wide = typename S::Wide;
  using Weight = typename S::Weight;

  Minimization(const Machine<S>& given, double delta, bool allow_nondet, Meter& meter)
      : delta_(delta), meter_(meter), in_(connect(without_zeros(given), meter)), acceptor_(is_acceptor(in_)),
        deterministic_(is_deterministic(in_)) {
    if (!deterministic_ && !allow_nondet) {
      refuse("minimize: the machine is not deterministic: determinize it first, or allow_nondet=True merges what is surely the same");
    }
    meter.bytes(in_.memory() * 4);
  }

  Machine<S> run() {
    if (in_.start() == kNone) return in_;
    // Without weights there is nothing to push, and sums over cycles need not exist.
    const bool weighted = is_weighted();
    plain_ = acceptor_ && !weighted;
    if (weighted) potentials_ = shortest_distance(in_, true, delta_, meter_);
    else potentials_.assign(in_.num_states(), Wide::one());
    if (acceptor_) prefix_.assign(in_.num_states(), Strings::kEmpty);
    else prefix_ = common_outputs(in_, strings_, meter_);
    const Components found = components(Forward<S>{in_}, in_.start(), meter_);
    push_all(plain_ && found.acyclic());
    const std::vector<Id> block = found.acyclic()  ? acyclic_blocks(graph_, found.order, meter_)
                                  : deterministic_ ? deterministic_blocks(graph_, meter_)
                                                   : blocks_by_rounds(graph_, meter_);
    return quotient(block);
  }

 private:
  struct Pushed {
    Id string;
    Weight weight;
  };

  bool is_weighted() const {
    for (Id s = 0; s < in_.num_states(); ++s) {
      if (in_.is_final(s) && in_.final(s) != S::one()) return true;
      for (const auto& arc : in_.arcs(s)) {
        if (arc.weight != S::one()) return true;
      }
    }
    return false;
  }

  // Computes the pushed outputs `pushed_` of the arcs, and labels that stand for (input, output, weight). For a machine
  // without weights and outputs the labels are the inputs, and with `by_label` they are used unchanged.
  void push_all(bool by_label) {
    Signatures labels, kinds;
    graph_.edges.reserve(in_.num_arcs());
    if (!plain_) pushed_.reserve(in_.num_arcs());
    for (Id s = 0; s < in_.num_states(); ++s) {
      const auto own = potentials_[s];
      const size_t from = graph_.edges.size();
      for (const auto& arc : in_.arcs(s)) {
        if (plain_) {
          if (!by_label) labels.current.assign(1, arc.ilabel);
          graph_.edges.push_back({by_label ? arc.ilabel : labels.number(), arc.nextstate});
          continue;
        }
        const auto w = Wide::divide(Wide::times(arc.weight, potentials_[arc.nextstate]), own);
        const Id string =
            acceptor_ ? Strings::kEmpty : strings_.drop(strings_.before(arc.olabel, prefix_[arc.nextstate]), strings_.length(prefix_[s]));
        pushed_.push_back({string, static_cast<Weight>(w)});
        const uint64_t key = Wide::key(w, delta_);
        labels.current.assign({arc.ilabel, string, static_cast<Id>(key >> 32), static_cast<Id>(key)});
        graph_.edges.push_back({labels.number(), arc.nextstate});
      }
      const auto begin = graph_.edges.begin() + static_cast<int64_t>(from);
      if (!std::is_sorted(begin, graph_.edges.end())) std::sort(begin, graph_.edges.end());
      graph_.begin.push_back(graph_.edges.size());
      finals_.push_back(static_cast<Weight>(Wide::divide(in_.final(s), own)));
      const uint64_t key = in_.is_final(s) ? Wide::key(finals_[s], delta_) : Wide::key(Wide::zero(), delta_);
      kinds.current.assign({in_.is_final(s), static_cast<Id>(key >> 32), static_cast<Id>(key)});
      graph_.kind.push_back(kinds.number());
      meter_.step(1 + in_.arcs(s).size());
    }
    graph_.labels = labels.size();
    graph_.kinds = kinds.size();
  }

  // One state for each block, numbered by the block's first state, with the arcs of that state.
  Machine<S> quotient(const std::vector<Id>& block) {
    std::vector<Id> place(in_.num_states(), kNone), origin;
    for (Id s = 0; s < in_.num_states(); ++s) {
      if (place[block[s]] == kNone) {
        place[block[s]] = static_cast<Id>(origin.size());
        origin.push_back(s);
      }
    }
    std::vector<uint64_t> begin(in_.num_states() + 1, 0);
    for (Id s = 0; s < in_.num_states(); ++s) begin[s + 1] = begin[s] + in_.arcs(s).size();
    Machine<S> out;
    out.reserve(origin.size() + 1, in_.num_arcs());
    for (Id s : origin) out.add_state(finals_[s]);
    const Id first = place[block[in_.start()]];
    bool entered = false;
    for (Id s : origin) {
      for (const auto& arc : in_.arcs(s)) entered |= place[block[arc.nextstate]] == first;
    }
    const Weight total = static_cast<Weight>(potentials_[in_.start()]);
    const Id prefix = prefix_[in_.start()];
    const bool owed = total != S::one() || prefix != Strings::kEmpty;
    out.set_start(owed && entered ? out.add_state() : first);
    for (Id t = 0; static_cast<size_t>(t) < origin.size(); ++t) {
      const Id s = origin[t];
      const auto arcs = in_.arcs(s);
      for (int copy = 0; copy < (t == first && owed && entered ? 2 : 1); ++copy) {
        const Id from = copy ? out.start() : t;
        const bool pays = owed && from == out.start();
        for (size_t k = 0; k < arcs.size(); ++k) {
          const Pushed pushed = plain_ ? Pushed{Strings::kEmpty, S::one()} : pushed_[begin[s] + k];
          const Weight w = pays ? S::times(total, pushed.weight) : pushed.weight;
          const Id to = place[block[arcs[k].nextstate]];
          if (acceptor_) out.add_arc(from, {arcs[k].ilabel, arcs[k].ilabel, w, to});
          else add_string_arc(out, from, arcs[k].ilabel, pays ? strings_.concat(prefix, pushed.string) : pushed.string, w, to, strings_);
        }
        if (pays) out.set_final(from, S::times(total, finals_[s]));  // the owed output is empty if the start accepts
      }
      meter_.step(1 + arcs.size());
    }
    return out;
  }
  const double delta_;
  Meter& meter_;
  const Machine<S> in_;
  const bool acceptor_, deterministic_;
  bool plain_ = false;  // it is an acceptor without weights
  Strings strings_;
  std::vector<WideWeight<S>> potentials_;
  std::vector<Id> prefix_;
  std::vector<Pushed> pushed_;
  std::vector<Weight> finals_;
  LabelledGraph graph_;
};

// `allow_nondet`: a machine that is not deterministic is accepted, and states that surely have the same paths are merged.
template <class S>
Machine<S> minimize(const Machine<S>& machine, double delta, bool allow_nondet, Meter& meter) {
  return Minimization<S>(machine, delta, allow_nondet, meter).run();
}

}  // namespace tokenfst::fst
