// Machines over the semirings named log (fst.hpp).

#include "bindings/fst/fst.hpp"

namespace tokenfst {

void bind_fst_log(nanobind::module_& m) {
  bind_semiring<fst::Log<float>>(m, "Fst_log");
  bind_semiring<fst::Log<double>>(m, "Fst_log64");
}

}  // namespace tokenfst
