// A transducer: states with the arcs that leave them, as OpenFst's VectorFst.
//
// All arcs lie in one array. A state has the index of its first arc, their number, and how many have room. The arcs of a
// state that exceeds its room move to the end of the array, with twice the room. A construction that finishes one state
// after the other never moves any, and its arcs lie without gaps in the order of states. Labels are not negative; label 0
// is epsilon. Invariant, which callers keep: every next state exists; `start` exists, or is kNone. Adding an arc is O(1)
// amortized.
//
// Rejected: a vector for each state, as in OpenFst (one allocation for each state, and states are not adjacent in
// memory); arrays without spare room (Python adds arcs in any order).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calls/budget.hpp"
#include "fst/semirings.hpp"

namespace tokenfst::fst {

using Id = int32_t;
constexpr Id kNone = -1;

template <class W>
struct Arc {
  Id ilabel, olabel;
  W weight;
  Id nextstate;
};

// A machine over the semiring S. State and arc numbers are not checked.
template <class S>
class Machine {
 public:
  using Semiring = S;
  using Weight = typename S::Weight;
  using ArcType = Arc<Weight>;

  Id num_states() const { return static_cast<Id>(states_.size()); }
  Id start() const { return start_; }
  // The final weight of a state: Zero if it is not final.
  Weight final(Id s) const { return states_[s].final; }
  bool is_final(Id s) const { return states_[s].final != S::zero(); }
  std::span<const ArcType> arcs(Id s) const { return {arcs_.data() + states_[s].begin, states_[s].count}; }
  std::span<ArcType> arcs(Id s) { return {arcs_.data() + states_[s].begin, states_[s].count}; }
  uint64_t num_arcs() const { return num_arcs_; }
  // The bytes of states and arcs, with the room for more arcs.
  uint64_t memory() const { return states_.size() * sizeof(State) + arcs_.size() * sizeof(ArcType); }

  void set_start(Id s) { start_ = s; }
  void set_final(Id s, Weight w) { states_[s].final = w; }
  // Returns the new state. Raises BudgetExceeded("states") after 2^31 - 2 states.
  Id add_state(Weight final = S::zero()) {
    if (states_.size() >= INT32_MAX - 1) throw BudgetExceeded("states", INT32_MAX - 1, "a transducer");
    states_.push_back({final, 0, 0, arcs_.size()});
    return num_states() - 1;
  }
  void add_arc(Id s, ArcType arc) {
    State& state = states_[s];
    ++num_arcs_;
    if (state.count == state.capacity) {
      if (state.begin + state.count != arcs_.size()) {
        if (state.count) move_to_end(state);
        else state.begin = arcs_.size();
      }
      if (state.begin + state.count == arcs_.size()) {
        arcs_.push_back(arc);
        state.count = ++state.capacity;
        return;
      }
    }
    arcs_[state.begin + state.count++] = arc;
  }
  void clear_arcs(Id s) {
    num_arcs_ -= states_[s].count;
    states_[s].count = 0;
  }
  // Keeps only the first `count` arcs of a state.
  void shrink_arcs(Id s, size_t count) {
    num_arcs_ -= states_[s].count - count;
    states_[s].count = static_cast<uint32_t>(count);
  }
  // Keeps the states that have a number in `place`, under that number, and the arcs between them. The other states have
  // kNone there; the numbers are 0 to `count` - 1 and keep the order of states. Changes the machine in place; the memory of
  // what is removed stays allocated.
  void keep_states(const std::vector<Id>& place, Id count) {
    num_arcs_ = 0;
    for (Id s = 0; s < num_states(); ++s) {
      if (place[s] == kNone) continue;
      State state = states_[s];
      ArcType* const arcs = arcs_.data() + state.begin;
      uint32_t kept = 0;
      for (uint32_t at = 0; at < state.count; ++at) {
        ArcType arc = arcs[at];
        arc.nextstate = place[arc.nextstate];
        if (arc.nextstate != kNone) arcs[kept++] = arc;
      }
      state.count = kept;
      num_arcs_ += kept;
      states_[place[s]] = state;
    }
    states_.resize(count);
    if (start_ != kNone) start_ = place[start_];
  }
  void reserve(uint64_t states, uint64_t arcs) {
    states_.reserve(states);
    arcs_.reserve(arcs);
  }

 private:
  struct State {
    Weight final;
    uint32_t count, capacity;
    uint64_t begin;
  };

  void move_to_end(State& state) {
    const uint64_t from = std::exchange(state.begin, arcs_.size());
    state.capacity = 2 * state.count;
    arcs_.resize(arcs_.size() + state.capacity);
    std::copy_n(arcs_.begin() + static_cast<int64_t>(from), state.count, arcs_.begin() + static_cast<int64_t>(state.begin));
  }

  std::vector<State> states_;
  std::vector<ArcType> arcs_;
  uint64_t num_arcs_ = 0;
  Id start_ = kNone;
};

// Raises FstOp: an operation does not take these arguments.
[[noreturn]] inline void refuse(const std::string& message) { throw Error(Fault::FstOp, message); }

// Whether each arc writes the label that it reads.
template <class S>
bool is_acceptor(const Machine<S>& machine) {
  for (Id s = 0; s < machine.num_states(); ++s) {
    for (const auto& arc : machine.arcs(s)) {
      if (arc.ilabel != arc.olabel) return false;
    }
  }
  return true;
}

}  // namespace tokenfst::fst
