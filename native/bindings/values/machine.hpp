// Binds Machine.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>

#include "calls/budget.hpp"
#include "expressions/machine.hpp"

namespace tokenfst {

inline void bind_machine(nanobind::module_& m) {
  namespace nb = nanobind;
  using namespace nb::literals;
  using Classes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Table = nb::ndarray<const uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  using Accepting = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  // Empty for a dense table, states x classes. Otherwise the rows of the table are edges (class, next state), and these are the
  // indices of each state's first edge, and the number of edges.
  using Offsets = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  nb::class_<SharedMachine>(m, "Machine", "A deterministic automaton, checked and read once for all programs that contain it. Immutable.")
      .def(
          "__init__",
          [](SharedMachine* self, Classes classes, Table table, Accepting accepting, uint32_t start, Offsets offsets) {
            Machine machine;
            const bool sparse = offsets.size() != 0;
            const size_t states = accepting.size();
            if (classes.size() != 256 || start >= states ||
                (sparse ? offsets.size() != states + 1 || table.shape(1) != 2 : table.shape(0) != states)) {
              throw Error(Fault::Constraint, "a machine's tables do not fit together");
            }
            std::copy_n(classes.data(), 256, machine.classes.begin());
            machine.num_classes = sparse ? *std::ranges::max_element(machine.classes) + 1u : static_cast<uint32_t>(table.shape(1));
            (sparse ? machine.edges : machine.table).assign(table.data(), table.data() + table.size());
            machine.offsets.assign(offsets.data(), offsets.data() + offsets.size());
            if (sparse &&
                (!std::ranges::is_sorted(machine.offsets) || machine.offsets[0] != 0 || machine.offsets.back() != table.shape(0))) {
              throw Error(Fault::Constraint, "a machine's edges do not fit together");
            }
            machine.accepting.assign(accepting.data(), accepting.data() + accepting.size());
            machine.class_bytes.resize(machine.num_classes);
            for (int byte = 0; byte < 256; ++byte) {
              if (machine.classes[byte] >= machine.num_classes) throw Error(Fault::Constraint, "a machine's byte has no class");
              machine.class_bytes[machine.classes[byte]].add(static_cast<uint8_t>(byte));
            }
            for (uint32_t state = 0; state < states; ++state) {
              machine.each_move(state, [&](uint32_t c, uint32_t next) {
                if (next >= states || c >= machine.num_classes) throw Error(Fault::Constraint, "a machine's transition leads nowhere");
              });
            }
            new (self) SharedMachine(share(std::move(machine), start));
          },
          "classes"_a, "table"_a, "accepting"_a, "start"_a, "offsets"_a);
}

}  // namespace tokenfst
