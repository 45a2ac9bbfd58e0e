// Chains: what an expression begins with letter by letter, as the names of members and listed strings do, and what follows.
//
// A letter is a byte, or a machine that reads one character in each way that it may be written (Machine::arcs). Chains are
// read beside the vocabulary: a place is a node of its trie, a letter and a state in it, and the expression behind. So no
// state of the byte automaton, and no row, is made for a letter; they are made where a chain ends, if tokens go on there.
// Everything within a chain has a word: what is not certain to ends the chain before.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "expressions/least_lengths.hpp"
#include "vocabulary/trie.hpp"

namespace tokenfst {

class Chains {
 public:
  // Where a chain ends: what follows it behind a node of the trie.
  struct Exit {
    uint32_t node;
    NodeId rest;
  };

  // Whether an expression begins with a letter that a machine reads, and surely has a word; or offers one that does.
  static bool begins(const Arena& arena, NodeId id) { return begins_with_letter(arena, id) || offers_letters(arena, id); }

  // Reads chains from the node `top` of the trie on. Calls take(node) for each node that is reached within them or at their
  // ends, and lists the ends that nodes lie below. False where more than `limit` nodes are reached, or no letter is worth it.
  template <class Take>
  bool read(Arena& arena, const Trie& trie, NodeId chains, uint32_t top, uint32_t limit, std::vector<Exit>& exits, Take&& take) {
    places_.clear();
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
        if (const TrieChild* child = step(static_cast<uint8_t>(at.state))) enter(arena, child->node, at.rest, exits);
        continue;
      }
      for (const Machine::Arc& arc : arena.machines()[at.machine]->arcs_from(at.state)) {
        if (limit == 0) return false;
        const TrieChild* child = step(arc.byte);
        if (!child) continue;
        if (arc.ends) enter(arena, child->node, at.rest, exits);
        else places_.push_back({child->node, at.machine, arc.target, at.rest});
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
  };

  static bool begins_with_letter(const Arena& arena, NodeId id) {
    const Node& node = arena[id];
    const NodeId head = node.kind == Kind::Concat ? node.a : id;
    return node.certain && arena[head].kind == Kind::Machine && arena.machine(head).is_letter();
  }
  // Whether it is, or begins with, a choice that some such letter begins.
  static bool offers_letters(const Arena& arena, NodeId id) {
    const Node& node = arena[id];
    const NodeId choice = node.kind == Kind::Concat ? node.a : id;
    return node.certain && arena[choice].kind == Kind::Or &&
           std::ranges::any_of(arena.list(choice), [&](NodeId member) { return begins_with_letter(arena, member); });
  }

  // What stands behind a node: letters, or the end of a chain.
  void enter(Arena& arena, uint32_t node, NodeId id, std::vector<Exit>& exits) {
    if (enter_letter(arena, node, id)) return;
    const bool more = arena[id].kind == Kind::Concat;
    const NodeId choice = more ? arena[id].a : id, rest = more ? arena[id].b : kEpsilon;
    if (!offers_letters(arena, id)) {
      exits.push_back({node, id});
      return;
    }
    const size_t before = places_.size();
    members_.assign(arena.list(choice).begin(), arena.list(choice).end());
    std::erase_if(members_, [&](NodeId& member) {
      member = arena.concat(member, rest);
      return enter_letter(arena, node, member);
    });
    if (members_.empty()) return;
    const NodeId others = arena.any_of(members_);
    if (has_word(arena, others) || places_.size() - before > kFew) {
      exits.push_back({node, others});
    } else {
      places_.resize(before);
      exits.push_back({node, id});
    }
  }
  bool enter_letter(const Arena& arena, uint32_t node, NodeId id) {
    const Node& at = arena[id];
    if (!at.certain) return false;
    const bool more = at.kind == Kind::Concat;
    const NodeId letter = more ? at.a : id;
    const Node& first = arena[letter];
    if (first.kind == Kind::Machine && arena.machine(letter).is_letter()) {
      places_.push_back({node, first.a, first.b, more ? at.b : kEpsilon});
    } else if (first.kind == Kind::Set && arena.set(letter).size() == 1 && !arena.set(letter).has_symbols()) {
      places_.push_back({node, kNone, arena.set(letter).first(), more ? at.b : kEpsilon});
    } else {
      return false;
    }
    return true;
  }

  std::vector<Place> places_;
  std::vector<NodeId> members_;
};

}  // namespace tokenfst
