// A cache of how expressions split into a fragment and what follows, and into members that split, while one mask is
// computed.
//
// Nothing here walks the vocabulary. Results are kept until `clear`, that is for one mask, by the thread that computes
// it. The splits of a few intersections are kept for longer: each free name of an object (any name but the listed ones) is
// the same intersection, while what follows it differs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "byte_automata/byte_automaton.hpp"
#include "expression_forms/splits.hpp"
#include "support/unique_number.hpp"
#include "vocabulary/fragments.hpp"

namespace tokenfst {

class KnownSplits {
 public:
  KnownSplits(ByteAutomaton& bytes, const Vocabulary& vocabulary) : bytes_(bytes), vocabulary_(vocabulary) {}

  void clear() { splits().clear(); }

  // The split of an expression; none if its removed bounds are too small for the vocabulary's tokens.
  Split of(NodeId node) {
    const Split found = bytes_.expressions().with_arena([&](Arena& arena) { return known(arena, node); });
    return found.widened < Vocabulary::kLong ? Split{} : found;
  }
  // Extends an open split to the next single byte, if there is one; returns whether it did. Otherwise the fragment is
  // needed with all its exits.
  bool go_on(NodeId node, Split& at) {
    const Split further = bytes_.expressions().with_arena([&](Arena& arena) { return split_before_byte(arena, node); });
    at.open = false;
    if (further) at = further;
    return static_cast<bool>(further);
  }
  // The split after a byte that all paths through the expression meet, where other single bytes may lie before it.
  Split up_to_common_byte(NodeId node) {
    return bytes_.expressions().with_arena([&](Arena& arena) { return split_before_last_byte(arena, node); });
  }
  // Whether the bounds that the fragment lacks matter to no token, or only to tokens that are tried one by one.
  bool fits(const Split& at, const Fragment& fragment, uint32_t top) const {
    const size_t longest = top == 0 ? Vocabulary::kLong : vocabulary_.trie().max_depth();
    return at.widened == kUnbounded || (at.widened >= longest && at.widened - longest >= fragment.completion);
  }
  // Whether a token surely has more iterations than the bound that the fragment lacks. This visits few states, while
  // running the token with the bound would create one for each byte.
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
  // If an expression begins with one token of a class: the class, and what follows; else empty.
  std::pair<NodeId, NodeId> begun(NodeId node) {
    if (bytes_.boundary() == kNone) return {kEmpty, kEmpty};
    return bytes_.expressions().with_arena([&](const Arena& arena) -> std::pair<NodeId, NodeId> {
      const bool begins = arena[node].kind == Kind::Concat;
      const Node& head = begins ? arena[arena[node].a] : arena[node];
      if (head.kind != Kind::Begun) return {kEmpty, kEmpty};
      return {head.a, begins ? arena[node].b : kEpsilon};
    });
  }
  // Whether a fragment, or its part, may be left before the first byte.
  bool exits_at_once(const Split& at) {
    return bytes_.expressions().with_arena([&](const Arena& arena) { return arena[at.part == kEmpty ? at.fragment : at.part].nullable; });
  }
  // Where a token leads that stays inside the fragment, which is not counted: only the texts whose fragment reads the
  // whole token, not those that leave the fragment before it.
  State inside(const Split& at, std::string_view token) {
    const NodeId within = bytes_.expressions().node(bytes_.run(bytes_.expressions().intern(at.fragment), token));
    return bytes_.expressions().intern(bytes_.expressions().with_arena([&](Arena& arena) { return arena.concat(within, at.rest); }));
  }
  // The classes of bytes before which no token leaves the fragment.
  std::array<bool, 256> inner_classes(const Split& at) const {
    std::array<bool, 256> inner;
    inner.fill(at.no_word_after);
    for (uint32_t byte = 0; byte <= 0xff; ++byte)
      if (!is_word_byte(static_cast<uint8_t>(byte))) inner[bytes_.classes()[byte]] = false;
    return inner;
  }
  // The parts of a union, or of a concatenation that begins with one, if some of them split: those, and the union of
  // all others; else empty. With `unfold`, rules that are called first, and variables, are replaced by their bodies; empty
  // if there are more than kMostUnfolded. A rule, variable or union that several parts begin with is replaced once, before
  // the union of the expressions that follow it.
  std::vector<NodeId> members_of(NodeId node, bool unfold = false) {
    return bytes_.expressions().with_arena([&](Arena& arena) {
      std::vector<NodeId> members, others, pending{node};
      std::map<NodeId, std::vector<NodeId>, std::greater<>> begun;  // what follows equal beginnings; wholes before their parts
      size_t unfolded = 0;
      while (!pending.empty() || !begun.empty()) {
        if (pending.empty()) {
          const NodeId choice = begun.begin()->first, rest = arena.any_of(begun.begin()->second);
          begun.erase(begun.begin());
          const Node head = arena[choice];
          if (head.kind == Kind::Var) pending.push_back(arena.concat(head.a, rest));
          else if (head.kind == Kind::Call) pending.push_back(arena.concat(arena.rule(head.a), arena.concat(arena.returning(), rest)));
          else put_choices(arena, choice, rest, pending);
        }
        const NodeId id = pending.back();
        pending.pop_back();
        const bool begins = arena[id].kind == Kind::Concat;
        const NodeId choice = begins ? arena[id].a : id, rest = begins ? arena[id].b : kEpsilon;
        const Kind kind = arena[choice].kind;
        if (unfold && (kind == Kind::Call || kind == Kind::Var || (kind == Kind::Or && begins))) {
          if (kind != Kind::Or && ++unfolded > kMostUnfolded) return std::vector<NodeId>{};
          begun[choice].push_back(rest);
        } else if (kind == Kind::Or) {
          put_choices(arena, choice, rest, pending);
        } else {
          (known(arena, id) ? members : others).push_back(id);
        }
      }
      if (members.empty() || (others.empty() && members.size() == 1 && members[0] == node)) return std::vector<NodeId>{};
      if (!others.empty()) members.push_back(arena.any_of(others));
      return members;
    });
  }
  // For an expression that calls rules after an optional loop: the expression after the loop, and the one that begins with an
  // iteration; else empty. The rules may split where the whole expression does not.
  std::vector<NodeId> around_loop(NodeId node) {
    return bytes_.expressions().with_arena([&](Arena& arena) -> std::vector<NodeId> {
      if (arena[node].kind != Kind::Concat) return {};
      const NodeId rest = arena[node].b;
      const Node loop = arena[arena[node].a];
      if (!arena[rest].has(kHasCall | kHasVar) || loop.kind != Kind::Repeat || loop.low != 0) return {};
      if (loop.has(kHasCall | kHasMark | kHasToken) || arena[loop.a].nullable) return {};
      return {rest,
              arena.concat(loop.a, arena.concat(arena.repeat(loop.a, 0, loop.high == kUnbounded ? kUnbounded : loop.high - 1), rest))};
    });
  }

