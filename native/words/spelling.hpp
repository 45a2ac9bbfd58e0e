// Converts automata over characters to automata over bytes, and back (automata/characters/codes.py,
// automata/characters/utf8.py).
//
// A form writes a code point, minus a base, as digits of a mixed radix. Between two bytes of a character, a state is the
// set of code points that each form can still complete. These intermediate states are cached, and states with equal rows
// are merged bottom-up, so the part between two character states is minimal and acyclic. The reverse: from each state in
// which a character may begin, the transitions by each lead byte and its continuation bytes are collected as ranges of
// code points.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calls/budget.hpp"

namespace tokenfst {

// A transition by the characters of a range.
struct CharacterStep {
  int32_t low, high;  // of code points, inclusive
  uint32_t target;
};
using CharacterSteps = std::vector<CharacterStep>;  // disjoint, ascending

// One form of writing the code points from `least` to `greatest`.
struct SpellingForm {
  int32_t least, greatest, base;
  std::vector<std::vector<std::string>> digits;  // for each place and digit, the bytes that may stand for it
  std::vector<int32_t> sizes;  // for each place, how many code points share its digit and all digits before it
};

// A deterministic automaton over bytes: the class of each byte, and the next states. State 0 is dead.
struct ByteTables {
  std::vector<uint8_t> classes;
  std::vector<uint32_t> table;  // (states, groups)
  size_t states = 0, groups = 0;
};

// From characters to bytes.
class Speller {
 public:
  explicit Speller(std::vector<SpellingForm> forms) : forms_(std::move(forms)) {}

  // State k >= 1 has the transitions steps[k - 1]; the states between two bytes follow. No value if there are more than
  // `limit` states in all. Raises BudgetExceeded after `seconds` seconds.
  std::optional<ByteTables> spell(const std::vector<CharacterSteps>& steps, uint64_t limit, double seconds) const {
    const Deadline deadline(seconds);
    Work work{*this, limit};
    work.rows.resize(steps.size() + 1);
    for (size_t state = 1; state <= steps.size(); ++state) {
      Items items;
      for (size_t form = 0; form < forms_.size(); ++form) {
        CharacterSteps inside = within(steps[state - 1], forms_[form]);
        if (!inside.empty()) items.push_back({static_cast<uint32_t>(form), 0, std::move(inside)});
      }
      const Row row = work.follow(items);
      work.rows[state] = row;
      if (work.full) return std::nullopt;
      if (deadline.expired()) throw BudgetExceeded("seconds", seconds, "the spellings of characters");
    }
    return tables(work.rows);
  }

 private:
  using Row = std::array<uint32_t, 256>;
  struct Item {
    uint32_t form, place;
    CharacterSteps inside;  // relative to the beginning of the block
  };
  using Items = std::vector<Item>;

  struct Work {
    const Speller& speller;
    uint64_t limit;
    std::vector<Row> rows{};
    std::unordered_map<std::string, uint32_t> known{}, interned{};
    bool full = false;

    Row follow(const Items& items) {
      Row row{};
      std::array<Items, 256> branches;
      std::vector<uint8_t> order;
      for (const Item& item : items) {
        const SpellingForm& form = speller.forms_[item.form];
        const auto& digits = form.digits[item.place];
        if (item.place + 1 == form.digits.size()) {
          for (const CharacterStep& step : item.inside) {
            for (int32_t digit = step.low; digit <= step.high; ++digit) {
              for (char byte : digits[digit]) row[static_cast<uint8_t>(byte)] = step.target;
            }
          }
          continue;
        }
        for (auto& [digit, part] : cut(item.inside, form.sizes[item.place])) {
          for (char byte : digits[digit]) {
            Items& branch = branches[static_cast<uint8_t>(byte)];
            if (branch.empty()) order.push_back(static_cast<uint8_t>(byte));
            branch.push_back({item.form, item.place + 1, part});
          }
        }
      }
      for (uint8_t byte : order) row[byte] = between(branches[byte]);
      return row;
    }

    uint32_t between(const Items& items) {
      std::string key;
      for (const Item& item : items) {
        const uint32_t head[3] = {item.form, item.place, static_cast<uint32_t>(item.inside.size())};
        key.append(reinterpret_cast<const char*>(head), sizeof head);
        key.append(reinterpret_cast<const char*>(item.inside.data()), item.inside.size() * sizeof(CharacterStep));
      }
      if (auto found = known.find(key); found != known.end()) return found->second;
      if (full) return 0;
      const Row row = follow(items);
      auto [at, fresh] =
          interned.try_emplace(std::string(reinterpret_cast<const char*>(row.data()), sizeof row), static_cast<uint32_t>(rows.size()));
      const uint32_t state = at->second;
      if (fresh) {
        full |= state > limit;
        rows.push_back(row);
      }
      known.emplace(std::move(key), state);
      return state;
    }
  };

  static CharacterSteps within(const CharacterSteps& steps, const SpellingForm& form) {
    CharacterSteps inside;
    for (const CharacterStep& step : steps) {
      if (step.low > form.greatest || step.high < form.least) continue;
      inside.push_back({std::max(step.low, form.least) - form.base, std::min(step.high, form.greatest) - form.base, step.target});
    }
    return inside;
  }

