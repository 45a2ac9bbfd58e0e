// Plain patterns in Python's syntax: characters, classes, groups without names, which may have flags, alternatives and counts.
//
// Most patterns are plain. Python's `re._parser` takes about a microsecond for each character of a pattern, and the translation
// of its tree as long again. Here the items of that tree are made directly from the text; from them follow the expression and
// the facts that terminals of grammars need. All other patterns, and all errors, are left to the general way
// (tokenfst.automata.regex.translate): flags of the whole, named groups, look-around, anchors, back-references, possessive
// quantifiers, octal escapes, patterns whose counts exceed the budget.
//
// The running Python decides what a class means: `classes` maps the text of a class to a tuple
// (`tokenfst.automata.regex.plain`), and caches it. Where flags change the meaning, the text is put in a group with these
// flags. If case is ignored, a single character is looked up too.
//
// Invariant: the nodes are those of the general way (tests/automata/regex/test_plain_python.py). Cost: linear in the pattern.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/patterns/first_match.hpp"
#include "bindings/patterns/pattern_items.hpp"
#include "bindings/patterns/pattern_order.hpp"

namespace tokenfst {

namespace nb = nanobind;

class PythonPattern final : public PatternItems {
 public:
  // `classes`: see above. `named(text)`: the text of a repetition, shortened for messages. `most`: the greatest number of
  // positions that the pattern may have.
  PythonPattern(nb::str pattern, nb::object classes, nb::object named, int64_t most)
      : PatternItems({}, most), pattern_(std::move(pattern)), classes_(std::move(classes)), named_(std::move(named)) {}

  // Reads the pattern; false if it is not plain. All other functions need a true.
  bool read() {
    Py_ssize_t length = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(pattern_.ptr(), &length);
    if (!text) PyErr_Clear();  // a lone surrogate
    if (!text || length > kLongest) return false;
    text_ = {text, static_cast<size_t>(length)};
    return alternatives(items_, 0) && at_ == text_.size() && size_of(items_) <= most_;
  }

  // The expression of the pattern's words.
  nb::object expr() const { return written(items_); }
  // The least and the greatest number of characters of a word, as `getwidth` of `re._parser`.
  std::pair<int64_t, int64_t> width() const { return pattern_order::width_of(items_); }
  // Whether `re.match` surely matches all of every word; see `leftmost.is_orderly`. None: the pattern is too large to decide.
  std::optional<bool> is_orderly() const { return pattern_order::is_orderly(items_); }
  // Whether the pattern is a repetition without bound, so that words in sequence are a word.
  bool is_repetition() const { return pattern_order::is_repetition(items_); }
  // The characters by which a match may continue to a longer one. None: `re.match` may prefer a part of some word, or the
  // pattern is too large to decide.
  nb::object longer_by() const { return or_none(pattern_order::longer_by(items_)); }
  // The automaton that finds the end of what `re.match` matches. None: there is none, or it is large (FirstMatch::of).
  std::optional<FirstMatch> first_match() const { return FirstMatch::of(items_); }
  // A superset of the characters with which a word can begin; see `leftmost.Places.first`. None: the pattern is too large to
  // decide.
  nb::object first() const { return or_none(pattern_order::first_of(items_)); }

 private:
  static nb::object or_none(const std::optional<character_ranges::Ranges>& found) {
    return found ? nb::object(character_ranges::tuple_of(*found)) : nb::none();
  }

  static constexpr Py_ssize_t kLongest = 20'000;  // bytes: the general way reads longer patterns, under a budget of time
  enum Part : Py_ssize_t { kCode, kIsPositive, kTree, kLeaf, kRanges, kText };  // the items of a tuple of `classes`

