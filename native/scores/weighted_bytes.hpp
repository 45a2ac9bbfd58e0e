// A weighted automaton over bytes, with log weights on arcs and final states. Several arcs of a state may have the same
// byte (the automaton is then ambiguous). It may have failure arcs: if a state has no arc for a byte, its failure state
// reads the byte instead, and the failure's weight is added.
//
// A position is a set of states, each with the log-sum of the weights of all paths to it (log semiring). Sums are kept
// as logarithms, so nothing overflows, however long a text is.
//
// Invariant: the arcs of a state are sorted by byte; weights are not NaN and less than infinity; failure arcs make no
// cycle. Cost: a step is a bit test for each failure and O(arcs taken); a state takes 72 bytes and 8 for its final weight, an
// arc 16, and each different byte of a state 4.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calls/budget.hpp"

namespace tokenfst {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// log(e^a + e^b)
inline double log_add(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kMinusInfinity ? a : a + std::log1p(std::exp(b - a));
}

// A state of a position, or the target of an arc, with its log weight.
struct Weighted {
  uint32_t state;
  double weight;
};

// The log-sum of the weights of a position; -inf if it has no state.
inline double log_sum(std::span<const Weighted> position) {
  if (position.size() == 1) return position[0].weight;
  double most = kMinusInfinity, sum = 0;
  for (const Weighted& at : position) most = std::max(most, at.weight);
  if (most == kMinusInfinity) return most;
  for (const Weighted& at : position) sum += std::exp(at.weight - most);
  return most + std::log(sum);
}

class WeightedBytes {
 public:
  struct Tables {
    std::span<const double> finals;     // for each state; -inf: not final
    std::span<const uint32_t> offsets;  // the index of each state's first arc; one more than there are states
    std::span<const uint8_t> labels;
    std::span<const double> weights;
    std::span<const uint32_t> targets;
    std::span<const int32_t> failures;  // the failure state of each state; -1: none
    std::span<const double> failure_weights;
  };

  // Checks the tables and copies them. Raises Constraint if they violate the invariant. O(size of the tables).
  explicit WeightedBytes(const Tables& given) {
    const size_t count = given.finals.size();
    require(count > 0 && count < INT32_MAX && given.offsets.size() == count + 1 && given.failures.size() == count &&
                given.failure_weights.size() == count && given.offsets[0] == 0 && given.offsets[count] == given.labels.size() &&
                given.weights.size() == given.labels.size() && given.targets.size() == given.labels.size(),
            "arrays whose sizes do not fit");
    for (const auto& weights : {given.finals, given.weights, given.failure_weights}) {
      for (const double w : weights) require(w < std::numeric_limits<double>::infinity(), "a weight that is NaN or infinite");
    }
    states_.resize(count);
    finals_.assign(given.finals.begin(), given.finals.end());
    arcs_.reserve(given.labels.size());
    for (size_t s = 0; s < count; ++s) {
      State& state = states_[s];
      state.first_group = static_cast<uint32_t>(groups_.size());
      state.failure = given.failures[s];
      state.failure_weight = given.failure_weights[s];
      require(state.failure >= -1 && state.failure < static_cast<int64_t>(count), "a failure to no state");
      require(given.offsets[s] <= given.offsets[s + 1] && given.offsets[s + 1] <= given.labels.size(), "offsets that descend");
      bool rests = given.offsets[s + 1] - given.offsets[s] == 256;
      for (uint32_t k = given.offsets[s]; k < given.offsets[s + 1]; ++k) {
        const uint8_t byte = given.labels[k];
        require(given.targets[k] < count, "an arc to no state");
        const bool first = k == given.offsets[s];
        require(first || given.labels[k - 1] <= byte, "arcs that are not sorted");
        if (first || given.labels[k - 1] != byte) {
          state.bytes[byte >> 6] |= uint64_t{1} << (byte & 63);
          groups_.push_back(static_cast<uint32_t>(arcs_.size()));
        }
        arcs_.push_back({given.targets[k], given.weights[k]});
        rests = rests && given.targets[k] == s && given.weights[k] == 0;
      }
      const size_t different = groups_.size() - state.first_group;
      state.first_arc = given.offsets[s];
      state.one_each = different == given.offsets[s + 1] - given.offsets[s];
      for (size_t word = 1; word < 4; ++word) {
        state.before[word] = static_cast<uint8_t>(state.before[word - 1] + std::popcount(state.bytes[word - 1]));
      }
      state.rests = rests && different == 256;
    }
    groups_.push_back(static_cast<uint32_t>(arcs_.size()));
    check_failures();
  }

