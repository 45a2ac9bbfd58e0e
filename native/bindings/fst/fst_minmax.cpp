// Machines over the semirings named minmax (fst.hpp).

#include "bindings/fst/fst.hpp"

namespace tokenfst {

void bind_fst_minmax(nanobind::module_& m) {
  bind_semiring<fst::MinMax<float>>(m, "Fst_minmax");
  bind_semiring<fst::MinMax<double>>(m, "Fst_minmax64");
}

}  // namespace tokenfst
