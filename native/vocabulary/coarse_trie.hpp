// A vocabulary's trie in which bytes that expressions seldom tell apart are one: a quotient.
//
// Bytes fall into groups: the letters of one case, digits, the lead bytes of characters, and so on. A node stands for all nodes of
// the trie below (finer, or of the bytes themselves) whose strings are equal group by group. Where a state goes to one state by all
// bytes of a group, all these nodes are there in that state, and one step serves them; where it does not, a walk goes on in the
// finer trie, node by node. Tekken's trie has 266,312 nodes, with all letters of one case as a group 12,381.
//
// Cost: one pass over the finer trie, once for a vocabulary; 21 bytes a node, and 4 for each node and each string of the finer one.
// Rejected: groups by what one expression tells apart, a pass over the whole trie for each; 256 groups for each node, as ever.
#pragma once

#include <array>
#include <deque>

#include "support/hash_index.hpp"
#include "vocabulary/self_loops.hpp"

namespace tokenfst {

// Groups of bytes, by a number each; ascending bytes begin groups with ascending numbers.
struct ByteGrouping {
  static constexpr size_t kMost = 32;
  std::array<uint8_t, 256> group{};
  std::array<uint8_t, kMost> least{};  // byte of each
  uint8_t count = 0;
};

// The letters of one case, or those of hexadecimal digits apart; other ASCII characters, and lead bytes, as groups of SelfLoops; and
// of the bytes that continue characters the ranges that Unicode's table 3-7 tells apart.
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
  // `groups`: of each node of `finer` (find_groups).
  CoarseTrie(const Trie& finer, const std::vector<ByteGroups>& groups, const ByteGrouping& grouping) : grouping_(grouping) {
    struct Pending {
      uint16_t depth;
      uint8_t byte;
      size_t first;  // of its members in `waiting`; they are the last there
    };
    std::vector<Pending> pending{{0, 0, 0}};
    std::vector<uint32_t> waiting{0}, strings;
    std::vector<TrieNode> nodes;
    std::array<std::vector<uint32_t>, ByteGrouping::kMost> children;
    members_.reserve(finer.num_nodes());
    while (!pending.empty()) {
      const Pending at = pending.back();
      pending.pop_back();
      nodes.push_back({0, static_cast<uint32_t>(strings.size()), 0, at.depth, at.byte});
      const size_t first = members_.size();
      member_first_.push_back(static_cast<uint32_t>(first));
      members_.insert(members_.end(), waiting.data() + at.first, waiting.data() + waiting.size());
      waiting.resize(at.first);
      ByteGroups below = 0;
      for (uint32_t member : std::span(members_).subspan(first)) {
        below |= groups[member];
        for (uint32_t k = finer.node(member).first; k < finer.node(member + 1).first; ++k) strings.push_back(finer.string_at(k));
        const std::span<const uint8_t> bytes = finer.child_bytes(member);
        for (size_t k = 0; k < bytes.size(); ++k) children[grouping.group[bytes[k]]].push_back(finer.children(member)[k].node);
      }
      groups_.push_back(below);
      for (size_t k = grouping.count; k-- > 0;) {
        if (children[k].empty()) continue;
        pending.push_back({static_cast<uint16_t>(at.depth + 1), grouping.least[k], waiting.size()});
        waiting.insert(waiting.end(), children[k].begin(), children[k].end());
        children[k].clear();
      }
    }
    member_first_.push_back(static_cast<uint32_t>(members_.size()));
    trie_ = Trie(std::move(nodes), std::move(strings));
  }

  const ByteGrouping& grouping() const { return grouping_; }
  const Trie& trie() const { return trie_; }
  const std::vector<ByteGroups>& groups() const { return groups_; }
  // The nodes of the finer trie that a node stands for, in that one's order.
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

// Where states of a byte automaton go by groups of bytes: what Trie::walk asks an automaton for.
class GroupRows {
 public:
  static constexpr State kApart = UINT32_MAX;  // not all bytes of the group lead to one state

  GroupRows(ByteAutomaton& bytes, const ByteGrouping& grouping) : bytes_(bytes), grouping_(grouping) {
    for (int byte = 0; byte < 256; ++byte) {
      auto& classes = classes_[grouping.group[byte]];
      if (const uint8_t found = bytes.classes()[byte]; std::ranges::find(classes, found) == classes.end()) classes.push_back(found);
    }
  }

  const uint8_t* classes() const { return grouping_.group.data(); }
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
        if (std::ranges::any_of(classes_[k], [&](uint8_t other) { return by_class[other] != row[k]; })) row[k] = kApart;
      }
    }
    return rows_[known].data();
  }

 private:
  ByteAutomaton& bytes_;
  const ByteGrouping& grouping_;
  std::array<std::vector<uint8_t>, ByteGrouping::kMost> classes_;  // of the automaton's, in each group
  HashIndex index_;
  std::vector<State> states_;
  std::deque<std::array<State, ByteGrouping::kMost>> rows_;  // pointers into it stay
};

}  // namespace tokenfst
