// Lazy composition and difference over pairs of states: the same steps as the eager ones (fst_operations/compose.hpp),
// and labels with a special meaning on one side (special.hpp).
#pragma once

#include "fst_operations/compose.hpp"
#include "fst_lazy/special.hpp"

namespace tokenfst::fst {

// Numbers pairs of states, with the state of the filter.
template <class S>
class Pairs : public Delayed<S> {
 public:
  uint64_t named() const override { return pairs_.size(); }
  uint64_t memory() const override { return pairs_.memory(); }

 protected:
  Id named_pair(Id s1, Id s2, uint8_t part) { return pairs_.number(static_cast<uint64_t>(s1) << 32 | static_cast<uint32_t>(s2), part); }
  std::tuple<Id, Id, uint8_t> pair(Id s) const {
    const uint64_t key = pairs_.key(static_cast<size_t>(s));
    return {static_cast<Id>(key >> 32), static_cast<Id>(key & UINT32_MAX), pairs_.part(static_cast<size_t>(s))};
  }

 private:
  TupleTable pairs_;
};

// A machine whose arcs are sorted for the lookup: the machine itself, or a lazy sorted machine around it.
template <class S>
LazyPtr<S> sorted_for_lookup(LazyPtr<S> machine, bool by_output, uint64_t cache) {
  if (machine->machine() && is_sorted(*machine->machine(), by_output)) return machine;
  return std::make_shared<Lazy<S>>(std::make_unique<SortedArcs<S>>(std::move(machine), by_output), cache);
}

template <class S>
class LazyComposition final : public Pairs<S> {
 public:
  using ArcType = Arc<typename S::Weight>;
  // `by_output`: the special label is an output of the first machine; otherwise an input of the second.
  LazyComposition(LazyPtr<S> one, LazyPtr<S> other, Filter filter, Special special, bool by_output, uint64_t cache)
      : one_(std::move(one)), other_(std::move(other)), filter_(filter), special_(special), by_output_(by_output) {
    const auto is = [](const LazyPtr<S>& each, bool output) { return each->machine() && is_sorted(*each->machine(), output); };
    sorted1_ = is(one_, true), sorted2_ = is(other_, false);
    if (special_.kind != SpecialKind::None) {
      (by_output ? one_ : other_) = sorted_for_lookup(by_output ? one_ : other_, by_output, cache);
      (by_output ? sorted1_ : sorted2_) = true;
    } else if (!sorted1_ && !sorted2_) {
      other_ = sorted_for_lookup(other_, false, cache);
      sorted2_ = true;
    }
  }
  Id start(Meter& meter) override {
    const Id start1 = one_->start(meter), start2 = other_->start(meter);
    return start1 == kNone || start2 == kNone ? kNone : this->named_pair(start1, start2, 0);
  }
  void make(Id s, LazyState<S>& out, Meter& meter) override {
    const auto [s1, s2, part] = this->pair(s);
    const StateView<S> view1 = one_->at(s1, meter), view2 = other_->at(s2, meter);
    Sink sink{*this, out, meter};
    const bool plain = !SpecialMatcher<S>::has_epsilons(special_);
    PairStep<S, Sink> step(sink, s1, s2, view1.arcs, view2.arcs, sorted1_, sorted2_, plain && by_output_, plain && !by_output_);
    const FilterState filter = step.filter(filter_, part, view1.is_final(), view2.is_final());
    if (special_.kind == SpecialKind::None) {
      if (view1.is_final() && view2.is_final()) out.final = S::times(view1.final, view2.final);
      step.alone(filter);
      step.together(step.both(filter));
      return;
    }
    SpecialMatcher<S> matcher(by_output_ ? *one_ : *other_, special_, by_output_);
    const StateView<S>& looked_up = by_output_ ? view1 : view2;
    const StateView<S>& gone_through = by_output_ ? view2 : view1;
    if (gone_through.is_final()) {
      const auto final = matcher.final(by_output_ ? s1 : s2, looked_up, meter);
      if (final != S::zero()) out.final = S::times(final, gone_through.final);
    }
    step.alone(filter);
    const bool both = step.both(filter);
    for (const ArcType& arc : gone_through.arcs) {
      const Id label = by_output_ ? arc.ilabel : arc.olabel;
      const auto meet = [&, &mine = arc](const ArcType& found) {
        if (by_output_) step.meet(found, mine);
        else step.meet(mine, found);
      };
      if (label != 0) {
        matcher.find(by_output_ ? s1 : s2, looked_up, label, meter, meet);
      } else if (both) {
        for (const ArcType& found : looked_up.arcs) {
          if ((by_output_ ? found.olabel : found.ilabel) == 0) meet(found);
        }
      }
    }
  }

 private:
  struct Sink {
    LazyComposition& owner;
    LazyState<S>& out;
    Meter& meter;
    void add(const ArcType& arc) {
      out.arcs.push_back(arc);
      if (out.arcs.size() % 65536 == 0) meter.bytes(out.memory());
    }
    Id number(Id s1, Id s2, uint8_t part) { return owner.named_pair(s1, s2, part); }
    void step(size_t effort) { meter.step(effort); }
  };

  LazyPtr<S> one_, other_;
  const Filter filter_;
  const Special special_;
  const bool by_output_;
  bool sorted1_, sorted2_;
};

// The words of `one` that `other` does not accept, as in fst_operations/compose.hpp; `other` is deterministic and
// sorted.
template <class S>
class LazyDifference final : public Pairs<S> {
 public:
  LazyDifference(LazyPtr<S> one, LazyPtr<S> other) : one_(std::move(one)), other_(std::move(other)) {}
  Id start(Meter& meter) override {
    const Id start1 = one_->start(meter);
    return start1 == kNone ? kNone : this->named_pair(start1, other_->start(meter), 0);
  }
  void make(Id s, LazyState<S>& out, Meter& meter) override {
    const auto [s1, s2, part] = this->pair(s);
    const StateView<S> view = one_->at(s1, meter);
    StateView<S> gone{S::zero(), {}, nullptr};
    if (s2 != kNone) gone = other_->at(s2, meter);
    out.final = gone.is_final() ? S::zero() : view.final;
    difference_step<S>(
        view.arcs, gone.arcs, s2, [&](Id first, Id second) { return this->named_pair(first, second, 0); },
        [&](const auto& arc) { out.arcs.push_back(arc); });
  }

 private:
  const LazyPtr<S> one_, other_;
};

}  // namespace tokenfst::fst
