// Chains: the literal text at the beginning of an expression, such as the names of members and listed strings, matched
// letter by letter against the vocabulary.
//
// A letter is a byte, or a machine that reads one character in each way in which it may be written (Machine::is_letter).
// A place is a node of the vocabulary's trie, a letter and a state in it, and the expression that follows. So no state
// and no row of the byte automaton is created for a letter; they are created where a chain ends, if tokens continue
// there. A chain ends before the first part that is not certain to have a word.
//
// For members in any order (derivatives/unordered.hpp), a place lies in the union of all options, together with the node
// that has the set of available options. The expression of the remaining members is computed where a chain ends, so no
// node is created for a letter of a name.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "expression_forms/estimates.hpp"
#include "derivatives/unordered.hpp"
#include "vocabulary/trie.hpp"

namespace tokenfst {

class Chains {
 public:
  // The end of a chain: a node of the trie, and the expression that follows there.
  struct Exit {
    uint32_t node;
    NodeId rest;
  };

  // Whether an expression surely has a word and begins with a letter, with members in any order, or with a union that
  // has such a member.
  static bool begins(const Arena& arena, NodeId id) {
    if (!arena[id].certain) return false;
    const NodeId head = arena[id].kind == Kind::Concat ? arena[id].a : id;
    if (arena[head].kind != Kind::Or) return is_letter(arena, head) || arena[head].kind == Kind::Unordered;
    check_stack();
    return std::ranges::any_of(arena.list(head), [&](NodeId member) { return begins(arena, member); });
  }

  // Reads the chains of an expression from the node `top` of the trie on. Calls take(node) for each node that is reached
  // within them or at their ends, and appends the ends below which tokens continue to `exits`. Returns false if more than
  // `limit` nodes are reached, or if no chain begins with a letter; then what was taken must be discarded.
  template <class Take>
  bool read(Arena& arena, Unordered& unordered, const Trie& trie, NodeId chains, uint32_t top, uint32_t limit, std::vector<Exit>& exits,
            Take&& take) {
    places_.clear();
    members_.clear();
    after_.clear();
    parts_.clear();
    others_.clear();
    unordered_ = &unordered;
    trie_ = &trie;
    missed_ = false;
    enter(arena, top, chains, kNone, exits);
    if (places_.empty() && !missed_) return false;
    while (!places_.empty()) {
      Place at = places_.back();
      places_.pop_back();
      // Where a byte leads if tokens go on there; null elsewhere.
      auto step = [&](uint32_t node, uint8_t byte) -> const TrieChild* {
        const TrieChild* const child = child_of(node, byte);
        if (!child) return nullptr;
        --limit;
        take(*child);
        return child->children ? child : nullptr;
      };
      while (at.machine == kNone) {
        if (limit == 0) return false;
        const TrieChild* const child = step(at.node, static_cast<uint8_t>(at.state));
        if (!child) break;
        if (follow(arena, child->node, at)) continue;
        go_on(arena, child->node, at, exits);
        break;
      }
      if (at.machine == kNone) continue;
      for (const Machine::Arc& arc : arena.machines()[at.machine]->arcs_from(at.state)) {
        if (limit == 0) return false;
        const TrieChild* const child = step(at.node, arc.byte);
        if (!child) continue;
        if (arc.ends) go_on(arena, child->node, at, exits);
        else places_.push_back({child->node, at.machine, arc.target, at.rest, at.after, at.within});
      }
    }
    return true;
  }

 private:
  static constexpr size_t kFew = 3;  // with so few letters, a union is not divided if its other members are not certain to have a word

  struct Place {
    uint32_t node;
    uint32_t machine;  // kNone: the letter is a byte
    uint32_t state;    // a state of the machine, or the byte
    NodeId rest;
    uint32_t after = kNone;  // an index of `after_`: what follows the rest; kNone: nothing
    uint32_t within = kNone;  // an index of `members_`, for a place in their options; such a place surely leads on
  };
  // What follows a union: an expression, and what follows that. They are concatenated only where a chain ends.
  struct Following {
    NodeId rest;
    uint32_t more;
    bool certain;  // whether all of it surely has a word
    NodeId whole = kNone;  // the concatenation; kNone: not made yet
  };
  // A member of a union, and what follows it.
  struct Part {
    NodeId id;
    uint32_t after;
  };
  // A node of members in any order, and the expression that follows it.
  struct Members {
    Node node;
    NodeId rest;
  };

