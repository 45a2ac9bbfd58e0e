// Lazy machines over the other semirings (fst_lazy.hpp).

#include "bindings/fst/fst_lazy.hpp"

namespace tokenfst {

void bind_fst_lazy_sums(nanobind::module_& m) {
  bind_lazy<fst::Log<float>>(m, "Lazy_log");
  bind_lazy<fst::Log<double>>(m, "Lazy_log64");
  bind_lazy<fst::Real<float>>(m, "Lazy_real");
  bind_lazy<fst::Real<double>>(m, "Lazy_real64");
}

}  // namespace tokenfst
