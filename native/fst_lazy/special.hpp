// Labels with a special meaning in the lookup of composition, as in OpenFst's SigmaMatcher, RhoMatcher and PhiMatcher.
//
// sigma: matches every label, in addition to the arcs that have it. rho: matches every label for which the state has no
// arc (the rest). phi: the state to continue from if there is no arc for the label (failure), without reading the
// label; a phi arc to its own state (with `loop`) reads the label like rho. None of them matches epsilon, and the other
// machine may not contain them. A state has at most one phi arc, and phi arcs make no cycle: both violations are
// refused, where OpenFst reports an error for the first and does not terminate in the second.
//
// The label that a special arc matched is written on the result: on the side that was looked up, and (`both`) also on
// the other side if that had the special label. Cost: a search for the label, and one for each phi arc that is
// followed.
#pragma once

#include <algorithm>

#include "fst_lazy/delayed.hpp"

namespace tokenfst::fst {

enum class SpecialKind { None, Sigma, Rho, Phi };

struct Special {
  SpecialKind kind = SpecialKind::None;
  Id label = kNone;
  bool both = true, loop = true;
};

// Looks labels up in one machine, whose arcs are sorted on that side: the `output` of the first machine, or the input
// of the second.
template <class S>
class SpecialMatcher {
 public:
  using ArcType = Arc<typename S::Weight>;
  SpecialMatcher(Lazy<S>& machine, Special special, bool output)
      : machine_(machine), special_(special), mine_(output ? &ArcType::olabel : &ArcType::ilabel),
        other_(output ? &ArcType::ilabel : &ArcType::olabel) {}

  // If phi is the label 0, there is no other epsilon.
  static bool has_epsilons(const Special& special) { return !(special.kind == SpecialKind::Phi && special.label == 0); }

  // Calls `f(arc)` for each arc that matches `label`, which is not epsilon, in state `s` with the view `here`.
  template <class F>
  void find(Id s, const StateView<S>& here, Id label, Meter& meter, F&& f) {
    if (label == special_.label) {
      refuse("compose: the other machine has an arc with the special label " + std::to_string(label) +
             ", which stands for no label of its own");
    }
    auto found = range(here, label);
    if (special_.kind == SpecialKind::Phi) {
      find_by_failure(s, here, label, meter, f);
      return;
    }
    for (const ArcType& arc : found) f(arc);
    if (special_.kind == SpecialKind::Sigma || (special_.kind == SpecialKind::Rho && found.empty())) {
      for (const ArcType& arc : range(here, special_.label)) f(rewritten(arc, label));
    }
  }

  typename S::Weight final(Id s, const StateView<S>& here, Meter& meter) {
    if (special_.kind != SpecialKind::Phi || here.is_final()) return here.final;
    auto weight = S::one();
    StateView<S> at = here;
    std::vector<Id> path = {s};
    while (!at.is_final()) {
      const ArcType* phi = failure(at, path.back());
      if (!phi || phi->nextstate == path.back()) return S::zero();
      weight = S::times(weight, phi->weight);
      follow(path, phi->nextstate);
      at = machine_.at(path.back(), meter);
    }
    return S::times(weight, at.final);
  }

 private:
  std::span<const ArcType> range(const StateView<S>& view, Id label) const {
    const auto begin =
        std::lower_bound(view.arcs.begin(), view.arcs.end(), label, [this](const ArcType& arc, Id l) { return arc.*mine_ < l; });
    auto end = begin;
    while (end != view.arcs.end() && (*end).*mine_ == label) ++end;
    return {begin, end};
  }
  // The phi arc of a state, or null.
  const ArcType* failure(const StateView<S>& view, Id s) const {
    const auto found = range(view, special_.label);
    if (found.size() > 1)
      refuse("compose: state " + std::to_string(s) + " has " + std::to_string(found.size()) + " phi arcs: one is allowed");
    return found.empty() ? nullptr : &found.front();
  }
  static void follow(std::vector<Id>& path, Id next) {
    if (std::find(path.begin(), path.end(), next) != path.end())
      refuse("compose: the phi arcs of state " + std::to_string(next) + " lead back to it");
    path.push_back(next);
  }
  template <class F>
  void find_by_failure(Id s, const StateView<S>& here, Id label, Meter& meter, F&& f) {
    auto weight = S::one();
    StateView<S> at = here;
    std::vector<Id> path = {s};
    while (true) {
      if (const auto found = range(at, label); !found.empty()) {
        for (ArcType arc : found) {
          arc.weight = S::times(weight, arc.weight);
          f(arc);
        }
        return;
      }
      const ArcType* phi = failure(at, path.back());
      if (!phi) return;
      if (special_.loop && phi->nextstate == path.back()) {
        ArcType arc = rewritten(*phi, label);
        arc.weight = S::times(weight, arc.weight);
        f(arc);
        return;
      }
      weight = S::times(weight, phi->weight);
      follow(path, phi->nextstate);
      at = machine_.at(path.back(), meter);
      meter.step();
    }
  }
  ArcType rewritten(ArcType arc, Id label) const {
    arc.*mine_ = label;
    if (special_.both && arc.*other_ == special_.label) arc.*other_ = label;
    return arc;
  }

  Lazy<S>& machine_;
  const Special special_;
  Id ArcType::* const mine_;
  Id ArcType::* const other_;
};

}  // namespace tokenfst::fst
