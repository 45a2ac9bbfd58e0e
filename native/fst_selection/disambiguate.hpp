// Disambiguation: an equivalent machine in which no two accepting paths read the same input (after Mohri and Riley, "On
// the disambiguation of weighted automata", 2015, with a different choice of the path that is kept).
//
// A state of the result is a state p of the machine (the end of the followed path) and the subset of all states that
// the same input reaches and that share a continuation with p, each with its residual, a weight and an output, as in
// determinization. So a path carries the sum of all paths with its input. Of these paths the least one is kept, in the
// order of the arcs of a state: an element is `lesser` if some path to it is less than the followed one. A followed
// path ends if p itself is lesser, and it accepts if no lesser element does.
//
// States that share no continuation with p are left out. Therefore disambiguation ends for more machines than
// determinization does, and an unambiguous machine is returned unchanged. Exponential at worst: the budget raises.
// Epsilon counts as a label. Of transducers, only functional ones are accepted.
#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

#include "fst_operations/compose.hpp"
#include "fst_operations/determinize.hpp"

namespace tokenfst::fst {

// Pairs of states that one input reaches and that share a continuation to acceptance. Cost: pairs times their common
// arcs.
class CommonFuture {
 public:
  // The part of a machine that it needs: the inputs and targets of the arcs, sorted by input, and which states are final.
  struct Inputs {
    std::vector<uint64_t> begin;
    std::vector<std::pair<Id, Id>> arcs;  // input, target
    std::vector<uint8_t> is_final;
    std::span<const std::pair<Id, Id>> of(Id s) const { return {arcs.data() + begin[s], arcs.data() + begin[static_cast<size_t>(s) + 1]}; }
  };

  CommonFuture(const Inputs& machine, Id start, Meter& meter) {
    std::vector<std::pair<Id, Id>> edges;  // from and to, as numbers of pairs
    pairs_.number(key(start, start), 0);
    for (size_t at = 0; at < pairs_.size(); ++at) {
      const auto [p, q] = split(pairs_.key(at));
      const auto arcs1 = machine.of(p), arcs2 = machine.of(q);
      auto begin = arcs2.begin();
      for (const auto& [label, target] : arcs1) {
        while (begin != arcs2.end() && begin->first < label) ++begin;
        for (auto other = begin; other != arcs2.end() && other->first == label; ++other) {
          edges.emplace_back(static_cast<Id>(at), pairs_.number(key(target, other->second), 0));
          meter.step();
        }
      }
      meter.states(pairs_.size());
      meter.bytes(pairs_.memory() + edges.size() * sizeof edges[0]);
    }
    const size_t n = pairs_.size();
    std::vector<uint32_t> begin(n + 1, 0);
    for (const auto& edge : edges) ++begin[static_cast<size_t>(edge.second) + 1];
    for (size_t k = 0; k < n; ++k) begin[k + 1] += begin[k];
    std::vector<Id> sources(edges.size()), stack;
    std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
    for (const auto& edge : edges) sources[next[edge.second]++] = edge.first;
    shares_.assign(n, 0);
    for (size_t at = 0; at < n; ++at) {
      const auto [p, q] = split(pairs_.key(at));
      if (machine.is_final[p] && machine.is_final[q]) {
        shares_[at] = 1;
        stack.push_back(static_cast<Id>(at));
      }
    }
    while (!stack.empty()) {
      const Id at = stack.back();
      stack.pop_back();
      for (uint32_t k = begin[at]; k < begin[at + 1]; ++k) {
        if (!shares_[sources[k]]) {
          shares_[sources[k]] = 1;
          stack.push_back(sources[k]);
        }
        meter.step();
      }
    }
  }
  // Whether two states that one input reaches share a continuation.
  bool holds(Id p, Id q) { return shares_[static_cast<size_t>(pairs_.number(key(p, q), 0))]; }
  uint64_t memory() const { return pairs_.memory() + shares_.size(); }

 private:
  static uint64_t key(Id p, Id q) { return static_cast<uint64_t>(std::min(p, q)) << 32 | static_cast<uint32_t>(std::max(p, q)); }
  static std::pair<Id, Id> split(uint64_t key) { return {static_cast<Id>(key >> 32), static_cast<Id>(key & UINT32_MAX)}; }

