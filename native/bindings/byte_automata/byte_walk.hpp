// Binds ByteWalk.
#pragma once

#include <nanobind/nanobind.h>

#include "python/calls.hpp"
#include "walks/byte_walk.hpp"

namespace tokenfst {

inline void bind_byte_walk(nanobind::module_& m) {
  namespace nb = nanobind;
  using namespace nb::literals;
  auto number = [](const ByteWalk& self, uint64_t given) {
    if (given >= self.size()) throw nb::index_error(("there is no configuration " + std::to_string(given)).c_str());
    return static_cast<uint32_t>(given);
  };
  nb::class_<ByteWalk>(m, "ByteWalk",
                       R"(The configurations of a byte automaton that a search visits, by number; 0 is the start, if there is a word.

A text leads to one configuration, however many ways there are to read it. One thread at a time uses it, others wait.)")
      .def(
          "__init__",
          [](ByteWalk* self, ByteAutomaton& automaton) {
            const LongCall call;
            new (self) ByteWalk(automaton);
          },
          "automaton"_a, nb::keep_alive<1, 2>())
      .def("__len__", &ByteWalk::size)
      .def(
          "accepting", [number](const ByteWalk& self, uint64_t at) { return self.accepting(number(self, at)); }, "number"_a)
      .def(
          "least",
          [number](ByteWalk& self, uint64_t at) {
            const uint32_t found = number(self, at);
            const QuickCall call;
            return self.least(found);
          },
          "number"_a)
      .def(
          "advance",
          [number](ByteWalk& self, uint64_t at, uint8_t byte) {
            const uint32_t from = number(self, at);
            const QuickCall call;
            return self.advance(from, byte);
          },
          "number"_a, "byte"_a)
      .def(
          "boundary",
          [number](ByteWalk& self, uint64_t at) {
            const uint32_t from = number(self, at);
            const QuickCall call;
            return self.boundary(from);
          },
          "number"_a)
      .def(
          "arcs",
          [number](ByteWalk& self, uint64_t at) {
            const uint32_t from = number(self, at);
            ByteWalk::Arcs arcs;
            {
              const QuickCall call;
              arcs = self.arcs(from);
            }
            nb::list out;
            for (size_t i = 0; i < arcs.targets.size(); ++i) {
              out.append(
                  nb::make_tuple(arcs.targets[i], nb::bytes(arcs.bytes.data() + arcs.offsets[i], arcs.offsets[i + 1] - arcs.offsets[i])));
            }
            return out;
          },
          "number"_a)
      .def_prop_ro("memory", &ByteWalk::memory);
}

}  // namespace tokenfst
