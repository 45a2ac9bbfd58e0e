// Removes the arcs that read and write nothing (epsilon arcs).
//
// The components of these arcs are processed from the last to the first. A state that will still be entered (the start,
// and the targets of arcs with a label) gets the sum, over all states that epsilons lead to, of the distance times
// their other arcs. A finished state stands for everything that it reaches. Components with cycles have distances of
// their own (distances.hpp), which are exact, or refused. Arcs with equal labels and targets are added up. Quadratic at
// worst, as the result may be.
#pragma once

#include <algorithm>
#include <memory>
#include <queue>
#include <tuple>
#include <vector>

#include "fst/distances.hpp"
#include "fst/sorting.hpp"

namespace tokenfst::fst {

// A small graph over a few states.
template <class W>
struct LocalGraph {
  std::vector<Id> names;
  std::vector<std::vector<std::pair<Id, W>>> edges;
  Id size() const { return static_cast<Id>(edges.size()); }
  Id name(Id s) const { return names[s]; }
  template <class F>
  void each(Id s, F&& f) const {
    for (const auto& [next, w] : edges[s]) f(next, w);
  }
  uint32_t degree(Id s) const { return static_cast<uint32_t>(edges[s].size()); }
  std::pair<Id, W> edge(Id s, uint32_t at) const { return edges[s][at]; }
};

template <class S>
class EpsilonRemoval {
 public:
  using Wide = typename S::Wide;
  using Weight = typename Wide::Weight;
  using Own = typename S::Weight;

  EpsilonRemoval(const Machine<S>& machine, double delta, Meter& meter) : in_(machine), delta_(delta), meter_(meter) {}

  Machine<S> run() {
    const Id n = in_.num_states();
    std::vector<uint8_t> needed(n, 0);
    bool any = false;
    if (in_.start() != kNone) needed[in_.start()] = 1;
    for (Id s = 0; s < n; ++s) {
      for (const auto& arc : in_.arcs(s)) {
        if (is_epsilon(arc)) any = true;
        else needed[arc.nextstate] = 1;
      }
    }
    if (!any) return in_;
    meter_.bytes(in_.memory() * 2 + static_cast<uint64_t>(n) * 64);
    found_ = components(Forward<S>{in_}, in_.start(), [&](Id s, uint32_t at) { return is_epsilon(in_.arcs(s)[at]); }, meter_);
    for (Id s = 0; s < n; ++s) out_.add_state(in_.final(s));
    out_.reserve(n, in_.num_arcs());
    out_.set_start(in_.start());
    distance_.assign(n, Wide::zero());
    done_.assign(n, 0);
    graphs_.resize(found_.size());
    for (Id s : found_.order) {
      if (needed[s]) finish(s);
    }
    for (Id s = 0; s < n; ++s) {
      if (!needed[s]) out_.set_final(s, S::zero());
    }
    return std::move(out_);
  }

 private:
  static bool is_epsilon(const Arc<Own>& arc) { return arc.ilabel == 0 && arc.olabel == 0; }

