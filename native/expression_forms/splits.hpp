// Splits an expression into a fragment, whose masks many contexts share (vocabulary/fragments.hpp), and what follows
// it.
//
// The fragment is everything up to the first loop, and the byte set after the loop if there is one: the inside of a
// string and its closing quotation mark. If something else follows the loop, the fragment extends to the next single
// byte, provided that all paths through the expression meet there: the rest of a text that a pattern describes.
// Exactness does not depend on the choice of the split.
//
// Counters. The upper bound of a loop at the beginning of the fragment is counted with the tokens (Fragment::nested).
// The bounds of the members of an intersection are removed if no token can come near them (Split::widened). The bounds
// of inner groups (of words, for example) are removed if few iterations give the same result as any number: languages
// grow with their upper bounds, and with them the sets of allowed tokens, so if a fragment is the same for a small
// bound (`least`) and for no bound, it is the same for all bounds in between.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "expressions/arena.hpp"

namespace tokenfst {

// The split of an expression e: e = fragment·rest or, if counted, e = fragment·rest with the fragment's loop counted
// low..high. If `part` is given, e = part·rest, and `part` is the intersection of `whole` with something else, and
// `whole` is what is split. If the fragment is `widened`, it is an intersection whose counters have lost their upper
// bounds; the least of these was `widened`. A word w of the fragment has at most |w| iterations, so the bounds do not
// matter for a token t if |t| plus the bytes that complete the fragment after t do not exceed that bound. This holds
// for "the texts of a pattern, of at most 300 characters" at the beginning of the text, but not after almost 300
// characters.
struct Split {
  NodeId fragment = kEmpty;
  NodeId rest = kEmpty;
  NodeId loop = kEmpty;  // counted: the loop and its terminator, at the beginning of an iteration
  NodeId part = kEmpty, whole = kEmpty;
  NodeId excluded =
      kEmpty;  // if known: the words of `whole` that `part` lacks, finitely many; after each prefix `whole` has more words than these
  NodeId least = kEmpty;  // if bounds of inner counters are removed: the fragment with few iterations of them
  uint32_t low = 0, high = kUnbounded;
  uint32_t widened = kUnbounded;
  NodeId bounded = kEmpty;  // widened: the loop with the least bound, after removing it
  bool counted = false;
  bool open = false;  // no byte set ends the fragment; split_before_byte() may find a better split
  bool no_word_after = false;  // no word byte follows the fragment, so no token leaves it before one
  explicit operator bool() const { return fragment != kEmpty; }  // whether the expression splits
};

// Whether a byte is a *word byte*: an ASCII letter, digit or underscore, or a byte of a character outside of ASCII.
constexpr bool is_word_byte(uint8_t byte) {
  return byte >= 0x80 || byte == '_' || (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
}

// Whether the first loop of an expression is counted.
inline bool counts_first(const Arena& arena, NodeId id) {
  while (arena[id].kind == Kind::Concat && arena[arena[id].a].kind != Kind::Repeat) id = arena[id].b;
  const Node& head = arena[id].kind == Kind::Concat ? arena[arena[id].a] : arena[id];
  return head.kind == Kind::Repeat && head.high != kUnbounded;
}

// Whether the words of a loop can be divided into iterations in only one way, and after each iteration the remaining
// expression is the loop again: true if no iteration is a prefix of a longer one.
inline bool iterations_are_unique(const Arena& arena, NodeId loop) {
  if (arena[loop].kind != Kind::Repeat) return false;
  const NodeId body = arena[loop].a;
  if (arena[body].kind != Kind::Machine) return arena[body].kind == Kind::Set;
  const Machine& machine = arena.machine(body);
  bool unique = true;
  for (uint32_t state = 1; state < machine.accepting.size(); ++state) {
    if (machine.accepting[state]) machine.each_move(state, [&](uint32_t, uint32_t) { unique = false; });
  }
  return unique;
}

// Removes the byte set at the beginning of `rest` and returns it; the empty word if there is none.
inline NodeId take_set(const Arena& arena, NodeId& rest) {
  const Node& node = arena[rest];
  if (node.kind == Kind::Set) return std::exchange(rest, kEpsilon);
  if (node.kind != Kind::Concat || arena[node.a].kind != Kind::Set) return kEpsilon;
  const NodeId set = node.a;
  rest = node.b;
  return set;
}

// Whether an expression ends with a loop of any length and one byte after it.
inline bool ends_after_loop(const Arena& arena, NodeId id) {
  NodeId before = kEmpty;
  for (; arena[id].kind == Kind::Concat; id = arena[id].b) before = arena[id].a;
  return arena[id].kind == Kind::Set && arena[before].kind == Kind::Repeat && arena[before].has(kEndless);
}

// Relaxes the inner counters of an expression: `few` allows few iterations, `any` has no upper bounds. Repetitions of
// single characters keep their bounds, since a token contains many iterations of them.
class RelaxedCounters {
 public:
  explicit RelaxedCounters(Arena& arena) : arena_(arena) {}
  struct Bounds {
    NodeId few, any;
  };

  // The two relaxed expressions; both equal `id` if it has no such counters, or if it has many nodes.
  Bounds of(NodeId id) {
    check_stack();
    if (auto it = known_.find(id); it != known_.end()) return it->second;
    const Bounds found = known_.size() < kMostNodes ? find(id) : Bounds{id, id};
    known_.emplace(id, found);
    return found;
  }

 private:
  static constexpr size_t kMostNodes = 512;
  static constexpr uint32_t kFew = 8, kMore = 32;  // iterations

  Bounds find(NodeId id) {
    const Node node = arena_[id];
    switch (node.kind) {
      case Kind::Concat: {
        std::vector<Bounds> parts;
        bool loosened = false;
        NodeId rest = id;
        auto part = [&](NodeId at) {
          const Bounds bounds = of(at);
          loosened |= bounds.few != at || bounds.any != at;
          return bounds;
        };
        for (; arena_[rest].kind == Kind::Concat; rest = arena_[rest].b) parts.push_back(part(arena_[rest].a));
        Bounds all = part(rest);
        if (!loosened) return {id, id};
        for (; !parts.empty(); parts.pop_back()) all = {arena_.concat(parts.back().few, all.few), arena_.concat(parts.back().any, all.any)};
        return all;
      }
      case Kind::Or:
      case Kind::And: {
        const std::vector<NodeId> members(arena_.list(id).begin(), arena_.list(id).end());
        std::vector<NodeId> few = members, any = members;
        for (size_t k = 0; k < members.size(); ++k) {
          const Bounds part = of(members[k]);
          few[k] = part.few, any[k] = part.any;
        }
        if (few == members && any == members) return {id, id};
        if (node.kind == Kind::Or) return {arena_.any_of(few), arena_.any_of(any)};
        return {arena_.all_of(few), arena_.all_of(any)};
      }
      case Kind::Repeat: {
        const Kind body = arena_[node.a].kind;
        if (body == Kind::Set || body == Kind::Machine) return {id, id};
        const Bounds part = of(node.a);
        const uint32_t room = node.high == kUnbounded ? 0 : node.high - node.low;
        if (room < kFew) return {arena_.repeat(part.few, node.low, node.high), arena_.repeat(part.any, node.low, node.high)};
        return {arena_.repeat(part.few, node.low, node.low + (room < kMore ? kFew : kMore)), arena_.repeat(part.any, node.low, kUnbounded)};
      }
      default: return {id, id};
    }
  }

  Arena& arena_;
  std::unordered_map<NodeId, Bounds> known_;
};

// Splits an expression before a single byte that all paths through it meet. For one expression.
class CutBeforeByte {
 public:
  // Cuts before the first single byte of a path; there is no split if a part before it contains one.
  explicit CutBeforeByte(Arena& arena) : arena_(arena) {}
  // Parts may contain single bytes, and the first `passed` single bytes of the first path are skipped.
  CutBeforeByte(Arena& arena, size_t passed) : arena_(arena), passes_bytes_(true), passed_(passed) {}

  // The part before that byte, if there is one; end() is then the part that begins with it.
  std::optional<NodeId> before(NodeId id) {
    check_stack();
    std::vector<NodeId> heads;
    std::optional<NodeId> found;
    for (;;) {
      if (++looks_ > kMostLooks) return std::nullopt;
      const Node node = arena_[id];
      const NodeId element = node.kind == Kind::Concat ? node.a : id;
      if (id == end_ || (end_ == kEmpty && is_byte(element) && !passes())) {
        end_ = id;
        found = kEpsilon;
        break;
      }
      if (node.kind == Kind::Or) {
        std::vector<NodeId> parts(arena_.list(id).begin(), arena_.list(id).end());
        for (NodeId& part : parts) {
          const std::optional<NodeId> cut = before(part);
          if (!cut) return std::nullopt;
          part = *cut;
        }
        found = arena_.any_of(parts);
        break;
      }
      if (node.kind != Kind::Concat || !is_plain(element)) return std::nullopt;
      heads.push_back(element);
      id = node.b;
    }
    for (; !heads.empty(); heads.pop_back()) found = arena_.concat(heads.back(), *found);
    return found;
  }
  NodeId end() const { return end_; }

 private:
  static constexpr size_t kMostNodes = 512, kMostLooks = 2'048;  // an expression may have more paths than parts

  bool is_byte(NodeId id) const { return arena_[id].kind == Kind::Set && arena_.set(id).size() == 1; }
  // Whether one more single byte is to be skipped; counts it.
  bool passes() { return passed_ > 0 && passed_-- > 0; }
  // Whether an expression contains nothing that fragments cannot contain, and single bytes only if those are passed.
  bool is_plain(NodeId id) {
    std::vector<NodeId> pending{id};
    while (!pending.empty()) {
      const NodeId at = pending.back();
      pending.pop_back();
      if (seen_.contains(at)) continue;
      const Node& node = arena_[at];
      const bool closed = !node.has(kHasVar | kHasBehind | kHasCall | kHasMark | kHasToken | kHasFresh);
      if (!closed || (!passes_bytes_ && is_byte(at)) || seen_.size() == kMostNodes) return false;
      seen_.emplace(at);
      switch (node.kind) {
        case Kind::Concat: pending.push_back(node.b); [[fallthrough]];
        case Kind::Not:
        case Kind::Repeat: pending.push_back(node.a); break;
        case Kind::Or:
        case Kind::And: pending.insert(pending.end(), arena_.list(at).begin(), arena_.list(at).end()); break;
        case Kind::Set:
        case Kind::Machine: break;
        default:
          if (at != kEpsilon) return false;
      }
    }
    return true;
  }

  Arena& arena_;
  const bool passes_bytes_ = false;
  size_t passed_ = 0, looks_ = 0;
  NodeId end_ = kEmpty;
  std::unordered_set<NodeId> seen_;  // nodes that were found plain
};

// The split after the single byte that all paths meet; none if there is no such byte.
inline Split split_before_byte(Arena& arena, NodeId id, CutBeforeByte cutter) {
  const std::optional<NodeId> body = cutter.before(id);
  if (!body) return {};
  Split found;
  found.rest = cutter.end();
  const NodeId terminator = take_set(arena, found.rest);
  const auto [few, any] = RelaxedCounters(arena).of(*body);
  found.fragment = found.loop = arena.concat(any, terminator);
  if (few != any) found.least = arena.concat(few, terminator);
  return found;
}
inline Split split_before_byte(Arena& arena, NodeId id) { return split_before_byte(arena, id, CutBeforeByte(arena)); }

// The same where other single bytes may lie before that byte: the rest of a text with separators in it, such as a URI,
// up to its quotation mark.
inline Split split_before_last_byte(Arena& arena, NodeId id) {
  constexpr size_t kMostPassed = 4;
  for (size_t passed = 0; passed <= kMostPassed; ++passed) {
    if (const Split found = split_before_byte(arena, id, CutBeforeByte(arena, passed))) return found;
  }
  return {};
}

Split split_intersection(Arena& arena, NodeId element, NodeId rest);

// Splits at the first loop among the first elements of a concatenation, with the terminating byte set if one follows.
// With few bytes before the loop only few tokens reach it, so such a split is made only if the expression
// `begins_narrow` anyway.
inline Split split(Arena& arena, NodeId id, bool begins_narrow = false) {
  constexpr size_t kMaxHeads = 2;
  constexpr int kNarrow = 4;
  std::array<NodeId, kMaxHeads> heads;
  size_t num_heads = 0;
  NodeId rest = id;
  for (;;) {
    bool last = arena[rest].kind != Kind::Concat;
    NodeId element = last ? rest : arena[rest].a;
    rest = last ? kEpsilon : arena[rest].b;
    const Node node = arena[element];
    if (node.has(kHasCall | kHasMark | kHasToken) || node.kind == Kind::Unordered) return {};
    if (node.kind == Kind::And && num_heads == 0) return split_intersection(arena, element, rest);
    if (node.kind == Kind::Set && arena.set(element).size() <= kNarrow && num_heads == 0 && !begins_narrow) return {};
    if (node.kind != Kind::Repeat) {
      if (last || num_heads == kMaxHeads) return {};
      heads[num_heads++] = element;
      continue;
    }
    Split found;
    const NodeId terminator = take_set(arena, rest);
    const bool one_by_one = arena[node.a].kind == Kind::Set || arena[node.a].kind == Kind::Machine;
    found.counted = node.high != kUnbounded || (node.low > 1 && terminator != kEpsilon && one_by_one);
    if (found.counted && terminator == kEpsilon) return split_before_byte(arena, id);
    found.open = terminator == kEpsilon;
    found.low = node.low;
    found.high = node.high;
    NodeId loop = found.counted ? arena.repeat(node.a, 0, kUnbounded) : element;
    found.loop = found.fragment = arena.concat(loop, terminator);
    while (num_heads > 0) found.fragment = arena.concat(heads[--num_heads], found.fragment);
    found.rest = rest;
    return found;
  }
}

// Splits an intersection, some of whose members are counted, without their upper bounds.
inline Split split_widened(Arena& arena, std::vector<NodeId> members, NodeId rest) {
  Split found;
  RelaxedCounters loosened(arena);
  std::vector<NodeId> few;
  for (NodeId& member : members) {
    const Node node = arena[member];
    if (node.kind == Kind::Repeat && node.high != kUnbounded) {
      if (node.high < found.widened) found.bounded = arena.repeat(node.a, 0, kUnbounded);
      found.widened = std::min(found.widened, node.high);
      member = arena.repeat(node.a, node.low, kUnbounded);
    }
    const RelaxedCounters::Bounds bounds = loosened.of(member);
    few.push_back(bounds.few);
    member = bounds.any;
  }
  if (found.widened == kUnbounded && few == members) return {};
  const NodeId terminator = take_set(arena, rest);
  if (few != members) found.least = arena.concat(arena.all_of(few), terminator);
  found.fragment = found.loop = arena.concat(arena.all_of(members), terminator);
  found.rest = rest;
  return found;
}

// Splits an intersection, with the terminating byte set if one follows. `whole` lacks the members that exclude finitely
// many words. An intersection of other members is a fragment by itself, unless it is counted: then each count would be a
// fragment of its own, and none would occur twice.
inline Split split_intersection(Arena& arena, NodeId element, NodeId rest) {
  std::vector<NodeId> members, words;
  for (NodeId member : arena.list(element)) {
    const Node& node = arena[member];
    if (node.kind != Kind::Not || arena[node.a].has(kHasLoop)) members.push_back(member);
    else words.push_back(node.a);
  }
  if (members.size() == arena.list(element).size()) {
    if (Split found = split_widened(arena, members, rest)) return found;
  }
  NodeId part = element, whole = arena.all_of(members), terminator = kEpsilon;
  Split found;
  if (members.size() == 1) found = split(arena, whole, true);
  if (!found || arena[found.loop].kind == Kind::Repeat) {  // without a terminator
    terminator = take_set(arena, rest);
    part = arena.concat(part, terminator);
    whole = arena.concat(whole, terminator);
    if (members.size() == 1) found = split(arena, whole, true);
    else if (std::ranges::none_of(members, [&](NodeId member) { return counts_first(arena, member); }))
      found = {.fragment = whole, .rest = kEpsilon, .loop = whole};
  }
  if (found.rest != kEpsilon) return {};
  found.rest = rest;
  if (whole != part) {
    found.part = part;
    found.whole = whole;
    // After each prefix of a word, an unbounded loop with its terminator has more words than are excluded.
    if (members.size() == 1 && !found.counted && ends_after_loop(arena, found.fragment))
      found.excluded = arena.concat(arena.any_of(words), terminator);
  }
  return found;
}

}  // namespace tokenfst
