// Plain patterns of ECMA-262 as expressions: characters, classes, groups, alternatives, counts, and anchors at both ends.
//
// Most patterns of schemas are plain. The general way (tokenfst.automata.regex.ecma) rewrites a pattern to one of Python,
// parses that, and translates the tree: 0.2 ms for each pattern. Here the expression is made directly from the text. All other
// patterns, and all errors, are left to the general way: other groups, look-around, back-references, `\b`, `\x`, `\p`,
// characters beyond ASCII, anchors inside.
//
// Invariant: the nodes are those of the general way, with the same sharing and the same joined beginnings of alternatives
// (tests/automata/regex/test_plain_patterns.py). Cost: linear in the pattern.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/patterns/pattern_items.hpp"

namespace tokenfst {

namespace nb = nanobind;

class EcmaPattern : PatternItems {
 public:
  // `leaf(ranges)`: the expression of one character out of a set. `named(ranges, quantifier)`: the text of its repetition, for
  // messages. `most`: the greatest number of positions that the pattern may have.
  EcmaPattern(std::string_view text, nb::handle leaf, nb::handle named, int64_t most)
      : PatternItems(text, most), leaf_(leaf), named_(named) {}

  // The expression of all texts in which the pattern matches somewhere; not valid if the pattern is not plain.
  nb::object expression() {
    Items found;
    if (!alternatives(found, 0) || at_ != text_.size() || size_of(found) > most_) return {};
    return with_anchors(found);
  }

 private:
  using Range = character_ranges::Range;
  using Ranges = character_ranges::Ranges;

  // --- reading: false where the pattern is not plain ---

  bool as_set(const std::vector<Items>& ways, Item& found) override {
    for (const Items& way : ways) {
      if (way[0].kind == Kind::Character) found.set.emplace_back(way[0].code, way[0].code);
      found.set.insert(found.set.end(), way[0].set.begin(), way[0].set.end());
    }
    found.set = character_ranges::normal(std::move(found.set));
    return true;
  }

  bool sequence(Items& found, int depth) override {
    const bool is_top = depth == 0;
    bool is_begun = false, is_ended = false, is_bare = true, is_group = false;  // `is_group`: the last part is one, and not repeated
    if (is_top) {
      if ((is_begun = is_at('^'))) ++at_;
      found.push_back(is_begun ? Item{.kind = Kind::Begin} : every_text());
    }
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      if (is_top && is_at('$')) {
        is_ended = true;
        ++at_;
        if (at_ < text_.size() && text_[at_] != '|') return false;
        break;
      }
      Items made;
      is_group = false;
      if (!atom(made, is_group, depth)) return false;
      if (quantified(made, is_group)) is_group = false;
      if (is_refused_ || (is_group && is_top && is_bare && !is_begun)) return false;  // the general way puts the text around into the group
      is_bare = false;
      std::ranges::move(made, std::back_inserter(found));
    }
    if (!is_top) return true;
    if (is_group && !is_ended) return false;
    if (is_ended) {
      found.push_back(Item{.kind = Kind::End});
    } else if (is_begun || !is_bare) {
      found.push_back(every_text());
    }
    return true;
  }

  bool atom(Items& made, bool& is_group, int depth) {
    const char each = text_[at_];
    if (each == '(') {
      is_group = true;
      ++at_;
      if (text_.substr(at_).starts_with("?:")) {
        at_ += 2;
      } else if (is_at('?')) {
        return false;
      }
      if (depth == kDeepest || !alternatives(made, depth + 1) || !is_at(')')) return false;
      ++at_;
      return true;
    }
    Ranges set;
    if (each == '[') {
      if (!character_class(set)) return false;
    } else if (each == '\\') {
      if (!escape(set)) return false;
    } else if (each == '.') {
      ++at_;
      set = character_ranges::negated({{0x0A, 0x0A}, {0x0D, 0x0D}, {0x2028, 0x2029}});
    } else if (each == '^' || each == '$' || each == '*' || each == '+' || each == '?' || each == '{') {
      return false;
    } else {
      ++at_;
      set = {{static_cast<uint8_t>(each), static_cast<uint8_t>(each)}};
    }
    set = without_surrogates(set);
    if (set.empty()) return false;
    if (character_ranges::is_one(set)) {
      made.push_back(Item{.kind = Kind::Character, .code = set[0].first});
    } else {
      made.push_back(Item{.kind = Kind::Set, .set = std::move(set)});
    }
    return true;
  }

  // Whether a quantifier follows the items that were read; then it is read, and they are replaced by their repetition.
  bool quantified(Items& made, bool is_group) {
    if (at_ == text_.size()) return false;
    const size_t begin = at_;
    int64_t low = 0, high = -1;
    switch (text_[at_]) {
      case '*': ++at_; break;
      case '+': low = 1, ++at_; break;
      case '?': high = 1, ++at_; break;
      case '{':
        ++at_;
        is_refused_ = !number(low);
        if (is_refused_) return false;
        high = low;
        if (is_at(',')) {
          ++at_;
          high = -1;
          if (!is_at('}')) is_refused_ = !number(high) || high < low;
        }
        is_refused_ = is_refused_ || !is_at('}');
        if (is_refused_) return false;
        ++at_;
        break;
      default: return false;
    }
    if (is_at('?')) ++at_;
    Item repeated{.kind = Kind::Repeat, .low = low, .high = high, .begin = begin, .end = at_};
    repeated.is_named = (high < 0 ? low : high) > kLabelled;
    is_refused_ = (repeated.is_named && is_group) || (at_ < text_.size() && (text_[at_] == '*' || text_[at_] == '+' || text_[at_] == '?'));
    repeated.ways.push_back(std::move(made));
    made.clear();
    made.push_back(std::move(repeated));
    return true;
  }
  bool number(int64_t& found) {
    const size_t begin = at_;
    found = 0;
    while (at_ < text_.size() && is_digit(text_[at_]) && at_ - begin < 7) found = found * 10 + (text_[at_++] - '0');
    return at_ > begin && at_ - begin < 7;
  }

