// Shortest distances: for each state, the sum of the weights of all paths that lead to it (forward), or from it to
// acceptance (backward).
//
// If the numbers of the states are a topological order, or the reverse of one, one pass suffices. Otherwise:
// - If the sum chooses one of its operands (kPath) and no weight is better than One: Dijkstra's algorithm. Exact.
// - In all other cases the strongly connected components are processed in topological order. Inside a component with cycles:
//   - If kPath: the algorithm of Bellman and Ford, which refuses a cycle that gets better with every round. Exact.
//   - Else, in at most kEliminated states: elimination (Kleene, Lehmann), cubic, and exact up to rounding. It refuses sums
//     that diverge.
//   - Else: relaxation (Mohri 2002), until the remaining additions are below `delta`. If that does not end, the budget ends
//     it.
// Everything is computed in float64 and rounded at the end. Sums that do not exist raise FstOp.
#pragma once

#include <queue>
#include <string>
#include <vector>

#include "fst/graph.hpp"

namespace tokenfst::fst {

constexpr size_t kEliminated = 128;

[[noreturn]] inline void refuse_divergent(Id state) {
  refuse("the weights of the paths through state " + std::to_string(state) +
         " have no sum: a cycle through it weighs One or more, so each round adds as much as the last, or a better one. "
         "Give the cycle a cost above 0 (a probability below 1), or remove it");
}

// Solves x = x A + b for a square matrix, row by row, and writes x over b. For sums that may diverge.
template <class S, class Name>
void eliminate(std::vector<typename S::Weight>& a, std::vector<typename S::Weight>& b, Name&& name, Meter& meter) {
  const size_t n = b.size();
  const auto zero = S::zero();
  for (size_t k = 0; k < n; ++k) {
    typename S::Weight star;
    if (!S::star(a[k * n + k], star) || !S::member(star)) refuse_divergent(name(k));
    // x_k = (sum over j > k of x_j a_jk + b_k) * star: paths through k are added to the edges between the others.
    for (size_t j = k + 1; j < n; ++j) a[j * n + k] = S::times(a[j * n + k], star);
    b[k] = S::times(b[k], star);
    for (size_t i = k + 1; i < n; ++i) {
      const auto out = a[k * n + i];
      if (out == zero) continue;
      b[i] = S::plus(b[i], S::times(b[k], out));
      for (size_t j = k + 1; j < n; ++j) {
        if (a[j * n + k] != zero) a[j * n + i] = S::plus(a[j * n + i], S::times(a[j * n + k], out));
      }
    }
    meter.step(n * n / 4 + 1);
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = k + 1; j < n; ++j) b[k] = S::plus(b[k], S::times(b[j], a[j * n + k]));
  }
}

// One computation. `view`: Forward for distances from the start, Backward for distances to acceptance.
template <class S, class View>
class Distances {
 public:
  using Wide = typename S::Wide;
  using Weight = typename Wide::Weight;

  // `from`: the initial value of each state.
  Distances(const View& view, std::vector<Weight> from, double delta, Meter& meter)
      : view_(view), distance_(std::move(from)), delta_(delta), meter_(meter) {
    meter.bytes(distance_.size() * 64);
  }

  // `first`: the state at which the search for components begins, or kNone.
  std::vector<Weight> run(Id first) {
    if (edges_go(view_, false)) {
      for (Id s = 0; s < view_.size(); ++s) relax(s);
    } else if (edges_go(view_, true)) {
      for (Id s = view_.size(); s-- > 0;) relax(s);
    } else {
      bool done = false;
      if constexpr (Wide::kPath) done = dijkstra();
      if (!done) by_components(first);
    }
    for (Id s = 0; s < view_.size(); ++s) {
      if (!Wide::member(distance_[s])) refuse_divergent(view_.name(s));
    }
    return std::move(distance_);
  }

 private:
  void relax(Id s) {
    meter_.step(1 + view_.degree(s));
    const Weight here = distance_[s];
    if (here == Wide::zero()) return;
    view_.each(s, [&](Id next, auto w) { distance_[next] = Wide::plus(distance_[next], Wide::times(here, w)); });
  }
  // Computes the distances by Dijkstra's algorithm. Returns false, and leaves them unchanged, if some weight on the way
  // is better than One.
  bool dijkstra() {
    using Entry = std::pair<Weight, Id>;
    const auto later = [](const Entry& a, const Entry& b) { return Wide::better(b.first, a.first); };
    std::priority_queue<Entry, std::vector<Entry>, decltype(later)> queue(later);
    for (Id s = 0; s < view_.size(); ++s) {
      if (distance_[s] != Wide::zero()) queue.emplace(distance_[s], s);
    }
    const std::vector<Weight> before = distance_;
    while (!queue.empty()) {
      const auto [here, s] = queue.top();
      queue.pop();
      if (here != distance_[s]) continue;
      bool fits = true;
      view_.each(s, [&, here = here](Id next, auto w) {
        fits &= !Wide::better(w, Wide::one());
        const Weight through = Wide::times(here, w);
        if (Wide::better(through, distance_[next])) {
          distance_[next] = through;
          queue.emplace(through, next);
        }
      });
      if (!fits) {
        distance_ = before;
        return false;
      }
      meter_.step(1 + view_.degree(s));
    }
    return true;
  }

