// The nodes of expressions.
#pragma once

#include <cstdint>

namespace tokenfst {

enum class Kind : uint8_t {
  Empty,
  Epsilon,
  Set,
  Concat,
  Or,
  And,
  Not,
  Repeat,
  Machine,
  Var,
  Behind,
  Scoped,
  Call,
  Return,
  Hole,
  Open,
  Label,
  Words,
  Pick,
  Unordered,
  Tag,
  Token,
  Begun,
  Inside,
  Few,
  FewInside,
  Mark
};

using NodeId = uint32_t;
constexpr NodeId kEmpty = 0, kEpsilon = 1, kUniverse = 2;
constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kUnbounded = UINT32_MAX;

// Traits: what a node contains somewhere inside. kEndless is about the whole: there is surely no longest word.
constexpr uint16_t kHasVar = 1;
constexpr uint16_t kHasBehind = 2;  // free look-behind: not closed by a Scoped node
constexpr uint16_t kHasCall = 4;    // calls of rules
constexpr uint16_t kHasMark = 8;    // borders of stack frames: Return, Hole, Open
constexpr uint16_t kHasLoop = 16;   // there may be arbitrarily long words; without this trait, the language is finite
constexpr uint16_t kEndless = 32;
constexpr uint16_t kHasToken = 64;  // tokens as such: Token, Begun, Inside, Few, symbols; see Derivatives::at_boundary
constexpr uint16_t kHasFresh = 128;   // marks of dynamic exclusion (marks.hpp)
constexpr uint16_t kMarkAhead = 256;  // such a mark can be reached before a byte is read

struct Node {
  Kind kind;
  bool nullable;   // ignoring look-behind; see Derivatives::nullable
  bool certain;    // surely denotes a non-empty language (except kEmpty)
  uint16_t traits;  // kHas...
  uint16_t depth;   // nesting depth, without the tails of concatenations
  uint32_t a, b;    // operands; Set: index of the set; Machine: machine and state; lists: first index and count in the pool;
                    // Words, Pick (selections.hpp): lexicon or selection, and state; Pick: position and used words in
                    // the next two
  uint32_t low, high;

  bool has(uint16_t trait) const { return (traits & trait) != 0; }
};

}  // namespace tokenfst
