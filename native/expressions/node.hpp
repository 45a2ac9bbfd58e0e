// The nodes of expressions.
#pragma once

#include <cstdint>

namespace tokenfst {

enum class Kind : uint8_t {
  Empty,      // the empty language
  Epsilon,    // the empty word
  Set,        // one byte or symbol of a set
  Concat,     // a word of `a`, then a word of `b`
  Or,         // the union of a list
  And,        // the intersection of a list
  Not,        // the complement of `a`
  Repeat,     // `low` to `high` words of `a`
  Machine,    // the words that a machine reads from a state on (machine.hpp)
  Var,        // a recursion variable, whose body is `a`
  Behind,     // the empty word, where the text since the beginning of the scope is a word of `a`
  Scoped,     // an expression with what is left of its look-behinds' expressions (Arena::scoped)
  Call,       // the words of rule `a`
  Return,     // the border after the body of a called rule (stacks/settle.hpp)
  Hole,       // the content of stack `a` (stacks/settle.hpp)
  Open,       // the same, where other members of the union begin with this content
  Label,      // the empty word at the end of rule `a`, to print stacks
  Words,      // the words that a lexicon reads from a state on (derivatives/selections.hpp)
  Pick,       // the rest of a selection inside a word (derivatives/selections.hpp)
  Unordered,  // members in any order (derivatives/unordered.hpp)
  Tag,        // in members in any order: what follows option `a`
  Token,      // one token whose bytes are a word of `a`, after the next token boundary
  Begun,      // the same, after a token boundary
  Inside,     // the same, after some bytes of the token
  Few,        // a word of `a` of which at most `low` tokens have a byte (derivatives/few_tokens.hpp)
  FewInside,  // the same, after a byte of the current token
  Mark        // an empty word for strings that must differ (derivatives/marks.hpp)
};

using NodeId = uint32_t;
constexpr NodeId kEmpty = 0, kEpsilon = 1, kUniverse = 2;  // kUniverse: all words over bytes and symbols
constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kUnbounded = UINT32_MAX;

// Traits: what a node contains somewhere inside. kEndless is about the whole expression: it surely has arbitrarily long
// words.
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
