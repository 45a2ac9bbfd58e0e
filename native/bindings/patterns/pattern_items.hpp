// Regular expressions as lists of items, as `re._parser` makes them: what the readers of both notations share.
//
// A reader makes the items of a sequence; `alternatives` joins alternatives as Python's parser does, and `written` makes the
// expression of items. What a character, a class or an anchor is depends on the notation, so each reader implements it.
//
// Invariant: the nodes are those of tokenfst.automata.regex.translate. Cost: linear in the pattern.
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

// Sets of characters: ascending ranges of code points, both ends included, with a gap between any two.
namespace character_ranges {

using Range = std::pair<uint32_t, uint32_t>;
using Ranges = std::vector<Range>;
inline constexpr uint32_t kLastCode = 0x10FFFF;

inline bool is_one(const Ranges& ranges) { return ranges.size() == 1 && ranges[0].first == ranges[0].second; }

// The set of any ranges.
inline Ranges normal(Ranges pairs) {
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

inline Ranges negated(const Ranges& ranges) {
  Ranges found;
  uint32_t next = 0;
  for (const auto& [low, high] : ranges) {
    if (low > next) found.emplace_back(next, low - 1);
    next = high + 1;
  }
  if (next <= kLastCode) found.emplace_back(next, kLastCode);
  return found;
}

// A set as a tuple of pairs, for Python.
inline nb::tuple tuple_of(const Ranges& ranges) {
  nb::list found;
  for (const auto& [low, high] : ranges) found.append(nb::make_tuple(low, high));
  return nb::tuple(found);
}

}  // namespace character_ranges

struct PatternItem {
  enum class Kind : uint8_t { Character, Set, Group, Repeat, Branch, Begin, End };

  Kind kind;
  bool is_greedy = true;  // of a repetition
  bool is_named = false;  // whether messages name the repetition
  uint32_t code = 0;      // of a character
  const void* tree = nullptr;  // of a set: an identity, equal where `re._parser` makes equal trees
  character_ranges::Ranges set = {};  // of a set
  nb::handle leaf = {};  // of a set: what the reader knows of it, and keeps alive
  std::vector<std::vector<PatternItem>> ways = {};  // of a branch; of a group or a repetition its body, alone
  int64_t low = 0, high = 0;  // of a repetition; -1: without an upper bound
  size_t begin = 0, end = 0;  // of a repetition that messages name: a part of the text

  // Whether Python's parser takes two equal items at the beginnings of alternatives for one. It never does so with items that
  // have parts.
  bool joins(const PatternItem& other) const {
    return ways.empty() && other.ways.empty() && kind == other.kind && code == other.code && tree == other.tree && set == other.set;
  }
};

// What the readers have in common.
class PatternItems {
 public:
  virtual ~PatternItems() = default;

 protected:
  using Item = PatternItem;
  using Items = std::vector<PatternItem>;
  using Kind = PatternItem::Kind;

  static constexpr int kDeepest = 40;
  static constexpr int64_t kLabelled = 8;  // a repetition with a greater bound carries its source

  PatternItems(std::string_view text, int64_t most) : text_(text), most_(most) {}

  // Reads one sequence, to a bar, a closing parenthesis, or the end; false if it has a construct that the reader does not know.
  virtual bool sequence(Items& found, int depth) = 0;
  // Sets `found` to the union of alternatives that are one character or class each. False: they stay alternatives.
  virtual bool as_set(const std::vector<Items>& ways, Item& found) = 0;
  // The expression of a class.
  virtual nb::object leaf(const Item& item) const = 0;
  // The text of a repetition, for messages.
  virtual nb::object label(const Item& item) const = 0;

  bool is_at(char each) const { return at_ < text_.size() && text_[at_] == each; }
  static bool is_digit(char each) { return each >= '0' && each <= '9'; }

  // Reads alternatives to the end of the group or of the pattern, and appends their items to `found`, joined as by `re._parser`.
  bool alternatives(Items& found, int depth) {
    Items first;
    if (!sequence(first, depth)) return false;
    if (!is_at('|')) {
      if (found.empty()) {
        found = std::move(first);
      } else {
        std::ranges::move(first, std::back_inserter(found));
      }
      return true;
    }
    std::vector<Items> ways;
    ways.push_back(std::move(first));
    while (is_at('|')) {
      ++at_;
      if (!sequence(ways.emplace_back(), depth)) return false;
    }
    size_t joint = 0;
    const auto is_joint = [&](const Items& way) { return way.size() > joint && way[joint].joins(ways[0][joint]); };
    while (std::ranges::all_of(ways, is_joint)) ++joint;
    std::move(ways[0].begin(), ways[0].begin() + static_cast<ptrdiff_t>(joint), std::back_inserter(found));
    for (Items& way : ways) way.erase(way.begin(), way.begin() + static_cast<ptrdiff_t>(joint));
    Item set{.kind = Kind::Set};
    const bool is_single = std::ranges::all_of(
        ways, [](const Items& way) { return way.size() == 1 && (way[0].kind == Kind::Character || way[0].kind == Kind::Set); });
    if (is_single && as_set(ways, set)) {
      found.push_back(std::move(set));
    } else {
      found.push_back(Item{.kind = Kind::Branch, .ways = std::move(ways)});
    }
    return !is_refused_;
  }

  // The number of positions with all repetitions expanded; `most_` + 1 if there are more than `most_`.
  int64_t size_of(const Items& items) const {
    int64_t size = 0;
    for (const Item& each : items) {
      int64_t part = 0;
      for (const Items& way : each.ways) part += size_of(way);
      if (each.kind == Kind::Repeat) {
        const int64_t copies = each.high < 0 ? std::max<int64_t>(each.low, 1) : each.high;
        part = copies > 0 && part > most_ / copies ? most_ + 1 : part * copies;
      }
      size += each.ways.empty() ? 1 : part;
      if (size > most_ || part > most_) return most_ + 1;
    }
    return size;
  }

  // The expression of items in sequence, as of `translate._Translator.plain`: adjacent characters become one literal.
  nb::object written(const Item* item, const Item* end) const {
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
        parts.push_back(leaf(*item));
      } else if (item->kind == Kind::Repeat) {
        parts.push_back(repeated(*item));
      } else if (item->kind == Kind::Group) {
        parts.push_back(written(item->ways[0]));
      } else {
        std::vector<nb::object> ways;
        ways.reserve(item->ways.size());
        for (const Items& way : item->ways) ways.push_back(written(way));
        parts.push_back(nodes::either(borrowed(ways)));
      }
    }
    finish();
    return nodes::concat(borrowed(parts));
  }
  nb::object written(const Items& items) const { return written(items.data(), items.data() + items.size()); }

  static std::vector<PyObject*> borrowed(const std::vector<nb::object>& parts) {
    std::vector<PyObject*> found;
    found.reserve(parts.size());
    for (const nb::object& each : parts) found.push_back(each.ptr());
    return found;
  }

  std::string_view text_;
  int64_t most_;
  size_t at_ = 0;
  bool is_refused_ = false;

 private:
  nb::object repeated(const Item& item) const {
    const nb::object part = written(item.ways[0]);
    if (nodes::is_empty(part)) return item.low > 0 ? nodes::empty() : nodes::epsilon();
    nb::object made = nodes::repeat(part, item.low, item.high);
    if (item.is_named && !made.is(part) && node_of(made).args != expression_nodes::nothing) {
      const nb::object source = label(item);
      auto* const node = reinterpret_cast<ExprNode*>(made.ptr());
      Py_DECREF(node->source);
      node->source = Py_NewRef(source.ptr());
    }
    return made;
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
};

}  // namespace tokenfst
