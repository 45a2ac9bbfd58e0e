// Searches over all states of a byte automaton: its shortest word, the reachable states, finished tables. Linear in the
// states and arcs that are visited.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "byte_automata/byte_automaton.hpp"

namespace tokenfst {

struct Tables {
  std::array<uint8_t, 256> classes;
  uint32_t num_classes = 0;
  std::vector<State> table;  // states x classes
  std::vector<uint8_t> accepting;
  State start = 0;
};

// The shortest word, the least in byte order among those; none if the language is empty.
std::optional<std::string> shortest(ByteAutomaton& bytes);

// DEAD, then the states that bytes reach from the start (and from the inner start), in breadth-first order.
std::vector<State> reachable(ByteAutomaton& bytes);
std::vector<State> numbering(const ByteAutomaton& bytes, const std::vector<State>& order);

// Every state that bytes reach from the start, in breadth-first order, renumbered from 1.
Tables determinize(ByteAutomaton& bytes);

}  // namespace tokenfst