  void by_components(Id first) {
    found_ = components(view_, first, meter_);
    place_.assign(view_.size(), 0);
    for (Id c = found_.size(); c-- > 0;) {
      const auto [begin, end] = found_.states(c);
      if (!found_.is_cyclic[c]) {
        relax(*begin);
        continue;
      }
      if (std::all_of(begin, end, [&](Id s) { return distance_[s] == Wide::zero(); })) continue;
      if constexpr (Wide::kPath) bellman_ford(begin, end, c);
      else if (static_cast<size_t>(end - begin) <= kEliminated) solve(begin, end, c);
      else iterate(begin, end, c);
      for (const Id* s = begin; s != end; ++s) leave(*s, c);
    }
  }
  // Passes the distance of a state of a finished component on to later components.
  void leave(Id s, Id c) {
    const Weight here = distance_[s];
    view_.each(s, [&](Id next, auto w) {
      if (found_.of[next] != c) distance_[next] = Wide::plus(distance_[next], Wide::times(here, w));
    });
    meter_.step(1 + view_.degree(s));
  }

  void bellman_ford(const Id* begin, const Id* end, Id c) {
    std::vector<Id> now, later;
    for (const Id* s = begin; s != end; ++s) {
      if (distance_[*s] != Wide::zero()) now.push_back(*s);
    }
    for (size_t round = 0; !now.empty(); ++round) {
      if (round > static_cast<size_t>(end - begin)) refuse_divergent(view_.name(now[0]));
      for (Id s : now) place_[s] = 0;
      for (Id s : now) {
        const Weight here = distance_[s];
        view_.each(s, [&](Id next, auto w) {
          if (found_.of[next] != c) return;
          const Weight through = Wide::times(here, w);
          if (!Wide::better(through, distance_[next])) return;
          distance_[next] = through;
          if (!place_[next]) {
            place_[next] = 1;
            later.push_back(next);
          }
        });
        meter_.step(1 + view_.degree(s));
      }
      now.swap(later);
      later.clear();
    }
  }

  void solve(const Id* begin, const Id* end, Id c) {
    const size_t n = static_cast<size_t>(end - begin);
    std::vector<Weight> a(n * n, Wide::zero()), b(n);
    for (size_t k = 0; k < n; ++k) place_[begin[k]] = static_cast<uint32_t>(k);
    for (size_t k = 0; k < n; ++k) {
      b[k] = distance_[begin[k]];
      view_.each(begin[k], [&](Id next, auto w) {
        if (found_.of[next] != c) return;
        Weight& entry = a[k * n + place_[next]];
        entry = Wide::plus(entry, static_cast<Weight>(w));
      });
    }
    eliminate<Wide>(a, b, [&](size_t k) { return view_.name(begin[k]); }, meter_);
    for (size_t k = 0; k < n; ++k) distance_[begin[k]] = b[k];
  }

  void iterate(const Id* begin, const Id* end, Id c) {
    std::vector<Weight> left(static_cast<size_t>(end - begin), Wide::zero());
    std::queue<Id> queue;
    std::vector<uint8_t> waits(left.size(), 0);
    for (size_t k = 0; k < left.size(); ++k) {
      place_[begin[k]] = static_cast<uint32_t>(k);
      left[k] = distance_[begin[k]];
      if (left[k] != Wide::zero()) {
        queue.push(begin[k]);
        waits[k] = 1;
      }
    }
    while (!queue.empty()) {
      const Id s = queue.front();
      queue.pop();
      waits[place_[s]] = 0;
      const Weight more = std::exchange(left[place_[s]], Wide::zero());
      view_.each(s, [&](Id next, auto w) {
        if (found_.of[next] != c) return;
        const Weight added = Wide::times(more, w), sum = Wide::plus(distance_[next], added);
        const uint32_t at = place_[next];
        left[at] = Wide::plus(left[at], added);
        if (!Wide::member(sum)) refuse_divergent(view_.name(next));
        const bool matters = !Wide::near(distance_[next], Wide::plus(distance_[next], left[at]), delta_);
        distance_[next] = sum;
        if (matters && !waits[at]) {
          waits[at] = 1;
          queue.push(next);
        }
      });
      meter_.step(1 + view_.degree(s));
    }
  }

  const View& view_;
  std::vector<Weight> distance_;
  const double delta_;
  Meter& meter_;
  Components found_;
  std::vector<uint32_t> place_;
};

template <class S>
using WideWeight = typename S::Wide::Weight;

// The distances from the start to each state, or, if `backward`, from each state to acceptance. Zero: there is no path.
template <class S>
std::vector<WideWeight<S>> shortest_distance(const Machine<S>& machine, bool backward, double delta, Meter& meter) {
  std::vector<WideWeight<S>> from(machine.num_states(), S::Wide::zero());
  if (!backward) {
    if (machine.start() != kNone) from[machine.start()] = S::Wide::one();
    const Forward<S> view{machine};
    return Distances<S, Forward<S>>(view, std::move(from), delta, meter).run(machine.start());
  }
  for (Id s = 0; s < machine.num_states(); ++s) from[s] = machine.final(s);
  const Backward<S> view(machine, meter);
  return Distances<S, Backward<S>>(view, std::move(from), delta, meter).run(kNone);
}

}  // namespace tokenfst::fst
