// Binds the rooms fst_selection and fst_lazy: disambiguation, and a class of lazy machines for each semiring,
// `_native.Lazy_standard` and so on, which automata/transducers uses.
#pragma once

#include "bindings/fst/fst.hpp"
#include "fst_lazy/called.hpp"
#include "fst_lazy/composed.hpp"
#include "fst_lazy/epsilons.hpp"
#include "fst_lazy/rational.hpp"
#include "fst_lazy/subsets.hpp"
#include "fst_selection/disambiguate.hpp"
#include "support/counted.hpp"

namespace tokenfst {

// The Python object of a lazy machine. Lazy machines that have it as an operand share it.
template <class S>
struct LazyHandle {
  fst::LazyPtr<S> lazy;
};

template <class S>
void bind_lazy(nanobind::module_& m, const char* name) {
  namespace nb = nanobind;
  using H = FstHandle<S>;
  using L = LazyHandle<S>;
  using fst::Meter;
  const auto made = [](std::unique_ptr<fst::Delayed<S>> maker, uint64_t cache) {
    return L{std::make_shared<fst::Lazy<S>>(std::move(maker), cache)};
  };
  const auto all = [](const std::vector<const L*>& given) {
    std::vector<fst::LazyPtr<S>> out;
    out.reserve(given.size());
    for (const L* each : given) out.push_back(each->lazy);
    return out;
  };
  // A state's number, checked: a state gets its number when its machine's start, or an arc to it, is computed.
  static const auto state = [](fst::Lazy<S>& lazy, int64_t s) {
    if (s < 0 || static_cast<uint64_t>(s) >= lazy.named()) {
      throw Error(Fault::FstIndex, "no state " + std::to_string(s) + " was named so far: " + counted(lazy.named(), "state") +
                                       (lazy.named() == 1 ? " has a number" : " have numbers"));
    }
    return static_cast<fst::Id>(s);
  };
  nb::class_<L>(m, name)
      .def_static("of", [](const H& a) { return L{std::make_shared<fst::Lazy<S>>(a.read())}; })
      .def("start", [](const L& a, Limits l) { return metered(l, "a lazy machine", [&](Meter& meter) { return a.lazy->start(meter); }); })
      .def("state",
           [](const L& a, int64_t s, Limits l) {
             const auto view = metered(l, "a lazy machine", [&](Meter& meter) { return a.lazy->at(state(*a.lazy, s), meter); });
             nb::list arcs;
             for (const auto& arc : view.arcs)
               arcs.append(nb::make_tuple(arc.ilabel, arc.olabel, static_cast<double>(arc.weight), arc.nextstate));
             return nb::make_tuple(static_cast<double>(view.final), arcs);
           })
      .def(
          "expanded",
          [](const L& a, Limits l) { return metered(l, "a lazy machine", [&](Meter& meter) { return H(fst::expanded(*a.lazy, meter)); }); })
      .def("counts", [](const L& a) { return a.lazy->counts(); })
      .def_static("union", [=](const std::vector<const L*>& given,
                               uint64_t cache) { return made(std::make_unique<fst::LazyUnion<S>>(all(given)), cache); })
      .def_static("concat",
                  [=](const L& a, const L& b, uint64_t cache) { return made(std::make_unique<fst::LazyConcat<S>>(a.lazy, b.lazy), cache); })
      .def_static("closure",
                  [=](const L& a, bool plus, uint64_t cache) { return made(std::make_unique<fst::LazyClosure<S>>(a.lazy, plus), cache); })
      .def_static("arcmap",
                  [=](const L& a, int change, double weight, uint64_t cache) {
                    return made(std::make_unique<fst::LazyArcMap<S>>(a.lazy, static_cast<fst::ArcChange>(change), H::weight(weight)),
                                cache);
                  })
      .def_static(
          "compose",
          [=](const L& a, const L& b, int filter, int special, int64_t label, bool both, bool loop, bool by_output, uint64_t cache) {
            const fst::Special given{static_cast<fst::SpecialKind>(special), special ? H::label(label) : fst::kNone, both, loop};
            return made(
                std::make_unique<fst::LazyComposition<S>>(a.lazy, b.lazy, static_cast<fst::Filter>(filter), given, by_output, cache),
                cache);
          })
      .def_static("difference", [=](const L& a, const L& b,
                                    uint64_t cache) { return made(std::make_unique<fst::LazyDifference<S>>(a.lazy, b.lazy), cache); })
      .def_static("determinize",
                  [=](const L& a, int outputs, int64_t subsequential, bool increment, double delta, uint64_t cache) {
                    const auto kind = static_cast<fst::Outputs>(outputs);
                    if (kind == fst::Outputs::Disambiguate) fst::require_path<S>("determinize(det_type=\"disambiguate\")");
                    return made(std::make_unique<fst::LazySubsets<S>>(a.lazy, kind, H::label(subsequential), increment, delta), cache);
                  })
      .def_static("rmepsilon", [=](const L& a, double delta,
                                   uint64_t cache) { return made(std::make_unique<fst::LazyEpsilonRemoval<S>>(a.lazy, delta), cache); })
      .def_static("replace", [=](const std::vector<std::pair<int64_t, const L*>>& given, bool call_input, bool call_output,
                                 bool return_input, bool return_output, int64_t return_label, uint64_t cache) {
        std::vector<std::pair<fst::Id, fst::LazyPtr<S>>> machines;
        machines.reserve(given.size());
        for (const auto& [label, each] : given) machines.emplace_back(H::label(label), each->lazy);
        if (machines.empty()) fst::refuse("replace: there is no machine");
        const fst::CallLabels labels{call_input, call_output, return_input, return_output, H::label(return_label)};
        return made(std::make_unique<fst::LazyReplacement<S>>(std::move(machines), labels), cache);
      });
  nb::borrow<nb::class_<H>>(nb::type<H>()).def("disambiguate", [](const H& a, int64_t subsequential, double delta, Limits l) {
    return metered(l, "disambiguate",
                   [&, x = a.read()](Meter& meter) { return H(fst::disambiguate(*x, H::label(subsequential), delta, meter)); });
  });
}

}  // namespace tokenfst
