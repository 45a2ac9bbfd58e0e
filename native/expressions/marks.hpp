// Marks of dynamic exclusion in expressions and states (exclusion.hpp): empty words that say something of the byte before.
#pragma once

#include "expressions/arena.hpp"
#include "support/stable_map.hpp"

namespace tokenfst {

// An opening bracket, or the closing quotation mark of a string that must differ; or the last byte of another item that must.
enum class Sign : uint32_t { Opened, Fresh };

inline uint32_t bit(Sign sign) { return 1u << static_cast<uint32_t>(sign); }

inline NodeId mark(Arena& arena, Sign sign) {
  return arena.node({Kind::Mark, true, true, kHasFresh | kMarkAhead, 0, static_cast<uint32_t>(sign), 0, 0, 0});
}

// What is known of all strings of an automaton that must differ.
struct Room {
  bool thin = false;             // some prefix has few ends
  bool values = false;           // there are items that must differ and are no strings
  uint32_t fewest = kUnbounded;  // where so many are finished, there may be none that is left
  uint32_t near = 0, far = 0;    // bytes within which any prefix has kNear ends, and kFar, or all; of values 1 where one is enough
  static constexpr uint32_t kNear = 64, kFar = 1 << 20;

  // What is known of some. `words`: how many they are at least; 0: they never run out.
  void add(bool with_few_ends, bool no_strings, uint32_t words, uint32_t near_bytes, uint32_t far_bytes) {
    thin |= with_few_ends;
    values |= no_strings;
    if (words) fewest = std::min(fewest, words);
    near = std::max(near, near_bytes ? near_bytes : kUnbounded);
    far = std::max(far, far_bytes ? far_bytes : kUnbounded);
  }
};

// Of an automaton's states, what their marks say and where they lead once passed. One writer, readers without a lock.
class Marks {
 public:
  bool any = false;
  Room room;

  // The answer plus one; 0: not known yet.
  uint32_t signs(uint32_t state) const { return known_.find(key(state, 2)); }
  uint32_t passed(uint32_t state, bool holds) const { return known_.find(key(state, holds)); }
  void keep_signs(uint32_t state, uint32_t signs) { keep(key(state, 2), signs); }
  void keep_passed(uint32_t state, bool holds, uint32_t to) { keep(key(state, holds), to); }

  // Of finished tables: all that is known of one state.
  void adopt(uint32_t state, uint32_t signs, uint32_t holds, uint32_t fails) {
    any = true;
    keep_signs(state, signs);
    keep_passed(state, true, holds);
    keep_passed(state, false, fails);
  }

  // Where a finite automaton would have to hold them.
  void refuse() const {
    if (!any) return;
    throw Error(
        Fault::Constraint,
        "strings that must differ from each other (names of a JSON object, unique items) are remembered by a sequence, and no finite "
        "automaton can hold them: make the schema with repeated_names=\"allow\"");
  }

  // Where a vocabulary lacks bytes.
  void refuse_gaps() const {
    if (!any) return;
    throw Error(
        Fault::Constraint,
        "strings that must differ from each other (names of a JSON object, unique items) need a vocabulary in which every byte is a "
        "token, since otherwise what is left of a string may have no tokens: make the schema with repeated_names=\"allow\"");
  }

 private:
  static uint64_t key(uint32_t state, uint32_t question) { return uint64_t{state} << 2 | question; }
  void keep(uint64_t key, uint32_t value) {
    if (!known_.find(key)) known_.insert(key, value + 1);
  }

  StableMap known_;
};

// Where a step to a state can lead, with its marks passed.
template <class Bytes>
std::vector<uint32_t> after_marks(Bytes& bytes, uint32_t raw) {
  if (!bytes.marks().lie_ahead(raw)) return {raw};
  std::vector<uint32_t> found{bytes.marks().passed(raw, true)};
  if (uint32_t fails = bytes.marks().passed(raw, false); fails != found[0]) found.push_back(fails);
  std::erase(found, 0u);
  return found;
}

}  // namespace tokenfst
