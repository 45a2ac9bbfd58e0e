// Deterministic automata as leaves of expressions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bytes.hpp"

namespace tokenfst {

// A deterministic automaton given as tables (state 0 dead, trim), grouped into moves on demand. It has a dense table, or
// a list of edges where that would be mostly dead: a suffix automaton has 1.5 edges a state, and as many classes as its
// text has different bytes.
struct Machine {
  std::array<uint8_t, 256> classes;
  uint32_t num_classes;
  std::vector<uint32_t> table;           // states x classes; empty if there are edges
  std::vector<uint32_t> offsets, edges;  // of each state; pairs (class, next)
  std::vector<uint8_t> accepting;
  std::vector<ByteSet> class_bytes;
  bool loops = false;

  bool is_sparse() const { return !offsets.empty(); }
  size_t size() const { return table.size() + offsets.size() + edges.size(); }
  // Calls f(class, next) for what leads on from a state.
  template <class F>
  void each_move(uint32_t state, F f) const {
    if (is_sparse()) {
      for (uint32_t e = offsets[state]; e < offsets[state + 1]; ++e) f(edges[2 * e], edges[2 * e + 1]);
      return;
    }
    for (uint32_t c = 0; c < num_classes; ++c) {
      if (uint32_t next = table[state * num_classes + c]; next != 0) f(c, next);
    }
  }
};

}  // namespace tokenfst
