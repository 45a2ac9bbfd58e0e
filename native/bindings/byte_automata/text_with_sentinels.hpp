// Binds TextWithSentinels.
#pragma once

#include <nanobind/nanobind.h>

#include "python/calls.hpp"
#include "exclusion/text_with_sentinels.hpp"

namespace tokenfst {

inline void bind_text_with_sentinels(nanobind::module_& m) {
  namespace nb = nanobind;
  using namespace nb::literals;
  nb::class_<TextWithSentinels>(m, "TextWithSentinels",
                                R"(A text of a language with sentinels, read piece by piece, and the configuration that it has led to.

One thread at a time uses it, others wait.)")
      .def(
          "__init__",
          [](TextWithSentinels* self, ByteAutomaton& automaton) {
            const LongCall call;
            new (self) TextWithSentinels(automaton);
          },
          "automaton"_a, nb::keep_alive<1, 2>())
      .def_prop_ro("alive", &TextWithSentinels::alive)
      .def_prop_ro("accepting", &TextWithSentinels::accepting)
      .def(
          "read",
          [](TextWithSentinels& self, nb::bytes data, uint64_t begin) {
            std::string_view text(data.c_str(), data.size());
            if (begin > text.size()) throw nb::index_error("begin lies outside the text");
            const QuickCall call;
            return begin + self.read(text.substr(begin));
          },
          "data"_a, "begin"_a)
      .def(
          "read_on",
          [](TextWithSentinels& self, nb::bytes data) -> nb::object {
            TextWithSentinels::Read found;
            {
              const QuickCall call;
              found = self.read_on({data.c_str(), data.size()});
            }
            if (found.sentinels.empty() && found.length == data.size()) return nb::none();
            nb::list sentinels;
            for (const auto& [place, code] : found.sentinels) sentinels.append(nb::make_tuple(place, nb::bytes(code.data(), code.size())));
            return nb::make_tuple(sentinels, found.length);
          },
          "data"_a)
      .def(
          "sentinel_after",
          [](TextWithSentinels& self, nb::bytes way) {
            std::string found;
            {
              const QuickCall call;
              found = self.sentinel_after({way.c_str(), way.size()});
            }
            return nb::bytes(found.data(), found.size());
          },
          "way"_a)
      .def(
          "ahead",
          [](TextWithSentinels& self, size_t most) {
            TextWithSentinels::NextSentinels found;
            {
              const QuickCall call;
              found = self.ahead(most);
            }
            nb::list sentinels;
            for (const auto& [code, distance] : found.sentinels)
              sentinels.append(nb::make_tuple(nb::bytes(code.data(), code.size()), distance));
            return nb::make_tuple(sentinels, found.fixed, found.only);
          },
          "most"_a)
      .def_prop_ro("state", &TextWithSentinels::state)
      .def("take_sentinel",
           [](TextWithSentinels& self) {
             std::string found;
             {
               const QuickCall call;
               found = self.take_sentinel();
             }
             return nb::bytes(found.data(), found.size());
           })
      .def(
          "next_bytes",
          [](TextWithSentinels& self, nb::bytes way) {
            const std::string_view text(way.c_str(), way.size());
            std::pair<std::string, bool> found;
            {
              const QuickCall call;
              found = self.next_bytes(text);
            }
            return nb::make_tuple(nb::bytes(found.first.data(), found.first.size()), found.second);
          },
          "way"_a);
}

}  // namespace tokenfst
