// Lazy machines over semirings whose sum chooses one operand (fst_lazy.hpp).

#include "bindings/fst/fst_lazy.hpp"

namespace tokenfst {

void bind_fst_lazy_choices(nanobind::module_& m) {
  bind_lazy<fst::Tropical<float>>(m, "Lazy_standard");
  bind_lazy<fst::Tropical<double>>(m, "Lazy_tropical64");
  bind_lazy<fst::MinMax<float>>(m, "Lazy_minmax");
  bind_lazy<fst::MinMax<double>>(m, "Lazy_minmax64");
  bind_lazy<fst::Boolean>(m, "Lazy_boolean");
}

}  // namespace tokenfst
