// Determinization (Mohri 1997): at most one arc for each input label. A state of the result is a subset: states, each
// with its residual, a weight and a string of outputs that are still owed on the path to it. What all of them owe in
// common is moved onto the arc: the sum of the weights, and the first label of the strings if it is the same in all. An
// arc writes one label at most, as in OpenFst, so that no arc that reads epsilon appears before the end of the input.
//
// Two subsets are equal if their weights lie in the same cells of a grid of `delta` (semirings.hpp); the weights of the
// first one are kept, unrounded. Epsilon is treated as an ordinary label. The result may be exponential, and for some
// machines it is infinite (two cycles over one word with different weights or outputs): then the budget raises.
//
// Outputs of a functional transducer: each state of a subset has one string, and anything else is refused. Not
// functional: any number of strings. Disambiguate: the string with the best weight.
#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

#include "containers/hash_index.hpp"
#include "fst/graph.hpp"
#include "fst/sorting.hpp"
#include "fst/strings.hpp"

namespace tokenfst::fst {

enum class Outputs { Acceptor, Functional, Nonfunctional, Disambiguate };

// A state of a subset, with its residual.
template <class W>
struct SubsetElement {
  Id state, string;
  W weight;
};

// The target of one arc of a subset's states, before targets are merged.
template <class W>
struct SubsetStep {
  Id label;
  SubsetElement<W> to;
};

// An output after the end of the input, with its weight.
template <class W>
struct SubsetFinal {
  Id string;
  W weight;
};

template <class W>
void sort_steps(std::vector<SubsetStep<W>>& steps) {
  sort_stably(std::span(steps), [](const SubsetStep<W>& step) { return SortKey(step.label, step.to.state, step.to.string); });
}

template <class W>
void sort_finals(std::vector<SubsetFinal<W>>& finals) {
  sort_stably(std::span(finals), [](const SubsetFinal<W>& final) { return SortKey(final.string, 0); });
}

// `Source`: a Machine, or a class that has `start`, `final`, `is_final` and `arcs` like one.
template <class S, class Source = Machine<S>>
class Determinization {
 public:
  using Wide = typename S::Wide;
  using Weight = typename Wide::Weight;
  using Element = SubsetElement<Weight>;
  using Final = SubsetFinal<Weight>;
  struct Move {
    Id label, olabel, target;  // `target`: the number of a subset
    Weight weight;
  };

  // `machine` has no states that cannot reach acceptance.
  Determinization(const Source& machine, Outputs outputs, double delta, Strings& strings, Meter& meter)
      : in_(machine), outputs_(outputs), delta_(delta), strings_(strings), meter_(meter) {}

  Id start() {
    if (in_.start() == kNone) return kNone;
    group_.assign(1, {in_.start(), Strings::kEmpty, Wide::one()});
    return subset();
  }
  size_t size() const { return begins_.size(); }
  std::span<const Element> elements(Id t) const {
    const uint64_t end = static_cast<size_t>(t) + 1 < begins_.size() ? begins_[t + 1] : elements_.size();
    return {elements_.data() + begins_[t], end - begins_[t]};
  }
  uint64_t memory() const { return elements_.size() * sizeof(Element) + begins_.size() * 8 + index_.memory() + strings_.memory(); }

