// Binds ByteAutomaton, ByteWalk and TextWithSentinels.
#include "bindings/bindings.hpp"
#include "bindings/byte_automata/byte_walk.hpp"
#include "bindings/byte_automata/text_with_sentinels.hpp"
#include "byte_automata/searches.hpp"
#include "python/calls.hpp"
#include "python/numpy_arrays.hpp"
#include "python/texts.hpp"
#include "walks/levels.hpp"
#include "exclusion/shortest_distinct.hpp"
#include "exclusion/text_walk.hpp"

using namespace nanobind::literals;

namespace tokenfst {

namespace nb = nanobind;

namespace {

// (classes [256], table [states, classes], accepting [states], start)
nb::tuple tables_to_python(Tables&& tables) {
  size_t states = tables.accepting.size(), width = tables.num_classes;
  std::vector<uint8_t> classes(tables.classes.begin(), tables.classes.end());
  return nb::make_tuple(to_numpy(std::move(classes), {256}), to_numpy(std::move(tables.table), {states, width}),
                        to_numpy(std::move(tables.accepting), {states}), tables.start);
}

}  // namespace

void bind_byte_automata(nb::module_& m) {
  nb::class_<ByteAutomaton>(m, "ByteAutomaton", "The lazily determinized byte automaton of an expression program.")
      .def(
          "__init__",
          [](ByteAutomaton* self, const Program& program, uint64_t states, uint64_t bytes, double seconds) {
            const LongCall call;
            new (self) ByteAutomaton(program, {states, bytes, seconds});
          },
          "program"_a, "states"_a, "bytes"_a, "seconds"_a)
      .def(
          "accepts",
          [](ByteAutomaton& self, nb::bytes data) {
            std::string_view text = from_bytes(data);
            const LongCall call;
            TextWalk walk(self);
            return !is_dead(walk.config()) && walk.run(text) == text.size() && walk.accepting();
          },
          "data"_a)
      .def(
          "viable_prefix",
          [](ByteAutomaton& self, nb::bytes data) -> int64_t {
            std::string_view text = from_bytes(data);
            const LongCall call;
            TextWalk walk(self);
            return is_dead(walk.config()) ? -1 : static_cast<int64_t>(walk.run(text));
          },
          "data"_a)
      .def(
          "next_bytes",
          [](ByteAutomaton& self, nb::bytes prefix) {
            const std::string_view text = from_bytes(prefix);
            std::string next;
            bool accepting;
            {
              const LongCall call;
              TextWalk walk(self);
              walk.run(text);
              for (int byte = 0; !is_dead(walk.config()) && byte < 256; ++byte) {
                if (walk.can_step(static_cast<uint8_t>(byte))) next += static_cast<char>(byte);
              }
              accepting = walk.accepting();
            }
            return nb::make_tuple(to_bytes(next), accepting);
          },
          "prefix"_a)
      .def(
          "rules_around",
          [](ByteAutomaton& self, nb::bytes prefix) {
            std::string_view text = from_bytes(prefix);
            const LongCall call;
            return rules_around(self, text);
          },
          "prefix"_a)
      .def("conflict",
           [](ByteAutomaton& self) -> std::optional<nb::bytes> {
             std::optional<std::string> text;
             {
               const LongCall call;
               text = Levels(self).conflict();
             }
             if (!text) return std::nullopt;
             return to_bytes(*text);
           })
      .def("shortest",
           [](ByteAutomaton& self) -> std::optional<nb::bytes> {
             std::optional<std::string> word;
             {
               const LongCall call;
               word = self.marks().any ? ShortestDistinct(self).find("") : shortest(self);
             }
             if (!word) return std::nullopt;
             return to_bytes(*word);
           })
      .def(
          "completed",
          [](ByteAutomaton& self, nb::bytes prefix) -> std::optional<nb::bytes> {
            std::optional<std::string> word;
            {
              const std::string begun(from_bytes(prefix));
              const LongCall call;
              word = ShortestDistinct(self).find(begun);
            }
            if (!word) return std::nullopt;
            return to_bytes(*word);
          },
          "prefix"_a)
      .def_prop_ro("has_marks", [](ByteAutomaton& self) { return self.marks().any; })
      .def("determinize",
           [](ByteAutomaton& self) {
             Tables tables;
             {
               const LongCall call;
               tables = determinize(self);
             }
             return tables_to_python(std::move(tables));
           })
      .def_prop_ro("num_states", &ByteAutomaton::num_states)
      .def_prop_ro("memory", &ByteAutomaton::memory, nb::call_guard<LongCall>());
  bind_byte_walk(m);
  bind_text_with_sentinels(m);
}

}  // namespace tokenfst