  TupleTable pairs_;
  std::vector<uint8_t> shares_;
};

// The arcs of `machine` are sorted by input.
template <class S>
CommonFuture common_future(const Machine<S>& machine, Meter& meter) {
  CommonFuture::Inputs inputs;
  meter.bytes(machine.memory() + machine.num_arcs() * sizeof inputs.arcs[0] + static_cast<uint64_t>(machine.num_states()) * 9);
  inputs.arcs.reserve(machine.num_arcs());
  inputs.begin.push_back(0);
  for (Id s = 0; s < machine.num_states(); ++s) {
    for (const auto& arc : machine.arcs(s)) inputs.arcs.emplace_back(arc.ilabel, arc.nextstate);
    inputs.begin.push_back(inputs.arcs.size());
    inputs.is_final.push_back(machine.is_final(s));
  }
  return CommonFuture(inputs, machine.start(), meter);
}

// An arc of an element, before it is followed: the label, the number of the element and the number of the arc.
struct OpenStep {
  Id label;
  size_t element, arc;
};

inline void sort_steps(std::vector<OpenStep>& steps) {
  sort_stably(std::span(steps), [](const OpenStep& step) { return SortKey(step.label, 0); });
}

// A state that the input reaches, with its residual; `lesser`: some path to it is less than the followed one.
template <class W>
struct RivalElement {
  Id state, string;
  bool lesser;
  W weight;
};

template <class W>
void sort_by_state(std::vector<RivalElement<W>>& elements) {
  sort_stably(std::span(elements), [](const RivalElement<W>& each) { return SortKey(each.state, 0); });
}

template <class S>
class Disambiguation {
 public:
  using Wide = typename S::Wide;
  using Weight = typename Wide::Weight;
  using W = typename S::Weight;

  // `machine` has a start, no states that cannot reach acceptance, and arcs sorted by input.
  Disambiguation(const Machine<S>& machine, Id subsequential, double delta, Meter& meter)
      : in_(machine), subsequential_(subsequential), delta_(delta), meter_(meter), future_(common_future(machine, meter)) {}

  Machine<S> run() {
    group_.assign(1, {in_.start(), Strings::kEmpty, false, Wide::one()});
    out_.set_start(number(in_.start()));
    for (size_t t = 0; t < followed_.size(); ++t) expand(t);
    for (const auto& [from, label, string, weight, to] : arcs_) {
      const Id target = to == kNone ? out_.add_state(S::one()) : to;
      add_string_arc(out_, from, label, string, weight, target, strings_, to == kNone ? label : 0);
      meter_.made(out_, memory());
    }
    return connect(std::move(out_), meter_);
  }

 private:
  using Element = RivalElement<Weight>;

  std::span<const Element> elements(size_t t) const {
    const size_t end = t + 1 < begins_.size() ? begins_[t + 1] : elements_.size();
    return {elements_.data() + begins_[t], end - begins_[t]};
  }
  uint64_t memory() const {
    return elements_.size() * sizeof(Element) + followed_.size() * 16 + index_.memory() + strings_.memory() + future_.memory() +
           arcs_.size() * sizeof arcs_[0];
  }

  void expand(size_t t) {
    const Id p = followed_[t];
    const std::vector<Element> from(elements(t).begin(), elements(t).end());
    finish(t, p, from);
    steps_.clear();
    for (size_t e = 0; e < from.size(); ++e) {
      const auto arcs = in_.arcs(from[e].state);
      for (size_t k = 0; k < arcs.size(); ++k) steps_.push_back({arcs[k].ilabel, e, k});
    }
    sort_steps(steps_);
    const auto arcs = in_.arcs(p);
    for (size_t k = 0; k < arcs.size(); ++k) {
      const Id q = arcs[k].nextstate;
      if (arcs[k].weight == S::zero()) continue;  // no path, so it is not the one that is kept either
      group_.clear();
      auto step = std::lower_bound(steps_.begin(), steps_.end(), arcs[k].ilabel, [](const OpenStep& a, Id l) { return a.label < l; });
      for (; step != steps_.end() && step->label == arcs[k].ilabel; ++step) {
        const Element& by = from[step->element];
        const auto& arc = in_.arcs(by.state)[step->arc];
        meter_.step();
        if (arc.weight == S::zero() || !future_.holds(q, arc.nextstate)) continue;
        group_.push_back({arc.nextstate, strings_.concat(by.string, strings_.of(arc.ilabel == arc.olabel && acceptor_ ? 0 : arc.olabel)),
                          by.lesser || (by.state == p && step->arc < k), Wide::times(by.weight, arc.weight)});
      }
      if (merge(q)) add_arc(t, arcs[k].ilabel, q);
    }
    meter_.states(followed_.size());
    meter_.bytes(memory());
  }

