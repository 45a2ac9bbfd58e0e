// Finds whole subtries that a state reads without leaving itself: inside a string, most tokens lead from a state back to
// it.
//
// Bytes are divided into 24 groups: the kinds of ASCII characters that patterns distinguish, whole multi-byte
// characters by their lead bytes (those with white space among them separately), and other bytes. For each node of a
// vocabulary's trie it is known which groups occur below it (find_groups), and for each state which groups lead back to
// it, character by character (SelfLoops). If all groups below a node lead back to the state, all tokens below the node
// are read in that state, and none of them is visited.
//
// Cost: a bit set of 4 bytes for each node, computed once; for each state 128 steps by ASCII bytes, and the steps by
// multi-byte characters. Rejected: a set of 256 bits for each node, which takes 8 MB for a vocabulary of 131,072 tokens.
#pragma once

#include "byte_automata/byte_automaton.hpp"
#include "vocabulary/trie.hpp"

namespace tokenfst {

using ByteGroups = uint32_t;
constexpr ByteGroups kAscii = (1 << 14) - 1, kOtherBytes = 1 << 23;

// The group of an ASCII byte.
constexpr ByteGroups group_of(uint8_t byte) {
  auto between = [&](char first, char last) { return byte >= first && byte <= last; };
  if (between('a', 'f')) return 1 << 0;
  if (between('g', 'z')) return 1 << 1;
  if (between('A', 'F')) return 1 << 2;
  if (between('G', 'Z')) return 1 << 3;
  if (between('0', '9')) return 1 << 4;
  switch (byte) {
    case ' ': return 1 << 5;
    case '-': return 1 << 6;
    case '_': return 1 << 7;
    case '.': return 1 << 8;
    case '/': return 1 << 9;
    case '"': return 1 << 10;
    case '\\': return 1 << 11;
    default: return byte < ' ' || byte == 0x7f ? 1 << 12 : 1 << 13;
  }
}

// The group of the characters that begin with a lead byte.
constexpr ByteGroups group_of_lead(uint8_t lead) {
  if (lead >= 0xf0) return 1 << 14;
  switch (lead) {
    case 0xc2: return 1 << 15;
    case 0xe0: return 1 << 16;
    case 0xe1: return 1 << 17;
    case 0xe2: return 1 << 18;
    case 0xe3: return 1 << 19;
    case 0xef: return 1 << 20;
    default: return lead < 0xe0 ? 1 << 21 : 1 << 22;
  }
}

// The continuation bytes that may follow a lead byte (Unicode, table 3-7): how many, and the range of the first; none
// for other bytes.
struct Continuation {
  uint8_t count = 0, low = 0x80, high = 0xbf;
};
constexpr Continuation continuation(uint8_t lead) {
  if (lead >= 0xc2 && lead <= 0xdf) return {1};
  if (lead >= 0xe0 && lead <= 0xef)
    return {2, static_cast<uint8_t>(lead == 0xe0 ? 0xa0 : 0x80), static_cast<uint8_t>(lead == 0xed ? 0x9f : 0xbf)};
  if (lead >= 0xf0 && lead <= 0xf4)
    return {3, static_cast<uint8_t>(lead == 0xf0 ? 0x90 : 0x80), static_cast<uint8_t>(lead == 0xf4 ? 0x8f : 0xbf)};
  return {};
}

// For each node of a trie, the groups that occur below it, if a character begins after the node.
inline std::vector<ByteGroups> find_groups(const Trie& trie) {
  std::vector<ByteGroups> groups(trie.num_nodes(), 0);
  auto within = [&](auto&& self, uint32_t index, Continuation rest, ByteGroups group) -> ByteGroups {
    ByteGroups found = trie.node(index).first != trie.node(index + 1).first ? kOtherBytes : 0;
    for (const TrieChild& at : trie.children(index)) {
      const uint32_t child = at.node;
      const uint8_t byte = trie.node(child).byte;
      if (byte < rest.low || byte > rest.high) found |= kOtherBytes;
      else if (rest.count > 1) found |= self(self, child, {static_cast<uint8_t>(rest.count - 1)}, group);
      else found |= group | groups[child];
    }
    return found;
  };
  for (uint32_t index = static_cast<uint32_t>(groups.size()); index-- > 0;) {
    for (const TrieChild& at : trie.children(index)) {
      const uint32_t child = at.node;
      const uint8_t byte = trie.node(child).byte;
      const Continuation rest = continuation(byte);
      groups[index] |= byte < 0x80       ? group_of(byte) | groups[child]
                       : rest.count == 0 ? kOtherBytes
                                         : within(within, child, rest, group_of_lead(byte));
    }
  }
  return groups;
}

// Which groups of bytes lead from a state back to it. Computed on the first call for a state; any thread may call.
class SelfLoops {
 public:
  explicit SelfLoops(ByteAutomaton& bytes) : bytes_(bytes) {}
  size_t memory() const { return known_.memory(); }

