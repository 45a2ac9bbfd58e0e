// Where the match that `re.match` prefers ends: a deterministic automaton over characters, for a plain pattern.
//
// A state is a list of places in the pattern, in order of preference. Places after the end of the pattern are dropped from the
// list, since a match that ends is preferred to them (tokenfst.automata.regex.leftmost). So the match ends where the automaton
// accepts last.
//
// Cost: the automaton, once, of at most `kMostStates` states; a step for each character of a text.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/patterns/pattern_order.hpp"

namespace tokenfst {

class FirstMatch {
 public:
  // None: the pattern has the empty word, repeats without bound what may be empty, or has many places or states.
  static std::optional<FirstMatch> of(const pattern_order::Items& items) {
    pattern_order::Places places(items, false, kMostPlaces);
    if (places.is_too_large() || places.is_hollow()) return std::nullopt;
    FirstMatch made;
    std::map<std::vector<int>, int32_t> numbers;  // of states, by the starts of their lists
    std::vector<std::vector<int>> order;
    const auto number_of = [&](std::vector<int> starts) {
      const auto [known, is_new] = numbers.try_emplace(starts, static_cast<int32_t>(order.size()));
      if (is_new) order.push_back(std::move(starts));
      return known->second;
    };
    number_of({places.start()});
    for (size_t state = 0; state < order.size(); ++state) {
      if (order.size() > kMostStates) return std::nullopt;
      std::vector<const pattern_order::Places::Place*> list;
      State own{.is_end = places.reached(order[state], [&](const auto& each) { list.push_back(&each); }).ends};
      character_ranges::Ranges read;
      for (const auto* each : list) each->add_to(read);
      std::vector<uint32_t> cuts;
      for (const auto& [low, high] : read) cuts.insert(cuts.end(), {low, high + 1});
      std::ranges::sort(cuts);
      cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
      for (size_t k = 0; k + 1 < cuts.size(); ++k) {
        std::vector<int> next;
        for (const auto* each : list) {
          if (each->has(cuts[k])) next.push_back(each->ways[0]);
        }
        if (!next.empty()) own.steps.emplace_back(character_ranges::Range{cuts[k], cuts[k + 1] - 1}, number_of(std::move(next)));
      }
      own.ascii.fill(kNone);
      for (const auto& [range, next] : own.steps) {
        for (uint32_t code = range.first; code <= range.second && code < own.ascii.size(); ++code) own.ascii[code] = next;
      }
      made.states_.push_back(std::move(own));
    }
    if (made.states_[0].is_end) return std::nullopt;
    return made;
  }

  // The index after the match that begins at `at`; -1: there is none. `length`: that of the text.
  Py_ssize_t end(PyObject* text, Py_ssize_t at, Py_ssize_t length) const {
    Py_ssize_t found = -1;
    int32_t state = 0;
    while (at < length) {
      state = states_[static_cast<size_t>(state)].after(PyUnicode_ReadChar(text, at++));
      if (state == kNone) break;
      if (states_[static_cast<size_t>(state)].is_end) found = at;
    }
    return found;
  }

 private:
  static constexpr int32_t kNone = -1;
  static constexpr size_t kMostPlaces = 200, kMostStates = 200;

  struct State {
    bool is_end = false;
    std::array<int32_t, 128> ascii = {};
    std::vector<std::pair<character_ranges::Range, int32_t>> steps = {};  // of all characters, in their order

    int32_t after(uint32_t code) const {
      if (code < ascii.size()) return ascii[code];
      const auto next = std::ranges::upper_bound(steps, code, {}, [](const auto& each) { return each.first.first; });
      return next != steps.begin() && std::prev(next)->first.second >= code ? std::prev(next)->second : kNone;
    }
  };

  FirstMatch() = default;

  std::vector<State> states_;
};

}  // namespace tokenfst
