// Binds SignedText.
#pragma once

#include <nanobind/nanobind.h>

#include "python/calls.hpp"
#include "exclusion/signed_text.hpp"

namespace tokenfst {

inline void bind_signed_text(nanobind::module_& m) {
  namespace nb = nanobind;
  using namespace nb::literals;
  nb::class_<SignedText>(m, "SignedText", R"(A text of a language with signs, read piece by piece, and the configuration that it has led to.

Not for several threads at once; the automaton is.)")
      .def(
          "__init__",
          [](SignedText* self, ByteAutomaton& automaton) {
            const LongCall call;
            new (self) SignedText(automaton);
          },
          "automaton"_a, nb::keep_alive<1, 2>())
      .def_prop_ro("alive", &SignedText::alive)
      .def_prop_ro("accepting", &SignedText::accepting)
      .def(
          "read",
          [](SignedText& self, nb::bytes data, uint64_t begin) {
            std::string_view text(data.c_str(), data.size());
            if (begin > text.size()) throw nb::index_error("begin lies outside the text");
            const QuickCall call;
            return begin + self.read(text.substr(begin));
          },
          "data"_a, "begin"_a)
      .def(
          "read_on",
          [](SignedText& self, nb::bytes data) -> nb::object {
            SignedText::Read found;
            {
              const QuickCall call;
              found = self.read_on({data.c_str(), data.size()});
            }
            if (found.signs.empty() && found.length == data.size()) return nb::none();
            nb::list signs;
            for (const auto& [place, code] : found.signs) signs.append(nb::make_tuple(place, nb::bytes(code.data(), code.size())));
            return nb::make_tuple(signs, found.length);
          },
          "data"_a)
      .def(
          "sign_behind",
          [](SignedText& self, nb::bytes way) {
            std::string found;
            {
              const QuickCall call;
              found = self.sign_after({way.c_str(), way.size()});
            }
            return nb::bytes(found.data(), found.size());
          },
          "way"_a)
      .def(
          "ahead",
          [](SignedText& self, size_t most) {
            SignedText::NextSigns found;
            {
              const QuickCall call;
              found = self.ahead(most);
            }
            nb::list signs;
            for (const auto& [code, distance] : found.signs) signs.append(nb::make_tuple(nb::bytes(code.data(), code.size()), distance));
            return nb::make_tuple(signs, found.fixed, found.only);
          },
          "most"_a)
      .def_prop_ro("state", &SignedText::state)
      .def("sign",
           [](SignedText& self) {
             std::string found;
             {
               const QuickCall call;
               found = self.sign();
             }
             return nb::bytes(found.data(), found.size());
           })
      .def(
          "next_bytes",
          [](SignedText& self, nb::bytes way) {
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
