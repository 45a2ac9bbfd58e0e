// Searches over all states of a byte automaton: its shortest word, the reachable states, finished tables. Linear in the
// states and arcs that are visited. They follow rows, and raise BudgetExceeded.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "byte_automata/byte_automaton.hpp"

namespace tokenfst {

// A deterministic automaton over bytes; state 0 is dead.
struct Tables {
  std::array<uint8_t, 256> classes;
  uint32_t num_classes = 0;
  std::vector<State> table;  // states x classes: the next state
  std::vector<uint8_t> accepting;
  State start = 0;
};

// The shortest word, the least in byte order among those; none if the language is empty.
std::optional<std::string> shortest(ByteAutomaton& bytes);

// DEAD, then the states that columns and passed marks reach from the start and the inner start, in breadth-first order.
std::vector<State> reachable(ByteAutomaton& bytes);
// For each state its index in `order`; 0 for states that are not there.
std::vector<State> numbering(const ByteAutomaton& bytes, const std::vector<State>& order);

// The tables of all reachable states, renumbered from 1 in breadth-first order. Raises an Error if there are marks.
Tables determinize(ByteAutomaton& bytes);

}  // namespace tokenfst
