// What Python hands over for a program, as a `Program`; texts as bytes.
#pragma once

#include "bindings/bindings.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expressions/program.hpp"
#include "python/numpy_arrays.hpp"
#include "words/acyclic.hpp"

namespace tokenfst {

namespace nb = nanobind;

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Machines = std::vector<std::shared_ptr<SharedMachine>>;
using Labels = std::vector<std::pair<uint32_t, std::string>>;
using Rules = std::vector<std::pair<uint32_t, bool>>;
using Lexicons = std::vector<std::shared_ptr<Lexicon>>;
using Classes = std::vector<std::pair<uint64_t, int32_t>>;

inline Program make_program(Vector<int32_t> code, Array<uint8_t> sets, nb::bytes blob, const Machines& machines, const Labels& labels,
                            const Rules& rules, Vector<int32_t> assured, bool labelled, const Lexicons& lexicons,
                            const Classes& token_classes) {
  Program program;
  program.classes = token_classes;
  program.lexicons.assign(lexicons.begin(), lexicons.end());
  program.rules = rules;
  program.assured = {assured.data(), assured.size()};
  program.labelled = labelled;
  program.code = {code.data(), code.size()};
  program.sets = view(sets);
  program.blob = {blob.c_str(), blob.size()};
  program.labels = labels;
  for (auto& machine : machines) program.machines.push_back(*machine);
  return program;
}

inline nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }
inline std::string_view from_bytes(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

}  // namespace tokenfst