  // The arcs of subset `t`, by label, and its final values: a string and a weight for each end.
  void expand(Id t, std::vector<Move>& moves, std::vector<Final>& finals) {
    moves.clear();
    finals.clear();
    steps_.clear();
    const size_t count = elements(t).size();
    for (size_t k = 0; k < count; ++k) {
      const Element from = elements(t)[k];
      if (in_.is_final(from.state)) finals.push_back({from.string, Wide::times(from.weight, in_.final(from.state))});
      const auto arcs = in_.arcs(from.state);
      meter_.step(1 + arcs.size());
      for (const auto& arc : arcs) {
        const Weight w = Wide::times(from.weight, arc.weight);
        if (w == Wide::zero()) continue;
        const Id string = outputs_ == Outputs::Acceptor ? from.string : strings_.concat(from.string, strings_.of(arc.olabel));
        steps_.push_back({arc.ilabel, {arc.nextstate, string, w}});
      }
    }
    merge_finals(finals);
    sort_steps(steps_);
    for (size_t at = 0; at < steps_.size();) {
      const Id label = steps_[at].label;
      group_.clear();
      for (; at < steps_.size() && steps_[at].label == label; ++at) enter(steps_[at].to);
      Weight common = group_[0].weight;
      const Id written = strings_.first(group_[0].string);
      bool writes = group_[0].string != Strings::kEmpty;
      for (size_t k = 1; k < group_.size(); ++k) {
        common = Wide::plus(common, group_[k].weight);
        writes = writes && group_[k].string != Strings::kEmpty && strings_.first(group_[k].string) == written;
      }
      for (Element& each : group_) {
        each.weight = group_.size() == 1 ? Wide::one() : Wide::divide(each.weight, common);
        if (writes) each.string = strings_.rest(each.string);
      }
      moves.push_back({label, writes ? written : 0, subset(), common});
    }
    meter_.bytes(memory());
  }

 private:
  // Adds one more element to the group that is being collected, whose states ascend.
  void enter(const Element& to) {
    if (!group_.empty() && group_.back().state == to.state) {
      Element& last = group_.back();
      if (last.string == to.string) {
        last.weight = Wide::plus(last.weight, to.weight);
        return;
      }
      if (outputs_ == Outputs::Functional) refuse_nonfunctional(to.state);
      if (outputs_ == Outputs::Disambiguate) {
        if (Wide::better(to.weight, last.weight)) last = to;
        return;
      }
    }
    group_.push_back(to);
  }
  [[noreturn]] static void refuse_nonfunctional(Id state) {
    refuse("determinize: the transducer is not functional: state " + std::to_string(state) +
           " is reached by one input with two outputs; det_type=\"nonfunctional\" keeps both, \"disambiguate\" the better one");
  }
  void merge_finals(std::vector<Final>& finals) {
    sort_finals(finals);
    size_t kept = 0;
    for (size_t at = 0; at < finals.size(); ++at) {
      if (finals[at].weight == Wide::zero()) continue;
      if (kept && finals[kept - 1].string == finals[at].string)
        finals[kept - 1].weight = Wide::plus(finals[kept - 1].weight, finals[at].weight);
      else finals[kept++] = finals[at];
    }
    finals.resize(kept);
    if (kept < 2) return;
    if (outputs_ == Outputs::Functional)
      refuse("determinize: the transducer is not functional: one input ends with two outputs; det_type=\"nonfunctional\" keeps both");
    if (outputs_ == Outputs::Disambiguate) {
      finals[0] =
          *std::min_element(finals.begin(), finals.end(), [](const Final& a, const Final& b) { return Wide::better(a.weight, b.weight); });
      finals.resize(1);
    }
  }
  // The number of the subset that the collected group makes.
  Id subset() {
    uint64_t hash = group_.size();
    for (const Element& each : group_) {
      hash = (hash ^ static_cast<uint64_t>(each.state)) * 0x9E3779B97F4A7C15ull;
      hash = (hash ^ (hash >> 29) ^ static_cast<uint64_t>(each.string)) * 0xBF58476D1CE4E5B9ull;
      hash = (hash ^ (hash >> 32) ^ Wide::key(each.weight, delta_)) * 0x94D049BB133111EBull;
    }
    const uint32_t small = static_cast<uint32_t>(hash >> 32);
    const uint32_t found = index_.find(small, [&](uint32_t at) {
      const auto other = elements(static_cast<Id>(at));
      return std::equal(other.begin(), other.end(), group_.begin(), group_.end(), [&](const Element& a, const Element& b) {
        return a.state == b.state && a.string == b.string &&
               (a.weight == b.weight || Wide::key(a.weight, delta_) == Wide::key(b.weight, delta_));
      });
    });
    if (found != HashIndex::kNothing) return static_cast<Id>(found);
    const uint32_t made = static_cast<uint32_t>(begins_.size());
    meter_.states(made + 1);
    begins_.push_back(elements_.size());
    elements_.insert(elements_.end(), group_.begin(), group_.end());
    index_.add(small, made);
    return static_cast<Id>(made);
  }

