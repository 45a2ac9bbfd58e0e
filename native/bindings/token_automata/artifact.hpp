// Binds the room artifact: conversions between automata or learned facts and the arrays of files, which are dicts by name.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <span>
#include <string>

#include "artifact/learned.hpp"
#include "python/numpy_arrays.hpp"
#include "python/calls.hpp"

namespace tokenfst {

namespace nb = nanobind;

// An array of a file, borrowed. Raises Corrupt if there is none of this name and type: a converted copy would not outlive the
// call.
template <class T>
Array<T> borrow(const nb::dict& arrays, const char* name) {
  Array<T> array;
  if (!arrays.contains(name) || !nb::try_cast(arrays[name], array, false))
    throw Error(Fault::Corrupt, "the array \"" + std::string(name) + "\" is missing, has another type, or is not contiguous");
  return array;
}

// Keeps the arrays of a file alive.
inline std::shared_ptr<void> keep(const nb::dict& arrays) {
  return {new nb::list(arrays.values()), [](void* p) {
            nb::gil_scoped_acquire gil;
            delete static_cast<nb::list*>(p);
          }};
}

// TokenAutomaton.from_arrays: the automaton of an artifact. It borrows the arrays.
inline std::shared_ptr<TokenAutomaton> load(std::shared_ptr<const Vocabulary> vocabulary, nb::dict arrays, uint32_t start,
                                            uint32_t inner_start) {
  auto words = [&](const char* name) { return view(borrow<uint32_t>(arrays, name)); };
  auto classes = borrow<uint8_t>(arrays, "classes");
  auto table = borrow<uint32_t>(arrays, "table");
  if (classes.size() != 256 || table.ndim() != 2) throw Error(Fault::Corrupt, "there are 256 byte classes and a table of states x classes");
  View seen{classes.data(),
            view(table),
            words("mask"),
            words("distance"),
            words("worst"),
            words("mask_row"),
            words("flip_offsets"),
            words("flips"),
            words("rows"),
            view(borrow<uint8_t>(arrays, "accepting")),
            static_cast<uint32_t>(table.shape(1)),
            start,
            inner_start,
            keep(arrays)};
  if (arrays.contains("stack_states")) {
    seen.stacks = {words("stack_states"), words("stack_effects"), words("stack_pushes"), words("stack_reveals"),
                   words("stack_frames"), words("stack_chains"),  words("stack_asks")};
  }
  if (arrays.contains("marks")) seen.marks = words("marks");
  if (arrays.contains("token_columns")) seen.columns = words("token_columns");
  const LongCall call;
  return std::make_shared<LoadedAutomaton>(seen, std::move(vocabulary));
}

// TokenAutomaton.learn: gives the automaton the facts of a file. It borrows the arrays.
inline void learn(TokenAutomaton& automaton, const nb::dict& arrays, bool instead) {
  auto words = [&](const char* name) { return view(borrow<uint32_t>(arrays, name)); };
  LearnedView seen{words("learned_states"),       words("learned_nodes"), words("learned_answers"), words("learned_mask_row"),
                   words("learned_flip_offsets"), words("learned_flips"), words("learned_rows"),    keep(arrays)};
  const LongCall call;
  check_learned(seen, automaton.vocabulary());
  automaton.learn(std::make_shared<Learned>(std::move(seen)), instead);
}

// TokenAutomaton.learned: the arrays of all learned facts.
inline nb::dict learned_to_python(TokenAutomaton& automaton) {
  LearnedArrays out;
  {
    const LongCall call;
    out = std::move(LearnedUnion(automaton).arrays());
  }
  nb::dict result;
  auto add = [&](const char* name, std::vector<uint32_t>& values, size_t columns) {
    const size_t count = values.size() / columns;
    result[name] = columns == 1 ? to_numpy(std::move(values), {count}) : to_numpy(std::move(values), {count, columns});
  };
  add("learned_answers", out.answers, Learned::kAnswerRow);
  add("learned_flip_offsets", out.flip_offsets, 1);
  add("learned_flips", out.flips, 1);
  add("learned_mask_row", out.mask_row, 1);
  add("learned_nodes", out.nodes, 1);
  const size_t words = automaton.masks().words(), rows = out.rows.size() / words;
  result["learned_rows"] = to_numpy(std::move(out.rows), {rows, words});
  add("learned_states", out.states, Learned::kStateRow);
  return result;
}

// TokenAutomaton.expand: the arrays of an artifact, and the numbers of the two start states.
inline nb::dict expand_to_python(TokenAutomaton& automaton) {
  Arrays out;
  {
    const LongCall call;
    out = expand(automaton);
  }
  size_t states = out.accepting.size(), width = out.num_classes, words = automaton.masks().words(), rows = out.rows.size() / words;
  size_t masks = out.mask_row.size(), flips = out.flips.size();
  nb::dict result;
  result["classes"] = to_numpy(std::vector<uint8_t>(out.classes.begin(), out.classes.end()), {256});
  result["table"] = to_numpy(std::move(out.table), {states, width});
  result["accepting"] = to_numpy(std::move(out.accepting), {states});
  result["mask"] = to_numpy(std::move(out.mask), {states});
  result["distance"] = to_numpy(std::move(out.distance), {states});
  result["worst"] = to_numpy(std::move(out.worst), {states});
  result["mask_row"] = to_numpy(std::move(out.mask_row), {masks});
  result["flip_offsets"] = to_numpy(std::move(out.flip_offsets), {masks + 1});
  result["flips"] = to_numpy(std::move(out.flips), {flips});
  result["rows"] = to_numpy(std::move(out.rows), {rows, words});
  if (automaton.bytes().is_pushdown()) {
    auto add = [&](const char* name, std::vector<uint32_t>& values, size_t columns) {
      size_t count = values.size() / columns;
      result[name] = columns == 1 ? to_numpy(std::move(values), {count}) : to_numpy(std::move(values), {count, columns});
    };
    add("stack_states", out.stacks.states, 4);
    add("stack_effects", out.stacks.effects, 3);
    add("stack_pushes", out.stacks.pushes, 1);
    add("stack_reveals", out.stacks.reveals, 3);
    add("stack_frames", out.stacks.frames, 2);
    add("stack_chains", out.stacks.chains, 3);
    add("stack_asks", out.stacks.asks, 3);
  }
  const size_t marked = out.marks.size() / 4;
  if (automaton.bytes().marks().any) result["marks"] = to_numpy(std::move(out.marks), {marked, 4});
  if (size_t columns = out.columns.size() / 2) result["token_columns"] = to_numpy(std::move(out.columns), {columns, 2});
  result["start"] = out.start;
  result["inner_start"] = out.inner_start;
  return result;
}

}  // namespace tokenfst
