// The Python face of what is not an automaton yet: nodes, programs, words, machines, schemas, spellings.
#include "bindings/bindings.hpp"
#include "bindings/lexicon.hpp"
#include "bindings/machine.hpp"
#include "bindings/program_code.hpp"
#include "bindings/schema.hpp"
#include "bindings/spelling.hpp"
#include "bindings/suffix.hpp"
#include "python/live_states.hpp"
#include "words/word_room.hpp"

namespace tokenfst {

void bind_values(nanobind::module_& m) {
  bind_lexicon(m);
  bind_nodes(m);
  bind_program_code(m);
  bind_schema(m);
  bind_spelling(m);
  bind_live_states(m);
  bind_word_room(m);
  bind_machine(m);
  bind_suffix_automaton(m);
}

}  // namespace tokenfst
