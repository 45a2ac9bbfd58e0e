// Whether a state leads to acceptance: the one search behind dead-state removal over bytes and over tokens.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

namespace tokenfst {

enum class Life : uint8_t { Unknown, Alive, Dead };

// Breadth first from `start`; `life(q)` says what is known of q, `settle(q, Life)` keeps what is found out, `next(q, visit)`
// calls visit for each successor. Stops at the first state known to be alive: its path becomes alive. An exhausted
// search makes all it met dead. So nothing is searched twice, and each call costs what it newly settles.
template <class State, class Known, class Settle, class Next>
bool leads_to_acceptance(State start, Known&& life, Settle&& settle, Next&& next) {
  constexpr uint32_t kRoot = UINT32_MAX;
  std::vector<std::pair<State, uint32_t>> queue{{start, kRoot}};
  std::unordered_set<State> seen{start};
  for (uint32_t i = 0; i < queue.size(); ++i) {
    State q = queue[i].first;
    if (life(q) == Life::Alive) {
      for (uint32_t k = i; k != kRoot; k = queue[k].second) settle(queue[k].first, Life::Alive);
      return true;
    }
    if (life(q) == Life::Dead) continue;
    next(q, [&](State target) {
      if (seen.insert(target).second) queue.emplace_back(target, i);
    });
  }
  for (auto& [q, parent] : queue) settle(q, Life::Dead);
  return false;
}

}  // namespace tokenfst
