// Binds the analyses of the rules of grammars.
#include "bindings/rules/rules.hpp"

#include "bindings/rules/inlining.hpp"
#include "bindings/rules/rule_graphs.hpp"

namespace tokenfst {

void bind_rules(nanobind::module_& m) {
  bind_rule_graphs(m);
  bind_inlining(m);
}

}  // namespace tokenfst
