// The automata that walk the vocabulary's trie (vocabulary/trie.hpp), except Walker, which has stacks (walker.hpp).
#pragma once

#include <array>

#include "walks/walker.hpp"

namespace tokenfst {

// Steps of an automaton without stacks: each function does what the one of the same name in Walker does.
class PlainWalk {
 public:
  explicit PlainWalk(ByteAutomaton& bytes) : bytes_(bytes) {}
  const uint8_t* classes() const { return bytes_.classes(); }
  const State* entries(Config at) { return bytes_.entries(at.state); }
  State entry(Config at, const State* entries, uint32_t byte_class) { return bytes_.entry(at.state, entries, byte_class); }
  Config next(Config from, uint32_t byte_class) { return {bytes_.next(from.state, byte_class)}; }
  Config arrive(Config, State raw) { return {raw}; }
  // The configuration after a token boundary.
  Config boundary(Config at) { return bytes_.boundary() == kNone ? at : next(at, bytes_.boundary()); }
  Config run(Config from, std::string_view text) { return {bytes_.run(from.state, text)}; }

 private:
  ByteAutomaton& bytes_;
};

// A walk that only asks which tokens lead on. For that, the last byte of a token must lead to a live state; its effect on the stacks
// does not matter. If an entry surely leads to a live state, it is not created.
template <class Walk>
class Leading {
 public:
  Leading(Walk& walk, ByteAutomaton& bytes) : walk_(walk), bytes_(bytes), bytes_ends_(bytes.boundary() == kNone) {}
  const uint8_t* classes() const { return walk_.classes(); }
  const State* entries(Config at) { return walk_.entries(at); }
  State entry(Config at, const State* entries, uint32_t byte_class) { return walk_.entry(at, entries, byte_class); }
  Config arrive(Config from, State raw) { return walk_.arrive(from, raw); }
  // Where the last byte of a token leads: a live state, possibly a pending entry, or nowhere.
  Config last(Config from, const State* entries, uint32_t byte_class) {
    const State known = load_entry(entries, byte_class);
    if (bytes_ends_ && (known & kPending) && bytes_.surely_leads_on(from.state)) return Config{known};
    const State raw = walk_.entry(from, entries, byte_class);
    return bytes_ends_ || raw == kDead ? Config{raw} : walk_.arrive(from, raw);
  }

 private:
  Walk& walk_;
  ByteAutomaton& bytes_;
  const bool bytes_ends_;  // a token ends with its bytes
};

// Walks the vocabulary with a fragment (`whole`) and a part of its language (`part`) at the same time. Below a node at
// which both are in the same state, and which both could have been left at the same places, their tokens are the same,
// and the walk ends.
template <class Walk>
struct Difference {
  struct Position {
    Config config;  // of the part followed by the rest of the expression
    State part = kDead, whole = kDead;
    bool left = false;  // whether one could be left where the other could not
    friend bool is_dead(const Position& at) { return at.part == at.whole && !at.left; }
  };
  Walk& walk;
  ByteAutomaton& bytes;
  std::array<bool, 256> is_inner;  // by class of the next byte: whether neither can be left before it

  const uint8_t* classes() const { return bytes.classes(); }
  Position next(const Position& from, uint32_t byte_class) {
    Position to{{},
                from.part == kDead ? kDead : bytes.next(from.part, byte_class),
                from.whole == kDead ? kDead : bytes.next(from.whole, byte_class),
                from.left && !is_inner[byte_class]};
    to.left |= bytes.accepting(to.part) != bytes.accepting(to.whole);
    if (!is_dead(to) && !is_dead(from.config)) to.config = walk.next(from.config, byte_class);
    return to;
  }
};

}  // namespace tokenfst
