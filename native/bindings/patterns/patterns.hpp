// The readers of regular expressions and the parser of notations, as a part of the module.
#pragma once

#include "bindings/bindings.hpp"

namespace tokenfst {

void bind_patterns(nanobind::module_& m);

}  // namespace tokenfst
