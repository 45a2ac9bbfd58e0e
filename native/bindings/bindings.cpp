// The Python face of the core. Argument checks that need Python, GIL handling and error classes live here; no logic.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <thread>

#include "bindings/artifact.hpp"
#include "python/bitmask_buffer.hpp"
#include "byte_automata/searches.hpp"
#include "bindings/configurations.hpp"
#include "bindings/device.hpp"
#include "walks/levels.hpp"
#include "python/live_states.hpp"
#include "bindings/lexicon.hpp"
#include "bindings/logits.hpp"
#include "bindings/machine.hpp"
#include "matching/matcher.hpp"
#include "python/numpy_arrays.hpp"
#include "bindings/program_code.hpp"
#include "python/calls.hpp"
#include "bindings/schema.hpp"
#include "walks/shortest_distinct.hpp"
#include "bindings/spelling.hpp"
#include "bindings/suffix.hpp"
#include "words/word_room.hpp"
#ifdef TOKENFST_STRESS
#include "bindings/stress.hpp"
#endif

namespace nb = nanobind;
using namespace nb::literals;
using namespace tokenfst;

namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Machines = std::vector<std::shared_ptr<SharedMachine>>;
using Labels = std::vector<std::pair<uint32_t, std::string>>;
using Rules = std::vector<std::pair<uint32_t, bool>>;
using Lexicons = std::vector<std::shared_ptr<Lexicon>>;
using Classes = std::vector<std::pair<uint64_t, int32_t>>;

const char* class_of(Fault fault) {
  switch (fault) {
    case Fault::Constraint: return "ConstraintError";
    case Fault::TokenId: return "TokenIdError";
    case Fault::Terminated: return "TerminatedError";
    case Fault::Rollback: return "RollbackError";
    case Fault::TokenBudget: return "TokenBudgetError";
    case Fault::MaskBuffer: return "MaskBufferError";
    case Fault::EmptyLanguage: return "EmptyLanguageError";
    case Fault::Nondeterministic: return "NondeterministicError";
    case Fault::Corrupt: return "ArtifactCorruptError";
    case Fault::Vocabulary: return "VocabularyError";
    case Fault::Logits: return "LogitsError";
  }
  return "TokenfstError";
}

void raise(const char* name, nb::object args) {
  nb::object type = nb::module_::import_("tokenfst.errors").attr(name);
  PyErr_SetObject(type.ptr(), args.ptr());
}

