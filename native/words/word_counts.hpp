// Counts the words of a deterministic automaton, and how long words must be so that there are enough of them. Bound as
// `_native.word_counts`, which automata/json_schema/writing/distinct.py calls.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

namespace tokenfst {

// A trim automaton; `table` is (states, groups), and state 0 is dead.
struct CountedAutomaton {
  const uint8_t* classes;
  const uint32_t* table;
  const bool* accepting;
  size_t states, groups;

  // For each state, the number of words that lead from it to acceptance, at most `most`, which also stands for
  // infinitely many. A state is counted after all its successors, so states on cycles are never counted.
  std::vector<int64_t> counts(int64_t most) const {
    std::vector<int64_t> sizes(groups), found(states, most);
    for (size_t byte = 0; byte < 256; ++byte) ++sizes[classes[byte]];
    std::vector<std::vector<uint32_t>> before(states);
    std::vector<size_t> missing(states);
    for (size_t state = 1; state < states; ++state) {
      for (size_t group = 0; group < groups; ++group) {
        if (const uint32_t target = table[state * groups + group]) {
          before[target].push_back(static_cast<uint32_t>(state));
          ++missing[state];
        }
      }
    }
    std::vector<uint32_t> ready;
    for (size_t state = 1; state < states; ++state) {
      if (missing[state] == 0) ready.push_back(static_cast<uint32_t>(state));
    }
    found[0] = 0;
    while (!ready.empty()) {
      const uint32_t state = ready.back();
      ready.pop_back();
      int64_t total = accepting[state];
      for (size_t group = 0; group < groups; ++group) total = std::min(total + found[table[state * groups + group]] * sizes[group], most);
      found[state] = total;
      for (uint32_t source : before[state]) {
        if (--missing[source] == 0) ready.push_back(source);
      }
    }
    return found;
  }

  // For each of the ascending `numbers`: the least length within which, from each state of `from`, more than that many
  // words end that JSON spells without an escape, or all the words that there are (`totals`); 0 if that length exceeds
  // `longest`. `ascii`: only words of ASCII bytes count.
  std::vector<uint32_t> lengths(const std::vector<uint32_t>& from, const std::vector<int64_t>& totals, const std::vector<int64_t>& numbers,
                                uint32_t longest, bool ascii) const {
    constexpr double kEnough = 1e15;
    std::vector<double> sizes(groups), words(accepting, accepting + states), before(states);
    for (size_t byte = 0x20; byte < (ascii ? 0x7f : 256); ++byte) sizes[classes[byte]] += byte != '"' && byte != '\\';
    uint32_t length = 0;
    std::vector<uint32_t> found;
    for (int64_t number : numbers) {
      const auto is_few = [&](uint32_t state) { return words[state] < static_cast<double>(std::min(totals[state], number + 1)); };
      while (length < longest && std::ranges::any_of(from, is_few)) {
        before.swap(words);
        words[0] = 0;
        for (size_t state = 1; state < states; ++state) {
          double total = accepting[state];
          for (size_t group = 0; group < groups; ++group) total += before[table[state * groups + group]] * sizes[group];
          words[state] = std::min(total, kEnough);
        }
        ++length;
      }
      found.push_back(std::ranges::any_of(from, is_few) ? 0 : std::max(length, uint32_t{1}));
    }
    return found;
  }
};

inline void bind_word_counts(nanobind::module_& m) {
  namespace nb = nanobind;
  using Classes = nb::ndarray<const uint8_t, nb::shape<256>, nb::c_contig, nb::device::cpu>;
  using Table = nb::ndarray<const uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  using Accepting = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.def(
      "word_counts",
      [](Classes classes, Table table, Accepting accepting, uint32_t start, int64_t excluded, int64_t many, std::vector<int64_t> numbers,
         uint32_t longest, bool ascii) {
        const CountedAutomaton automaton{classes.data(), table.data(), accepting.data(), table.shape(0), table.shape(1)};
        const std::vector<int64_t> counts = automaton.counts(many * many);
        const int64_t count = counts[start] - excluded;
        const bool few_endings = count < many || *std::min_element(counts.begin() + 1, counts.end()) < many;
        std::vector<uint32_t> from{start};
        for (size_t state = 1; !few_endings && state < counts.size(); ++state) from.push_back(static_cast<uint32_t>(state));
        for (int64_t& number : numbers) number += excluded;
        return std::tuple(count, few_endings, automaton.lengths(from, counts, numbers, longest, ascii));
      },
      nb::arg("classes"), nb::arg("table"), nb::arg("accepting"), nb::arg("start"), nb::arg("excluded"), nb::arg("many"),
      nb::arg("numbers"), nb::arg("longest"), nb::arg("ascii") = false);
}

}  // namespace tokenfst
