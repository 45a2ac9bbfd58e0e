// Binds Program.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "programs/program.hpp"
#include "python/numpy_arrays.hpp"
#include "words/acyclic.hpp"

namespace tokenfst {

inline void bind_program(nanobind::module_& m) {
  namespace nb = nanobind;
  using namespace nb::literals;
  using Numbers = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  nb::class_<Program>(m, "Program", "A program, decoded and checked, for any number of automata. Immutable.")
      .def(
          "__init__",
          [](Program* self, Numbers code, Array<uint8_t> sets, nb::bytes blob, const std::vector<std::shared_ptr<SharedMachine>>& machines,
             std::vector<std::pair<uint32_t, std::string>> labels, std::vector<std::pair<uint32_t, bool>> rules, Numbers assured,
             bool labelled, const std::vector<std::shared_ptr<Lexicon>>& lexicons,
             std::vector<std::pair<uint64_t, int32_t>> token_classes) {
            ProgramParts parts;
            parts.code.assign(code.data(), code.data() + code.size());
            parts.sets.assign(sets.data(), sets.data() + sets.size());
            parts.blob.assign(blob.c_str(), blob.size());
            for (auto& machine : machines) parts.machines.push_back(*machine);
            parts.labels = std::move(labels);
            parts.rules = std::move(rules);
            parts.assured.assign(assured.data(), assured.data() + assured.size());
            parts.labelled = labelled;
            parts.lexicons.assign(lexicons.begin(), lexicons.end());
            parts.classes = std::move(token_classes);
            new (self) Program(std::move(parts));
          },
          "code"_a, "sets"_a, "blob"_a, "machines"_a, "labels"_a, "rules"_a, "assured"_a, "labelled"_a, "lexicons"_a, "token_classes"_a);
}

}  // namespace tokenfst
