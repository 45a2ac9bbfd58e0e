// Which match `re.match` prefers: the questions of tokenfst.automata.regex.leftmost, answered from the items of a plain pattern.
//
// Invariant: the answers are those of `leftmost.is_orderly`, `leftmost.Places(..., folded=True).first` and `getwidth` of the
// parser's tree; where `longer_by` has an answer, `leftmost.read` drops nothing, and its automaton leaves accepting states by
// these characters. Cost: linear in the pattern if few places follow each place; counted repetitions count once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "bindings/patterns/pattern_items.hpp"

namespace tokenfst::pattern_order {

using Items = std::vector<PatternItem>;
using Kind = PatternItem::Kind;
using character_ranges::Range;
using character_ranges::Ranges;

inline constexpr size_t kMostPlaces = 50'000, kFewPlaces = 1'000;
inline constexpr int64_t kUnbounded = 0xFFFF'FFFF;  // `re`'s MAXREPEAT

// The least and the greatest number of characters of a word, as of `getwidth`.
inline std::pair<int64_t, int64_t> width_of(const Items& items) {
  const auto times = [](int64_t each, int64_t count) { return each > 0 && count > kUnbounded / each ? kUnbounded : each * count; };
  int64_t low = 0, high = 0;
  for (const PatternItem& each : items) {
    std::pair<int64_t, int64_t> part = each.ways.empty() ? std::pair<int64_t, int64_t>{1, 1} : width_of(each.ways[0]);
    for (size_t k = 1; k < each.ways.size(); ++k) {
      const auto [least, most] = width_of(each.ways[k]);
      part = {std::min(part.first, least), std::max(part.second, most)};
    }
    if (each.kind == Kind::Repeat) part = {times(part.first, each.low), times(part.second, each.high < 0 ? kUnbounded : each.high)};
    low = std::min(low + part.first, kUnbounded - 1);
    high = std::min(high + part.second, kUnbounded);
  }
  return {low, high};
}

// Whether a pattern has a choice: alternatives, or a repetition that may end at several places.
inline bool chooses(const Items& items) {
  return std::ranges::any_of(items, [](const PatternItem& each) {
    return each.kind == Kind::Branch || (each.kind == Kind::Repeat && each.low != each.high) || std::ranges::any_of(each.ways, chooses);
  });
}

// Whether a counted part can be read in several ways, or a count that can end at several places is repeated.
inline bool counts_choices(const Items& items, bool is_repeated) {
  return std::ranges::any_of(items, [&](const PatternItem& each) {
    bool inner = is_repeated;
    if (each.kind == Kind::Repeat) {
      const bool is_counted = each.low > 1 || each.high > 1;
      if (is_counted && (chooses(each.ways[0]) || (each.low != each.high && is_repeated))) return true;
      inner = is_repeated || each.high < 0 || each.high > 1;
    }
    return std::ranges::any_of(each.ways, [&](const Items& way) { return counts_choices(way, inner); });
  });
}

// Whether a pattern consists of alternatives of a fixed length each, longer ones first.
inline bool is_longest_first(const Items& pattern) {
  const Items* items = &pattern;
  while (items->size() == 1 && (*items)[0].kind == Kind::Group) items = &(*items)[0].ways[0];
  if (items->size() != 1 || (*items)[0].kind != Kind::Branch) return false;
  int64_t before = kUnbounded;
  return std::ranges::all_of((*items)[0].ways, [&](const Items& way) {
    const auto [low, high] = width_of(way);
    const bool fits = low == high && high <= before;
    before = high;
    return fits;
  });
}

// The places of a pattern and their successors, in order of preference: a Thompson automaton with ordered choices. `is_folded`:
// the body of a counted repetition is expanded only once, so the places stand for more texts than the pattern has. Exceptions
// are repetitions of a few characters a fixed number of times. `most`: if the pattern has more places, is_too_large(), and the
// rest is missing.
class Places {
 public:
  Places(const Items& items, bool is_folded, size_t most) : is_folded_(is_folded), most_(most) {
    place({});
    start_ = sequence(items, kEnd);
  }

  bool is_too_large() const { return places_.size() > most_; }
  // Whether something that may be empty is repeated without bound.
  bool is_hollow() const { return is_hollow_; }
  int start() const { return start_; }

