// A lazy transducer: states are computed when they are requested, and evicted when the cache is full.
//
// A Delayed defines how one state is computed: its arcs and its final weight. States have dense numbers, in the order
// in which they are first named; the tables of numbers are kept. A Lazy caches the arcs of the most recently used
// states, up to a number of bytes; an evicted state is computed again, with the same result. A Machine can be used as a
// Lazy that has all of its states, without a copy. `expanded` walks all states and returns the machine.
//
// Invariant: `make(s)` depends only on `s` and the states named so far; it names states in the order of its arcs. One
// thread at a time is inside a Lazy; the Lazies that it is made of are locked after it, so locks are always taken in
// one order. Cost: a cached state O(1); any other the cost of `make`. Budget: each call has its own clock; the named
// states and the bytes of all tables count for as long as the machine lives.
#pragma once

#include <list>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fst/graph.hpp"
#include "fst/sorting.hpp"
#include "threads/exclusive_use.hpp"

namespace tokenfst::fst {

// A state: its final weight and its arcs.
template <class S>
struct LazyState {
  typename S::Weight final = S::zero();
  std::vector<Arc<typename S::Weight>> arcs;
  uint64_t memory() const { return sizeof *this + arcs.capacity() * sizeof arcs[0] + 96; }
};

// Computes states: the start (kNone: there is none), and any state that has a number. `named`: how many states have
// numbers; `memory`: bytes of the tables. Functions raise BudgetExceeded by the meter.
template <class S>
class Delayed {
 public:
  virtual ~Delayed() = default;
  virtual Id start(Meter& meter) = 0;
  virtual void make(Id s, LazyState<S>& out, Meter& meter) = 0;
  virtual uint64_t named() const = 0;
  virtual uint64_t memory() const = 0;
};

// A view of a state, which keeps it in memory for as long as the view exists.
template <class S>
struct StateView {
  typename S::Weight final;
  std::span<const Arc<typename S::Weight>> arcs;
  std::shared_ptr<const LazyState<S>> keeps;
  bool is_final() const { return final != S::zero(); }
};

// A lazy transducer. `cache`: the bytes of arcs that it keeps.
template <class S>
class Lazy {
 public:
  explicit Lazy(std::shared_ptr<const Machine<S>> machine) : machine_(std::move(machine)) {}
  Lazy(std::unique_ptr<Delayed<S>> maker, uint64_t cache) : maker_(std::move(maker)), room_(cache) {}

  // The finished machine that answers for this one; null if there is none.
  const Machine<S>* machine() const { return machine_.get(); }

  Id start(Meter& meter) {
    if (machine_) return machine_->start();
    const InUse::Scope scope(in_use_);
    if (!started_) {
      start_ = maker_->start(meter);
      started_ = true;
    }
    return start_;
  }
  // A state that has a number.
  StateView<S> at(Id s, Meter& meter) {
    if (machine_) return {machine_->final(s), machine_->arcs(s), nullptr};
    const InUse::Scope scope(in_use_);
    if (const auto found = kept_.find(s); found != kept_.end()) {
      order_.splice(order_.begin(), order_, found->second.place);
      return view(found->second.state);
    }
    auto made = std::make_shared<LazyState<S>>();
    maker_->make(s, *made, meter);
    meter.step(1 + made->arcs.size());
    meter.states(maker_->named());
    used_ += made->memory();
    meter.bytes(maker_->memory() + used_);
    order_.push_front(s);
    kept_.emplace(s, Kept{made, order_.begin()});
    while (used_ > room_ && order_.size() > 1) {
      const auto last = kept_.find(order_.back());
      used_ -= last->second.state->memory();
      kept_.erase(last);
      order_.pop_back();
    }
    ++made_;
    return view(std::move(made));
  }
  // The number of states that have numbers.
  uint64_t named() {
    if (machine_) return static_cast<uint64_t>(machine_->num_states());
    const InUse::Scope scope(in_use_);
    return maker_->named();
  }
  // The bytes of the cache.
  uint64_t used() {
    const InUse::Scope scope(in_use_);
    return used_;
  }
  // The number of states that have numbers, of states computed so far, and of states in the cache, and the bytes of the cache.
  std::tuple<uint64_t, uint64_t, uint64_t, uint64_t> counts() {
    const InUse::Scope scope(in_use_);
    return {named(), made_, order_.size(), used_};
  }

 private:
  struct Kept {
    std::shared_ptr<const LazyState<S>> state;
    std::list<Id>::iterator place;
  };
  static StateView<S> view(const std::shared_ptr<const LazyState<S>>& state) {
    return {state->final, std::span<const Arc<typename S::Weight>>(state->arcs), state};
  }

  const std::shared_ptr<const Machine<S>> machine_;
  const std::unique_ptr<Delayed<S>> maker_;
  const uint64_t room_ = 0;
  InUse in_use_;
  bool started_ = false;
  Id start_ = kNone;
  std::list<Id> order_;  // the most recently used first
  std::unordered_map<Id, Kept> kept_;
  uint64_t used_ = 0, made_ = 0;
};

template <class S>
using LazyPtr = std::shared_ptr<Lazy<S>>;

// The machine that a lazy machine stands for, with the same state numbers.
template <class S>
Machine<S> expanded(Lazy<S>& lazy, Meter& meter) {
  if (lazy.machine()) return *lazy.machine();
  Machine<S> out;
  const Id start = lazy.start(meter);
  if (start == kNone) return out;
  for (Id s = 0; static_cast<uint64_t>(s) < lazy.named(); ++s) {
    const StateView<S> view = lazy.at(s, meter);
    out.add_state(view.final);
    for (const auto& arc : view.arcs) out.add_arc(s, arc);
    meter.made(out, lazy.used());
  }
  out.set_start(start);
  return out;
}

// A lazy machine whose arcs are sorted by output or by input, as composition requires for looking labels up.
template <class S>
class SortedArcs final : public Delayed<S> {
 public:
  SortedArcs(LazyPtr<S> inner, bool by_output) : inner_(std::move(inner)), by_output_(by_output) {}
  Id start(Meter& meter) override { return inner_->start(meter); }
  void make(Id s, LazyState<S>& out, Meter& meter) override {
    const StateView<S> view = inner_->at(s, meter);
    out.final = view.final;
    out.arcs.assign(view.arcs.begin(), view.arcs.end());
    sort_arcs(std::span(out.arcs), by_output_);
  }
  uint64_t named() const override { return inner_->named(); }
  uint64_t memory() const override { return 0; }

 private:
  const LazyPtr<S> inner_;
  const bool by_output_;
};

}  // namespace tokenfst::fst
