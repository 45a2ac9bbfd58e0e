// Leaps: where a text leads at once, without a state and a row for each of its bytes.
//
// Stepping makes a state for each byte, for those who come again. Inside of a name or another listed string nobody does: tokens
// lead over it. So what is left of an expression behind a whole text is found part by part: letters by their machines, the
// members of a choice apart, other parts by their derivatives. It is the expression that steps lead to. A text is left to
// steps where a part may end before the text does, where rules are called, and where stacks and marks would come into it.
// What was found is kept by state and number of the text; readers take no lock.
#pragma once

#include <string_view>

#include "expressions/byte_derivatives.hpp"
#include "byte_automata/rows.hpp"
#include "support/stable_map.hpp"
#include "support/stable_vector.hpp"

namespace tokenfst {

struct Leap {
  State target;  // before its marks and stacks are looked at
  uint32_t bytes;  // of the text, that lead there
};

class Leaps {
 public:
  Leaps(Arena& arena, ByteDerivatives& derivatives) : arena_(arena), derivatives_(derivatives) { known_.grow(); }

  // Null: not known.
  const Leap* find(State from, uint32_t number) const {
    const uint32_t index = index_.find(uint64_t{from} << 32 | number);
    return index ? &known_[index] : nullptr;
  }
  // The leap over a text, or over the part of it before a quotation mark, from an expression; null: to be left to steps.
  // `live` gives the state of what is left.
  template <class Live>
  const Leap* make(State from, NodeId node, uint32_t number, std::string_view text, Live&& live) {
    if (const Leap* known = find(from, number)) return known;
    NodeId left = text.size() < kShortest ? kNone : behind(node, text);
    if (const size_t before = text.find('"'); left == kNone && before != text.npos && before >= kShortest) {
      left = behind(node, text = text.substr(0, before));
    }
    if (left == kNone) return nullptr;
    const size_t index = known_.grow();
    known_[index] = {live(left), static_cast<uint32_t>(text.size())};
    index_.insert(uint64_t{from} << 32 | number, static_cast<uint32_t>(index));
    return &known_[index];
  }
  size_t memory() const { return index_.memory() + known_.size() * sizeof(Leap); }

 private:
  static constexpr size_t kShortest = 2;  // bytes
  static constexpr uint16_t kApart = kHasCall | kHasMark | kHasBehind | kHasVar | kHasToken | kHasFresh;

  // What is left of an expression behind a text; kNone: to be found by steps.
  NodeId behind(NodeId id, std::string_view text) {
    for (;;) {
      if (text.empty() || id == kEmpty) return id;
      const bool more = arena_[id].kind == Kind::Concat;
      const NodeId first = more ? arena_[id].a : id, rest = more ? arena_[id].b : kEpsilon;
      if (arena_[first].kind == Kind::Or) return behind_choice(first, rest, text);
      if (arena_[first].kind == Kind::Unordered) return behind_members(arena_[first], rest, text);
      const NodeId left = behind_part(first, text);
      if (left == kNone || left == kEmpty) return left;
      if (left != kEpsilon || text.empty()) return arena_.concat(left, rest);
      id = rest;
    }
  }

  // Behind as much of the text as a part reads, taken off it: what is left of that part, kEpsilon where it has ended.
  NodeId behind_part(NodeId id, std::string_view& text) {
    const Node& part = arena_[id];
    if (part.nullable || part.has(kApart)) return kNone;
    if (part.kind == Kind::Machine && arena_.machine(id).is_letter()) {
      const Machine& letter = arena_.machine(id);
      for (uint32_t state = part.b; !text.empty();) {
        const auto arcs = letter.arcs_from(state);
        const auto arc = std::ranges::find(arcs, static_cast<uint8_t>(text[0]), &Machine::Arc::byte);
        if (arc == arcs.end()) return kEmpty;
        text.remove_prefix(1);
        if (arc->ends) return kEpsilon;
        state = arc->target;
        if (text.empty()) return arena_.state_of(part.a, state);
      }
    }
    for (; !text.empty() && id != kEmpty && id != kEpsilon; text.remove_prefix(1)) {
      if (arena_[id].nullable) return kNone;
      id = derivatives_.after(id, ByteDerivatives::Letter::byte(static_cast<uint8_t>(text[0]))).node;
    }
    return id;
  }
  // Of members in any order: behind the text within one of them. Of wide choices among them the derivative is known from before,
  // since all sets of used ones share it.
  NodeId behind_members(const Node members, NodeId rest, std::string_view text) {
    NodeId left = members.a;
    for (; !text.empty() && arena_[left].kind == Kind::Or && !arena_[left].nullable && !arena_[left].has(kApart & ~kHasCall);
         text.remove_prefix(1))
      left = derivatives_.after(left, ByteDerivatives::Letter::byte(static_cast<uint8_t>(text[0]))).node;
    if (!text.empty()) left = behind(left, text);
    if (left == kNone || left == kEmpty) return left;
    if (arena_[left].has(kHasMark)) return kNone;
    return arena_.concat(derivatives_.unordered().resolved(left, members.b, members.low, members.high), rest);
  }
  // What follows the choice stays behind it as a whole, as it does where one steps, unless a member ends within the text.
  NodeId behind_choice(NodeId choice, NodeId rest, std::string_view text) {
    check_stack();
    const std::vector<NodeId> members(arena_.list(choice).begin(), arena_.list(choice).end());
    const NodeId within = behind_each(members, kEpsilon, text);
    if (within == kNone) return rest == kEpsilon ? kNone : behind_each(members, rest, text);
    return arena_.concat(within, rest);
  }
  NodeId behind_each(std::vector<NodeId> left, NodeId rest, std::string_view text) {
    for (NodeId& member : left) {
      member = behind(arena_.concat(member, rest), text);
      if (member == kNone) return kNone;
    }
    return arena_.any_of(left);
  }

  Arena& arena_;
  ByteDerivatives& derivatives_;
  StableVector<Leap> known_;  // 0: none
  StableMap index_;           // by state and number
};

}  // namespace tokenfst