  void finish(Id root) {
    arcs_.clear();
    final_ = Wide::zero();
    parts_ = 0;
    reach(root, Wide::one());
    while (!waiting_.empty()) {
      const Id c = waiting_.top();
      waiting_.pop();
      while (!waiting_.empty() && waiting_.top() == c) waiting_.pop();
      const auto [begin, end] = found_.states(c);
      if (!found_.is_cyclic[c]) settle(*begin, c);
      else settle_cyclic(begin, end, c);
    }
    if (parts_ > 1) {
      const auto key = [](const auto& arc) { return std::tuple(arc.ilabel, arc.olabel, arc.nextstate); };
      sort_arcs_fully(std::span(arcs_));
      size_t kept = 0;
      for (size_t at = 0; at < arcs_.size(); ++at) {
        if (kept && key(arcs_[kept - 1]) == key(arcs_[at])) arcs_[kept - 1].weight = Wide::plus(arcs_[kept - 1].weight, arcs_[at].weight);
        else arcs_[kept++] = arcs_[at];
      }
      arcs_.resize(kept);
    }
    for (const auto& arc : arcs_) out_.add_arc(root, {arc.ilabel, arc.olabel, static_cast<Own>(arc.weight), arc.nextstate});
    out_.set_final(root, static_cast<Own>(final_));
    done_[root] = 1;
    meter_.made(out_, arcs_.capacity() * sizeof(arcs_[0]));
  }
  void reach(Id s, Weight w) {
    if (w == Wide::zero()) return;
    if (distance_[s] == Wide::zero()) waiting_.push(found_.of[s]);
    distance_[s] = Wide::plus(distance_[s], w);
  }
  void settle(Id s, Id c) {
    const Weight w = std::exchange(distance_[s], Wide::zero());
    if (done_[s]) give_finished(s, w);
    else give(s, w, c);
  }
  void settle_cyclic(const Id* begin, const Id* end, Id c) {
    auto& graph = graphs_[c];
    if (!graph) graph = local(begin, end, c);
    std::vector<Weight> from;
    bool any = false;
    for (const Id* s = begin; s != end; ++s) {
      Weight w = std::exchange(distance_[*s], Wide::zero());
      if (w != Wide::zero() && done_[*s]) {
        give_finished(*s, w);
        w = Wide::zero();
      }
      any |= w != Wide::zero();
      from.push_back(w);
    }
    if (!any) return;
    from = Distances<Wide, LocalGraph<Weight>>(*graph, std::move(from), delta_, meter_).run(kNone);
    for (size_t k = 0; k < from.size(); ++k) {
      if (from[k] != Wide::zero()) give(begin[k], from[k], c);
    }
  }
  // Adds the arcs of `s` itself, times `w`; epsilons that leave its component are queued.
  void give(Id s, Weight w, Id c) {
    ++parts_;
    final_ = Wide::plus(final_, Wide::times(w, in_.final(s)));
    for (const auto& arc : in_.arcs(s)) {
      const Weight through = Wide::times(w, arc.weight);
      if (!is_epsilon(arc)) arcs_.push_back({arc.ilabel, arc.olabel, through, arc.nextstate});
      else if (found_.of[arc.nextstate] != c) reach(arc.nextstate, through);
    }
    meter_.step(1 + in_.arcs(s).size());
  }
  void give_finished(Id s, Weight w) {
    ++parts_;
    final_ = Wide::plus(final_, Wide::times(w, out_.final(s)));
    for (const auto& arc : out_.arcs(s)) arcs_.push_back({arc.ilabel, arc.olabel, Wide::times(w, arc.weight), arc.nextstate});
    meter_.step(1 + out_.arcs(s).size());
    meter_.bytes(out_.memory() + arcs_.capacity() * sizeof(arcs_[0]));
  }
  std::unique_ptr<LocalGraph<Weight>> local(const Id* begin, const Id* end, Id c) {
    auto made = std::make_unique<LocalGraph<Weight>>();
    made->names.assign(begin, end);
    made->edges.resize(static_cast<size_t>(end - begin));
    if (place_.empty()) place_.resize(in_.num_states());
    for (const Id* s = begin; s != end; ++s) place_[*s] = static_cast<Id>(s - begin);
    for (const Id* s = begin; s != end; ++s) {
      for (const auto& arc : in_.arcs(*s)) {
        if (is_epsilon(arc) && found_.of[arc.nextstate] == c) made->edges[s - begin].emplace_back(place_[arc.nextstate], arc.weight);
      }
    }
    return made;
  }

  const Machine<S>& in_;
  const double delta_;
  Meter& meter_;
  Machine<S> out_;
  Components found_;
  std::vector<std::unique_ptr<LocalGraph<Weight>>> graphs_;
  std::vector<Id> place_;
  std::vector<Weight> distance_;
  std::vector<uint8_t> done_;
  std::priority_queue<Id> waiting_;  // components that wait; edges lead to smaller numbers
  std::vector<Arc<Weight>> arcs_;    // of the current state
  Weight final_ = Wide::zero();
  size_t parts_ = 0;
};

// `trim`: removes states that are on no accepting path. `delta`: the accuracy of sums over cycles.
template <class S>
Machine<S> rmepsilon(const Machine<S>& machine, bool trim, double delta, Meter& meter) {
  Machine<S> out = EpsilonRemoval<S>(machine, delta, meter).run();
  if (trim) return connect(std::move(out), meter);
  return out;
}

}  // namespace tokenfst::fst