 private:
  static constexpr size_t kMostUnfolded = 64;  // calls of rules

  static void put_choices(Arena& arena, NodeId choice, NodeId rest, std::vector<NodeId>& pending) {
    const std::vector<NodeId> choices(arena.list(choice).begin(), arena.list(choice).end());
    for (NodeId member : choices) pending.push_back(arena.concat(member, rest));
  }
  static std::unordered_map<NodeId, Split>& splits() {
    static thread_local std::unordered_map<NodeId, Split> found;
    return found;
  }
  // Kept for one mask, which requests it as a part of a union and as a place.
  const Split& known(Arena& arena, NodeId node) {
    auto& found = splits();
    if (auto known = found.find(node); known != found.end()) return known->second;
    const Node& top = arena[node];
    const bool more = top.kind == Kind::Concat;
    const NodeId head = more ? top.a : node;
    const bool is_intersection = arena[head].kind == Kind::And && !arena[head].has(kHasCall | kHasMark | kHasToken);
    return found.emplace(node, is_intersection ? of_intersection(arena, head, more ? top.b : kEpsilon) : split(arena, node)).first->second;
  }

  // How an intersection and the byte set after it split, whatever follows those.
  struct Intersection {
    uint64_t owner = 0;  // 0: nothing is kept here
    NodeId element = kEmpty, terminator = kEmpty;
    Split split;
  };
  static Intersection& intersection_at(uint64_t hash) {
    static thread_local std::array<Intersection, 16> kept;
    return kept[hash % kept.size()];
  }
  Split of_intersection(Arena& arena, NodeId element, NodeId rest) {
    NodeId after = rest;
    const NodeId terminator = take_set(arena, after);
    Intersection& kept = intersection_at(mix(mix(owner_.value(), element), terminator));
    if (kept.owner != owner_.value() || kept.element != element || kept.terminator != terminator)
      kept = {owner_.value(), element, terminator, split_intersection(arena, element, terminator)};
    Split found = kept.split;
    if (found) found.rest = found.rest == terminator ? rest : after;
    return found;
  }

  ByteAutomaton& bytes_;
  const Vocabulary& vocabulary_;
  const UniqueNumber owner_;
};

}  // namespace tokenfst
