// Chains: what an expression begins with letter by letter, as the names of members and listed strings do, and what follows.
//
// A letter is a byte, or a machine that reads one character in each way that it may be written (Machine::arcs). Chains are
// read beside the vocabulary: a place is a node of its trie, a letter and a state in it, and the expression behind. So no
// state of the byte automaton, and no row, is made for a letter; they are made where a chain ends, if tokens go on there.
// Everything within a chain has a word: what is not certain to ends the chain before.
//
// Of members in any order (expressions/unordered.hpp) a place is one within all options together, beside the node that says
// which are left: what is left of them is told where a chain ends, and no node is made for a letter of a name.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "expression_forms/estimates.hpp"
#include "expressions/unordered.hpp"
#include "vocabulary/trie.hpp"

namespace tokenfst {

class Chains {
 public:
  // Where a chain ends: what follows it behind a node of the trie.
  struct Exit {
    uint32_t node;
    NodeId rest;
  };

  // Whether an expression surely has a word, and begins with a letter or with members in any order; or offers what does.
  static bool begins(const Arena& arena, NodeId id) {
    if (!arena[id].certain) return false;
    const NodeId head = arena[id].kind == Kind::Concat ? arena[id].a : id;
    if (arena[head].kind != Kind::Or) return is_letter(arena, head) || arena[head].kind == Kind::Unordered;
    check_stack();
    return std::ranges::any_of(arena.list(head), [&](NodeId member) { return begins(arena, member); });
  }

  // Reads chains from the node `top` of the trie on. Calls take(node) for each node that is reached within them or at their
  // ends, and lists the ends that nodes lie below. False where more than `limit` nodes are reached, or no letter is worth it.
  template <class Take>
  bool read(Arena& arena, Unordered& unordered, const Trie& trie, NodeId chains, uint32_t top, uint32_t limit, std::vector<Exit>& exits,
            Take&& take) {
    places_.clear();
    members_.clear();
    unordered_ = &unordered;
    enter(arena, top, chains, exits);
    if (places_.empty()) return false;
    while (!places_.empty()) {
      const Place at = places_.back();
      places_.pop_back();
      const std::span<const TrieChild> children = trie.children(at.node);
      const std::span<const uint8_t> bytes = trie.child_bytes(at.node);
      // Where a byte leads that tokens go on behind; null elsewhere.
      auto step = [&](uint8_t byte) -> const TrieChild* {
        const auto found = std::lower_bound(bytes.begin(), bytes.end(), byte);
        if (found == bytes.end() || *found != byte) return nullptr;
        --limit;
        const TrieChild& child = children[found - bytes.begin()];
        take(child);
        return child.children ? &child : nullptr;
      };
      if (at.machine == kNone) {
        if (limit == 0) return false;
        if (const TrieChild* child = step(static_cast<uint8_t>(at.state))) go_on(arena, child->node, at, exits);
        continue;
      }
      for (const Machine::Arc& arc : arena.machines()[at.machine]->arcs_from(at.state)) {
        if (limit == 0) return false;
        const TrieChild* child = step(arc.byte);
        if (!child) continue;
        if (arc.ends) go_on(arena, child->node, at, exits);
        else places_.push_back({child->node, at.machine, arc.target, at.rest, at.within});
      }
    }
    return true;
  }

 private:
  static constexpr size_t kFew = 3;  // letters: without them, whether others have a word may take a search at each place

  struct Place {
    uint32_t node;
    uint32_t machine;  // kNone: the letter is a byte
    uint32_t state;    // of the machine, or the byte
    NodeId rest;
    uint32_t within = kNone;  // of `members_`, where it is one of their options
  };
  // A node of members in any order, and what follows it.
  struct Members {
    Node node;
    NodeId rest;
  };

