// The translation units of the bindings: each binds a part of the core, and a change in one recompiles only that one. Each
// function adds the classes and functions of its part to the module.
//
// All units include this header for the same type conversions: a call of a function would fail at run time if its unit did
// not include the conversion of an argument.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

namespace tokenfst {

void bind_values(nanobind::module_& m);
void bind_byte_automata(nanobind::module_& m);
void bind_token_automata(nanobind::module_& m);
void bind_matchers(nanobind::module_& m);
void bind_devices(nanobind::module_& m);
void bind_fst_tropical(nanobind::module_& m);
void bind_fst_log(nanobind::module_& m);
void bind_fst_real(nanobind::module_& m);
void bind_fst_minmax(nanobind::module_& m);
void bind_fst_lazy_choices(nanobind::module_& m);
void bind_fst_lazy_sums(nanobind::module_& m);
void bind_scores(nanobind::module_& m);

}  // namespace tokenfst