  struct Place {
    std::vector<int> ways;  // the next places, the preferred one first
    const PatternItem* reads = nullptr;  // the character or set that is read on the way; null: none
    int again = -1, out = -1;  // of the end of a round of a repetition: the place of the next round, and that after the repetition

    void add_to(Ranges& found) const {
      if (reads->kind == Kind::Character) {
        found.emplace_back(reads->code, reads->code);
      } else {
        found.insert(found.end(), reads->set.begin(), reads->set.end());
      }
    }
    bool has(uint32_t code) const {
      if (reads->kind == Kind::Character) return reads->code == code;
      const auto after = std::ranges::upper_bound(reads->set, Range{code, character_ranges::kLastCode + 1});
      return after != reads->set.begin() && std::prev(after)->second >= code;
    }
  };

  struct Ends {
    bool ends, drops;
  };

  // Calls `found(place)` for the places that read a character and are reached from `starts` without reading one, in order of
  // preference. Returns whether the end is reached, and whether places after the end were dropped; the latter is false only if
  // surely none were.
  template <class Found>
  Ends reached(const std::vector<int>& starts, Found found) {
    if (++round_ == 0) round_ = 1;
    seen_.resize(places_.size(), 0);
    bool ends = false, drops = false;
    std::vector<int> stack(starts.rbegin(), starts.rend());
    while (!stack.empty()) {
      const int at = stack.back();
      stack.pop_back();
      const Place& each = places_[static_cast<size_t>(at)];
      if (each.again >= 0) {
        stack.push_back(seen_[static_cast<size_t>(each.again)] == round_ ? each.out : each.again);  // an empty round is the last
        continue;
      }
      uint32_t& seen = seen_[static_cast<size_t>(at)];
      if (seen == round_) {
        // In a folded repetition one place stands for many. This one was seen before the end, but another that it stands for
        // may come after.
        drops = drops || (is_folded_ && ends && at != kEnd);
        continue;
      }
      seen = round_;
      if (at == kEnd) {
        ends = true;
      } else if (!each.reads) {
        stack.insert(stack.end(), each.ways.rbegin(), each.ways.rend());
      } else if (ends) {
        drops = true;
      } else {
        found(each);
      }
    }
    return {ends, drops};
  }

  // A superset of the characters with which a word can begin.
  Ranges first() {
    Ranges read;
    reached({start_}, [&](const Place& each) { each.add_to(read); });
    return character_ranges::normal(std::move(read));
  }

  // Whether no list of places continues by one character in two ways, and continuing is always preferred to ending.
  bool has_clear_steps() {
    if (!is_clear({start_})) return false;
    return std::ranges::all_of(places_, [&](const Place& each) { return !each.reads || is_clear(each.ways); });
  }

  // The characters by which a match may continue to a longer one. None if some text leads to a list of places from which places are
  // dropped, or if there are too many lists to decide. See `leftmost._automaton`.
  std::optional<Ranges> longer_by() {
    if (is_too_large() || is_hollow_) return std::nullopt;
    Ranges longer;
    std::set<std::vector<int>> known;
    std::vector<std::vector<int>> waiting{{start_}};  // the starts of each list
    while (!waiting.empty()) {
      const std::vector<int> starts = std::move(waiting.back());
      waiting.pop_back();
      std::vector<const Place*> list;
      const Ends here = reached(starts, [&](const Place& each) { list.push_back(&each); });
      if (here.drops) return std::nullopt;
      std::vector<uint32_t> cuts;  // the first characters of the classes that the places of the list distinguish
      Ranges read;
      for (const Place* each : list) each->add_to(read);
      if (here.ends) longer.insert(longer.end(), read.begin(), read.end());
      for (const auto& [low, high] : read) cuts.insert(cuts.end(), {low, high + 1});
      std::ranges::sort(cuts);
      cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
      for (const uint32_t cut : cuts) {
        std::vector<int> next;
        for (const Place* each : list) {
          if (each->has(cut)) next.push_back(each->ways[0]);
        }
        if (next.empty() || !known.insert(next).second) continue;
        if (known.size() > kMostLists) return std::nullopt;
        waiting.push_back(std::move(next));
      }
    }
    return character_ranges::normal(std::move(longer));
  }

 private:
  static constexpr size_t kMostLists = 1'000;
  static constexpr int64_t kShort = 16;  // the most places of a repetition that is expanded in any case
  static constexpr int kEnd = 0;

