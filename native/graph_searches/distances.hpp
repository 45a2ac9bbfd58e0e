// Shortest distances to acceptance, for a state and for all states that it leads to, on a graph that is explored on
// demand.
//
// An edge costs one token, or nothing if the target's language is a subset of the source's (a member of a union): the
// distance of a union is the least of its members' distances. An edge may lead to several states that have to be
// completed one after the other, the frames of a stack: their distances add up (Knuth, "A generalization of Dijkstra's
// algorithm", 1977). Each distance comes with `worst`, an upper bound of the distance after any one token; a member's
// bound holds for the union too. Cost: O((states + edges) log states) for the distances. For the bounds, passes over the
// edges to members until nothing changes: at most one more than the longest chain of members has steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calls/budget.hpp"

namespace tokenfst {

constexpr uint32_t kUnreachable = UINT32_MAX;
constexpr uint32_t kUnknown = UINT32_MAX - 1;  // the distance has not been computed yet
// Adds two distances; a sum that does not fit is kUnreachable.
inline uint32_t plus(uint32_t a, uint32_t b) {
  const uint64_t sum = uint64_t{a} + b;
  return sum >= kUnknown ? kUnreachable : static_cast<uint32_t>(sum);
}

// The edges that leave a state.
struct Successors {
  std::vector<uint32_t> next;  // states that one token leads to
  std::vector<uint32_t> same;  // members: states whose language is a subset of this one's
  // States to be completed one after the other, after `cost` tokens; at cost 0 it is a member.
  struct Sum {
    uint32_t cost;
    std::vector<uint32_t> parts;
  };
  std::vector<Sum> sums;
  bool some = false;  // whether other tokens lead on, too: the distance after any one token has no bound
};

class Distances {
 public:
  // `distance`: the fewest tokens to acceptance; `worst`: an upper bound of the distance after any one token.
  struct Entry {
    uint32_t state, distance, worst;
  };

  // For one search. It raises BudgetExceeded, like all that follows; `budget` must outlive this object.
  explicit Distances(const Budget& budget) : budget_(budget), deadline_(budget.seconds) {}

  // Limits the search: a newly found state for which `explores(q)` is false is not explored, and its distance is `bound(q)`. Without
  // `bound`, the search ends at the first such state, and solve() returns nothing.
  void give_up_unless(std::function<bool(uint32_t)> explores, std::function<uint32_t(uint32_t)> bound) {
    explores_ = std::move(explores);
    bound_ = std::move(bound);
  }
  // Whether there was such a state.
  bool gave_up() const { return !frontier_.empty(); }

  // `known_before(q)` returns a pointer to the entry of q if it was known before, or null; `successors(q)` and `accepting(q)` describe the
  // graph. Returns an entry for `start` and for every unknown state that can be reached from it.
  template <class Known, class Next, class Accepting>
  std::vector<Entry> solve(uint32_t start, Known&& known_before, Next&& successors, Accepting&& accepting) {
    auto known = [&](uint32_t state) -> const Entry* {
      if (const Entry* entry = known_before(state)) return entry;
      auto it = frontier_.find(state);
      return it == frontier_.end() ? nullptr : &it->second;
    };
    explore(start, known, successors);
    if (gave_up() && !bound_) return {};
    relax(known, accepting);
    bound(known);
    return std::move(found_);
  }

 private:
  template <class Known, class Next>
  void explore(uint32_t start, Known&& known, Next&& successors) {
    auto visit = [&](uint32_t state) {
      if (known(state) || number_.contains(state)) return;
      if (explores_ && !explores_(state)) {
        frontier_.emplace(state, Entry{state, bound_ ? bound_(state) : kUnreachable, kUnreachable});
        return;
      }
      number_.emplace(state, found_.size());
      found_.push_back({state, kUnreachable, 0});
    };
    visit(start);
    size_t bytes = 0;
    for (size_t i = 0; i < found_.size() && (bound_ || !gave_up()); ++i) {
      if (deadline_.expired()) throw BudgetExceeded("seconds", budget_.seconds, "distances");
      edges_.push_back(successors(found_[i].state));
      bytes += (edges_.back().next.capacity() + edges_.back().same.capacity()) * sizeof(uint32_t);
      for (auto& sum : edges_.back().sums) bytes += sum.parts.capacity() * sizeof(uint32_t) + sizeof sum;
      if (bytes > budget_.bytes) throw BudgetExceeded("bytes", static_cast<double>(budget_.bytes), "distances");
      for (uint32_t state : edges_.back().next) visit(state);
      for (uint32_t state : edges_.back().same) visit(state);
      for (auto& sum : edges_.back().sums) {
        for (uint32_t state : sum.parts) visit(state);
      }
    }
  }

