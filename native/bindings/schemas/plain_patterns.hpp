// Plain patterns of ECMA-262 as expressions: characters, classes, groups, alternatives, counts, and anchors at both ends.
//
// Most patterns of schemas are plain, and the general way (tokenfst.automata.regex.ecma) rewrites a pattern to one of Python, parses that,
// and translates the tree: 0.2 ms for each. Here the expression is written while the pattern is read. Everything else, errors included, is
// left to the general way: other groups, look-around, back-references, `\b`, `\x`, `\p`, characters beyond ASCII, anchors inside.
//
// Invariant: the nodes are those of the general way, which also decides what is shared and which parts of alternatives are joined
// (tests/automata/regex/test_plain_patterns.py). Cost: linear in the pattern.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/building_nodes.hpp"

namespace tokenfst {

namespace nb = nanobind;

class PlainPattern {
 public:
  // `leaf(ranges)`: one character out of a set. `named(ranges, quantifier)`: the text of its repetition, for messages. `most`: the number
  // of positions that the pattern may have.
  PlainPattern(std::string_view text, nb::handle leaf, nb::handle named, int64_t most)
      : text_(text), leaf_(leaf), named_(named), most_(most) {}

  // Not valid where the pattern is not plain.
  nb::object expression() {
    Items found;
    if (!alternatives(found, 0) || at_ != text_.size() || size_of(found) > most_) return {};
    return written(found);
  }

 private:
  using Range = std::pair<uint32_t, uint32_t>;
  using Ranges = std::vector<Range>;
  enum class Kind : uint8_t { Character, Set, Repeat, Branch, Begin, End };
  struct Item;
  using Items = std::vector<Item>;
  struct Item {
    Kind kind;
    uint32_t code = 0;  // of a character
    Ranges set = {};  // of a set
    std::vector<Items> ways = {};  // of a branch; of a repetition its body, alone
    int64_t low = 0, high = 0;  // of a repetition; -1: without an upper bound
    std::string_view quantifier = {};  // of a repetition that messages name
    bool is_named = false;

    // Whether Python's parser joins two items at the beginnings of alternatives: it compares repetitions and branches by identity.
    bool joins(const Item& other) const {
      if (kind != other.kind || kind == Kind::Repeat || kind == Kind::Branch) return false;
      return code == other.code && set == other.set;
    }
  };

  static constexpr uint32_t kLastCode = 0x10FFFF;
  static constexpr int kDeepest = 40;
  static constexpr int64_t kLabelled = 8;  // a repetition with a greater bound carries its source

  bool is_at(char each) const { return at_ < text_.size() && text_[at_] == each; }
  static bool is_digit(char each) { return each >= '0' && each <= '9'; }

  // --- reading: false where the pattern is not plain ---

  // Alternatives to the end of the group or of the pattern, as `re._parser` joins them.
  bool alternatives(Items& found, int depth) {
    std::vector<Items> ways;
    do {
      if (!sequence(ways.emplace_back(), depth)) return false;
    } while (is_at('|') && ++at_);
    if (ways.size() == 1) {
      found = std::move(ways[0]);
      return true;
    }
    while (std::ranges::all_of(ways, [&](const Items& way) { return !way.empty() && way[0].joins(ways[0][0]); })) {
      found.push_back(ways[0][0]);
      for (Items& way : ways) way.erase(way.begin());
    }
    Ranges set;
    for (const Items& way : ways) {
      if (way.size() != 1 || (way[0].kind != Kind::Character && way[0].kind != Kind::Set)) {
        found.push_back(Item{.kind = Kind::Branch, .ways = std::move(ways)});
        return true;
      }
      if (way[0].kind == Kind::Character) set.emplace_back(way[0].code, way[0].code);
      set.insert(set.end(), way[0].set.begin(), way[0].set.end());
    }
    found.push_back(Item{.kind = Kind::Set, .set = normal(std::move(set))});
    return true;
  }

  bool sequence(Items& found, int depth) {
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
      if (is_refused_ || (is_group && is_top && is_bare && !is_begun)) return false;  // the text around is written inside of the group
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
      set = negated({{0x0A, 0x0A}, {0x0D, 0x0D}, {0x2028, 0x2029}});
    } else if (each == '^' || each == '$' || each == '*' || each == '+' || each == '?' || each == '{') {
      return false;
    } else {
      ++at_;
      set = {{static_cast<uint8_t>(each), static_cast<uint8_t>(each)}};
    }
    set = without_surrogates(set);
    if (set.empty()) return false;
    if (is_one(set)) {
      made.push_back(Item{.kind = Kind::Character, .code = set[0].first});
    } else {
      made.push_back(Item{.kind = Kind::Set, .set = std::move(set)});
    }
    return true;
  }

  // Whether what was read is repeated; it is replaced by the repetition.
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
    Item repeated{.kind = Kind::Repeat, .low = low, .high = high, .quantifier = text_.substr(begin, at_ - begin)};
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
      if (!is_range || !is_one(first)) {
        pairs.insert(pairs.end(), first.begin(), first.end());
        continue;
      }
      ++at_;
      if (!member(last)) return false;
      if (!is_one(last)) {
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
    found = normal(std::move(pairs));
    if (is_negated) found = negated(found);
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
    if (letter < 'a') found = negated(found);
    return true;
  }

  // --- sets of characters: ranges in order, which do not touch ---

