// Machines over the semirings named real and boolean (fst.hpp).

#include "bindings/fst/fst.hpp"

namespace tokenfst {

void bind_fst_real(nanobind::module_& m) {
  bind_semiring<fst::Real<float>>(m, "Fst_real");
  bind_semiring<fst::Real<double>>(m, "Fst_real64");
  bind_semiring<fst::Boolean>(m, "Fst_boolean");
}

}  // namespace tokenfst