  static bool is_letter(const Arena& arena, NodeId id) {
    if (arena[id].kind == Kind::Machine) return arena.machine(id).is_letter();
    return arena[id].kind == Kind::Set && arena.set(id).size() == 1 && !arena.set(id).has_symbols();
  }
  const TrieChild* child_of(uint32_t node, uint8_t byte) const {
    const std::span<const TrieChild> children = trie_->children(node);
    if (children.size() == 256) return &children[byte];
    const std::span<const uint8_t> bytes = trie_->child_bytes(node);
    const auto found = std::lower_bound(bytes.begin(), bytes.end(), byte);
    return found == bytes.end() || *found != byte ? nullptr : &children[found - bytes.begin()];
  }
  bool is_certain(uint32_t after) const { return after == kNone || after_[after].certain; }
  uint32_t put_after(const Arena& arena, NodeId rest, uint32_t after) {
    if (rest == kEpsilon) return after;
    after_.push_back({rest, after, arena[rest].certain && is_certain(after)});
    return static_cast<uint32_t>(after_.size() - 1);
  }
  // An expression with what follows it.
  NodeId whole(Arena& arena, NodeId id, uint32_t after) {
    if (after == kNone) return id;
    check_stack();
    if (after_[after].whole == kNone) {
      const NodeId made = whole(arena, after_[after].rest, after_[after].more);
      after_[after].whole = made;
    }
    return arena.concat(id, after_[after].whole);
  }

