// Lazy union, concatenation, closure, and changes of single arcs. A state is a state of one of the operands, or a state
// of its own. Cost: that of the operands' states.
#pragma once

#include "fst_operations/compose.hpp"
#include "fst_lazy/delayed.hpp"

namespace tokenfst::fst {

// Numbers the states of several machines: a machine and its state.
template <class S>
class Parts : public Delayed<S> {
 public:
  uint64_t named() const override { return places_.size(); }
  uint64_t memory() const override { return places_.memory(); }

 protected:
  static constexpr uint32_t kOwn = UINT32_MAX;  // a state that is in none of them
  Id number(uint32_t machine, Id s) { return places_.number(static_cast<uint64_t>(machine) << 32 | static_cast<uint32_t>(s), 0); }
  std::pair<uint32_t, Id> place(Id s) const {
    const uint64_t key = places_.key(static_cast<size_t>(s));
    return {static_cast<uint32_t>(key >> 32), static_cast<Id>(key & UINT32_MAX)};
  }
  void copy_arcs(const StateView<S>& view, uint32_t machine, LazyState<S>& out) {
    for (auto arc : view.arcs) {
      arc.nextstate = number(machine, arc.nextstate);
      out.arcs.push_back(arc);
    }
  }

 private:
  TupleTable places_;
};

template <class S>
class LazyUnion final : public Parts<S> {
 public:
  explicit LazyUnion(std::vector<LazyPtr<S>> machines) : machines_(std::move(machines)) {}
  Id start(Meter&) override { return this->number(this->kOwn, 0); }
  void make(Id s, LazyState<S>& out, Meter& meter) override {
    const auto [machine, state] = this->place(s);
    if (machine != this->kOwn) {
      const StateView<S> view = machines_[machine]->at(state, meter);
      out.final = view.final;
      this->copy_arcs(view, machine, out);
      return;
    }
    for (uint32_t k = 0; k < machines_.size(); ++k) {
      const Id start = machines_[k]->start(meter);
      if (start != kNone) out.arcs.push_back({0, 0, S::one(), this->number(k, start)});
    }
  }

 private:
  const std::vector<LazyPtr<S>> machines_;
};

template <class S>
class LazyConcat final : public Parts<S> {
 public:
  LazyConcat(LazyPtr<S> one, LazyPtr<S> other) : machines_{std::move(one), std::move(other)} {}
  Id start(Meter& meter) override {
    const Id start = machines_[0]->start(meter);
    return start == kNone ? kNone : this->number(0, start);
  }
  void make(Id s, LazyState<S>& out, Meter& meter) override {
    const auto [machine, state] = this->place(s);
    const StateView<S> view = machines_[machine]->at(state, meter);
    this->copy_arcs(view, machine, out);
    if (machine == 1) {
      out.final = view.final;
    } else if (view.is_final()) {
      const Id start = machines_[1]->start(meter);
      if (start != kNone) out.arcs.push_back({0, 0, view.final, this->number(1, start)});
    }
  }

 private:
  const LazyPtr<S> machines_[2];
};

template <class S>
class LazyClosure final : public Parts<S> {
 public:
  LazyClosure(LazyPtr<S> machine, bool plus) : machine_(std::move(machine)), plus_(plus) {}
  Id start(Meter& meter) override {
    if (!plus_) return this->number(this->kOwn, 0);
    const Id start = machine_->start(meter);
    return start == kNone ? kNone : this->number(0, start);
  }
  void make(Id s, LazyState<S>& out, Meter& meter) override {
    const auto [machine, state] = this->place(s);
    const Id start = machine_->start(meter);
    if (machine == this->kOwn) {
      out.final = S::one();
      if (start != kNone) out.arcs.push_back({0, 0, S::one(), this->number(0, start)});
      return;
    }
    const StateView<S> view = machine_->at(state, meter);
    out.final = view.final;
    this->copy_arcs(view, 0, out);
    if (view.is_final()) out.arcs.push_back({0, 0, view.final, this->number(0, start)});
  }

 private:
  const LazyPtr<S> machine_;
  const bool plus_;
};

enum class ArcChange { Identity, Invert, InputEpsilon, OutputEpsilon, ProjectInput, ProjectOutput, RmWeight, Times, Plus };

// Changes every arc and every final weight; Zero stays Zero.
template <class S>
class LazyArcMap final : public Delayed<S> {
 public:
  LazyArcMap(LazyPtr<S> inner, ArcChange change, typename S::Weight weight) : inner_(std::move(inner)), change_(change), weight_(weight) {}
  Id start(Meter& meter) override { return inner_->start(meter); }
  void make(Id s, LazyState<S>& out, Meter& meter) override {
    const StateView<S> view = inner_->at(s, meter);
    out.final = changed(view.final);
    out.arcs.assign(view.arcs.begin(), view.arcs.end());
    for (auto& arc : out.arcs) {
      switch (change_) {
        case ArcChange::Invert: std::swap(arc.ilabel, arc.olabel); break;
        case ArcChange::InputEpsilon: arc.ilabel = 0; break;
        case ArcChange::OutputEpsilon: arc.olabel = 0; break;
        case ArcChange::ProjectInput: arc.olabel = arc.ilabel; break;
        case ArcChange::ProjectOutput: arc.ilabel = arc.olabel; break;
        default: arc.weight = changed(arc.weight);
      }
    }
  }
  uint64_t named() const override { return inner_->named(); }
  uint64_t memory() const override { return 0; }

 private:
  typename S::Weight changed(typename S::Weight w) const {
    if (w == S::zero()) return w;
    if (change_ == ArcChange::RmWeight) return S::one();
    if (change_ == ArcChange::Times) return S::times(w, weight_);
    return change_ == ArcChange::Plus ? S::plus(w, weight_) : w;
  }

  const LazyPtr<S> inner_;
  const ArcChange change_;
  const typename S::Weight weight_;
};

}  // namespace tokenfst::fst
