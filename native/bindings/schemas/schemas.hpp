// The readers and writers of plain JSON schemas, as a part of the module.
#pragma once

#include "bindings/bindings.hpp"

namespace tokenfst {

void bind_schemas(nanobind::module_& m);

}  // namespace tokenfst