  bool sequence(Items& found, int depth) override {
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      const size_t begin = at_, before = found.size();
      if (!atom(found, depth)) return false;
      int64_t low = 0, high = -1;
      if (!quantifier(low, high)) {
        if (is_refused_) return false;
        continue;
      }
      const bool is_lazy = is_at('?');
      if (is_lazy) ++at_;
      if (is_at('+')) return false;  // possessive, or repeated twice
      Item repeated{.kind = Kind::Repeat, .is_greedy = !is_lazy, .low = low, .high = high, .begin = begin, .end = at_};
      repeated.is_named = (high < 0 ? low : high) > kLabelled;
      repeated.ways.emplace_back(std::make_move_iterator(found.begin() + static_cast<ptrdiff_t>(before)),
                                 std::make_move_iterator(found.end()));
      found.erase(found.begin() + static_cast<ptrdiff_t>(before), found.end());
      found.push_back(std::move(repeated));
    }
    return true;
  }

  // Appends one item, or the items of a non-capturing group without flags.
  bool atom(Items& found, int depth) {
    const char each = text_[at_];
    switch (each) {
      case '(': return group(found, depth);
      case '[': return character_class(found);
      case '\\': return escape(found);
      case '.': return append_class(found, text_.substr(at_++, 1));
      case '^':
      case '$':
      case '*':
      case '+':
      case '?': return false;
      case '{': {
        int64_t low = 0, high = 0;
        if (quantifier(low, high) || is_refused_) return false;  // nothing to repeat, or repeated twice
        break;
      }
      default: break;
    }
    return append_character(found, next_code());
  }

  bool group(Items& found, int depth) {
    ++at_;
    const Flags outside = flags_;
    bool is_kept = !is_at('?');  // the tree has a node for the group
    if (!is_kept) {
      const size_t begin = ++at_;
      if (!flags()) return false;
      is_kept = at_ > begin + 1;
    }
    Items inner;
    if (depth == kDeepest || !alternatives(inner, depth + 1) || !is_at(')')) return false;
    ++at_;
    flags_ = outside;
    if (is_kept) {
      Item made{.kind = Kind::Group};
      made.ways.push_back(std::move(inner));
      found.push_back(std::move(made));
    } else {
      std::ranges::move(inner, std::back_inserter(found));
    }
    return true;
  }

  // Reads the flags of a group and the colon after them; false if there are other flags, or another kind of group.
  bool flags() {
    std::string_view known = "aimsu", all;
    const size_t begin = at_;
    for (; at_ < text_.size() && known.find(text_[at_]) != std::string_view::npos; ++at_) set_flag(text_[at_], true);
    all = text_.substr(begin, at_ - begin);
    if (all.find('a') != std::string_view::npos && all.find('u') != std::string_view::npos) return false;
    if (is_at('-')) {
      known = "ims";
      const size_t removed = ++at_;
      for (; at_ < text_.size() && known.find(text_[at_]) != std::string_view::npos; ++at_) {
        if (all.find(text_[at_]) != std::string_view::npos) return false;
        set_flag(text_[at_], false);
      }
      if (at_ == removed) return false;
    }
    if (!is_at(':')) return false;
    ++at_;
    return true;
  }
  void set_flag(char letter, bool is_set) {
    switch (letter) {
      case 'a': flags_.is_ascii = true; break;
      case 'u': flags_.is_ascii = false; break;
      case 'i': flags_.ignores_case = is_set; break;
      case 's': flags_.has_all = is_set; break;
      default: break;  // `m` is about anchors
    }
  }

