// Steps over whole texts: where a text leads, without a state and a row for each of its bytes.
//
// A step creates a state for each byte, which pays off if other texts come there too. Inside a name or another listed
// string none does: tokens read all of it. So the derivative by a whole text is computed part by part: characters by
// their machines, the members of a union separately, other parts by their derivatives. The result is the expression that
// single steps lead to. Single steps are used instead if a part may end before the text does, if rules are called, and if
// stacks or marks are involved. Results are cached by state and number of the text; readers take no
// lock.
#pragma once

#include <string_view>

#include "derivatives/byte_derivatives.hpp"
#include "byte_automata/rows.hpp"
#include "containers/stable_map.hpp"
#include "containers/stable_vector.hpp"

namespace tokenfst {

// Where a text leads.
struct TextStep {
  State target;  // before its marks and stacks are processed
  uint32_t bytes;  // how many bytes of the text lead there
};

// The derivatives by texts, in one arena: for one thread at a time.
class TextDerivatives {
 public:
  TextDerivatives(Arena& arena, ByteDerivatives& derivatives) : arena_(arena), derivatives_(derivatives) {}

  // What is left of an expression, and the bytes that were read.
  struct Left {
    NodeId node;
    uint32_t bytes;
  };
  // What is left after a text, or after the part of it before its first quotation mark; node kNone: use single steps.
  Left after(NodeId node, std::string_view text) {
    NodeId left = text.size() < kShortest ? kNone : after_text(node, text);
    if (const size_t before = text.find('"'); left == kNone && before != text.npos && before >= kShortest) {
      left = after_text(node, text = text.substr(0, before));
    }
    return {left, static_cast<uint32_t>(text.size())};
  }

 private:
  static constexpr size_t kShortest = 2;  // bytes
  static constexpr uint16_t kContextual = kHasCall | kHasMark | kHasBehind | kHasVar | kHasToken | kHasFresh;

  // The derivative of an expression by a text; kNone: use single steps.
  NodeId after_text(NodeId id, std::string_view text) {
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

  // Removes from the text what one part of the expression reads; returns what is left of the part, kEpsilon if it has
  // ended.
  NodeId behind_part(NodeId id, std::string_view& text) {
    const Node& part = arena_[id];
    if (part.nullable || part.has(kContextual)) return kNone;
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
  // The derivative of members in any order by a text within one of them. The derivative of a wide choice of members is
  // cached, because all sets of used members share it.
  NodeId behind_members(const Node members, NodeId rest, std::string_view text) {
    NodeId left = members.a;
    for (; !text.empty() && arena_[left].kind == Kind::Or && !arena_[left].nullable && !arena_[left].has(kContextual & ~kHasCall);
         text.remove_prefix(1))
      left = derivatives_.after(left, ByteDerivatives::Letter::byte(static_cast<uint8_t>(text[0]))).node;
    if (!text.empty()) left = after_text(left, text);
    if (left == kNone || left == kEmpty) return left;
    if (arena_[left].has(kHasMark)) return kNone;
    return arena_.concat(derivatives_.unordered().resolved(left, members.b, members.low, members.high), rest);
  }
  // The expression after the union is appended to the derivative of the whole union, as with single steps. Only if a member ends
  // within the text is it appended to each member before.
  NodeId behind_choice(NodeId choice, NodeId rest, std::string_view text) {
    check_stack();
    const std::vector<NodeId> members(arena_.list(choice).begin(), arena_.list(choice).end());
    const NodeId within = behind_each(members, kEpsilon, text);
    if (within == kNone) return rest == kEpsilon ? kNone : behind_each(members, rest, text);
    return arena_.concat(within, rest);
  }
  NodeId behind_each(std::vector<NodeId> left, NodeId rest, std::string_view text) {
    for (NodeId& member : left) {
      member = after_text(arena_.concat(member, rest), text);
      if (member == kNone) return kNone;
    }
    return arena_.any_of(left);
  }

  Arena& arena_;
  ByteDerivatives& derivatives_;
};

// The steps that are known. One thread at a time adds, under the owner's mutex; readers take no lock.
class TextSteps {
 public:
  TextSteps() { known_.grow(); }

  // The cached step; null: not known.
  const TextStep* find(State from, uint32_t number) const {
    const uint32_t index = index_.find(key(from, number));
    return index ? &known_[index] : nullptr;
  }
  // Adds a step, unless it is there already; returns the one that is there then.
  const TextStep* add(State from, uint32_t number, TextStep made) {
    if (const TextStep* known = find(from, number)) return known;
    const size_t index = known_.grow();
    known_[index] = made;
    index_.insert(key(from, number), static_cast<uint32_t>(index));  // publishes it
    return &known_[index];
  }
  size_t memory() const { return index_.memory() + known_.size() * sizeof(TextStep); }

 private:
  static uint64_t key(State from, uint32_t number) { return uint64_t{from} << 32 | number; }

  StableVector<TextStep> known_;  // 0: none
  StableMap index_;               // by state and number of the text
};

}  // namespace tokenfst
