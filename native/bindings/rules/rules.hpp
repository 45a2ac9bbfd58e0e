// Analyses of the rules of grammars, as a part of the module.
#pragma once

#include "bindings/bindings.hpp"

namespace tokenfst {

void bind_rules(nanobind::module_& m);

}  // namespace tokenfst
