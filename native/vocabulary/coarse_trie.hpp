// A quotient of a vocabulary's trie: bytes that expressions seldom distinguish count as the same byte.
//
// Bytes are divided into groups: the letters of one case, the digits, the lead bytes of characters, and so on. A node
// of the coarse trie stands for all nodes of the finer trie whose strings are equal group by group; the finer trie is over
// bytes, or over smaller groups. If a state goes to one state by all bytes of a group, all these nodes are reached in that
// state, and one step is made for all of them. If not, the walk continues in the finer trie, node by node. Tekken's trie has
// 266,312 nodes; with all letters of one case as a group it has 12,381.
//
// Cost: one pass over the finer trie, once for each vocabulary; 41 bytes for each node, and 4 bytes for each node and
// each string of the finer trie. Rejected: groups of the bytes that one expression does not distinguish, since each
// expression would need a pass over the whole trie; and 256 groups for each node.
#pragma once

#include <array>
#include <deque>

#include "containers/hash_index.hpp"
#include "vocabulary/self_loops.hpp"

namespace tokenfst {

// A partition of the bytes into numbered groups. The groups are numbered in the order of their least bytes.
struct ByteGrouping {
  static constexpr size_t kMost = 32;
  std::array<uint8_t, 256> group{};
  std::array<uint8_t, kMost> least{};  // the least byte of each group
  uint8_t count = 0;
};

// The partition: the letters of each case (or the letters of hexadecimal digits and the others, if `hexadecimal`);
// other ASCII characters and lead bytes as in SelfLoops; and the continuation bytes by the ranges of Unicode's table
// 3-7.
constexpr ByteGrouping byte_grouping(bool hexadecimal) {
  ByteGrouping found;
  std::array<uint32_t, ByteGrouping::kMost> keys{};
  for (int byte = 0; byte < 256; ++byte) {
    uint32_t key = 0;
    if (byte < 0x80) {
      key = group_of(static_cast<uint8_t>(byte));
      if (!hexadecimal && (key & 0b1111)) key = key & 0b0011 ? 0b0011 : 0b1100;
    } else if (byte < 0xc0) {
      key = byte < 0x90 ? 0x80 : byte < 0xa0 ? 0x90 : 0xa0;
      key |= kOtherBytes;
    } else {
      const Continuation rest = continuation(static_cast<uint8_t>(byte));
      key = rest.count == 0 ? kOtherBytes : group_of_lead(static_cast<uint8_t>(byte)) | uint32_t{rest.low} << 24;
      if (rest.high != 0xbf) key |= 0x40u << 24;
    }
    uint8_t known = 0;
    while (known < found.count && keys[known] != key) ++known;
    if (known == found.count) keys[known] = key, found.least[known] = static_cast<uint8_t>(byte), ++found.count;
    found.group[byte] = known;
  }
  return found;
}
inline constexpr ByteGrouping kCoarse = byte_grouping(false), kHexadecimal = byte_grouping(true);

class CoarseTrie {
 public:
  // `groups`: the groups of bytes below each node of `finer` (find_groups, or groups() of a coarse trie).
  CoarseTrie(const Trie& finer, const std::vector<ByteGroups>& groups, const ByteGrouping& grouping);

  const ByteGrouping& grouping() const { return grouping_; }
  const Trie& trie() const { return trie_; }
  const std::vector<ByteGroups>& groups() const { return groups_; }
  // The nodes of the finer trie that a node stands for, in the order of that trie.
  std::span<const uint32_t> members(uint32_t index) const {
    return {members_.data() + member_first_[index], members_.data() + member_first_[index + 1]};
  }
  size_t memory() const {
    return trie_.memory() + (member_first_.capacity() + members_.capacity()) * 4 + groups_.capacity() * sizeof(ByteGroups);
  }

 private:
  const ByteGrouping& grouping_;
  Trie trie_;
  std::vector<uint32_t> member_first_, members_;
  std::vector<ByteGroups> groups_;
};

// The transitions of a byte automaton by groups of bytes, in the form that Trie::walk requires of an automaton.
class GroupRows {
 public:
  static constexpr State kMembersDiffer = UINT32_MAX;  // the bytes of the group do not all lead to one state

  GroupRows(ByteAutomaton& bytes, const ByteGrouping& grouping) : bytes_(bytes), grouping_(grouping) {
    for (int byte = 0; byte < 256; ++byte) {
      auto& classes = classes_[grouping.group[byte]];
      if (const uint8_t found = bytes.classes()[byte]; std::ranges::find(classes, found) == classes.end()) classes.push_back(found);
    }
  }

  const uint8_t* classes() const { return grouping_.group.data(); }
  // For each group, the state that all of its bytes lead to, or kMembersDiffer. O(byte classes) on the first call for a
  // state.
  const State* row(State state) {
    const uint32_t hash = state * 0x9e3779b1u;
    uint32_t known = index_.find(hash, [&](uint32_t at) { return states_[at] == state; });
    if (known == HashIndex::kNothing) {
      known = static_cast<uint32_t>(states_.size());
      index_.add(hash, known);
      states_.push_back(state);
      const State* by_class = bytes_.row(state);
      auto& row = rows_.emplace_back();
      for (size_t k = 0; k < grouping_.count; ++k) {
        row[k] = by_class[classes_[k][0]];
        if (std::ranges::any_of(classes_[k], [&](uint8_t other) { return by_class[other] != row[k]; })) row[k] = kMembersDiffer;
      }
    }
    return rows_[known].data();
  }

 private:
  ByteAutomaton& bytes_;
  const ByteGrouping& grouping_;
  std::array<std::vector<uint8_t>, ByteGrouping::kMost> classes_;  // the automaton's byte classes in each group
  HashIndex index_;
  std::vector<State> states_;
  std::deque<std::array<State, ByteGrouping::kMost>> rows_;  // a deque, since pointers into it must stay valid
};

}  // namespace tokenfst
