// Binds Configurations.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include "token_automata/configurations.hpp"
#include "python/numpy_arrays.hpp"
#include "python/calls.hpp"

namespace tokenfst {

inline void bind_configurations(nanobind::module_& m) {
  namespace nb = nanobind;
  using namespace nb::literals;
  auto number = [](const Configurations& self, uint64_t given) {
    if (given >= self.size()) throw nb::index_error(("there is no configuration " + std::to_string(given)).c_str());
    return static_cast<uint32_t>(given);
  };
  nb::class_<Configurations>(m, "Configurations",
                             R"(The configurations of a token automaton that a search visits, by number; 0 is the start.

Equal ones have one number, whatever path led there. One thread at a time uses it, others wait.)")
      .def(nb::init<std::shared_ptr<TokenAutomaton>>(), "automaton"_a, nb::call_guard<LongCall>())
      .def("__len__", &Configurations::size)
      .def(
          "accepting", [number](const Configurations& self, uint64_t at) { return self.accepting(number(self, at)); }, "number"_a)
      .def(
          "distance",
          [number](Configurations& self, uint64_t at) {
            uint32_t found = number(self, at);
            const LongCall call;
            return self.distance(found);
          },
          "number"_a)
      .def_prop_ro("distances_are_least", &Configurations::distances_are_least)
      .def(
          "advance",
          [number](Configurations& self, uint64_t at, int64_t token) {
            if (token < 0 || token >= self.num_tokens()) throw nb::index_error(("there is no token " + std::to_string(token)).c_str());
            const uint32_t from = number(self, at);
            const QuickCall call;
            return self.advance(from, static_cast<uint32_t>(token));
          },
          "number"_a, "token"_a)
      .def(
          "arcs",
          [number](Configurations& self, uint64_t at) {
            uint32_t found = number(self, at);
            Configurations::Arcs arcs;
            {
              const LongCall call;
              arcs = self.arcs(found);
            }
            size_t targets = arcs.targets.size(), tokens = arcs.tokens.size();
            return nb::make_tuple(to_numpy(std::move(arcs.targets), {targets}), to_numpy(std::move(arcs.offsets), {targets + 1}),
                                  to_numpy(std::move(arcs.tokens), {tokens}));
          },
          "number"_a)
      .def(
          "mask",
          [number](Configurations& self, uint64_t at, std::optional<uint32_t> left) -> nb::object {
            uint32_t found = number(self, at);
            std::vector<int32_t> mask(self.words());
            bool sure;
            {
              nb::gil_scoped_release nogil;
              sure = self.fill(found, left.value_or(kUnreachable), reinterpret_cast<uint32_t*>(mask.data()));
            }
            const size_t words = mask.size();
            return sure ? nb::cast(to_numpy(std::move(mask), {words})) : nb::none();
          },
          "number"_a, "left"_a.none())
      .def_prop_ro("memory", &Configurations::memory);
}

}  // namespace tokenfst
