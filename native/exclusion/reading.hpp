// The position of the reader of exclusion.hpp in a text.
#pragma once

#include "exclusion/known_values.hpp"

namespace tokenfst {

struct Reading {
  uint32_t scope = 0;  // the innermost open container; 0: none that matters
  uint32_t match = 0;  // in a string: the trie node of its value so far; 0: no known string begins so
  uint32_t begin = 0;  // in or after a name or an item: where it began
  uint32_t finished = 0;  // how many strings and items of open containers are finished
  uint32_t item = 0;      // if items of any kind must differ: where the current item began
  KnownValues::Watch watch = 0;  // the known items that the open items may still become equal to
  Unescaper letters;
  uint8_t scalar = 0;    // in a word (null, true, false): how many letters are missing; in a number: Exclusion::kNumber
  bool due = false;      // in a number that passed a mark Fresh: it is recorded if it ends here
  bool inside = false;   // inside a string
  bool sibling = false;  // in a string: it is a name or an item of the container; outside: one may begin here
  auto operator<=>(const Reading&) const = default;
};

enum class Ending : uint8_t { None, New, Known };  // None: no string ends here; New, Known: one ends that is new, or known

}  // namespace tokenfst