  // Dijkstra's algorithm, backwards from acceptance and from known states.
  template <class Known, class Accepting>
  void relax(Known&& known, Accepting&& accepting) {
    std::vector<std::vector<std::pair<size_t, uint32_t>>> sources(found_.size());
    struct Pending {
      size_t source;
      uint32_t length;  // of the settled parts, and the token
      size_t open;  // how many parts are not settled
    };
    std::vector<Pending> sums;
    std::vector<std::vector<size_t>> parts_of(found_.size());  // for each state, the sums that it is part of, once for each occurrence
    using Item = std::pair<uint32_t, size_t>;
    std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
    auto improve = [&](size_t i, uint32_t length) {
      if (length < found_[i].distance) found_[i].distance = length, queue.emplace(length, i);
    };
    for (size_t i = 0; i < found_.size(); ++i) {
      time_limit_.step(static_cast<uint32_t>(edges_[i].next.size() + edges_[i].same.size() + 1));
      if (accepting(found_[i].state)) improve(i, 0);
      auto edge = [&](uint32_t target, uint32_t cost) {
        if (auto it = number_.find(target); it != number_.end()) sources[it->second].emplace_back(i, cost);
        else if (uint32_t length = known(target)->distance; length != kUnreachable) improve(i, plus(length, cost));
      };
      for (uint32_t target : edges_[i].next) edge(target, 1);
      for (uint32_t target : edges_[i].same) edge(target, 0);
      for (const auto& [cost, parts] : edges_[i].sums) {
        Pending sum{i, cost, 0};
        for (uint32_t part : parts) {
          if (auto it = number_.find(part); it != number_.end()) parts_of[it->second].push_back(sums.size()), ++sum.open;
          else sum.length = plus(sum.length, known(part)->distance);
        }
        if (sum.open == 0) improve(i, sum.length);
        sums.push_back(sum);
      }
    }
    std::vector<bool> settled(found_.size());
    while (!queue.empty()) {
      auto [length, i] = queue.top();
      queue.pop();
      time_limit_.step(static_cast<uint32_t>(sources[i].size() + 1));
      if (length > found_[i].distance || settled[i]) continue;
      settled[i] = true;
      for (auto& [source, cost] : sources[i]) improve(source, plus(length, cost));
      for (size_t k : parts_of[i]) {
        sums[k].length = plus(sums[k].length, length);
        if (--sums[k].open == 0) improve(sums[k].source, sums[k].length);
      }
    }
  }

  // The upper bounds `worst`, after the distances.
  template <class Known>
  void bound(Known&& known) {
    auto entry = [&](uint32_t state) {
      auto it = number_.find(state);
      return it != number_.end() ? found_[it->second] : *known(state);
    };
    for (size_t i = 0; i < found_.size(); ++i) {
      time_limit_.step(static_cast<uint32_t>(edges_[i].next.size() + 1));
      for (uint32_t target : edges_[i].next) {
        if (uint32_t length = entry(target).distance; length != kUnreachable) found_[i].worst = std::max(found_[i].worst, length);
      }
      for (const auto& [cost, parts] : edges_[i].sums) {
        uint32_t length = 0;
        for (uint32_t part : parts) length = plus(length, entry(part).distance);
        // The effect of a token inside such a member is not explored, so there is no bound.
        if (cost == 0) length = kUnreachable;
        if (length != kUnreachable || cost == 0) found_[i].worst = std::max(found_[i].worst, length);
      }
      if (edges_[i].some) found_[i].worst = kUnreachable;
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = found_.size(); i-- > 0;) {
        time_limit_.step(static_cast<uint32_t>(edges_[i].same.size() + 1));
        for (uint32_t member : edges_[i].same) {
          if (uint32_t worst = entry(member).worst; worst > found_[i].worst) found_[i].worst = worst, changed = true;
        }
      }
    }
  }

  const Budget& budget_;
  Deadline deadline_;
  TimeLimit time_limit_{budget_.seconds, "distances"};
  std::vector<Entry> found_;
  std::unordered_map<uint32_t, size_t> number_;  // the index in found_ of each state
  std::vector<Successors> edges_;
  std::function<bool(uint32_t)> explores_;
  std::function<uint32_t(uint32_t)> bound_;
  std::unordered_map<uint32_t, Entry> frontier_;  // states that were not explored, with their bounds
};

}  // namespace tokenfst
