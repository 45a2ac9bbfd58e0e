// Lazy removal of epsilons: for each state, the sum over all states that epsilon arcs lead to, times their other arcs.
// Each state computes this anew, so a full walk may cost more than the eager operation (fst_operations/rmepsilon.hpp),
// which shares finished states. Cycles are summed as there: exactly, or refused.
#pragma once

#include <unordered_map>

#include "fst_operations/rmepsilon.hpp"
#include "fst_lazy/delayed.hpp"

namespace tokenfst::fst {

template <class S>
class LazyEpsilonRemoval final : public Delayed<S> {
 public:
  using Wide = typename S::Wide;
  using Weight = typename Wide::Weight;
  using W = typename S::Weight;
  LazyEpsilonRemoval(LazyPtr<S> inner, double delta) : inner_(std::move(inner)), delta_(delta) {}
  Id start(Meter& meter) override { return inner_->start(meter); }
  void make(Id s, LazyState<S>& out, Meter& meter) override {
    LocalGraph<Weight> graph;
    std::vector<StateView<S>> views;
    std::unordered_map<Id, Id> places;
    const auto place = [&](Id state) {
      const auto [at, is_new] = places.try_emplace(state, graph.size());
      if (is_new) {
        graph.names.push_back(state);
        graph.edges.emplace_back();
        views.push_back(inner_->at(state, meter));
      }
      return at->second;
    };
    place(s);
    for (Id at = 0; at < graph.size(); ++at) {
      const StateView<S> view = views[at];  // NOLINT(performance-unnecessary-copy-initialization): `place` makes more of them
      for (const auto& arc : view.arcs) {
        if (is_epsilon(arc)) {
          const Id next = place(arc.nextstate);
          graph.edges[at].emplace_back(next, arc.weight);
        }
      }
      meter.step(1 + view.arcs.size());
    }
    if (graph.size() == 1 && graph.edges[0].empty()) {
      out.final = views[0].final;
      out.arcs.assign(views[0].arcs.begin(), views[0].arcs.end());
      return;
    }
    std::vector<Weight> from(graph.size(), Wide::zero());
    from[0] = Wide::one();
    from = Distances<Wide, LocalGraph<Weight>>(graph, std::move(from), delta_, meter).run(0);
    Weight final = Wide::zero();
    std::vector<Arc<Weight>> arcs;
    for (size_t at = 0; at < from.size(); ++at) {
      if (from[at] == Wide::zero()) continue;
      final = Wide::plus(final, Wide::times(from[at], views[at].final));
      for (const auto& arc : views[at].arcs) {
        if (!is_epsilon(arc)) arcs.push_back({arc.ilabel, arc.olabel, Wide::times(from[at], arc.weight), arc.nextstate});
      }
    }
    const auto key = [](const auto& arc) { return std::tuple(arc.ilabel, arc.olabel, arc.nextstate); };
    sort_arcs_fully(std::span(arcs));
    for (size_t at = 0; at < arcs.size();) {
      Arc<Weight> sum = arcs[at];
      for (++at; at < arcs.size() && key(arcs[at]) == key(sum); ++at) sum.weight = Wide::plus(sum.weight, arcs[at].weight);
      out.arcs.push_back({sum.ilabel, sum.olabel, static_cast<W>(sum.weight), sum.nextstate});
    }
    out.final = static_cast<W>(final);
  }
  uint64_t named() const override { return inner_->named(); }
  uint64_t memory() const override { return 0; }

 private:
  static bool is_epsilon(const Arc<W>& arc) { return arc.ilabel == 0 && arc.olabel == 0; }
  const LazyPtr<S> inner_;
  const double delta_;
};

}  // namespace tokenfst::fst