  // The groups that lead from a state back to it, with unchanged stacks, and with no different acceptance on the way.
  ByteGroups of(State state) {
    if (state >= known_.size()) {
      const std::lock_guard lock(mutex_);
      while (state >= known_.size()) known_.grow();
    }
    ByteGroups found = known_[state].load(std::memory_order_relaxed);
    if (found == 0) known_[state].store(found = find(state) | kKnown, std::memory_order_relaxed);  // the same in every thread
    return found & ~kKnown;
  }

  // The groups of of(state) whose characters return to the state only with their last byte.
  ByteGroups once(State state) {
    ByteGroups found = of(state);
    Checked checked;
    for (int lead = 0xc2; lead <= 0xf4; ++lead) {
      const uint8_t byte = static_cast<uint8_t>(lead);
      if ((found & group_of_lead(byte)) && comes_back(bytes_.step(state, byte), state, continuation(byte).count, checked))
        found &= ~group_of_lead(byte);
    }
    return found;
  }

 private:
  static constexpr ByteGroups kKnown = 1u << 31;
  using Checked = std::vector<std::array<uint32_t, 3>>;  // for one state: places inside characters from which all bytes lead back

  ByteGroups find(State state) {
    ByteGroups leaving = kOtherBytes;
    for (int byte = 0; byte < 0x80; ++byte) {
      if (!steps(state, static_cast<uint8_t>(byte), state)) leaving |= group_of(static_cast<uint8_t>(byte));
    }
    if ((leaving & kAscii) == kAscii) return 0;
    Checked checked;
    for (int lead = 0xc2; lead <= 0xf4; ++lead) {
      const uint8_t byte = static_cast<uint8_t>(lead);
      if (!goes_through(state, bytes_.step(state, byte), state, continuation(byte), checked)) leaving |= group_of_lead(byte);
    }
    return ~leaving;
  }
  bool steps(State from, uint8_t byte, State to) { return bytes_.step(from, byte) == to && bytes_.stacks().keeps(from, to); }

  // Whether all endings of a character lead back to `state` from `middle`, a state inside the character that the last byte
  // reached from `before`. `rest`: the bytes that are missing.
  bool goes_through(State before, State middle, State state, Continuation rest, Checked& checked) {
    if (middle == kDead || bytes_.accepting(middle) > bytes_.accepting(state) || !bytes_.stacks().keeps(before, middle)) return false;
    const std::array<uint32_t, 3> key{middle, rest.count, uint32_t{rest.low} << 8 | rest.high};
    if (std::ranges::find(checked, key) != checked.end()) return true;
    for (int byte = rest.low; byte <= rest.high; ++byte) {
      const bool last = rest.count == 1;
      if (last ? !steps(middle, static_cast<uint8_t>(byte), state)
               : !goes_through(middle, bytes_.step(middle, static_cast<uint8_t>(byte)), state, {static_cast<uint8_t>(rest.count - 1)},
                               checked)) {
        return false;
      }
    }
    checked.push_back(key);
    return true;
  }

  // Whether `state` is also reached inside a character, before its last byte; `missing` bytes of it are unread at `middle`.
  bool comes_back(State middle, State state, int missing, Checked& checked) {
    if (middle == state && missing > 0) return true;
    const std::array<uint32_t, 3> key{middle, static_cast<uint32_t>(missing), 0};
    if (middle == kDead || missing <= 1 || std::ranges::find(checked, key) != checked.end()) return false;
    checked.push_back(key);
    for (int byte = 0x80; byte <= 0xbf; ++byte) {
      if (comes_back(bytes_.step(middle, static_cast<uint8_t>(byte)), state, missing - 1, checked)) return true;
    }
    return false;
  }

  ByteAutomaton& bytes_;
  StableVector<std::atomic<ByteGroups>> known_;  // with the bit kKnown; else 0
  Mutex mutex_;
};

}  // namespace tokenfst
