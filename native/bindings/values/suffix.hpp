// Binds suffix_automaton.hpp as `_native.suffix_automaton`, which automata/pieces/substrings.py calls.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <string_view>

#include "python/numpy_arrays.hpp"
#include "words/suffix_automaton.hpp"

namespace tokenfst {

inline void bind_suffix_automaton(nanobind::module_& m) {
  namespace nb = nanobind;
  using Places = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.def(
      "suffix_automaton",
      [](nb::bytes text, Places begins, Places ends, uint64_t states) {
        if (begins.size() != text.size() + 1 || ends.size() != begins.size() || !ends.data()[text.size()]) {
          throw std::invalid_argument(
              "begins and ends must have one entry for each position of the text, and one for its end, where a word must be able to end");
        }
        SparseTables out;
        {
          nb::gil_scoped_release nogil;
          out = SuffixAutomaton({text.c_str(), text.size()}, {begins.data(), begins.size()}, {ends.data(), ends.size()}).tables(states);
        }
        size_t edges = out.edges.size() / 2, offsets = out.offsets.size(), made = out.accepting.size();
        std::vector<uint8_t> classes(out.classes.begin(), out.classes.end());
        return nb::make_tuple(to_numpy(std::move(classes), {256}), to_numpy(std::move(out.edges), {edges, 2}),
                              to_numpy(std::move(out.accepting), {made}), to_numpy(std::move(out.offsets), {offsets}));
      },
      nb::arg("text"), nb::arg("begins"), nb::arg("ends"), nb::arg("states"));
}

}  // namespace tokenfst
