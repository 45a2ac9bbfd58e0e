// Binds spelling.hpp as `_native.Speller` and `_native.characters`, which automata/characters/codes.py and utf8.py
// call.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "python/numpy_arrays.hpp"
#include "words/spelling.hpp"

namespace tokenfst {

inline void bind_spelling(nanobind::module_& m) {
  namespace nb = nanobind;
  using PySteps = std::vector<std::tuple<int32_t, int32_t, uint32_t>>;
  using PyForm = std::tuple<int32_t, int32_t, int32_t, std::vector<std::vector<nb::bytes>>, std::vector<int32_t>>;
  nb::class_<Speller>(m, "Speller", "Converts automata over characters to automata over bytes, in one encoding.")
      .def("__init__",
           [](Speller* self, const std::vector<PyForm>& given) {
             std::vector<SpellingForm> forms;
             for (const auto& [least, greatest, base, digits, sizes] : given) {
               SpellingForm form{least, greatest, base, {}, sizes};
               for (const auto& place : digits) {
                 auto& into = form.digits.emplace_back();
                 for (const nb::bytes& choices : place) into.emplace_back(choices.c_str(), choices.size());
               }
               forms.push_back(std::move(form));
             }
             new (self) Speller(std::move(forms));
           })
      .def(
          "spell",
          [](const Speller& self, const std::vector<PySteps>& given, uint64_t limit, double seconds) -> nb::object {
            std::vector<CharacterSteps> steps;
            for (const PySteps& each : given) {
              auto& into = steps.emplace_back();
              for (const auto& [low, high, target] : each) into.push_back({low, high, target});
            }
            std::optional<ByteTables> made = self.spell(steps, limit, seconds);
            if (!made) return nb::none();
            return nb::make_tuple(to_numpy(std::move(made->classes), {256}),
                                  to_numpy(std::move(made->table), {made->states, made->groups}));
          },
          nb::arg("steps"), nb::arg("limit"), nb::arg("seconds"));

  using Classes = nb::ndarray<const uint8_t, nb::shape<256>, nb::c_contig, nb::device::cpu>;
  using Table = nb::ndarray<const uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  using Accepting = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.def(
      "characters",
      [](Classes classes, Table table, Accepting accepting, uint32_t start, uint64_t limit, double seconds) -> nb::object {
        const Deadline deadline(seconds);
        CharacterReader reader({classes.data(), table.data(), accepting.data(), table.shape(1)}, limit);
        std::vector<uint32_t> number(table.shape(0)), order{start};
        number.at(start) = 1;
        std::vector<CharacterSteps> steps;
        for (size_t at = 0; at < order.size(); ++at) {
          CharacterSteps found = reader.steps(order[at]);
          if (reader.full) return nb::none();
          if (deadline.expired()) throw BudgetExceeded("seconds", seconds, "the characters of a byte automaton");
          for (CharacterStep& step : found) {
            uint32_t& known = number[step.target];
            if (known == 0) {
              order.push_back(step.target);
              known = static_cast<uint32_t>(order.size());
            }
            step.target = known;
          }
          steps.push_back(std::move(found));
        }
        nb::list made, accepts;
        for (const CharacterSteps& each : steps) {
          nb::list one;
          for (const auto& [low, high, target] : each) one.append(nb::make_tuple(low, high, target));
          made.append(nb::tuple(one));
        }
        for (uint32_t state : order) accepts.append(nb::bool_(accepting.data()[state]));
        return nb::make_tuple(nb::tuple(made), nb::tuple(accepts), reader.whole);
      },
      nb::arg("classes"), nb::arg("table"), nb::arg("accepting"), nb::arg("start"), nb::arg("limit"), nb::arg("seconds"));
}

}  // namespace tokenfst