  static bool begins_with_members(const Arena& arena, NodeId id) {
    return arena[id].certain && arena[arena[id].kind == Kind::Concat ? arena[id].a : id].kind == Kind::Unordered;
  }
  static bool is_letter(const Arena& arena, NodeId id) {
    if (arena[id].kind == Kind::Machine) return arena.machine(id).is_letter();
    return arena[id].kind == Kind::Set && arena.set(id).size() == 1 && !arena.set(id).has_symbols();
  }
  void go_on(Arena& arena, uint32_t node, const Place& from, std::vector<Exit>& exits) {
    if (from.within == kNone) enter(arena, node, from.rest, exits);
    else enter_option(arena, node, from.rest, from.within, exits);
  }
  // What stands behind a node: letters, members, or the end of a chain.
  void enter(Arena& arena, uint32_t node, NodeId id, std::vector<Exit>& exits) {
    if (!begins(arena, id)) {
      exits.push_back({node, id});
      return;
    }
    const size_t places = places_.size(), before = exits.size();
    std::vector<NodeId> others, parts{id};  // what is not entered; of choices, and choices in them
    while (!parts.empty()) {
      const NodeId part = parts.back();
      parts.pop_back();
      if (arena[part].certain && enter_letter(arena, node, part, kNone)) continue;
      const bool more = arena[part].kind == Kind::Concat;
      const NodeId head = more ? arena[part].a : part, rest = more ? arena[part].b : kEpsilon;
      if (begins_with_members(arena, part)) {
        members_.push_back({arena[head], rest});
        enter_option(arena, node, arena[head].a, static_cast<uint32_t>(members_.size() - 1), exits);
      } else if (arena[head].kind == Kind::Or) {
        const std::vector<NodeId> choices(arena.list(head).begin(), arena.list(head).end());
        for (NodeId choice : choices) parts.push_back(arena.concat(choice, rest));
      } else {
        others.push_back(part);
      }
    }
    if (others.empty()) return;
    const NodeId left = arena.any_of(others);
    if (!has_word(arena, left) && places_.size() - places <= kFew) {
      places_.resize(places);
      exits.resize(before);
      exits.push_back({node, id});
    } else {
      exits.push_back({node, left});
    }
  }
  // The same within the options of members: those that may come and surely have a word.
  void enter_option(Arena& arena, uint32_t node, NodeId id, uint32_t within, std::vector<Exit>& exits) {
    const Members members = members_[within];
    auto resolved = [&](NodeId left) {
      return arena.concat(unordered_->resolved(left, members.node.b, members.node.low, members.node.high), members.rest);
    };
    if (arena[id].kind == Kind::Tag) return enter(arena, node, resolved(id), exits);
    const bool more = arena[id].kind == Kind::Concat;
    const NodeId choice = more ? arena[id].a : id, rest = more ? arena[id].b : kEpsilon;
    std::vector<NodeId> others{id};
    if (arena[choice].kind == Kind::Or) others.assign(arena.list(choice).begin(), arena.list(choice).end());
    std::erase_if(others, [&](NodeId& option) {
      if (arena[choice].kind == Kind::Or) option = arena.concat(option, rest);
      const auto [found, certain] = unordered_->leads_on(option, members.node);
      return !found || (certain && !arena[option].has(kHasMark) && enter_letter(arena, node, option, within));
    });
    if (!others.empty()) exits.push_back({node, resolved(arena.any_of(others))});
  }
  // A place at the letter that an expression begins with, if it does.
  bool enter_letter(const Arena& arena, uint32_t node, NodeId id, uint32_t within) {
    const Node& at = arena[id];
    const bool more = at.kind == Kind::Concat;
    const NodeId letter = more ? at.a : id;
    if (!is_letter(arena, letter)) return false;
    const Node& first = arena[letter];
    const NodeId rest = more ? at.b : kEpsilon;
    if (first.kind == Kind::Machine) places_.push_back({node, first.a, first.b, rest, within});
    else places_.push_back({node, kNone, arena.set(letter).first(), rest, within});
    return true;
  }

  std::vector<Place> places_;
  std::vector<Members> members_;
  Unordered* unordered_ = nullptr;  // of the arena that is read
};

}  // namespace tokenfst
