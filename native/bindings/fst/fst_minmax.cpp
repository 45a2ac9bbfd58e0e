// Machines over the semirings named minmax and boolean (fst.hpp).

#include "bindings/fst/fst.hpp"

namespace tokenfst {

void bind_fst_minmax(nanobind::module_& m) {
  bind_semiring<fst::MinMax<float>>(m, "Fst_minmax");
  bind_semiring<fst::MinMax<double>>(m, "Fst_minmax64");
  bind_semiring<fst::Boolean>(m, "Fst_boolean");
}

}  // namespace tokenfst
