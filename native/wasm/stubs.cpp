// The page has no transducers, because none of its features use them. Their classes exist by name, since the package
// looks them up when it is imported; creating an instance raises an error.
#include <nanobind/nanobind.h>

#include <initializer_list>

#include "bindings/bindings.hpp"

namespace tokenfst {

namespace {

struct LeftOut {};

void bind_stubs(nanobind::module_& m, std::initializer_list<const char*> names) {
  for (const char* name : names) m.attr(name) = m.attr("LeftOut");
}

}  // namespace

void bind_fst_tropical(nanobind::module_& m) {
  nanobind::class_<LeftOut>(m, "LeftOut").def("__init__", [](LeftOut*, const nanobind::args&, const nanobind::kwargs&) {
    throw nanobind::type_error("transducers are not available in the browser: install tokenfst on a computer to use them");
  });
  bind_stubs(m, {"Fst_standard", "Fst_tropical64"});
}
void bind_fst_log(nanobind::module_& m) { bind_stubs(m, {"Fst_log", "Fst_log64"}); }
void bind_fst_real(nanobind::module_& m) { bind_stubs(m, {"Fst_real", "Fst_real64"}); }
void bind_fst_minmax(nanobind::module_& m) { bind_stubs(m, {"Fst_minmax", "Fst_minmax64", "Fst_boolean"}); }
void bind_fst_lazy_choices(nanobind::module_&) {}
void bind_fst_lazy_sums(nanobind::module_&) {}

}  // namespace tokenfst