  // Splits steps into blocks of `size` code points: returns the number of each block that is touched, and its steps
  // relative to its beginning.
  static std::vector<std::pair<int32_t, CharacterSteps>> cut(const CharacterSteps& steps, int32_t size) {
    std::vector<std::pair<int32_t, CharacterSteps>> parts;
    for (const auto& [low, high, target] : steps) {
      const int32_t first = low / size, last = high / size;
      if (parts.empty() || parts.back().first != first) parts.push_back({first, {}});
      parts.back().second.push_back({low % size, first == last ? high % size : size - 1, target});
      for (int32_t block = first + 1; block < last; ++block) parts.push_back({block, {{0, size - 1, target}}});
      if (first < last) parts.push_back({last, {{0, high % size, target}}});
    }
    return parts;
  }

  static ByteTables tables(const std::vector<Row>& rows) {
    ByteTables made;
    made.states = rows.size();
    std::map<std::vector<uint32_t>, uint8_t> numbers;
    std::vector<uint8_t> shown;  // one byte of each class
    for (size_t byte = 0; byte < 256; ++byte) {
      std::vector<uint32_t> column(rows.size());
      for (size_t state = 0; state < rows.size(); ++state) column[state] = rows[state][byte];
      auto [at, fresh] = numbers.try_emplace(std::move(column), static_cast<uint8_t>(numbers.size()));
      if (fresh) shown.push_back(static_cast<uint8_t>(byte));
      made.classes.push_back(at->second);
    }
    made.groups = shown.size();
    for (const Row& row : rows) {
      for (uint8_t byte : shown) made.table.push_back(row[byte]);
    }
    return made;
  }

  std::vector<SpellingForm> forms_;
};

// The transitions by whole UTF-8 characters of a trim automaton over bytes.
class CharacterReader {
 public:
  struct Automaton {
    const uint8_t* classes;
    const uint32_t* table;
    const bool* accepting;
    size_t groups;
  };

  CharacterReader(Automaton automaton, uint64_t limit) : automaton_(automaton), limit_(limit) {}

  bool whole = true;  // whether every word is valid UTF-8
  bool full = false;  // whether there were more than `limit` ranges, so that the rest is missing

  // The transitions by one character from a state; the targets are states of the automaton.
  CharacterSteps steps(uint32_t state) {
    const Following following = follow(state);
    whole &= none(following, 0x80, 0xC0) && none(following, 0xF5, 0x100);
    CharacterSteps found;
    for (const auto& [places, first, count, valid] : kForms) {
      for (const auto& [low, high, target] : joined(following, first, count, places)) {
        bool inside = false;
        for (const auto& [begin, end] : valid) inside |= begin <= low && high <= end;
        if (inside) {
          found.push_back({low, high, target});
          continue;
        }
        whole = false;
        for (const auto& [begin, end] : valid) {
          if (low <= end && begin <= high) found.push_back({std::max(low, begin), std::min(high, end), target});
        }
      }
    }
    return found;
  }

 private:
  using Following = std::array<uint32_t, 256>;
  using Range = std::pair<int32_t, int32_t>;
  struct Utf8Form {
    int places, first, count;
    std::vector<Range> valid;  // code points, without surrogates
  };
  // NOLINTNEXTLINE(bugprone-throwing-static-initialization): four of them
  inline static const std::vector<Utf8Form> kForms = {{1, 0x00, 0x80, {{0x0, 0x7F}}},
                                                      {2, 0xC0, 0x20, {{0x80, 0x7FF}}},
                                                      {3, 0xE0, 0x10, {{0x800, 0xD7FF}, {0xE000, 0xFFFF}}},
                                                      {4, 0xF0, 0x05, {{0x10000, 0x10FFFF}}}};

  Following follow(uint32_t state) const {
    Following following;
    for (size_t byte = 0; byte < 256; ++byte) following[byte] = automaton_.table[state * automaton_.groups + automaton_.classes[byte]];
    return following;
  }
  static bool none(const Following& following, size_t begin, size_t end) {
    return std::all_of(following.begin() + begin, following.begin() + end, [](uint32_t state) { return state == 0; });
  }

  // The steps of sequences of `places` bytes whose first byte is one of the `count` bytes from `first` on.
  CharacterSteps joined(const Following& following, int first, int count, int places) {
    const int32_t size = 1 << (6 * (places - 1));
    CharacterSteps steps;
    for (int32_t number = 0; number < count; ++number) {
      const uint32_t state = following[first + number];
      if (state == 0 || full) continue;
      const auto add = [&](int32_t low, int32_t high, uint32_t target) {
        const int32_t begin = low + number * size;
        if (!steps.empty() && steps.back().high == begin - 1 && steps.back().target == target) {
          steps.back().high = high + number * size;
        } else {
          steps.push_back({begin, high + number * size, target});
        }
      };
      if (places == 1) {
        add(0, 0, state);
      } else {
        for (const auto& [low, high, target] : block(state, places - 1)) add(low, high, target);
      }
    }
    found_ += steps.size();
    full |= found_ > limit_;
    return steps;
  }

  // The steps of sequences of `places` continuation bytes from a state.
  const CharacterSteps& block(uint32_t state, int places) {
    const uint64_t key = uint64_t{state} << 2 | static_cast<uint64_t>(places);
    if (auto found = known_.find(key); found != known_.end()) return found->second;
    const Following following = follow(state);
    whole &= none(following, 0, 0x80) && none(following, 0xC0, 0x100) && !automaton_.accepting[state];
    CharacterSteps steps = joined(following, 0x80, 0x40, places);
    return known_.emplace(key, std::move(steps)).first->second;
  }

  Automaton automaton_;
  uint64_t limit_, found_ = 0;
  std::map<uint64_t, CharacterSteps> known_;  // references into it stay valid
};

}  // namespace tokenfst