  // If a letter follows at once, moves the place to that letter and returns true.
  bool follow(const Arena& arena, uint32_t node, Place& at) const {
    for (; at.rest == kEpsilon && at.within == kNone && at.after != kNone; at.after = after_[at.after].more)
      at.rest = after_[at.after].rest;
    if (at.within == kNone && !(arena[at.rest].certain && is_certain(at.after))) return false;
    return letter_of(arena, at.rest, at.machine, at.state, at.rest) && (at.node = node, true);
  }
  // The letter that an expression begins with, and what follows it.
  static bool letter_of(const Arena& arena, NodeId id, uint32_t& machine, uint32_t& state, NodeId& rest) {
    const Node& at = arena[id];
    const bool more = at.kind == Kind::Concat;
    const NodeId letter = more ? at.a : id;
    if (!is_letter(arena, letter)) return false;
    const Node& first = arena[letter];
    rest = more ? at.b : kEpsilon;
    machine = first.kind == Kind::Machine ? first.a : kNone;
    state = first.kind == Kind::Machine ? first.b : arena.set(letter).first();
    return true;
  }
  void go_on(Arena& arena, uint32_t node, const Place& from, std::vector<Exit>& exits) {
    if (from.within == kNone) enter(arena, node, from.rest, from.after, exits);
    else enter_option(arena, node, from.rest, from.within, exits);
  }
  // Continues after a node of the trie with an expression: adds places at its letters, or the end of the chain.
  void enter(Arena& arena, uint32_t node, NodeId id, uint32_t after, std::vector<Exit>& exits) {
    for (; id == kEpsilon && after != kNone; after = after_[after].more) id = after_[after].rest;
    if (!is_certain(after) || !begins(arena, id)) {
      exits.push_back({node, whole(arena, id, after)});
      return;
    }
    if (enter_letter(arena, node, id, after, kNone)) return;
    const size_t places = places_.size(), before = exits.size();
    const size_t first_part = parts_.size(), first_other = others_.size();
    parts_.push_back({id, after});
    while (parts_.size() > first_part) {
      Part part = parts_.back();
      parts_.pop_back();
      for (; part.id == kEpsilon && part.after != kNone; part.after = after_[part.after].more) part.id = after_[part.after].rest;
      const bool certain = arena[part.id].certain && is_certain(part.after);
      if (certain && enter_letter(arena, node, part.id, part.after, kNone)) continue;
      const bool more = arena[part.id].kind == Kind::Concat;
      const NodeId head = more ? arena[part.id].a : part.id, rest = more ? arena[part.id].b : kEpsilon;
      if (certain && arena[head].kind == Kind::Unordered) {
        const Node members = arena[head];
        members_.push_back({members, whole(arena, rest, part.after)});
        enter_option(arena, node, members.a, static_cast<uint32_t>(members_.size() - 1), exits);
      } else if (arena[head].kind == Kind::Or) {
        const uint32_t following = put_after(arena, rest, part.after);
        for (NodeId choice : arena.list(head)) parts_.push_back({choice, following});
      } else {
        const NodeId other = whole(arena, part.id, part.after);
        others_.push_back(other);
      }
    }
    if (others_.size() == first_other) return;
    const NodeId left = take_others(arena, first_other);
    if (!has_word(arena, left) && places_.size() - places <= kFew) {
      places_.resize(places);
      exits.resize(before);
      exits.push_back({node, whole(arena, id, after)});
    } else {
      exits.push_back({node, left});
    }
  }
  // The same within the options of members: only those that are possible and surely have a word are entered.
  void enter_option(Arena& arena, uint32_t node, NodeId id, uint32_t within, std::vector<Exit>& exits) {
    const Members members = members_[within];
    auto resolved = [&](NodeId left) {
      return arena.concat(unordered_->resolved(left, members.node.b, members.node.low, members.node.high), members.rest);
    };
    if (arena[id].kind == Kind::Tag) return enter(arena, node, resolved(id), kNone, exits);
    const bool more = arena[id].kind == Kind::Concat;
    const NodeId choice = more ? arena[id].a : id, rest = more ? arena[id].b : kEpsilon;
    const size_t first_other = others_.size();
    auto enter_one = [&](NodeId option) {
      if (is_missed(arena, node, option)) return;
      const auto [found, certain] = unordered_->leads_on(option, members.node);
      if (found && !(certain && !arena[option].has(kHasMark) && enter_letter(arena, node, option, kNone, within)))
        others_.push_back(option);
    };
    if (arena[choice].kind != Kind::Or) {
      enter_one(id);
    } else {
      for (uint32_t k = 0; k < arena[choice].b; ++k) enter_one(arena.concat(arena.list(choice)[k], rest));
    }
    if (others_.size() > first_other) exits.push_back({node, resolved(take_others(arena, first_other))});
  }
  // The union of the expressions from this one on that were not entered.
  NodeId take_others(Arena& arena, size_t first) {
    const NodeId all = arena.any_of(std::span(others_).subspan(first));
    others_.resize(first);
    return all;
  }
  // Whether an expression begins with a byte that no token has after a node; then it is left out.
  bool is_missed(const Arena& arena, uint32_t node, NodeId id) {
    const NodeId letter = arena[id].kind == Kind::Concat ? arena[id].a : id;
    if (arena[letter].kind != Kind::Set || !is_letter(arena, letter) || child_of(node, arena.set(letter).first())) return false;
    return missed_ = true;
  }
  // A place at the letter that an expression begins with, if it does.
  bool enter_letter(const Arena& arena, uint32_t node, NodeId id, uint32_t after, uint32_t within) {
    Place at{node, kNone, 0, kEpsilon, after, within};
    if (!letter_of(arena, id, at.machine, at.state, at.rest)) return false;
    places_.push_back(at);
    return true;
  }

  std::vector<Place> places_;
  std::vector<Members> members_;
  std::vector<Following> after_;
  std::vector<Part> parts_;     // members of unions that are still to be entered
  std::vector<NodeId> others_;  // members that are not entered, a stack for nested unions
  Unordered* unordered_ = nullptr;  // of the arena that is read
  const Trie* trie_ = nullptr;      // of the vocabulary
  bool missed_ = false;             // whether a letter was left out, since no token continues with it
};

}  // namespace tokenfst
