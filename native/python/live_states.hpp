// Finds the states of a deterministic automaton that are on a path from its start to acceptance, and binds this as
// `_native.live_states`, which automata/expressions/tables.py calls.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <vector>

#include "calls/budget.hpp"
#include "python/calls.hpp"
#include "python/numpy_arrays.hpp"

namespace tokenfst {

constexpr size_t kBetweenLooks = 1 << 20;  // entries of the table between two checks of the clock

// For each state 1 if it is live, else 0. `table` is (states, groups), and every entry must be a state; state 0 is dead.
// Linear in the table. Raises BudgetExceeded after `seconds` seconds. Adjacent groups of a row with the same target are
// counted once.
inline std::vector<uint8_t> live_states(const uint32_t* table, const bool* accepting, size_t states, size_t groups, uint32_t start,
                                        double seconds) {
  const Deadline deadline(seconds);
  size_t looked = 0;
  auto look = [&] {
    if ((looked += groups) < kBetweenLooks) return;
    looked = 0;
    if (deadline.expired()) throw BudgetExceeded("seconds", seconds, "the trimming of an automaton");
  };
  auto counts = [&](const uint32_t* row, size_t group) { return row[group] != 0 && (group == 0 || row[group] != row[group - 1]); };
  std::vector<uint8_t> reached(states), live(states);
  std::vector<uint32_t> stack{start}, sources(states + 1);  // predecessors: sources[s] is the end of those of s in `before`
  reached[start] = 1;
  while (!stack.empty()) {
    const uint32_t* row = table + stack.back() * groups;
    stack.pop_back();
    look();
    for (size_t group = 0; group < groups; ++group) {
      if (!counts(row, group)) continue;
      ++sources[row[group] + 1];
      if (!reached[row[group]]) {
        reached[row[group]] = 1;
        stack.push_back(row[group]);
      }
    }
  }
  for (size_t state = 0; state < states; ++state) sources[state + 1] += sources[state];
  std::vector<uint32_t> before(sources[states]), next(sources.begin(), sources.end() - 1);
  for (uint32_t state = 0; state < states; ++state) {
    if (!reached[state] || state == 0) continue;
    look();
    const uint32_t* row = table + state * groups;
    for (size_t group = 0; group < groups; ++group) {
      if (counts(row, group)) before[next[row[group]]++] = state;
    }
    if (accepting[state]) {
      live[state] = 1;
      stack.push_back(state);
    }
  }
  while (!stack.empty()) {
    const uint32_t state = stack.back();
    stack.pop_back();
    for (uint32_t at = sources[state]; at < next[state]; ++at) {
      if (live[before[at]]) continue;
      live[before[at]] = 1;
      stack.push_back(before[at]);
    }
  }
  return live;
}

inline void bind_live_states(nanobind::module_& m) {
  namespace nb = nanobind;
  using Table = nb::ndarray<const uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  using Accepting = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.def(
      "live_states",
      [](Table table, Accepting accepting, uint32_t start, double seconds) {
        const size_t states = table.shape(0);
        std::vector<uint8_t> live;
        {
          const LongCall call;
          live = live_states(table.data(), accepting.data(), states, table.shape(1), start, seconds);
        }
        return to_numpy(std::move(live), {states});
      },
      nb::arg("table"), nb::arg("accepting"), nb::arg("start"), nb::arg("seconds"));
}

}  // namespace tokenfst