  // Whether no character is read in two ways from these places, and none is dropped.
  bool is_clear(const std::vector<int>& starts) {
    Ranges read;
    if (reached(starts, [&](const Place& each) { each.add_to(read); }).drops) return false;
    std::ranges::sort(read);
    return std::ranges::adjacent_find(read, [](const Range& one, const Range& next) { return next.first <= one.second; }) == read.end();
  }

  int place(std::vector<int> ways, const PatternItem* reads = nullptr) {
    Place made;
    made.ways = std::move(ways);
    made.reads = reads;
    places_.push_back(std::move(made));
    return static_cast<int>(places_.size()) - 1;
  }

  int sequence(const Items& items, int rest) {
    for (size_t k = items.size(); k-- > 0 && !is_too_large();) rest = item(items[k], rest);
    return rest;
  }

  int item(const PatternItem& each, int rest) {
    switch (each.kind) {
      case Kind::Character:
      case Kind::Set: return place({rest}, &each);
      case Kind::Group: return sequence(each.ways[0], rest);
      case Kind::Branch: {
        std::vector<int> ways;
        ways.reserve(each.ways.size());
        for (const Items& way : each.ways) ways.push_back(sequence(way, rest));
        return place(std::move(ways));
      }
      default: return repetition(each, rest);
    }
  }

  int repetition(const PatternItem& each, int rest) {
    const Items& body = each.ways[0];
    const bool is_short =
        each.low == each.high && each.high * static_cast<int64_t>(body.size()) <= kShort &&
        std::ranges::all_of(body, [](const PatternItem& part) { return part.kind == Kind::Character || part.kind == Kind::Set; });
    if (body.empty() && is_short) return rest;  // however often
    const bool is_once = is_folded_ && (each.high < 0 || each.high > 1) && !is_short;
    if (is_once || each.high < 0) {
      is_hollow_ = is_hollow_ || width_of(body).first == 0;
      const int again = place({}), back = place({});
      places_[static_cast<size_t>(back)].again = again;
      places_[static_cast<size_t>(back)].out = rest;
      const int begin = sequence(body, back);
      places_[static_cast<size_t>(again)].ways = each.is_greedy ? std::vector<int>{begin, rest} : std::vector<int>{rest, begin};
      if (is_once) return each.low > 0 ? begin : again;
      rest = again;
    } else {
      const int after = rest;
      for (int64_t k = each.low; k < each.high && !is_too_large(); ++k) {
        const int begin = sequence(body, rest);
        rest = place(each.is_greedy ? std::vector<int>{begin, after} : std::vector<int>{after, begin});
      }
    }
    for (int64_t k = 0; k < each.low && !is_too_large(); ++k) rest = sequence(body, rest);
    return rest;
  }

  bool is_folded_, is_hollow_ = false;
  size_t most_;
  std::vector<Place> places_;
  std::vector<uint32_t> seen_;
  uint32_t round_ = 0;
  int start_ = kEnd;
};

// Whether `re.match` surely matches all of every word of a pattern. None: the pattern is too large to decide.
inline std::optional<bool> is_orderly(const Items& items) {
  if (!chooses(items) || is_longest_first(items)) return true;
  if (counts_choices(items, false)) return false;
  Places places(items, true, kMostPlaces);
  if (places.is_too_large()) return std::nullopt;
  return places.has_clear_steps();
}

// A superset of the characters with which a word can begin. None: the pattern is too large to decide.
inline std::optional<Ranges> first_of(const Items& items) {
  Places places(items, true, kMostPlaces);
  if (places.is_too_large()) return std::nullopt;
  return places.first();
}

// Whether a pattern is a repetition, at least once and without bound, so that words in sequence are a word too.
inline bool is_repetition(const Items& pattern) {
  const Items* items = &pattern;
  while (items->size() == 1 && (*items)[0].kind == Kind::Group) items = &(*items)[0].ways[0];
  return items->size() == 1 && (*items)[0].kind == Kind::Repeat && (*items)[0].low == 1 && (*items)[0].high < 0;
}

// The characters by which a match may continue to a longer one, if `re.match` surely matches all of every word. None otherwise,
// and if the pattern is too large to decide.
inline std::optional<Ranges> longer_by(const Items& items) { return Places(items, false, kFewPlaces).longer_by(); }

}  // namespace tokenfst::pattern_order
