// Whether a state can reach acceptance: the search that removes dead states, over bytes and over tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tokenfst {

enum class Life : uint8_t { Unknown, Alive, Dead };

// Best-first search from `start` by `estimate(q)`, an estimate of the distance to acceptance, and among equal
// estimates in the order of discovery. `life(q)` returns what is known of q, `settle(q, Life)` stores a result,
// `next(q, visit)` calls visit for each successor. The search stops at the first state that is known to be alive: all
// states on the path to it become alive, and the other visited states stay unknown. If the search is exhausted, all
// visited states are dead. After `limit` states it gives up, settles nothing, and returns Unknown. Cost: the arcs of the
// visited states, and a logarithm for each state. Results are kept, so a dead state is searched once; a state beside the
// path to acceptance may be visited again by a later search. Rejected: breadth first; an intersection of two patterns of long texts is
// then explored from its start up to the length of its shortest word, which took 90,000 states for a time of day and a
// date.
template <class State, class Known, class Settle, class Next, class Estimate>
Life leads_to_acceptance(State start, Known&& life, Settle&& settle, Next&& next, Estimate&& estimate, size_t limit = SIZE_MAX) {
  constexpr uint32_t kRoot = UINT32_MAX;
  std::vector<std::pair<State, uint32_t>> met{{start, kRoot}};
  std::unordered_set<State> seen{start};
  using Rank = std::invoke_result_t<Estimate&, State>;
  using Open = std::pair<Rank, uint32_t>;  // estimate, and index in `met`
  std::priority_queue<Open, std::vector<Open>, std::greater<Open>> open;
  open.emplace(Rank{}, 0);
  while (!open.empty()) {
    const uint32_t i = open.top().second;
    const State q = met[i].first;
    open.pop();
    if (life(q) == Life::Alive) {
      for (uint32_t k = i; k != kRoot; k = met[k].second) settle(met[k].first, Life::Alive);
      return Life::Alive;
    }
    if (life(q) == Life::Dead) continue;
    if (met.size() > limit) return Life::Unknown;
    next(q, [&](State target) {
      if (!seen.insert(target).second) return;
      open.emplace(life(target) == Life::Unknown ? estimate(target) : Rank{}, static_cast<uint32_t>(met.size()));
      met.emplace_back(target, i);
    });
  }
  for (auto& [q, parent] : met) settle(q, Life::Dead);
  return Life::Dead;
}

}  // namespace tokenfst