  // Reads the quantifier that stands here, if one does; `high` is -1 without an upper bound. Sets `is_refused_` if `re` refuses
  // it, or if its counts are left to the general way.
  bool quantifier(int64_t& low, int64_t& high) {
    low = 0, high = -1;
    if (at_ == text_.size()) return false;
    switch (text_[at_]) {
      case '*': ++at_; return true;
      case '+': low = 1, ++at_; return true;
      case '?': high = 1, ++at_; return true;
      case '{': break;
      default: return false;
    }
    const size_t begin = at_++;
    if (is_at('}')) return at_ = begin, false;
    const bool has_low = number(low);
    bool has_high = false;
    if (is_at(',')) {
      ++at_;
      has_high = number(high);
    } else if (has_low) {
      high = low, has_high = true;
    }
    if (!is_at('}')) return at_ = begin, false;  // then the bracket is a character
    ++at_;
    if (!has_low) low = 0;
    if (!has_high) high = -1;
    is_refused_ = is_refused_ || low > kMostRepeated || high > kMostRepeated || (has_high && high < low);
    return !is_refused_;
  }
  bool number(int64_t& found) {
    const size_t begin = at_;
    int64_t value = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) value = std::min(value * 10 + (text_[at_] - '0'), kMostRepeated + 1);
    if (at_ > begin) found = value;
    return at_ > begin;
  }
  static constexpr int64_t kMostRepeated = 1'000'000'000;  // larger counts are left to the general way

  // Finds the end of a class; Python reads what is in it.
  bool character_class(Items& found) {
    const size_t begin = at_++;
    if (is_at('[')) return false;  // `re` warns of such a class, and of the doubled signs below
    if (is_at('^')) ++at_;
    const size_t inside = at_;
    while (at_ < text_.size() && (text_[at_] != ']' || at_ == inside)) {
      const char each = text_[at_];
      if (each == '\\') {
        ++at_;
      } else if ((each == '-' || each == '&' || each == '~' || each == '|') && at_ + 1 < text_.size() && text_[at_ + 1] == each) {
        return false;
      }
      ++at_;
    }
    if (at_ >= text_.size()) return false;
    ++at_;
    return append_class(found, text_.substr(begin, at_ - begin));
  }

  bool escape(Items& found) {
    if (at_ + 1 >= text_.size()) return false;
    const size_t begin = at_++;
    const char letter = text_[at_];
    uint32_t code = 0;
    switch (letter) {
      case 'd':
      case 'D':
      case 's':
      case 'S':
      case 'w':
      case 'W': ++at_; return append_class(found, text_.substr(begin, 2));
      case 'a': code = 0x07; break;
      case 'f': code = 0x0C; break;
      case 'n': code = 0x0A; break;
      case 'r': code = 0x0D; break;
      case 't': code = 0x09; break;
      case 'v': code = 0x0B; break;
      case 'x': return number_of_character(found, 2);
      case 'u': return number_of_character(found, 4);
      case 'U': return number_of_character(found, 8);
      default:
        if (is_digit(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')) return false;
        return append_character(found, next_code());
    }
    ++at_;
    return append_character(found, code);
  }
  bool number_of_character(Items& found, size_t digits) {
    ++at_;
    if (text_.size() - at_ < digits) return false;
    uint64_t code = 0;
    for (size_t k = 0; k < digits; ++k) {
      const char each = text_[at_++];
      const int lowered = each | 0x20;
      if (!is_digit(each) && (lowered < 'a' || lowered > 'f')) return false;
      code = code * 16 + static_cast<uint64_t>(is_digit(each) ? each - '0' : lowered - 'a' + 10);
    }
    if (code > character_ranges::kLastCode || (code >= 0xD800 && code <= 0xDFFF)) return false;
    return append_character(found, static_cast<uint32_t>(code));
  }

  // One character of the text, which is valid UTF-8.
  uint32_t next_code() {
    const auto lead = static_cast<uint8_t>(text_[at_++]);
    if (lead < 0x80) return lead;
    const int more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    uint32_t code = lead & (0x3FU >> more);
    for (int k = 0; k < more; ++k) code = code << 6 | (static_cast<uint8_t>(text_[at_++]) & 0x3FU);
    return code;
  }

  // --- classes ---

  bool append_character(Items& found, uint32_t code) {
    if (flags_.ignores_case) return append_class(found, spelled(code));
    found.push_back(Item{.kind = Kind::Character, .code = code});
    return true;
  }
  static std::string spelled(uint32_t code) {
    std::array<char, 11> text{};
    std::snprintf(text.data(), text.size(), "\\U%08x", code);
    return text.data();
  }

  bool append_class(Items& found, std::string_view text) {
    Item made{.kind = Kind::Set};
    if (!set_of(made, text)) return false;
    found.push_back(std::move(made));
    return true;
  }

  static nb::handle part_of(nb::handle known, Part part) {
    PyObject* const found = PyTuple_GetItem(known.ptr(), part);
    if (!found) throw nb::python_error();
    return found;
  }

  // Sets `made` to the class with this text, or to a character if the class has only one; false if Python refuses it.
  bool set_of(Item& made, std::string_view text) {
    std::string flagged;
    if (flags_ != Flags{}) {
      flagged = "(?";
      if (flags_.is_ascii) flagged += 'a';
      if (flags_.ignores_case) flagged += 'i';
      if (flags_.has_all) flagged += 's';
      (flagged += ':').append(text) += ')';
      text = flagged;
    }
    nb::object known = classes_[nb::str(text.data(), text.size())];
    if (known.is_none()) return false;
    const int64_t code = nb::cast<int64_t>(part_of(known, kCode));
    if (code >= 0) {
      made.kind = Kind::Character;
      made.code = static_cast<uint32_t>(code);
      return true;
    }
    made.leaf = known;
    made.tree = part_of(known, kTree).ptr();
    const auto ranges = nb::cast<nb::bytes>(part_of(known, kRanges));
    std::array<uint32_t, 2> pair{};
    made.set.reserve(ranges.size() / sizeof(pair));
    for (size_t at = 0; at < ranges.size(); at += sizeof(pair)) {
      std::memcpy(pair.data(), ranges.c_str() + at, sizeof(pair));
      made.set.emplace_back(pair[0], pair[1]);
    }
    kept_.push_back(std::move(known));
    return true;
  }

  bool as_set(const std::vector<Items>& ways, Item& found) override {
    std::string text;
    for (const Items& way : ways) {
      if (!text.empty()) text += '|';
      const Item& only = way[0];
      if (only.kind == Kind::Character) {
        text += spelled(only.code);
      } else if (nb::cast<bool>(part_of(only.leaf, kIsPositive))) {
        text += nb::cast<std::string_view>(part_of(only.leaf, kText));
      } else {
        return false;
      }
    }
    is_refused_ = !set_of(found, text);
    return true;
  }

  nb::object leaf(const Item& item) const override { return nb::borrow(part_of(item.leaf, kLeaf)); }
  nb::object label(const Item& item) const override { return named_(nb::str(text_.data() + item.begin, item.end - item.begin)); }

  struct Flags {
    bool is_ascii = false, ignores_case = false, has_all = false;  // `has_all`: the dot has all characters
    bool operator==(const Flags&) const = default;
  };

  nb::str pattern_;
  Flags flags_;  // where the reader stands
  nb::object classes_, named_;
  std::vector<nb::object> kept_;
  Items items_;
};

inline void bind_python_pattern(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PythonPattern>(m, "PlainPattern")
      .def("expr", &PythonPattern::expr)
      .def("width", &PythonPattern::width)
      .def("is_orderly",
           [](const PythonPattern& self) -> nb::object {
             const std::optional<bool> found = self.is_orderly();
             return found ? nb::object(nb::bool_(*found)) : nb::none();
           })
      .def("longer_by", &PythonPattern::longer_by)
      .def("is_repetition", &PythonPattern::is_repetition)
      .def("first", &PythonPattern::first)
      .def(
          "match_end",
          [](const PythonPattern& self, nb::str text, Py_ssize_t at) -> nb::object {
            const std::optional<FirstMatch> made = self.first_match();
            if (!made) return nb::none();
            return nb::int_(made->end(text.ptr(), at, PyUnicode_GetLength(text.ptr())));
          },
          "text"_a, "at"_a);
  m.def(
      "read_pattern",
      [](nb::str pattern, nb::object classes, nb::object named, int64_t most) -> nb::object {
        auto made = std::make_unique<PythonPattern>(std::move(pattern), std::move(classes), std::move(named), most);
        if (!made->read()) return nb::none();
        return nb::cast(std::move(made));
      },
      "pattern"_a, "classes"_a, "named"_a, "most"_a);
}

}  // namespace tokenfst