Program make_program(Vector<int32_t> code, Array<uint8_t> sets, nb::bytes blob, const Machines& machines, const Labels& labels, const Rules& rules,
                     Vector<int32_t> assured, bool labelled, const Lexicons& lexicons, const Classes& token_classes) {
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

nb::tuple tables_to_python(Tables&& tables) {
  size_t states = tables.accepting.size(), width = tables.num_classes;
  std::vector<uint8_t> classes(tables.classes.begin(), tables.classes.end());
  return nb::make_tuple(to_numpy(std::move(classes), {256}), to_numpy(std::move(tables.table), {states, width}),
                        to_numpy(std::move(tables.accepting), {states}), tables.start);
}

bool fill_row(Matcher& matcher, nb::object bitmask, int64_t index) {
  uint32_t* row = BitmaskBuffer(bitmask, matcher.automaton()->masks().words()).row(index);
  if (const std::optional<bool> known = matcher.fill_known(row)) return *known;
  const LongCall call;
  return matcher.fill(row);
}

void traverse_draft_tree(Matcher& matcher, Vector<int64_t> next_token, Vector<int64_t> next_sibling, Vector<int64_t> draft_tokens, nb::object bitmask) {
  size_t nodes = draft_tokens.size();
  if (next_token.size() != nodes || next_sibling.size() != nodes) throw Error(Fault::MaskBuffer, "the three arrays of a draft tree must have one entry a node");
  if (nodes == 0) return;
  BitmaskBuffer rows(bitmask, matcher.automaton()->masks().words());
  rows.row(static_cast<int64_t>(nodes) - 1);
  const LongCall call;
  matcher.traverse_draft_tree({next_token.data(), nodes}, {next_sibling.data(), nodes}, {draft_tokens.data(), nodes}, rows.row(0), rows.stride());
}

// Rows whose masks are known are copied here and now: waking a thread costs more. Threads share the others.
void fill_bitmasks(std::vector<Matcher*> matchers, nb::object bitmask, uint32_t threads) {
  constexpr size_t kManyRows = 64;  // whose copies take longer than giving up Python's lock
  std::vector<std::pair<Matcher*, uint32_t*>> rows, work;
  for (size_t i = 0; i < matchers.size(); ++i) {
    if (!matchers[i]) throw nb::type_error("fill_bitmasks() takes matchers, not None");
    rows.emplace_back(matchers[i], BitmaskBuffer(bitmask, matchers[i]->automaton()->masks().words()).row(static_cast<int64_t>(i)));
  }
  std::optional<LongCall> call;
  if (rows.size() > kManyRows) call.emplace();
  for (const auto& [matcher, row] : rows) {
    if (!matcher->fill_known(row)) work.emplace_back(matcher, row);
  }
  if (work.empty()) return;
  if (!call) call.emplace();
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  auto fill_some = [&] {
    for (size_t i; (i = next++) < work.size();) {
      try {
        work[i].first->fill(work[i].second);
      } catch (...) {
        std::lock_guard lock(failure_mutex);
        failure = std::current_exception();
      }
    }
  };
  const size_t wanted = std::min<size_t>({threads, work.size(), std::thread::hardware_concurrency()});
  const auto begun = wanted > 1 ? Call::begun() : Call::Clock::time_point{};
  std::vector<std::thread> pool;
  try {
    while (pool.size() + 1 < wanted) {
      pool.emplace_back([&] {
        const Call helping(begun);
        fill_some();
      });
    }
  } catch (const std::system_error&) {
    // No more threads to be had: those there are share the work.
  }
  fill_some();
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

constexpr size_t kMuch = 1 << 16;  // bytes: matchers that hold more are copied, and looked through, while others go on
std::string forced_bytes(Matcher& matcher) {
  const QuickCall call;
  return matcher.forced_bytes();
}

State state_of(const TokenAutomaton& automaton, State state) {
  if (state >= automaton.bytes().num_states()) throw nb::index_error(("there is no state " + std::to_string(state)).c_str());
  return state;
}
uint32_t token_id(int64_t token) { return token < 0 || token >= UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(token); }
std::vector<uint32_t> token_ids(const std::vector<int64_t>& tokens) {
  std::vector<uint32_t> ids;
  for (int64_t token : tokens) ids.push_back(token_id(token));
  return ids;
}
nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }
std::string_view from_bytes(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

void bind_automata(nb::module_& m) {
  bind_lexicon(m);
  bind_nodes(m);
  bind_program_code(m);
  bind_schema(m);
  bind_spelling(m);
  bind_live_states(m);
  bind_word_room(m);
  bind_machine(m);
  nb::class_<ByteAutomaton>(m, "ByteAutomaton", "The lazily determinized byte automaton of an expression program.")
      .def(
          "__init__",
          [](ByteAutomaton* self, Vector<int32_t> code, Array<uint8_t> sets, nb::bytes blob, const Machines& machines, const Labels& labels,
             const Rules& rules, Vector<int32_t> assured, bool labelled, const Lexicons& lexicons, const Classes& token_classes, uint64_t states, uint64_t bytes,
             double seconds) {
            Program program = make_program(code, sets, blob, machines, labels, rules, assured, labelled, lexicons, token_classes);
            const LongCall call;
            new (self) ByteAutomaton(std::move(program), {states, bytes, seconds});
          },
          "code"_a, "sets"_a, "blob"_a, "machines"_a, "labels"_a, "rules"_a, "assured"_a, "labelled"_a, "lexicons"_a, "token_classes"_a, "states"_a, "bytes"_a, "seconds"_a)
      .def("accepts", [](ByteAutomaton& self, nb::bytes data) {
            std::string_view text = from_bytes(data);
            const LongCall call;
            TextWalk walk(self);
            return !is_dead(walk.config()) && walk.run(text) == text.size() && walk.accepting();
          }, "data"_a)
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
      .def("rules_around", [](ByteAutomaton& self, nb::bytes prefix) {
            std::string_view text = from_bytes(prefix);
            const LongCall call;
            return rules_around(self, text);
          }, "prefix"_a)
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
      .def("completed",
           [](ByteAutomaton& self, nb::bytes prefix) -> std::optional<nb::bytes> {
             std::optional<std::string> word;
             {
               std::string begun(from_bytes(prefix));
               const LongCall call;
               word = ShortestDistinct(self).find(std::move(begun));
             }
             if (!word) return std::nullopt;
             return to_bytes(*word);
           }, "prefix"_a)
      .def_prop_ro("has_marks", [](const ByteAutomaton& self) { return self.marks().any; })
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

  nb::class_<Vocabulary>(m, "Vocabulary", "Token bytes, their tries and the fragments found over them.")
      .def(
          "__init__",
          [](Vocabulary* self, nb::bytes data, Vector<uint64_t> offsets, std::optional<nb::bytes> initial_data, std::optional<Vector<uint64_t>> initial_offsets,
             std::vector<uint32_t> eos_ids, bool start_absorbs) {
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
      .def("limit_fragments", [](const Vocabulary& self, uint64_t bytes) { self.fragments().set_limit(bytes); }, "bytes"_a)
      .def_prop_ro("trie_nodes", [](const Vocabulary& self) {
        const LongCall call;
        return self.trie().num_nodes();
      });

  nb::class_<TokenAutomaton>(m, "TokenAutomaton", "A vocabulary composed with a byte automaton, determinized on demand.")
      .def_static(
          "compose",
          [](Vector<int32_t> code, Array<uint8_t> sets, nb::bytes blob, const Machines& machines, const Labels& labels, const Rules& rules,
             Vector<int32_t> assured, bool labelled, const Lexicons& lexicons, const Classes& token_classes, std::shared_ptr<Vocabulary> vocabulary, uint64_t states,
             uint64_t bytes, double seconds, uint32_t narrow, const std::vector<std::pair<uint32_t, uint32_t>>& symbols) {
            Program program = make_program(code, sets, blob, machines, labels, rules, assured, labelled, lexicons, token_classes);
            const LongCall call;
            auto automaton = std::make_shared<ByteAutomaton>(std::move(program), Budget{states, bytes, seconds}, vocabulary->has_initial());
            auto specials = symbols;
            for (auto& [token, symbol] : specials) symbol = automaton->symbol_column(symbol);
            return std::make_shared<TokenAutomaton>(std::move(automaton), std::move(vocabulary), std::move(specials), narrow);
          },
          "code"_a, "sets"_a, "blob"_a, "machines"_a, "labels"_a, "rules"_a, "assured"_a, "labelled"_a, "lexicons"_a, "token_classes"_a, "vocabulary"_a, "states"_a, "bytes"_a, "seconds"_a,
          "narrow"_a = TokenAutomaton::kNarrowWalk, "symbols"_a = std::vector<std::pair<uint32_t, uint32_t>>{})
      .def_static("from_arrays", &load, "vocabulary"_a, "arrays"_a, "start"_a, "inner_start"_a)
      .def("expand", &expand_to_python)
      .def_prop_ro("start", [](TokenAutomaton& self) { return self.start().state; })
      .def_prop_ro("is_empty", [](TokenAutomaton& self) { return is_dead(self.start()); })
      .def_prop_ro("has_marks", [](TokenAutomaton& self) { return self.bytes().marks().any; })
      .def_prop_ro("is_pushdown", [](TokenAutomaton& self) { return self.bytes().is_pushdown(); })
      .def_prop_ro("speaks_of_tokens", [](TokenAutomaton& self) { return self.bytes().speaks_of_tokens(); })
      .def_prop_ro("spellable", [](TokenAutomaton& self) {
        const LongCall call;
        Stacks stacks;
        return self.spellable(self.start(), stacks);
      })
      .def("advance", [](TokenAutomaton& self, State state, uint32_t token) {
        if (token >= self.vocabulary().size()) throw nb::index_error(("there is no token " + std::to_string(token)).c_str());
        const State from = state_of(self, state);
        const QuickCall call;
        Stacks stacks;
        return self.advance({from}, token, stacks).state;
      }, "state"_a, "token"_a)
      .def("arcs", [](TokenAutomaton& self, State state) {
        std::vector<uint32_t> tokens, targets;
        {
          const LongCall call;
          for (auto& [token, target] : self.arcs(state_of(self, state))) tokens.push_back(token), targets.push_back(target);
        }
        size_t count = tokens.size();
        return nb::make_tuple(to_numpy(std::move(tokens), {count}), to_numpy(std::move(targets), {count}));
      }, "state"_a)
      .def("distance", [](TokenAutomaton& self, State state) {
        const LongCall call;
        Stacks stacks;
        return self.distance({state_of(self, state)}, stacks);
      }, "state"_a)
      .def_prop_ro("memory", &TokenAutomaton::memory, nb::call_guard<LongCall>())
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
        return result;
      });
}

void bind_matcher(nb::module_& m) {
  nb::class_<Matcher>(m, "Matcher", R"(One decoding under a constraint: where the tokens accepted so far have led.

Made by ``TokenAutomaton.matcher(max_tokens=None)``. Masking, advancing and rolling back cost the same however long the
text is; advancing takes time proportional to the token's bytes. Not for use by several threads at once; the automaton below is.)")
      .def(nb::init<std::shared_ptr<TokenAutomaton>, std::optional<uint64_t>>(), "automaton"_a, "max_tokens"_a = nb::none(),
           nb::call_guard<LongCall>())
      .def("accept_token", [](Matcher& self, int64_t token) { return self.accept_token(token_id(token)); }, "token_id"_a, nb::call_guard<QuickCall>(),
           R"(Advance by one token. False, and nothing changes, where the token is not allowed.

Raises TokenIdError outside the vocabulary and TerminatedError after the end token.)")
      .def("accept_tokens", [](Matcher& self, std::vector<int64_t> tokens) { return self.accept_tokens(token_ids(tokens)); }, "token_ids"_a,
           nb::call_guard<LongCall>(),
           "Advance by several tokens, or by none: False, and nothing changes, where one of them is not allowed.")
      .def("validate_tokens", [](Matcher& self, std::vector<int64_t> tokens) { return self.validate_tokens(token_ids(tokens)); }, "token_ids"_a,
           nb::call_guard<LongCall>(),
           "How many of these tokens, from the first on, could be accepted. The matcher does not change.")
      .def("fill_next_token_bitmask", &fill_row, "bitmask"_a, "index"_a = 0,
           R"(Write the mask of the next token into row `index` of an int32 bitmask (batch, ceil(V / 32)): bit 1 = allowed.

Returns False where every token is allowed, so that there is nothing to mask. Raises MaskBufferError where the
buffer does not fit. A mask that was made before costs one copy of the row.)")
      .def("traverse_draft_tree", &traverse_draft_tree, "next_token"_a, "next_sibling"_a, "draft_tokens"_a, "bitmask"_a,
           R"(Masks for a tree of draft tokens (speculative decoding): row i is the mask after the path to node i.

int64 arrays with one entry a node: the first child, the next sibling (-1: none), the token. Node 0 is the root: its token
is the last one accepted. Rows behind a token that is not allowed are all zero. The matcher does not change.)")
      .def("forced_tokens", &Matcher::forced_tokens, nb::call_guard<LongCall>(), "The token ids that have no alternative, up to the next choice or the end of the text.")
      .def("forced_bytes", [](Matcher& self) { return to_bytes(forced_bytes(self)); },
           "The bytes that every accepted text goes on with (jump-forward decoding), however they are cut into tokens.")
      .def("find_jump_forward_string", [](Matcher& self) {
            std::string text = forced_bytes(self);
            return nb::steal<nb::str>(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "ignore"));
          },
          "forced_bytes() as text, without a character that is not whole.")
      .def("rollback", [](Matcher& self, int64_t count) {
            if (count < 0) throw Error(Fault::Rollback, "cannot roll back a negative number of tokens");
            self.rollback(static_cast<size_t>(count));
          }, "num_tokens"_a = 1, nb::call_guard<QuickCall>(), "Undo the last tokens. Raises RollbackError where fewer were accepted.")
      .def("fork", [](Matcher& self) {
            std::optional<LongCall> call;
            if (self.memory() > kMuch) call.emplace();
            return self.fork();
          }, "An independent copy. Copies the history (12 bytes a token) and the stacks.")
      .def("reset", &Matcher::reset, nb::call_guard<QuickCall>(), "Back to the beginning of the text.")
      .def("is_accepting", &Matcher::is_accepting, "Whether the text so far is in the language.")
      .def("is_terminated", &Matcher::is_terminated, "Whether the end token was accepted.")
      .def("distance", [](Matcher& self) {
            const LongCall call;
            return self.distance();
          }, "The least number of tokens, the end token not counted, that complete the text. The first call explores what is below this state.")
      .def_prop_rw("max_tokens_left", &Matcher::max_tokens_left, &Matcher::set_max_tokens_left, nb::for_setter(nb::arg("left").none()), nb::for_setter(nb::call_guard<QuickCall>()),
           R"(How many tokens may still come, the end token counted; None: any number. With n left the mask admits a token only if
the text can be completed by n - 1 more. Setting it raises TokenBudgetError where no accepted text fits.)")
      .def_prop_ro("num_tokens", &Matcher::num_tokens, "How many tokens were accepted, the end token counted.")
      .def_prop_ro("tokens", &Matcher::tokens, "The tokens accepted so far.")
      .def_prop_ro("memory", &Matcher::memory, "Bytes that this sequence holds, the shared automaton apart.")
      .def_prop_ro("state", [](const Matcher& self) {
             std::optional<LongCall> call;
             if (self.memory() > kMuch) call.emplace();
             return self.state();
           },
                   "Where the matcher stands, as a number: equal numbers of a matcher and its forks have equal futures.");
  m.def("watch_interrupts", &Interrupts::watch);
  m.def("fill_bitmasks", &fill_bitmasks, "matchers"_a, "bitmask"_a, "threads"_a);
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "tokenfst's native core";
  QuickCall::set_up();
  nb::set_leak_warnings(false);  // objects that a cache holds at exit are no leak
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Interrupted&) {
      if (PyErr_CheckSignals() == 0) PyErr_SetNone(PyExc_KeyboardInterrupt);  // in the main thread Python's handler raises it
    } catch (const BudgetExceeded& e) {
      raise("BudgetExceeded", nb::make_tuple(e.resource, e.limit, e.where));
    } catch (const Error& e) {
      raise(class_of(e.fault), nb::str(e.what()));
    }
  });
  bind_automata(m);
  bind_configurations(m);
  bind_matcher(m);
  bind_logits(m);
  bind_device(m);
  bind_suffix_automaton(m);
#ifdef TOKENFST_STRESS
  bind_stress(m);
#endif
}
