// Binds what automata are made of: nodes, programs, words, machines, spellings.
#include "bindings/bindings.hpp"
#include "bindings/values/lexicon.hpp"
#include "bindings/values/machine.hpp"
#include "bindings/values/program.hpp"
#include "bindings/values/program_code.hpp"
#include "bindings/values/spelling.hpp"
#include "bindings/values/suffix.hpp"
#include "bindings/values/word_tree.hpp"
#include "python/live_states.hpp"
#include "words/word_counts.hpp"

namespace tokenfst {

void bind_values(nanobind::module_& m) {
  bind_lexicon(m);
  bind_nodes(m);
  bind_program_code(m);
  bind_spelling(m);
  bind_word_tree(m);
  bind_live_states(m);
  bind_word_counts(m);
  bind_machine(m);
  bind_program(m);
  bind_suffix_automaton(m);
}

}  // namespace tokenfst
