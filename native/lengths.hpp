// Least lengths of words in bytes, by the form of an expression: what distances fall back on where a grammar's states are
// too many to go through, since a word may always be spelled byte by byte.
//
// Lengths add up along concatenations; a union has the least of its members'. Calls and variables are a least fixed
// point. Intersections and complements, which hold no calls, are searched breadth first. Of selections it is a bound.
#pragma once

#include "byte_automaton.hpp"
#include "distances.hpp"

namespace tokenfst {

class Lengths {
 public:
  explicit Lengths(ByteAutomaton& bytes) : bytes_(bytes) {}

  // Linear in the nodes not seen before.
  uint32_t of(NodeId id) {
    if (!solved_) solve();
    return length(id);
  }

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX - 1;
  static constexpr size_t kMaxSearch = 20'000;  // states that one search goes through

  // Rules and variables, from "no word" on, until none gets shorter.
  void solve() {
    const auto [rules, variables] = bytes_.with_arena([](const Arena& arena) {
      std::vector<NodeId> found;
      for (NodeId id = 0; id < arena.size(); ++id) {
        if (arena[id].kind == Kind::Var) found.push_back(id);
      }
      return std::pair(arena.num_rules(), found);
    });
    rules_.assign(rules, kUnreachable);
    for (NodeId id : variables) variables_[id] = kUnreachable;
    for (bool changed = true; changed;) {
      changed = false;
      memo_.clear();
      auto improve = [&](uint32_t& known, NodeId body) {
        if (uint32_t found = length(body); found < known) known = found, changed = true;
      };
      for (uint32_t k = 0; k < rules; ++k) improve(rules_[k], bytes_.with_arena([&](const Arena& arena) { return arena.rule(k); }));
      for (auto& [id, known] : variables_) improve(known, node(id).a);
    }
    memo_.clear();
    solved_ = true;
  }

  Node node(NodeId id) {
    return bytes_.with_arena([&](const Arena& arena) { return arena[id]; });
  }

  uint32_t length(NodeId id) {
    check_stack();
    if (auto it = memo_.find(id); it != memo_.end()) return it->second;
    uint32_t sum = 0;
    NodeId rest = id;
    for (Node at = node(rest); at.kind == Kind::Concat; rest = at.b, at = node(rest)) sum = plus(sum, length(at.a));
    sum = plus(sum, element(rest));
    memo_.emplace(id, sum);
    return sum;
  }
  uint32_t element(NodeId id) {
    const Node at = node(id);
    if (at.nullable) return 0;
    switch (at.kind) {
      case Kind::Empty: return kUnreachable;
      case Kind::Set: return 1;
      case Kind::Or: {
        uint32_t least = kUnreachable;
        for (NodeId member : bytes_.with_arena([&](const Arena& arena) { return std::vector<NodeId>(arena.list(id).begin(), arena.list(id).end()); })) {
          least = std::min(least, length(member));
        }
        return least;
      }
      case Kind::Repeat: {
        uint64_t total = uint64_t{length(at.a)} * at.low;
        return total >= kUnknown ? kUnreachable : static_cast<uint32_t>(total);
      }
      case Kind::Call: return rules_[at.a];
      case Kind::Var: return variables_[id];
      case Kind::Words: return bytes_.with_selections([&](const Selections& them) { return them.lexicon(at.a).nearest(at.b); });
      case Kind::Pick: {
        const uint32_t between = length(bytes_.with_selections([&](const Selections& them) { return them.selection(at.a).separator; }));
        uint64_t total = bytes_.with_selections([&](const Selections& them) { return them.length(at, between); });
        return total >= kUnknown ? kUnreachable : static_cast<uint32_t>(total);
      }
      default: return search(id);
    }
  }
  uint32_t search(NodeId id) {
    auto [known, fresh] = searched_.try_emplace(id, kUnreachable);
    if (!fresh) return known->second;
    std::vector<std::pair<State, uint32_t>> queue{{bytes_.intern(id), 0}};
    std::set<State> seen{kDead, queue[0].first};
    for (size_t i = 0; i < queue.size() && i < kMaxSearch; ++i) {
      auto [state, length] = queue[i];
      if (state != kDead && bytes_.accepting(state)) return searched_[id] = length;
      if (state == kDead) continue;
      const State* row = bytes_.row(state);
      for (uint32_t c = 0; c < bytes_.num_classes(); ++c) {
        if (seen.insert(row[c]).second) queue.emplace_back(row[c], length + 1);
      }
    }
    return kUnreachable;
  }

  ByteAutomaton& bytes_;
  bool solved_ = false;
  std::vector<uint32_t> rules_;
  std::map<NodeId, uint32_t> variables_;
  std::unordered_map<NodeId, uint32_t> memo_, searched_;
};

}  // namespace tokenfst