  static bool is_one(const Ranges& ranges) { return ranges.size() == 1 && ranges[0].first == ranges[0].second; }
  static Ranges normal(Ranges pairs) {
    std::ranges::sort(pairs);
    Ranges found;
    for (const Range& each : pairs) {
      if (!found.empty() && each.first <= found.back().second + 1) {
        found.back().second = std::max(found.back().second, each.second);
      } else {
        found.push_back(each);
      }
    }
    return found;
  }
  static Ranges negated(const Ranges& ranges) {
    Ranges found;
    uint32_t next = 0;
    for (const auto& [low, high] : ranges) {
      if (low > next) found.emplace_back(next, low - 1);
      next = high + 1;
    }
    if (next <= kLastCode) found.emplace_back(next, kLastCode);
    return found;
  }
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
    made.ways.push_back({Item{.kind = Kind::Set, .set = without_surrogates({{0, kLastCode}})}});
    return made;
  }

  // --- writing ---

  // The positions with all repetitions expanded; more than `most_` where they are too many.
  int64_t size_of(const Items& items) const {
    int64_t size = 0;
    for (const Item& each : items) {
      int64_t part = 0;
      for (const Items& way : each.ways) part += size_of(way);
      if (each.kind == Kind::Repeat) part *= each.high < 0 ? std::max<int64_t>(each.low, 1) : each.high;
      size += each.ways.empty() ? 1 : part;
      if (size > most_ || part > most_) return most_ + 1;
    }
    return size;
  }

  static bool is_anchored(const Item& item) {
    return item.kind == Kind::Begin || item.kind == Kind::End || (item.kind == Kind::Branch && std::ranges::any_of(item.ways, has_anchor));
  }
  static bool has_anchor(const Items& items) { return std::ranges::any_of(items, is_anchored); }

  // As `Lookaround.sequence`: what is between anchors is a part of its own.
  nb::object written(const Items& items) const {
    if (!has_anchor(items)) return plain(items.data(), items.data() + items.size());
    std::vector<nb::object> parts;
    const Item* run = items.data();
    for (const Item& each : items) {
      if (!is_anchored(each)) continue;
      parts.push_back(plain(run, &each));
      if (each.kind == Kind::Branch) {
        std::vector<nb::object> ways;
        ways.reserve(each.ways.size());
        for (const Items& way : each.ways) ways.push_back(written(way));
        parts.push_back(nodes::either(borrowed(ways)));
      }
      run = &each + 1;
    }
    parts.push_back(plain(run, items.data() + items.size()));
    return nodes::concat(borrowed(parts));
  }

  // As `translate._Translator.plain`: adjacent characters are one word.
  nb::object plain(const Item* item, const Item* end) const {
    std::vector<nb::object> parts;
    std::string word;
    const auto finish = [&] {
      if (!word.empty()) parts.push_back(nodes::literal(word));
      word.clear();
    };
    for (; item != end; ++item) {
      if (item->kind == Kind::Character) {
        append_utf8(word, item->code);
        continue;
      }
      finish();
      if (item->kind == Kind::Set) {
        parts.push_back(leaf_(tuple_of(item->set)));
      } else if (item->kind == Kind::Repeat) {
        parts.push_back(repeated(*item));
      } else {
        std::vector<nb::object> ways;
        ways.reserve(item->ways.size());
        for (const Items& way : item->ways) ways.push_back(plain(way.data(), way.data() + way.size()));
        parts.push_back(nodes::either(borrowed(ways)));
      }
    }
    finish();
    return nodes::concat(borrowed(parts));
  }

  nb::object repeated(const Item& item) const {
    const Items& body = item.ways[0];
    const nb::object part = plain(body.data(), body.data() + body.size());
    nb::object made = nodes::repeat(part, item.low, item.high);
    if (item.is_named && !made.is(part) && node_of(made).args != expression_nodes::nothing) {
      const Ranges single{{body[0].code, body[0].code}};
      const nb::object source =
          named_(tuple_of(body[0].kind == Kind::Set ? body[0].set : single), nb::str(item.quantifier.data(), item.quantifier.size()));
      auto* const node = reinterpret_cast<ExprNode*>(made.ptr());
      Py_DECREF(node->source);
      node->source = Py_NewRef(source.ptr());
    }
    return made;
  }

  static std::vector<PyObject*> borrowed(const std::vector<nb::object>& parts) {
    std::vector<PyObject*> found;
    found.reserve(parts.size());
    for (const nb::object& each : parts) found.push_back(each.ptr());
    return found;
  }
  static nb::tuple tuple_of(const Ranges& ranges) {
    nb::list found;
    for (const auto& [low, high] : ranges) found.append(nb::make_tuple(low, high));
    return nb::tuple(found);
  }
  static void append_utf8(std::string& word, uint32_t code) {
    if (code < 0x80) {
      word.push_back(static_cast<char>(code));
      return;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static constexpr uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
    word.push_back(static_cast<char>(kLead[more] | code >> (6 * more)));
    for (int k = more - 1; k >= 0; --k) word.push_back(static_cast<char>(0x80 | (code >> (6 * k) & 0x3F)));
  }

  std::string_view text_;
  nb::handle leaf_, named_;
  int64_t most_;
  size_t at_ = 0;
  bool is_refused_ = false;
};

inline void bind_plain_patterns(nb::module_& m) {
  using namespace nb::literals;
  m.def(
      "plain_pattern",
      [](nb::str pattern, nb::handle leaf, nb::handle named, int64_t most) -> nb::object {
        Py_ssize_t length = 0;
        const char* const text = PyUnicode_AsUTF8AndSize(pattern.ptr(), &length);
        if (!text) PyErr_Clear();  // a lone surrogate
        if (!text || !std::all_of(text, text + length, [](char each) { return each >= 0; })) return nb::none();
        nb::object made = PlainPattern(std::string_view(text, static_cast<size_t>(length)), leaf, named, most).expression();
        return made.is_valid() ? made : nb::none();
      },
      "pattern"_a, "leaf"_a, "named"_a, "most"_a);
}

}  // namespace tokenfst