  bool character_class(Ranges& found) {
    ++at_;
    const bool is_negated = is_at('^');
    if (is_negated) ++at_;
    Ranges pairs;
    while (!is_at(']')) {
      Ranges first, last;
      if (!member(first)) return false;
      const bool is_range = is_at('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (!is_range || !character_ranges::is_one(first)) {
        pairs.insert(pairs.end(), first.begin(), first.end());
        continue;
      }
      ++at_;
      if (!member(last)) return false;
      if (!character_ranges::is_one(last)) {
        pairs.push_back(first[0]);
        pairs.emplace_back('-', '-');
        pairs.insert(pairs.end(), last.begin(), last.end());
      } else if (last[0].first < first[0].first) {
        return false;
      } else {
        pairs.emplace_back(first[0].first, last[0].first);
      }
    }
    ++at_;
    found = character_ranges::normal(std::move(pairs));
    if (is_negated) found = character_ranges::negated(found);
    return true;
  }
  bool member(Ranges& found) {
    if (at_ == text_.size()) return false;
    if (text_[at_] == '\\') return escape(found);
    found = {{static_cast<uint8_t>(text_[at_]), static_cast<uint8_t>(text_[at_])}};
    ++at_;
    return true;
  }

  bool escape(Ranges& found) {
    if (at_ + 1 >= text_.size()) return false;
    const char letter = text_[at_ + 1];
    at_ += 2;
    switch (letter) {
      case 'd':
      case 'D': found = {{'0', '9'}}; break;
      case 'w':
      case 'W': found = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; break;
      case 's':
      case 'S':
        found = {{0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
                 {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
        break;
      case 'f': found = {{0x0C, 0x0C}}; return true;
      case 'n': found = {{0x0A, 0x0A}}; return true;
      case 'r': found = {{0x0D, 0x0D}}; return true;
      case 't': found = {{0x09, 0x09}}; return true;
      case 'v': found = {{0x0B, 0x0B}}; return true;
      default:
        found = {{static_cast<uint8_t>(letter), static_cast<uint8_t>(letter)}};
        return !is_digit(letter) && !(letter >= 'a' && letter <= 'z') && !(letter >= 'A' && letter <= 'Z');
    }
    if (letter < 'a') found = character_ranges::negated(found);
    return true;
  }

  // --- sets of characters ---

  static Ranges without_surrogates(const Ranges& ranges) {
    Ranges found;
    for (const auto& [low, high] : ranges) {
      if (low < 0xD800) found.emplace_back(low, std::min<uint32_t>(high, 0xD7FF));
      if (high > 0xDFFF) found.emplace_back(std::max<uint32_t>(low, 0xE000), high);
    }
    return found;
  }
  static Item every_text() {
    Item made{.kind = Kind::Repeat, .low = 0, .high = -1};
    made.ways.push_back({Item{.kind = Kind::Set, .set = without_surrogates({{0, character_ranges::kLastCode}})}});
    return made;
  }

  // --- writing ---

  static bool is_anchored(const Item& item) {
    return item.kind == Kind::Begin || item.kind == Kind::End || (item.kind == Kind::Branch && std::ranges::any_of(item.ways, has_anchor));
  }
  static bool has_anchor(const Items& items) { return std::ranges::any_of(items, is_anchored); }

  // As `Lookaround.sequence`: the items between two anchors are one part of the concatenation.
  nb::object with_anchors(const Items& items) const {
    if (!has_anchor(items)) return written(items);
    std::vector<nb::object> parts;
    const Item* run = items.data();
    for (const Item& each : items) {
      if (!is_anchored(each)) continue;
      parts.push_back(written(run, &each));
      if (each.kind == Kind::Branch) {
        std::vector<nb::object> ways;
        ways.reserve(each.ways.size());
        for (const Items& way : each.ways) ways.push_back(with_anchors(way));
        parts.push_back(nodes::either(borrowed(ways)));
      }
      run = &each + 1;
    }
    parts.push_back(written(run, items.data() + items.size()));
    return nodes::concat(borrowed(parts));
  }

  nb::object leaf(const Item& item) const override { return leaf_(character_ranges::tuple_of(item.set)); }

  nb::object label(const Item& item) const override {
    const Item& body = item.ways[0][0];
    const Ranges single{{body.code, body.code}};
    const std::string_view quantifier = text_.substr(item.begin, item.end - item.begin);
    return named_(character_ranges::tuple_of(body.kind == Kind::Set ? body.set : single), nb::str(quantifier.data(), quantifier.size()));
  }

  nb::handle leaf_, named_;
};

inline void bind_ecma_patterns(nb::module_& m) {
  using namespace nb::literals;
  m.def(
      "plain_pattern",
      [](nb::str pattern, nb::handle leaf, nb::handle named, int64_t most) -> nb::object {
        Py_ssize_t length = 0;
        const char* const text = PyUnicode_AsUTF8AndSize(pattern.ptr(), &length);
        if (!text) PyErr_Clear();  // a lone surrogate
        if (!text || !std::all_of(text, text + length, [](char each) { return each >= 0; })) return nb::none();
        nb::object made = EcmaPattern(std::string_view(text, static_cast<size_t>(length)), leaf, named, most).expression();
        return made.is_valid() ? made : nb::none();
      },
      "pattern"_a, "leaf"_a, "named"_a, "most"_a);
}

}  // namespace tokenfst