  const Source& in_;
  const Outputs outputs_;
  const double delta_;
  Strings& strings_;
  Meter& meter_;
  std::vector<Element> elements_, group_;
  std::vector<uint64_t> begins_;
  std::vector<SubsetStep<Weight>> steps_;
  HashIndex index_;
};

// Adds an arc with a string as its output: the arc has the first label, and new states follow for the others.
template <class S>
void add_string_arc(Machine<S>& out, Id from, Id ilabel, Id string, typename S::Weight weight, Id to, const Strings& strings, Id more = 0) {
  while (strings.length(string) > 1) {
    const Id between = out.add_state();
    out.add_arc(from, {ilabel, strings.first(string), weight, between});
    string = strings.rest(string);
    from = between;
    ilabel = more;
    weight = S::one();
  }
  out.add_arc(from, {ilabel, string == Strings::kEmpty ? 0 : strings.first(string), weight, to});
}

// `subsequential`: the input label of the outputs that are written after the end of the input; with `increment`, each
// further final output of a state has the next label.
template <class S>
Machine<S> determinize(const Machine<S>& machine, Outputs outputs, Id subsequential, bool increment, double delta, Meter& meter) {
  using W = typename S::Weight;
  const Machine<S> in = connect(machine, meter);
  Strings strings;
  Determinization<S> subsets(in, outputs, delta, strings, meter);
  std::vector<typename Determinization<S>::Move> moves;
  std::vector<typename Determinization<S>::Final> finals;
  Machine<S> out;
  if (subsets.start() == kNone) return out;
  if (outputs == Outputs::Acceptor) {
    out.set_start(0);
    for (Id t = 0; static_cast<size_t>(t) < subsets.size(); ++t) {
      subsets.expand(t, moves, finals);
      out.add_state(finals.empty() ? S::zero() : static_cast<W>(finals[0].weight));
      for (const auto& move : moves) out.add_arc(t, {move.label, move.label, static_cast<W>(move.weight), move.target});
      meter.made(out, subsets.memory());
    }
    return out;
  }
  // The states of the result are the subsets, and after them those between the labels of final outputs.
  std::vector<std::tuple<Id, Id, W>> ends;
  out.set_start(out.add_state());
  for (Id t = 0; static_cast<size_t>(t) < subsets.size(); ++t) {
    subsets.expand(t, moves, finals);
    while (static_cast<size_t>(out.num_states()) < subsets.size()) out.add_state();
    for (const auto& end : finals) {
      if (end.string == Strings::kEmpty) out.set_final(t, static_cast<W>(end.weight));
      else ends.emplace_back(t, end.string, static_cast<W>(end.weight));
    }
    for (const auto& move : moves) out.add_arc(t, {move.label, move.olabel, static_cast<W>(move.weight), move.target});
    meter.made(out, subsets.memory());
  }
  for (size_t end = 0; end < ends.size();) {
    const Id from = std::get<0>(ends[end]);
    for (Id label = subsequential; end < ends.size() && std::get<0>(ends[end]) == from; ++end) {
      const Id last = out.add_state(S::one());
      add_string_arc(out, from, label, std::get<1>(ends[end]), std::get<2>(ends[end]), last, strings, label);
      if (increment && label < INT32_MAX) ++label;
    }
    meter.step();
    meter.made(out, subsets.memory());
  }
  return out;
}

}  // namespace tokenfst::fst
