// Lazy determinization, with the step of the eager one (fst_operations/determinize.hpp). States of the result are
// subsets, and the states between the labels of an output after the end of the input. Subsets are kept in tables; their
// arcs may be evicted.
//
// The input should have no states that cannot reach acceptance; otherwise weights and outputs are distributed
// differently than in the eager result (a dead state has a residual of its own), while the words and their weights are
// the same.
#pragma once

#include "fst_operations/determinize.hpp"
#include "fst_lazy/rational.hpp"

namespace tokenfst::fst {

// The interface that Determinization requires of a machine. The arcs of a state are valid until the next state is
// requested.
template <class S>
class LazySource {
 public:
  explicit LazySource(LazyPtr<S> machine) : machine_(std::move(machine)) {}
  void meter_by(Meter& meter) { meter_ = &meter; }
  Id start() const { return machine_->start(*meter_); }
  bool is_final(Id s) const { return look(s).is_final(); }
  typename S::Weight final(Id s) const { return look(s).final; }
  std::span<const Arc<typename S::Weight>> arcs(Id s) const { return look(s).arcs; }

 private:
  const StateView<S>& look(Id s) const {
    if (s != at_) {
      view_ = machine_->at(s, *meter_);
      at_ = s;
    }
    return view_;
  }
  const LazyPtr<S> machine_;
  Meter* meter_ = nullptr;
  mutable Id at_ = kNone;
  mutable StateView<S> view_{S::zero(), {}, nullptr};
};

template <class S>
class LazySubsets final : public Delayed<S> {
 public:
  using W = typename S::Weight;
  using Subsets = Determinization<S, LazySource<S>>;
  LazySubsets(LazyPtr<S> machine, Outputs outputs, Id subsequential, bool increment, double delta)
      : source_(std::move(machine)), outputs_(outputs), subsequential_(subsequential), increment_(increment), delta_(delta) {}

  Id start(Meter& meter) override {
    auto& subsets = begun(meter);
    const Id first = subsets.start();
    return first == kNone ? kNone : number(kSubset, first, 0);
  }
  void make(Id s, LazyState<S>& out, Meter& meter) override {
    auto& subsets = begun(meter);
    const auto [kind, target, string] = place(s);
    if (kind != kSubset) {  // the rest of an output after the end of the input, read as label `kind`
      if (string == Strings::kEmpty) out.final = S::one();
      else out.arcs.push_back({kind, strings_.first(string), S::one(), number(kind, kNone, strings_.rest(string))});
      return;
    }
    subsets.expand(target, moves_, finals_);
    for (const auto& move : moves_) {
      const Id olabel = outputs_ == Outputs::Acceptor ? move.label : move.olabel;
      out.arcs.push_back({move.label, olabel, static_cast<W>(move.weight), number(kSubset, move.target, 0)});
    }
    Id label = subsequential_;
    for (const auto& end : finals_) {
      const auto weight = static_cast<W>(end.weight);
      if (outputs_ == Outputs::Acceptor || end.string == Strings::kEmpty) {
        out.final = weight;
      } else {
        out.arcs.push_back({label, strings_.first(end.string), weight, number(label, kNone, strings_.rest(end.string))});
        if (increment_ && label < INT32_MAX) ++label;
      }
    }
  }
  uint64_t named() const override { return places_.size(); }
  uint64_t memory() const override { return places_.size() * 16 + index_.memory() + (subsets_ ? subsets_->memory() : 0); }

 private:
  static constexpr Id kSubset = -1;
  using Place = std::tuple<Id, Id, Id>;

  // The subsets count under the budget of the first call; in addition each call has its own clock.
  Subsets& begun(Meter& meter) {
    source_.meter_by(meter);
    if (!subsets_) subsets_ = std::make_unique<Subsets>(source_, outputs_, delta_, strings_, own_);
    return *subsets_;
  }
  Place place(Id s) const { return places_[static_cast<size_t>(s)]; }
  Id number(Id kind, Id target, Id string) {
    const Place wanted{kind, target, string};
    uint64_t mixed = static_cast<uint64_t>(static_cast<uint32_t>(kind)) << 32 | static_cast<uint32_t>(target);
    mixed = ((mixed * 0x9E3779B97F4A7C15ull) ^ static_cast<uint32_t>(string)) * 0xBF58476D1CE4E5B9ull;
    const auto small = static_cast<uint32_t>(mixed >> 32);
    const uint32_t found = index_.find(small, [&](uint32_t at) { return places_[at] == wanted; });
    if (found != HashIndex::kNothing) return static_cast<Id>(found);
    places_.push_back(wanted);
    index_.add(small, static_cast<uint32_t>(places_.size() - 1));
    return static_cast<Id>(places_.size() - 1);
  }

  LazySource<S> source_;
  const Outputs outputs_;
  const Id subsequential_;
  const bool increment_;
  const double delta_;
  Meter own_{Budget{UINT64_MAX, UINT64_MAX, kInfinity<double>}, "determinize"};  // Lazy counts states and bytes
  Strings strings_;
  std::unique_ptr<Subsets> subsets_;
  std::vector<Place> places_;
  HashIndex index_;
  std::vector<typename Subsets::Move> moves_;
  std::vector<typename Subsets::Final> finals_;
};

}  // namespace tokenfst::fst
