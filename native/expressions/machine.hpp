// Deterministic automata as leaves of expressions.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "support/bytes.hpp"

namespace tokenfst {

// A deterministic automaton given as tables (state 0 dead, trim), whose rows are grouped into moves on demand. It has a
// dense table, or a list of edges if the table would be mostly dead: a suffix automaton has 1.5 edges for each state,
// and as many classes as its text has different bytes.
struct Machine {
  std::array<uint8_t, 256> classes;
  uint32_t num_classes;
  std::vector<uint32_t> table;           // states x classes; empty if there are edges
  std::vector<uint32_t> offsets, edges;  // for each state, its first edge; pairs (class, next)
  std::vector<uint8_t> accepting;
  std::vector<ByteSet> class_bytes;
  bool loops = false;  // the result of has_cycle()
  // For a letter (see list_arcs()): the arcs of all states, ascending by byte within a state; empty for other machines.
  struct Arc {
    uint8_t byte;
    bool ends;  // whether a word ends with this arc
    uint32_t target;
  };
  std::vector<Arc> arcs;
  std::vector<uint32_t> first_arc;

  // Whether the machine reads one character, in each way in which it may be written.
  bool is_letter() const { return !arcs.empty(); }
  std::span<const Arc> arcs_from(uint32_t state) const { return {arcs.data() + first_arc[state], arcs.data() + first_arc[state + 1]}; }
  bool is_sparse() const { return !offsets.empty(); }
  size_t size() const { return table.size() + offsets.size() + edges.size(); }
  // Calls f(class, next) for each live transition of a state.
  template <class F>
  void each_move(uint32_t state, F f) const {
    if (is_sparse()) {
      for (uint32_t e = offsets[state]; e < offsets[state + 1]; ++e) f(edges[size_t{2} * e], edges[size_t{2} * e + 1]);
      return;
    }
    for (uint32_t c = 0; c < num_classes; ++c) {
      if (uint32_t next = table[state * num_classes + c]; next != 0) f(c, next);
    }
  }

  // Lists the arcs of a trim machine if they are few and no word is a prefix of another one. Such a machine is a *letter*: one
  // character, in each way in which it may be written.
  void list_arcs() {
    static constexpr size_t kMostEach = 2, kMost = 64;
    if (is_sparse() || loops || table.size() > 16 * kMost) return;
    std::vector<Arc> found;
    std::vector<uint32_t> first{0, 0};
    for (uint32_t state = 1; state < accepting.size(); ++state) {
      for (uint32_t byte = 0; byte < 256; ++byte) {
        const uint32_t target = table[state * num_classes + classes[byte]];
        if (target == 0 || !class_bytes[classes[byte]].has(static_cast<uint8_t>(byte))) continue;
        if (accepting[state] || found.size() == kMost || found.size() == first.back() + kMostEach) return;
        found.push_back({static_cast<uint8_t>(byte), accepting[target] != 0, target});
      }
      first.push_back(static_cast<uint32_t>(found.size()));
    }
    arcs = std::move(found);
    first_arc = std::move(first);
  }

  // Whether some state of a trim machine leads back to itself. O(arcs): repeatedly removes the states without arcs.
  bool has_cycle() const {
    const size_t n = accepting.size();
    std::vector<uint32_t> targets(n, 0);  // how many arcs leave each state
    std::vector<std::vector<uint32_t>> sources(n);
    for (uint32_t state = 1; state < n; ++state) {
      each_move(state, [&](uint32_t, uint32_t target) {
        ++targets[state];
        sources[target].push_back(state);
      });
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
};

// Removes the states that cannot reach acceptance from a table: they become state 0, `start` too. (Lists of edges come
// from the core itself, and all of their states reach acceptance.)
inline void trim(Machine& machine, uint32_t& start) {
  if (machine.is_sparse()) return;
  const uint32_t states = static_cast<uint32_t>(machine.accepting.size()), width = machine.num_classes;
  for (size_t i = 0; i < machine.table.size(); ++i) {
    if (machine.class_bytes[i % width].empty()) machine.table[i] = 0;
  }
  std::vector<std::vector<uint32_t>> sources(states);
  for (uint32_t q = 1; q < states; ++q) {
    for (uint32_t c = 0; c < width; ++c) sources[machine.table[q * width + c]].push_back(q);
  }
  std::vector<uint8_t> live(states);
  std::vector<uint32_t> stack;
  for (uint32_t q = 1; q < states; ++q) {
    if (machine.accepting[q]) live[q] = 1, stack.push_back(q);
  }
  while (!stack.empty()) {
    uint32_t q = stack.back();
    stack.pop_back();
    for (uint32_t source : sources[q]) {
      if (!live[source]) live[source] = 1, stack.push_back(source);
    }
  }
  for (uint32_t& next : machine.table) next = live[next] ? next : 0;
  for (uint32_t q = 0; q < states; ++q) machine.accepting[q] &= live[q];
  if (!live[start]) start = 0;
}

// A trimmed machine with its start state, shared by expressions of any number of arenas.
struct SharedMachine {
  std::shared_ptr<const Machine> machine;
  uint32_t start;
};

// Takes ownership of tables whose transitions and classes have been checked.
inline SharedMachine share(Machine machine, uint32_t start) {
  trim(machine, start);
  machine.loops = machine.has_cycle();
  machine.list_arcs();
  return {std::make_shared<const Machine>(std::move(machine)), start};
}

}  // namespace tokenfst
