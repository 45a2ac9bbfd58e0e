// Binds the readers of regular expressions and the parser of notations.
#include "bindings/patterns/patterns.hpp"

#include "bindings/patterns/ecma_patterns.hpp"
#include "bindings/patterns/lalr.hpp"
#include "bindings/patterns/python_pattern.hpp"
#include "bindings/patterns/syntax_trees.hpp"
#include "bindings/patterns/tree_folds.hpp"

namespace tokenfst {

void bind_patterns(nanobind::module_& m) {
  bind_ecma_patterns(m);
  bind_python_pattern(m);
  bind_lalr(m);
  bind_tree_folds(m);
  bind_syntax_trees(m);
}

}  // namespace tokenfst
