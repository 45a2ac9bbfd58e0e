// The automata that the vocabulary's trie is walked with (vocabulary/trie.hpp), beside Walker for stacks (walker.hpp).
#pragma once

#include <array>

#include "walks/walker.hpp"

namespace tokenfst {

// Steps of an automaton without stacks.
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

// A walk that only asks which tokens lead on: their last byte leads to a live state or does not, whatever comes of stacks. So where
// it surely does, no state is made for it.
template <class Walk>
class Leading {
 public:
  Leading(Walk& walk, ByteAutomaton& bytes) : walk_(walk), bytes_(bytes), bytes_ends_(bytes.boundary() == kNone) {}
  const uint8_t* classes() const { return walk_.classes(); }
  const State* entries(Config at) { return walk_.entries(at); }
  State entry(Config at, const State* entries, uint32_t byte_class) { return walk_.entry(at, entries, byte_class); }
  Config arrive(Config from, State raw) { return walk_.arrive(from, raw); }
  // Where a last byte leads: a live state that may be a pending one, or nowhere.
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

// Runs a fragment and a part of its language together over the vocabulary: below a node at which both are in one state,
// and could have been left at the same places, the tokens of the whole are those of the part.
template <class Walk>
struct Difference {
  struct Position {
    Config config;  // of the part and what follows it
    State part = kDead, whole = kDead;
    bool left = false;  // whether one could be left where the other could not
    friend bool is_dead(const Position& at) { return at.part == at.whole && !at.left; }
  };
  Walk& walk;
  ByteAutomaton& bytes;
  std::array<bool, 256> is_inner;  // the classes of bytes before which neither can be left

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