  // Merges the paths to the same state in the collected group. False: a lesser path leads to `q`, or no path.
  bool merge(Id q) {
    sort_by_state(group_);
    size_t kept = 0;
    for (size_t at = 0; at < group_.size(); ++at) {
      if (!kept || group_[kept - 1].state != group_[at].state) {
        group_[kept++] = group_[at];
        continue;
      }
      Element& one = group_[kept - 1];
      if (one.string != group_[at].string) refuse_nonfunctional();
      one.weight = Wide::plus(one.weight, group_[at].weight);
      one.lesser |= group_[at].lesser;
    }
    group_.resize(kept);
    const auto own = std::find_if(group_.begin(), group_.end(), [q](const Element& each) { return each.state == q; });
    return own != group_.end() && !own->lesser;
  }

  void add_arc(size_t t, Id label, Id q) {
    Weight common = group_[0].weight;
    Id prefix = group_[0].string;
    for (size_t k = 1; k < group_.size(); ++k) {
      common = Wide::plus(common, group_[k].weight);
      prefix = strings_.common(prefix, group_[k].string);
    }
    if (common == Wide::zero()) return;
    const uint32_t given = strings_.length(prefix);
    for (Element& each : group_) {
      each.weight = group_.size() == 1 ? Wide::one() : Wide::divide(each.weight, common);
      each.string = strings_.drop(each.string, given);
    }
    const Id to = number(q);
    arcs_.push_back({static_cast<Id>(t), label, acceptor_ ? strings_.of(label) : prefix, static_cast<W>(common), to});
  }

  void finish(size_t t, Id p, const std::vector<Element>& from) {
    if (!in_.is_final(p)) return;
    Weight sum = Wide::zero();
    Id string = kNone;
    for (const Element& each : from) {
      if (!in_.is_final(each.state)) continue;
      if (each.lesser) return;
      if (string != kNone && string != each.string) refuse_nonfunctional();
      string = each.string;
      sum = Wide::plus(sum, Wide::times(each.weight, in_.final(each.state)));
    }
    if (string == Strings::kEmpty) out_.set_final(static_cast<Id>(t), static_cast<W>(sum));
    else arcs_.push_back({static_cast<Id>(t), subsequential_, string, static_cast<W>(sum), kNone});
  }
  [[noreturn]] static void refuse_nonfunctional() {
    refuse("disambiguate: the transducer is not functional: one input has two outputs; encode the labels first to keep both");
  }

  // The number of the state for the followed state `q` and the collected group.
  Id number(Id q) {
    uint64_t hash = static_cast<uint64_t>(q) * 0x9E3779B97F4A7C15ull;
    for (const Element& each : group_) {
      hash = (hash ^ (static_cast<uint64_t>(each.state) * 2 + each.lesser)) * 0x9E3779B97F4A7C15ull;
      hash = (hash ^ (hash >> 29) ^ static_cast<uint64_t>(each.string)) * 0xBF58476D1CE4E5B9ull;
      hash = (hash ^ (hash >> 32) ^ Wide::key(each.weight, delta_)) * 0x94D049BB133111EBull;
    }
    const uint32_t small = static_cast<uint32_t>(hash >> 32);
    const uint32_t found = index_.find(small, [&](uint32_t at) {
      const auto other = elements(at);
      return followed_[at] == q &&
             std::equal(other.begin(), other.end(), group_.begin(), group_.end(), [&](const Element& a, const Element& b) {
               return a.state == b.state && a.string == b.string && a.lesser == b.lesser &&
                      (a.weight == b.weight || Wide::key(a.weight, delta_) == Wide::key(b.weight, delta_));
             });
    });
    if (found != HashIndex::kNothing) return static_cast<Id>(found);
    const uint32_t made = static_cast<uint32_t>(followed_.size());
    meter_.states(made + 1);
    followed_.push_back(q);
    begins_.push_back(elements_.size());
    elements_.insert(elements_.end(), group_.begin(), group_.end());
    index_.add(small, made);
    out_.add_state();
    return static_cast<Id>(made);
  }

  const Machine<S>& in_;
  const Id subsequential_;
  const double delta_;
  Meter& meter_;
  CommonFuture future_;
  Strings strings_;
  const bool acceptor_ = is_acceptor(in_);
  Machine<S> out_;
  std::vector<Id> followed_;
  std::vector<size_t> begins_;
  std::vector<Element> elements_, group_;
  std::vector<OpenStep> steps_;
  std::vector<std::tuple<Id, Id, Id, W, Id>> arcs_;  // from, input, output, weight, to
  HashIndex index_;
};

template <class S>
Machine<S> disambiguate(const Machine<S>& machine, Id subsequential, double delta, Meter& meter) {
  Machine<S> in = connect(machine, meter);
  if (in.start() == kNone) return in;
  arcsort(in, false, meter);
  return Disambiguation<S>(in, subsequential, delta, meter).run();
}

}  // namespace tokenfst::fst
