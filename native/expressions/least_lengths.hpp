// What an expression's form says of its words: whether it has one, and how short they may be, which tells a search for a word
// where to look first.
//
// Bounds of lengths add up along concatenations; a union has the least of its members', an intersection the greatest, a machine the length of
// the way to its nearest end. Of what is not looked into it is 1, or 0 where the empty word is in it. Each node is looked at once.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "expressions/arena.hpp"

namespace tokenfst {

// Whether an expression surely has a word: parts that need a search but may be left out are no hindrance.
inline bool has_word(const Arena& arena, NodeId id) {
  for (;; id = arena[id].b) {
    const Node& node = arena[id];
    if (node.certain || node.nullable) return id != kEmpty;
    if (node.kind == Kind::Or) return std::ranges::any_of(arena.list(id), [&](NodeId member) { return has_word(arena, member); });
    if (node.kind != Kind::Concat || !has_word(arena, node.a)) return false;
  }
}

class LeastLengths {
 public:
  explicit LeastLengths(const Arena& arena) : arena_(arena) {}
  size_t memory() const { return known_.capacity() * 4; }

  uint32_t of(NodeId root) {
    if (const size_t more = arena_.size() - known_.size()) {
      if (const size_t bytes = growth(known_, more)) arena_.about_to_take(bytes);
      known_.resize(arena_.size(), kNone);
    }
    std::vector<NodeId> pending{root};
    while (!pending.empty()) {
      const NodeId id = pending.back();
      if (known_[id] == kNone) {
        const size_t before = pending.size();
        const uint32_t found = find(id, pending);
        if (pending.size() > before) continue;
        known_[id] = found;
      }
      pending.pop_back();
    }
    return known_[root];
  }

 private:
  static constexpr uint32_t kMost = 1 << 30;

  // From what is known of the parts; those that nothing is known of are added to `pending` instead.
  uint32_t find(NodeId id, std::vector<NodeId>& pending) {
    const Node& node = arena_[id];
    auto part = [&](NodeId at) {
      if (known_[at] == kNone) pending.push_back(at);
      return uint64_t{known_[at]};
    };
    if (node.nullable || node.kind == Kind::Epsilon) return 0;
    switch (node.kind) {
      case Kind::Empty: return kMost;
      case Kind::Concat: return static_cast<uint32_t>(std::min<uint64_t>(part(node.a) + part(node.b), kMost));
      case Kind::Repeat: return static_cast<uint32_t>(std::min<uint64_t>(part(node.a) * node.low, kMost));
      case Kind::Or:
      case Kind::And: {
        uint64_t least = node.kind == Kind::Or ? kMost : 0;
        for (NodeId member : arena_.list(id)) least = node.kind == Kind::Or ? std::min(least, part(member)) : std::max(least, part(member));
        return static_cast<uint32_t>(least);
      }
      case Kind::Machine: return to_end(arena_.machine(id), node.b);
      default: return 1;
    }
  }

  uint32_t to_end(const Machine& machine, uint32_t state) {
    if (auto known = machines_.find(&machine); known != machines_.end()) return known->second[state];
    const uint32_t states = static_cast<uint32_t>(machine.accepting.size());
    std::vector<std::vector<uint32_t>> sources(states);
    std::vector<uint32_t> queue, lengths(states, kMost);
    for (uint32_t q = 1; q < states; ++q) {
      machine.each_move(q, [&](uint32_t, uint32_t next) { sources[next].push_back(q); });
      if (machine.accepting[q]) lengths[q] = 0, queue.push_back(q);
    }
    for (size_t k = 0; k < queue.size(); ++k) {
      for (uint32_t source : sources[queue[k]]) {
        if (lengths[source] == kMost) lengths[source] = lengths[queue[k]] + 1, queue.push_back(source);
      }
    }
    return machines_.emplace(&machine, std::move(lengths)).first->second[state];
  }

  const Arena& arena_;
  ReusedVector<uint32_t> known_;  // by node; kNone: not looked at
  std::unordered_map<const Machine*, std::vector<uint32_t>> machines_;
};

}  // namespace tokenfst
