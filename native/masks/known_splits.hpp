// How expressions split into a fragment and what follows, and into members that split: what one mask asks for, again and again.
//
// Nothing here walks the vocabulary. What was found is kept until `clear`, that is for one mask, by the thread that makes it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "byte_automata/byte_automaton.hpp"
#include "expression_forms/splits.hpp"
#include "vocabulary/fragments.hpp"

namespace tokenfst {

class KnownSplits {
 public:
  KnownSplits(ByteAutomaton& bytes, const Vocabulary& vocabulary) : bytes_(bytes), vocabulary_(vocabulary) {}

  void clear() { splits().clear(); }

  Split of(NodeId node) {
    const Split found = bytes_.expressions().with_arena([&](Arena& arena) { return known(arena, node); });
    return found.widened < Vocabulary::kLong ? Split{} : found;
  }
  // Whether the split can be put off to the next single byte; then it is. Else the fragment is wanted with all its exits.
  bool go_on(NodeId node, Split& at) {
    const Split further = bytes_.expressions().with_arena([&](Arena& arena) { return split_before_byte(arena, node); });
    at.open = false;
    if (further) at = further;
    return static_cast<bool>(further);
  }
  // Whether bounds that the fragment leaves out do not matter to any token, or to long ones only.
  bool fits(const Split& at, const Fragment& fragment, uint32_t top) const {
    const size_t longest = top == 0 ? Vocabulary::kLong : vocabulary_.trie().max_depth();
    return at.widened == kUnbounded || (at.widened >= longest && at.widened - longest >= fragment.completion);
  }
  // Whether a token surely has more iterations than the bound that the fragment leaves out: that takes few states, where a
  // run of it within the bound makes one for each byte.
  bool exceeds(const Split& at, uint32_t token) {
    if (!bytes_.expressions().with_arena([&](const Arena& arena) { return iterations_are_unique(arena, at.bounded); })) return false;
    const State loop = bytes_.expressions().intern(at.bounded);
    State state = loop;
    uint32_t iterations = 0;
    for (unsigned char byte : vocabulary_.tokens()[token]) {
      state = bytes_.step(state, byte);
      if (state == kDead) break;
      iterations += state == loop;
    }
    return iterations + (state != loop && state != kDead) > at.widened;
  }
  // Where an expression begins with one token of a class: what that is, and what follows; else empty.
  std::pair<NodeId, NodeId> begun(NodeId node) {
    if (bytes_.boundary() == kNone) return {kEmpty, kEmpty};
    return bytes_.expressions().with_arena([&](const Arena& arena) -> std::pair<NodeId, NodeId> {
      const bool begins = arena[node].kind == Kind::Concat;
      const Node& head = begins ? arena[arena[node].a] : arena[node];
      if (head.kind != Kind::Begun) return {kEmpty, kEmpty};
      return {head.a, begins ? arena[node].b : kEpsilon};
    });
  }
  bool exits_at_once(const Split& at) {
    return bytes_.expressions().with_arena([&](const Arena& arena) { return arena[at.part == kEmpty ? at.fragment : at.part].nullable; });
  }
  // Parts that a union, or a concatenation that begins with one, is made of, where some of them split: those, and one of
  // all others.
  std::vector<NodeId> members_of(NodeId node) {
    return bytes_.expressions().with_arena([&](Arena& arena) {
      std::vector<NodeId> members, others, pending{node};
      while (!pending.empty()) {
        const NodeId id = pending.back();
        pending.pop_back();
        const bool begins = arena[id].kind == Kind::Concat;
        const NodeId choice = begins ? arena[id].a : id;
        if (arena[choice].kind != Kind::Or) {
          (known(arena, id) ? members : others).push_back(id);
          continue;
        }
        const std::vector<NodeId> choices(arena.list(choice).begin(), arena.list(choice).end());
        const NodeId rest = begins ? arena[id].b : kEpsilon;
        for (NodeId member : choices) pending.push_back(arena.concat(member, rest));
      }
      if (members.empty() || (others.empty() && members.size() == 1 && members[0] == node)) return std::vector<NodeId>{};
      if (!others.empty()) members.push_back(arena.any_of(others));
      return members;
    });
  }

 private:
  static std::unordered_map<NodeId, Split>& splits() {
    static thread_local std::unordered_map<NodeId, Split> found;
    return found;
  }
  // Kept for one mask, which asks for it as a part of a union, and as a place.
  const Split& known(Arena& arena, NodeId node) {
    auto& found = splits();
    if (auto known = found.find(node); known != found.end()) return known->second;
    return found.emplace(node, split(arena, node)).first->second;
  }

  ByteAutomaton& bytes_;
  const Vocabulary& vocabulary_;
};

}  // namespace tokenfst
