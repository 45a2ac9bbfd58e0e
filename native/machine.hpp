// Deterministic automata given as tables, as they stand in expressions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bytes.hpp"

namespace tokenfst {

// A deterministic automaton given as tables (state 0 dead, trim), grouped into moves on demand.
struct Machine {
  std::array<uint8_t, 256> classes;
  uint32_t num_classes;
  std::vector<uint32_t> table;
  std::vector<uint8_t> accepting;
  std::vector<ByteSet> class_bytes;
  bool loops = false;
};

// Whether some state of a machine leads back to itself. States that lead to the dead one only are taken away first.
inline bool has_cycle(const Machine& machine) {
  const size_t n = machine.accepting.size();
  std::vector<uint32_t> targets(n, 0);  // how many arcs lead on from each
  std::vector<std::vector<uint32_t>> sources(n);
  for (size_t arc = machine.num_classes; arc < machine.table.size(); ++arc) {
    if (uint32_t target = machine.table[arc]) {
      ++targets[arc / machine.num_classes];
      sources[target].push_back(static_cast<uint32_t>(arc / machine.num_classes));
    }
  }
  std::vector<uint32_t> ends;
  for (uint32_t state = 1; state < n; ++state) {
    if (targets[state] == 0) ends.push_back(state);
  }
  size_t acyclic = ends.size();
  while (!ends.empty()) {
    uint32_t state = ends.back();
    ends.pop_back();
    for (uint32_t source : sources[state]) {
      if (--targets[source] == 0) ends.push_back(source), ++acyclic;
    }
  }
  return acyclic + 1 < n;
}

}  // namespace tokenfst
