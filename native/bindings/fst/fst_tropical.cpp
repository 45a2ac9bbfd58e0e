// Machines over the semirings named tropical (fst.hpp).

#include "bindings/fst/fst.hpp"

namespace tokenfst {

void bind_fst_tropical(nanobind::module_& m) {
  bind_semiring<fst::Tropical<float>>(m, "Fst_standard");
  bind_semiring<fst::Tropical<double>>(m, "Fst_tropical64");
}

}  // namespace tokenfst
