// Where a text is, for its reader.
#pragma once

#include "exclusion/known_values.hpp"

namespace tokenfst {

struct Reading {
  uint32_t scope = 0;  // the innermost open container; 0: none that matters
  uint32_t match = 0;  // in a string: the node of what is read of its value; 0: none begins so
  uint32_t begin = 0;  // in or behind a name or an item: where it began
  uint32_t finished = 0;  // strings and items of open containers
  uint32_t item = 0;      // where items of any kind must differ: in one, where it began
  KnownValues::Watch watch = 0;  // of the known items that the open ones may still become
  Unescaper letters;
  uint8_t scalar = 0;    // letters of a word that are missing, or kNumber
  bool due = false;      // behind a number that is recorded if it ends there
  bool inside = false;   // of a string
  bool sibling = false;  // in a string: a name or an item; outside: whether one may begin here
  auto operator<=>(const Reading&) const = default;
};

enum class Ending : uint8_t { None, New, Known };  // of a string, or not

}  // namespace tokenfst
