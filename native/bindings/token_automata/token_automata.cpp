// Binds Vocabulary and TokenAutomaton.
#include "bindings/token_automata/artifact.hpp"
#include "bindings/bindings.hpp"
#include "bindings/token_automata/configurations.hpp"
#include "python/calls.hpp"
#include "python/numpy_arrays.hpp"
#include "python/texts.hpp"
#include "vocabulary/trie_tables.hpp"

using namespace nanobind::literals;

namespace tokenfst {

namespace nb = nanobind;

namespace {

// A state's number, checked.
State state_of(const TokenAutomaton& automaton, State state) {
  if (state >= automaton.bytes().num_states()) throw nb::index_error(("there is no state " + std::to_string(state)).c_str());
  return state;
}

}  // namespace

void bind_token_automata(nb::module_& m) {
  nb::class_<Vocabulary>(m, "Vocabulary", "Token bytes, their tries and the fragments found over them.")
      .def(
          "__init__",
          [](Vocabulary* self, nb::bytes data, Vector<uint64_t> offsets, std::optional<nb::bytes> initial_data,
             std::optional<Vector<uint64_t>> initial_offsets, std::vector<uint32_t> eos_ids, bool start_absorbs) {
            auto tokens = [](const nb::bytes& text, const Vector<uint64_t>& at) {
              if (std::any_of(at.data(), at.data() + at.size(), [](uint64_t offset) { return offset > UINT32_MAX; })) {
                throw Error(Fault::Vocabulary, "the tokens have more than 4,294,967,295 bytes");
              }
              return TokenBytes(std::string(from_bytes(text)), std::vector<uint32_t>(at.data(), at.data() + at.size()));
            };
            const LongCall call;
            std::unique_ptr<TokenBytes> initial;
            if (initial_data && initial_offsets) initial = std::make_unique<TokenBytes>(tokens(*initial_data, *initial_offsets));
            new (self) Vocabulary(tokens(data, offsets), std::move(initial), std::move(eos_ids), start_absorbs);
          },
          "data"_a, "offsets"_a, "initial_data"_a.none(), "initial_offsets"_a.none(), "eos_ids"_a, "start_absorbs"_a = false)
      .def("__len__", &Vocabulary::size)
      .def_prop_ro("complete", &Vocabulary::complete)
      .def_prop_ro("memory", &Vocabulary::memory)
      .def_prop_ro("num_fragments", [](const Vocabulary& self) { return self.fragments().size(); })
      .def(
          "limit_fragments", [](const Vocabulary& self, uint64_t bytes) { self.fragments().set_limit(bytes); }, "bytes"_a)
      .def_prop_ro("trie_nodes",
                   [](const Vocabulary& self) {
                     const LongCall call;
                     return self.trie().num_nodes();
                   })
      .def(
          "trie_tables",
          [](const Vocabulary& self, bool initial) {
            std::string found;
            {
              const LongCall call;
              found = trie_bytes(initial ? self.initial_trie() : self.trie());
            }
            return nb::bytes(found.data(), found.size());
          },
          "initial"_a = false)
      .def(
          "adopt_trie",
          [](const Vocabulary& self, const Array<uint8_t>& tables, bool initial) {
            const LongCall call;
            const auto found = tables_in(view(tables));
            return found && self.adopt_trie(*found, initial);
          },
          "tables"_a, "initial"_a = false, nb::keep_alive<1, 2>());

  nb::class_<TokenAutomaton>(m, "TokenAutomaton", nb::dynamic_attr(),
                             "A vocabulary composed with a byte automaton, determinized on demand.")
      .def_static(
          "compose",
          [](const Program& program, std::shared_ptr<Vocabulary> vocabulary, uint64_t states, uint64_t bytes, double seconds,
             uint32_t narrow, const std::vector<std::pair<uint32_t, uint32_t>>& symbols) {
            const LongCall call;
            auto automaton = std::make_shared<ByteAutomaton>(program, Budget{states, bytes, seconds}, vocabulary->has_initial());
            auto specials = symbols;
            for (auto& [token, symbol] : specials) symbol = automaton->symbol_column(symbol);
            return std::make_shared<TokenAutomaton>(std::move(automaton), std::move(vocabulary), std::move(specials), narrow);
          },
          "program"_a, "vocabulary"_a, "states"_a, "bytes"_a, "seconds"_a, "narrow"_a = TokenAutomaton::kNarrowWalk,
          "symbols"_a = std::vector<std::pair<uint32_t, uint32_t>>{})
      .def_static("from_arrays", &load, "vocabulary"_a, "arrays"_a, "start"_a, "inner_start"_a)
      .def("expand", &expand_to_python)
      .def("learn", &learn, "arrays"_a, "instead"_a = false)
      .def("learned", &learned_to_python)
      .def_prop_ro("start", [](TokenAutomaton& self) { return self.start().state; })
      .def_prop_ro("is_empty", [](TokenAutomaton& self) { return is_dead(self.start()); })
      .def_prop_ro("has_marks", [](TokenAutomaton& self) { return self.bytes().marks().any; })
      .def_prop_ro("has_learned", &TokenAutomaton::has_learned)
      .def_prop_ro("is_pushdown", [](TokenAutomaton& self) { return self.bytes().is_pushdown(); })
      .def_prop_ro("is_token_level", [](TokenAutomaton& self) { return self.bytes().is_token_level(); })
      .def_prop_ro("spellable",
                   [](TokenAutomaton& self) {
                     const LongCall call;
                     Stacks stacks;
                     return self.spellable(self.start(), stacks);
                   })
      .def(
          "advance",
          [](TokenAutomaton& self, State state, uint32_t token) {
            if (token >= self.vocabulary().size()) throw nb::index_error(("there is no token " + std::to_string(token)).c_str());
            const State from = state_of(self, state);
            const QuickCall call;
            Stacks stacks;
            return self.advance({from}, token, stacks).state;
          },
          "state"_a, "token"_a)
      .def(
          "arcs",
          [](TokenAutomaton& self, State state) {
            std::vector<uint32_t> tokens, targets;
            {
              const LongCall call;
              for (auto& [token, target] : self.arcs(state_of(self, state))) tokens.push_back(token), targets.push_back(target);
            }
            size_t count = tokens.size();
            return nb::make_tuple(to_numpy(std::move(tokens), {count}), to_numpy(std::move(targets), {count}));
          },
          "state"_a)
      .def(
          "distance",
          [](TokenAutomaton& self, State state) {
            const LongCall call;
            Stacks stacks;
            return self.distance({state_of(self, state)}, stacks);
          },
          "state"_a)
      .def_prop_ro("memory", &TokenAutomaton::memory, nb::call_guard<LongCall>())
      .def("share", [](TokenAutomaton& self) { return self.bytes().share(); })
      .def_prop_ro("stats", [](TokenAutomaton& self) {
        TokenAutomaton::Stats stats;
        {
          const LongCall call;
          stats = self.stats();
        }
        nb::dict result;
        result["states"] = stats.states;
        result["masks_made"] = stats.masks_made;
        result["distinct_masks"] = stats.distinct_masks;
        result["dense_rows"] = stats.dense_rows;
        result["fragments"] = stats.fragments;
        result["frames"] = stats.frames;
        result["leaves"] = stats.leaves;
        result["deepest_look"] = stats.deepest_look;
        result["masks_composed"] = stats.masks_composed;
        result["masks_recalled"] = stats.masks_recalled;
        return result;
      });
  bind_configurations(m);
}

}  // namespace tokenfst