  size_t num_states() const { return states_.size(); }
  double final(uint32_t state) const { return finals_[state]; }
  // Whether every byte leads from the state back to it, by one arc of weight 0.
  bool rests(uint32_t state) const { return states_[state].rests; }
  size_t memory() const {
    return states_.capacity() * sizeof(State) + finals_.capacity() * 8 + arcs_.capacity() * sizeof(Weighted) + groups_.capacity() * 4;
  }

  // Returns the arcs that a state takes for a byte, and adds the weights of the failures on the way to `cost`.
  std::span<const Weighted> arcs(uint32_t state, uint8_t byte, double& cost) const {
    const State* at = &states_[state];
    while (!((at->bytes[byte >> 6] >> (byte & 63)) & 1)) {
      if (at->failure < 0) return {};
      cost += at->failure_weight;
      at = &states_[static_cast<size_t>(at->failure)];
    }
    const uint64_t below = at->bytes[byte >> 6] & ((uint64_t{1} << (byte & 63)) - 1);
    const size_t rank = at->before[byte >> 6] + static_cast<size_t>(std::popcount(below));
    if (at->one_each) return {arcs_.data() + at->first_arc + rank, 1};
    const size_t group = at->first_group + rank;
    return {arcs_.data() + groups_[group], arcs_.data() + groups_[group + 1]};
  }

 private:
  struct State {
    std::array<uint64_t, 4> bytes{};  // the bytes that it has arcs for
    std::array<uint8_t, 4> before{};  // how many of those bytes are before each of the four words
    double failure_weight = 0;
    int32_t failure = -1;
    uint32_t first_group = 0, first_arc = 0;
    bool one_each = false;  // no byte has two arcs
    bool rests = false;
  };

  static void require(bool holds, const char* what) {
    if (!holds) throw Error(Fault::Constraint, std::string("a weighted automaton has ") + what);
  }
  void check_failures() const {
    std::vector<uint32_t> seen(states_.size(), 0);
    for (uint32_t s = 0; s < states_.size(); ++s) {
      for (int64_t at = s; at >= 0 && seen[static_cast<size_t>(at)] == 0; at = states_[static_cast<size_t>(at)].failure) {
        seen[static_cast<size_t>(at)] = s + 1;
        const int64_t next = states_[static_cast<size_t>(at)].failure;
        require(next < 0 || seen[static_cast<size_t>(next)] != s + 1, "failure arcs that make a cycle");
      }
    }
  }

  std::vector<State> states_;
  std::vector<double> finals_;
  std::vector<Weighted> arcs_;
  std::vector<uint32_t> groups_;  // the first arc of each different byte of each state
};

// Steps from position to position; each is written after the previous one in one vector. Not for several threads at
// once.
class WeightedSteps {
 public:
  explicit WeightedSteps(const WeightedBytes& machine) : machine_(machine), places_(machine.num_states(), UINT32_MAX) {}

  // Appends to `all` the position that `byte` leads to from the position all[begin, end). States appear in the order in
  // which they were found.
  void step(std::vector<Weighted>& all, size_t begin, size_t end, uint8_t byte) {
    const size_t first = all.size();
    for (size_t k = begin; k < end; ++k) {
      const Weighted from = all[k];
      double cost = from.weight;
      const auto arcs = machine_.arcs(from.state, byte, cost);
      if (end - begin == 1 && arcs.size() == 1) {
        if (arcs[0].weight + cost > kMinusInfinity) all.push_back({arcs[0].state, arcs[0].weight + cost});
        return;
      }
      for (const Weighted& arc : arcs) {
        const double weight = cost + arc.weight;
        if (weight == kMinusInfinity) continue;
        uint32_t& place = places_[arc.state];
        if (place >= first && place < all.size() && all[place].state == arc.state) {
          all[place].weight = log_add(all[place].weight, weight);
        } else {
          place = static_cast<uint32_t>(all.size());
          all.push_back({arc.state, weight});
        }
      }
    }
  }

 private:
  const WeightedBytes& machine_;
  std::vector<uint32_t> places_;  // the index of each state in the position that is being computed, if it is there
};

}  // namespace tokenfst
