// Composition: x to z with the sum over y of A(x, y) * B(y, z). A state is a pair of states with a third part, the
// state of the filter, which lets each path through the epsilons of both machines count once (Allauzen and Mohri,
// "3-way composition", 2008).
//
// One side must be sorted on the labels that are matched. Pairs are created when they are first reached, and numbered
// in that order. For a pair, the arcs of one state are looked up among those of the other; if both are sorted and of
// similar number, they are merged instead. Cost: pairs times the smaller number of arcs times a logarithm.
#pragma once

#include <algorithm>
#include <vector>

#include "containers/hash_index.hpp"
#include "fst_operations/rational.hpp"

namespace tokenfst::fst {

// How moves by epsilon of the two machines are interleaved, as in OpenFst.
enum class Filter { Null, Trivial, Sequence, AltSequence, Match, NoMatch };

// Numbers tuples of 64 bits and a small part, in the order in which they first occur.
class TupleTable {
 public:
  Id number(uint64_t key, uint8_t part) {
    const uint32_t hash = static_cast<uint32_t>(((key * 4 + part) * 0x9E3779B97F4A7C15ull) >> 32);
    const uint32_t found = index_.find(hash, [&](uint32_t at) { return keys_[at] == key && parts_[at] == part; });
    if (found != HashIndex::kNothing) return static_cast<Id>(found);
    const uint32_t made = static_cast<uint32_t>(keys_.size());
    keys_.push_back(key);
    parts_.push_back(part);
    index_.add(hash, made);
    return static_cast<Id>(made);
  }
  size_t size() const { return keys_.size(); }
  uint64_t key(size_t at) const { return keys_[at]; }
  uint8_t part(size_t at) const { return parts_[at]; }
  uint64_t memory() const { return keys_.capacity() * 9 + index_.memory(); }

 private:
  std::vector<uint64_t> keys_;
  std::vector<uint8_t> parts_;
  HashIndex index_;
};

// The filter: given a move of one machine alone, or of both, returns its next state, or kNo.
class FilterState {
 public:
  static constexpr uint8_t kNo = 3;
  FilterState(Filter filter, uint8_t part, bool all1, bool none1, bool all2, bool none2)
      : filter_(filter), part_(part), all1_(all1), none1_(none1), all2_(all2), none2_(none2) {}
  // The first machine moves and writes nothing.
  uint8_t first_alone() const {
    switch (filter_) {
      case Filter::Null: return kNo;
      case Filter::Trivial:
      case Filter::NoMatch: return 0;
      case Filter::Sequence: return part_ != 0 ? kNo : 0;
      case Filter::AltSequence: return all2_ ? kNo : none2_ ? 0 : 1;
      case Filter::Match: return part_ == 0 ? (none2_ ? 0 : all2_ ? kNo : 1) : part_ == 1 ? 1 : kNo;
    }
    return kNo;
  }
  // The second machine moves and reads nothing.
  uint8_t second_alone() const {
    switch (filter_) {
      case Filter::Null: return kNo;
      case Filter::Trivial:
      case Filter::NoMatch: return 0;
      case Filter::Sequence: return all1_ ? kNo : none1_ ? 0 : 1;
      case Filter::AltSequence: return part_ == 1 ? kNo : 0;
      case Filter::Match: return part_ == 0 ? (none1_ ? 0 : all1_ ? kNo : 2) : part_ == 2 ? 2 : kNo;
    }
    return kNo;
  }
  // Both machines move, by epsilon or by another label.
  uint8_t both(bool epsilon) const {
    if (!epsilon || filter_ == Filter::Trivial || filter_ == Filter::Null) return 0;
    return filter_ == Filter::Match && part_ == 0 ? 0 : kNo;
  }

 private:
  const Filter filter_;
  const uint8_t part_;
  const bool all1_, none1_, all2_, none2_;
};

// The arcs that leave one pair of states. `Sink` numbers pairs, takes the arcs, and counts the work. Inlining is
// forced: GCC otherwise emits calls for code that it had inlined when composition was one class, which costs 5% more
// instructions.
template <class S, class Sink>
class PairStep {
 public:
  using ArcType = Arc<typename S::Weight>;
  using Arcs = std::span<const ArcType>;
  // `plain1`, `plain2`: label 0 is not an epsilon on that side (it is a failure label).
  PairStep(Sink& sink, Id s1, Id s2, Arcs arcs1, Arcs arcs2, bool sorted1, bool sorted2, bool plain1 = false, bool plain2 = false)
      : sink_(sink), s1_(s1), s2_(s2), arcs1_(arcs1), arcs2_(arcs2), sorted1_(sorted1), sorted2_(sorted2),
        eps1_(plain1 ? 0 : epsilons(arcs1, &ArcType::olabel, sorted1)), eps2_(plain2 ? 0 : epsilons(arcs2, &ArcType::ilabel, sorted2)) {}

