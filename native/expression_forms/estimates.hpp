// Estimates from the form of an expression: whether it surely has a word, and how far away the end of a word is at least.
// The search for a word visits the lowest estimate first (graph_searches/liveness.hpp). The result of the search does not
// depend on the estimates, only its duration.
//
// An estimate is two numbers of bytes, compared lexicographically. Both add up along concatenations; a union has the
// least of its members', and a machine the distance to its nearest end. For kinds that are not analysed it is 1, or 0
// if they contain the empty word. For an intersection, the first number is the greatest of its members', which is a
// lower bound, and the second their sum: so among equal bounds, a state comes first if another member is nearer to its
// end. With the bound alone, a member that requires exactly 60 characters would hide all other members: MaskBench's
// allany17 took 79,434 states that way, and takes 391. Each node is computed once.
#pragma once

#include <algorithm>
#include <compare>
#include <unordered_map>
#include <vector>

#include "expressions/arena.hpp"

namespace tokenfst {

// Whether an expression surely has a word, as far as its form shows. A nullable part needs no search. O(parts).
inline bool has_word(const Arena& arena, NodeId id) {
  for (;; id = arena[id].b) {
    const Node& node = arena[id];
    if (node.certain || node.nullable) return id != kEmpty;
    if (node.kind == Kind::Or) return std::ranges::any_of(arena.list(id), [&](NodeId member) { return has_word(arena, member); });
    if (node.kind != Kind::Concat || !has_word(arena, node.a)) return false;
  }
}

// In bytes: `bound`, a lower bound of the length of a shortest word, and `sum`, in which the members of intersections add up.
struct Estimate {
  uint32_t bound = 0, sum = 0;
  auto operator<=>(const Estimate&) const = default;
};

class Estimates {
 public:
  explicit Estimates(const Arena& arena) : arena_(arena) {}
  size_t memory() const { return known_.capacity() * sizeof(Estimate); }

  // The estimate of an expression.
  Estimate of(NodeId root) {
    if (const size_t more = arena_.size() - known_.size()) {
      make_room(known_, more, [this](size_t bytes) { arena_.about_to_take(bytes); });
      known_.resize(arena_.size(), kUnseen);
    }
    std::vector<NodeId> pending{root};
    while (!pending.empty()) {
      const NodeId id = pending.back();
      if (known_[id] == kUnseen) {
        const size_t before = pending.size();
        const Estimate found = find(id, pending);
        if (pending.size() > before) continue;
        known_[id] = found;
      }
      pending.pop_back();
    }
    return known_[root];
  }

 private:
  static constexpr uint32_t kMost = 1 << 30;
  static constexpr Estimate kUnseen{kNone, kNone};

  static uint32_t least(uint64_t length) { return static_cast<uint32_t>(std::min<uint64_t>(length, kMost)); }

  // Computes the estimate from those of the parts; parts without one are added to `pending` instead.
  Estimate find(NodeId id, std::vector<NodeId>& pending) {
    const Node& node = arena_[id];
    auto part = [&](NodeId at) {
      if (known_[at] == kUnseen) pending.push_back(at);
      return known_[at];
    };
    if (node.nullable || node.kind == Kind::Epsilon) return {};
    switch (node.kind) {
      case Kind::Empty: return {kMost, kMost};
      case Kind::Concat: {
        const Estimate first = part(node.a), rest = part(node.b);
        return {least(uint64_t{first.bound} + rest.bound), least(uint64_t{first.sum} + rest.sum)};
      }
      case Kind::Few:
      case Kind::FewInside: return part(node.a);
      case Kind::Repeat: {
        const Estimate each = part(node.a);
        return {least(uint64_t{each.bound} * node.low), least(uint64_t{each.sum} * node.low)};
      }
      case Kind::Or: {
        Estimate nearest{kMost, kMost};
        for (NodeId member : arena_.list(id)) nearest = std::min(nearest, part(member));
        return nearest;
      }
      case Kind::And: {
        Estimate all;
        for (NodeId member : arena_.list(id)) {
          const Estimate each = part(member);
          all = {std::max(all.bound, each.bound), least(uint64_t{all.sum} + each.sum)};
        }
        return all;
      }
      case Kind::Machine: {
        const uint32_t way = to_end(arena_.machine(id), node.b);
        return {way, way};
      }
      default: return {1, 1};
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
  ReusedVector<Estimate> known_;  // for each node; kUnseen: not computed
  std::unordered_map<const Machine*, std::vector<uint32_t>> machines_;
};

}  // namespace tokenfst
