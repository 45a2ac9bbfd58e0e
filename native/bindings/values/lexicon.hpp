// Binds Lexicon.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include "words/acyclic.hpp"
#include "python/calls.hpp"

namespace tokenfst {

inline void bind_lexicon(nanobind::module_& m) {
  namespace nb = nanobind;
  using namespace nb::literals;
  nb::class_<Lexicon>(m, "Lexicon", "A finite set of words as a minimal acyclic automaton. Immutable.")
      .def(
          "__init__",
          [](Lexicon* self, nb::list words, uint64_t bytes, double seconds) {
            std::vector<std::string_view> views;
            views.reserve(words.size());
            for (nb::handle word : words) {
              nb::bytes data = nb::cast<nb::bytes>(word);  // owned by the list
              views.emplace_back(data.c_str(), data.size());
            }
            const LongCall call;
            new (self) Lexicon(std::move(views), bytes, seconds);
          },
          "words"_a, "bytes"_a = Budget{}.bytes, "seconds"_a = Budget{}.seconds)
      .def("__len__", &Lexicon::size)
      .def("words",
           [](const Lexicon& self) {
             nb::list found;
             for (const std::string& word : self.words()) found.append(nb::bytes(word.data(), word.size()));
             return found;
           })
      .def("__reduce__", [](nb::handle self) { return nb::make_tuple(self.type(), nb::make_tuple(self.attr("words")())); })
      .def_prop_ro("num_states", &Lexicon::num_states)
      .def_prop_ro("num_arcs", &Lexicon::num_arcs)
      .def_prop_ro("memory", &Lexicon::memory);
}

}  // namespace tokenfst
