// Marks of strings that must differ, in expressions and states (exclusion/exclusion.hpp): empty words that say something
// about the byte before them.
#pragma once

#include "containers/stable_map.hpp"
#include "expressions/arena.hpp"

namespace tokenfst {

// Opened: an opening bracket. Fresh: the closing quotation mark of a string that must differ, or the last byte of
// another item that must.
enum class MarkKind : uint32_t { Opened, Fresh };

// The bit of a kind in a set of kinds; and the node of a mark.
inline uint32_t bit(MarkKind kind) { return 1u << static_cast<uint32_t>(kind); }

inline NodeId mark(Arena& arena, MarkKind kind) {
  return arena.node({Kind::Mark, true, true, kHasFresh | kMarkAhead, 0, static_cast<uint32_t>(kind), 0, 0, 0});
}

// Facts about all strings of an automaton that must differ.
struct DistinctFacts {
  bool few_endings = false;      // some prefix has only few endings
  bool values = false;           // some items that must differ are not strings
  uint32_t fewest = kUnbounded;  // once so many have been written, there may be no further one
  // Within so many bytes, every prefix has at least kFewValues (kManyValues) endings, or all of its endings. For items that are not
  // strings: 1 if one item is enough.
  uint32_t few_bytes = 0, many_bytes = 0;
  static constexpr uint32_t kFewValues = 64, kManyValues = 1 << 20;

  // Adds the facts about one set of strings. `words`: a lower bound of their number; 0: infinitely many. A length of 0 means
  // that there is no bound.
  void add(bool with_few_ends, bool no_strings, uint32_t words, uint32_t in_few_bytes, uint32_t in_many_bytes) {
    few_endings |= with_few_ends;
    values |= no_strings;
    if (words) fewest = std::min(fewest, words);
    few_bytes = std::max(few_bytes, in_few_bytes ? in_few_bytes : kUnbounded);
    many_bytes = std::max(many_bytes, in_many_bytes ? in_many_bytes : kUnbounded);
  }
};

// For the states of an automaton: the kinds of the marks ahead, and the states after passing them. One writer; readers
// take no lock.
class Marks {
 public:
  bool any = false;
  DistinctFacts facts;

  // What kinds of marks are ahead, as bits, and the state after passing them: each plus one; 0: not known yet.
  uint32_t kinds(uint32_t state) const { return known_.find(key(state, 2)); }
  uint32_t passed(uint32_t state, bool holds) const { return known_.find(key(state, holds)); }
  void keep_kinds(uint32_t state, uint32_t kinds) { keep(key(state, 2), kinds); }
  void keep_passed(uint32_t state, bool holds, uint32_t to) { keep(key(state, holds), to); }

  // Stores everything that an artifact says about one state.
  void adopt(uint32_t state, uint32_t kinds, uint32_t holds, uint32_t fails) {
    any = true;
    keep_kinds(state, kinds);
    keep_passed(state, true, holds);
    keep_passed(state, false, fails);
  }

  // Raises if there are any, because a finite automaton would have to remember the strings.
  void refuse() const {
    if (!any) return;
    throw Error(Fault::Constraint,
                "strings that must differ from each other (names of a JSON object, unique items) are remembered while a text is read, "
                "which no finite "
                "automaton can do: make the schema with repeated_names=\"allow\"");
  }

  // Raises if there are any, because the vocabulary lacks bytes.
  void refuse_gaps() const {
    if (!any) return;
    throw Error(
        Fault::Constraint,
        "strings that must differ from each other (names of a JSON object, unique items) need a vocabulary in which every byte is a "
        "token, since otherwise the rest of a string may have no tokens: make the schema with repeated_names=\"allow\"");
  }

 private:
  static uint64_t key(uint32_t state, uint32_t question) { return uint64_t{state} << 2 | question; }
  void keep(uint64_t key, uint32_t value) {
    if (!known_.find(key)) known_.insert(key, value + 1);
  }

  StableMap known_;
};

// The states that a step to `raw` can lead to, with its marks passed.
template <class Bytes>
std::vector<uint32_t> after_marks(Bytes& bytes, uint32_t raw) {
  if (!bytes.marks().is_marked(raw)) return {raw};
  std::vector<uint32_t> found{bytes.marks().passed(raw, true)};
  if (uint32_t fails = bytes.marks().passed(raw, false); fails != found[0]) found.push_back(fails);
  std::erase(found, 0u);
  return found;
}

}  // namespace tokenfst