  FilterState filter(Filter filter, uint8_t part, bool final1, bool final2) const {
    return {filter, part, eps1_ == arcs1_.size() && !final1, eps1_ == 0, eps2_ == arcs2_.size() && !final2, eps2_ == 0};
  }
  // The moves of one machine alone, by its epsilons.
  void alone(const FilterState& filter) {
    if (const uint8_t part = filter.second_alone(); eps2_ && part != FilterState::kNo) {
      each_epsilon(arcs2_, &ArcType::ilabel, sorted2_, eps2_,
                   [&](const ArcType& arc) { sink_.add({0, arc.olabel, arc.weight, sink_.number(s1_, arc.nextstate, part)}); });
    }
    if (const uint8_t part = filter.first_alone(); eps1_ && part != FilterState::kNo) {
      each_epsilon(arcs1_, &ArcType::olabel, sorted1_, eps1_,
                   [&](const ArcType& arc) { sink_.add({arc.ilabel, 0, arc.weight, sink_.number(arc.nextstate, s2_, part)}); });
    }
  }
  bool both(const FilterState& filter) const { return eps1_ && eps2_ && filter.both(true) != FilterState::kNo; }
  // The moves of both machines; `epsilon`: including those by epsilon.
  void together(bool epsilon) {
    if (sorted1_ && sorted2_) {
      const auto rest1 = arcs1_.subspan(epsilon ? 0 : eps1_), rest2 = arcs2_.subspan(epsilon ? 0 : eps2_);
      if (rest1.size() * 8 < rest2.size()) search(rest1, rest2, true, epsilon);
      else if (rest2.size() * 8 < rest1.size()) search(rest2, rest1, false, epsilon);
      else merge(rest1, rest2);
    } else if (sorted2_) {
      search(arcs1_, arcs2_, true, epsilon);
    } else {
      search(arcs2_, arcs1_, false, epsilon);
    }
  }
  [[gnu::always_inline]] void meet(const ArcType& one, const ArcType& other) {
    sink_.add({one.ilabel, other.olabel, S::times(one.weight, other.weight), sink_.number(one.nextstate, other.nextstate, 0)});
  }

 private:
  static size_t epsilons(Arcs arcs, Id ArcType::* label, bool sorted) {
    size_t count = 0;
    for (const ArcType& arc : arcs) {
      if (arc.*label == 0) ++count;
      else if (sorted) break;
    }
    return count;
  }
  template <class F>
  static void each_epsilon(Arcs arcs, Id ArcType::* label, bool sorted, size_t count, F&& f) {
    for (const ArcType& arc : sorted ? arcs.first(count) : arcs) {
      if (arc.*label == 0) f(arc);
    }
  }

  // Looks up the labels of the arcs `few` among `many`; `first`: `few` are arcs of the first machine.
  [[gnu::always_inline]] void search(Arcs few, Arcs many, bool first, bool both) {
    const auto mine = first ? &ArcType::olabel : &ArcType::ilabel;
    const auto other = first ? &ArcType::ilabel : &ArcType::olabel;
    for (const ArcType& arc : few) {
      const Id label = arc.*mine;
      if (label == 0 && !both) continue;
      auto found = std::lower_bound(many.begin(), many.end(), label, [&](const ArcType& each, Id l) { return each.*other < l; });
      for (; found != many.end() && (*found).*other == label; ++found) {
        if (first) meet(arc, *found);
        else meet(*found, arc);
      }
    }
    sink_.step(few.size());
  }
  [[gnu::always_inline]] void merge(Arcs arcs1, Arcs arcs2) {
    auto at1 = arcs1.begin(), at2 = arcs2.begin();
    while (at1 != arcs1.end() && at2 != arcs2.end()) {
      if (at1->olabel < at2->ilabel) {
        ++at1;
      } else if (at2->ilabel < at1->olabel) {
        ++at2;
      } else {
        const Id label = at1->olabel;
        auto end2 = at2;
        while (end2 != arcs2.end() && end2->ilabel == label) ++end2;
        for (; at1 != arcs1.end() && at1->olabel == label; ++at1) {
          for (auto each = at2; each != end2; ++each) meet(*at1, *each);
        }
        at2 = end2;
      }
    }
  }

  Sink& sink_;
  const Id s1_, s2_;
  const Arcs arcs1_, arcs2_;
  const bool sorted1_, sorted2_;
  const size_t eps1_, eps2_;
};

template <class S>
class Composition {
 public:
  using ArcType = Arc<typename S::Weight>;
  Composition(const Machine<S>& one, const Machine<S>& other, Filter filter, bool sorted1, bool sorted2, Meter& meter)
      : a_(one), b_(other), filter_(filter), sorted1_(sorted1), sorted2_(sorted2), meter_(meter) {}

  Machine<S> run() {
    if (a_.start() == kNone || b_.start() == kNone) return {};
    number(a_.start(), b_.start(), 0);
    out_.set_start(0);
    for (size_t at = 0; at < pairs_.size(); ++at) expand(at);
    return std::move(out_);
  }

  // Called by PairStep.
  [[gnu::always_inline]] void add(const ArcType& arc) {
    out_.add_arc(here_, arc);
    if (out_.num_arcs() % kEach == 0) {  // a single pair may have the product of all arcs
      meter_.step(kEach);
      meter_.made(out_, pairs_.memory());
    }
  }
  [[gnu::always_inline]] Id number(Id s1, Id s2, uint8_t part) {
    return pairs_.number(static_cast<uint64_t>(s1) << 32 | static_cast<uint32_t>(s2), part);
  }
  void step(size_t effort) { meter_.step(effort); }

 private:
  void expand(size_t at) {
    const uint64_t key = pairs_.key(at);
    const Id s1 = static_cast<Id>(key >> 32), s2 = static_cast<Id>(key & 0xFFFFFFFF);
    here_ = static_cast<Id>(at);
    const bool final1 = a_.is_final(s1), final2 = b_.is_final(s2);
    out_.add_state(final1 && final2 ? S::times(a_.final(s1), b_.final(s2)) : S::zero());
    PairStep<S, Composition> pair(*this, s1, s2, a_.arcs(s1), b_.arcs(s2), sorted1_, sorted2_);
    const FilterState filter = pair.filter(filter_, pairs_.part(at), final1, final2);
    meter_.step(1 + std::min(a_.arcs(s1).size(), b_.arcs(s2).size()));
    pair.alone(filter);
    pair.together(pair.both(filter));
    meter_.made(out_, pairs_.memory());
  }

  static constexpr uint64_t kEach = 1 << 16;

  const Machine<S>& a_;
  const Machine<S>& b_;
  const Filter filter_;
  const bool sorted1_, sorted2_;
  Meter& meter_;
  Machine<S> out_;
  TupleTable pairs_;
  Id here_ = 0;
};

// The composition. If neither side is sorted for the look-up, a copy of `other` is sorted. `trim`: removes states that are on no
// accepting path. Raises BudgetExceeded.
template <class S>
Machine<S> compose(const Machine<S>& one, const Machine<S>& other, Filter filter, bool trim, Meter& meter) {
  const bool sorted1 = is_sorted(one, true), sorted2 = is_sorted(other, false);
  Machine<S> sorted;
  if (!sorted1 && !sorted2) {
    sorted = other;
    arcsort(sorted, false, meter);
  }
  const Machine<S>& second = sorted1 || sorted2 ? other : sorted;
  Machine<S> out = Composition<S>(one, second, filter, sorted1, sorted2 || !sorted1, meter).run();
  if (trim) return connect(std::move(out), meter);
  return out;
}

// Calls `take` for each arc that leaves a pair of states of a difference: an arc of the first state, and the state that
// its label leads to from the second state, whose arcs are sorted; kNone if there is none, or one of weight Zero. An
// epsilon leaves the second state as it is. `number` numbers a pair.
template <class S, class Arcs, class Number, class Take>
void difference_step(const Arcs& one, const Arcs& other, Id second, Number&& number, Take&& take) {
  for (auto arc : one) {
    Id next = arc.ilabel == 0 ? second : kNone;
    if (arc.ilabel != 0) {
      const auto found =
          std::lower_bound(other.begin(), other.end(), arc.ilabel, [](const auto& each, Id label) { return each.ilabel < label; });
      if (found != other.end() && found->ilabel == arc.ilabel && found->weight != S::zero()) next = found->nextstate;
    }
    arc.nextstate = number(arc.nextstate, next);
    take(arc);
  }
}

// The words of `one` that `other` does not accept, with their weights in `one`. Both are acceptors; `other` is
// deterministic, sorted and without epsilon, and its weights are One or Zero. A state paired with kNone: `other` accepts no
// continuation any more.
template <class S>
Machine<S> difference(const Machine<S>& one, const Machine<S>& other, bool trim, Meter& meter) {
  Machine<S> out;
  if (one.start() == kNone) return out;
  TupleTable pairs;
  const auto number = [&](Id s1, Id s2) { return pairs.number(static_cast<uint64_t>(s1) << 32 | static_cast<uint32_t>(s2), 0); };
  number(one.start(), other.start());
  out.set_start(0);
  for (size_t at = 0; at < pairs.size(); ++at) {
    const uint64_t key = pairs.key(at);
    const Id s1 = static_cast<Id>(key >> 32), s2 = static_cast<Id>(key & 0xFFFFFFFF);
    const Id here = out.add_state(s2 != kNone && other.is_final(s2) ? S::zero() : one.final(s1));
    meter.step(1 + one.arcs(s1).size());
    using Arcs = std::span<const Arc<typename S::Weight>>;
    difference_step<S>(Arcs(one.arcs(s1)), s2 == kNone ? Arcs() : Arcs(other.arcs(s2)), s2, number,
                       [&](const auto& arc) { out.add_arc(here, arc); });
    meter.made(out, pairs.memory());
  }
  if (trim) return connect(std::move(out), meter);
  return out;
}

}  // namespace tokenfst::fst
