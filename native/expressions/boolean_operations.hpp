// Unions, intersections and complements of expressions in normal form.
//
// Unions and intersections are flat, sorted, and without duplicate or absorbed members. The members of a union share a
// common head, and counters over one body are joined if their ranges touch. Intersections with recursion are in
// disjunctive form. Cost: sorting the members; a union whose members share heads costs another union for each.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "expressions/concatenations.hpp"

namespace tokenfst {

class BooleanOperations : public Concatenations {
 public:
  // The union of the parts.
  NodeId any_of(std::span<const NodeId> parts) {
    NestingGuard guard(*this);
    tick();
    std::vector<NodeId> args;
    args.reserve(parts.size());
    ByteSet set;
    for (NodeId part : parts) {
      if (nodes_[part].kind == Kind::Or) {
        for (NodeId arg : list(part)) nodes_[arg].kind == Kind::Set ? void(set = set | sets_[nodes_[arg].a]) : args.push_back(arg);
      } else if (nodes_[part].kind == Kind::Set) {
        set = set | sets_[nodes_[part].a];
      } else if (part != kEmpty) {
        args.push_back(part);
      }
    }
    if (!set.empty()) args.push_back(bytes(set));
    sort_unique(args);
    if (std::binary_search(args.begin(), args.end(), kUniverse)) return kUniverse;
    if (args.size() <= 1) return args.empty() ? kEmpty : args[0];
    if (nesting_ == 1) return normal_union(std::move(args));
    auto [made, fresh] = unions_.try_emplace(args, kEmpty);
    if (fresh) made->second = normal_union(std::move(args));
    return made->second;
  }
  // The union of two expressions.
  NodeId either(NodeId a, NodeId b) {
    if (a == b || b == kEmpty) return a;
    if (a == kEmpty) return b;
    NodeId parts[] = {a, b};
    return any_of(parts);
  }

  // The intersection of the parts; of none: kUniverse.
  NodeId all_of(std::span<const NodeId> parts) {
    NestingGuard guard(*this);
    tick();
    std::vector<NodeId> args;
    args.reserve(parts.size());
    for (NodeId part : parts) {
      if (nodes_[part].kind == Kind::And) {
        auto inner = list(part);
        args.insert(args.end(), inner.begin(), inner.end());
      } else if (part != kUniverse) {
        args.push_back(part);
      }
    }
    sort_unique(args);
    if (args.empty()) return kUniverse;
    if (args[0] == kEmpty) return kEmpty;
    if (args.size() == 1) return args[0];
    bool settled =
        std::none_of(args.begin(), args.end(), [&](NodeId arg) { return nodes_[arg].has(kHasBehind | kHasVar | kHasToken | kMarkAhead); });
    if (settled && args[0] == kEpsilon) {
      return std::all_of(args.begin(), args.end(), [&](NodeId arg) { return nodes_[arg].nullable; }) ? kEpsilon : kEmpty;
    }
    for (NodeId arg : args) {
      if (nodes_[arg].kind == Kind::Not && std::binary_search(args.begin(), args.end(), nodes_[arg].a)) return kEmpty;
    }
    // Recursion is kept in disjunctive form, because its unfoldings would otherwise nest without bound.
    for (size_t i = 0; i < args.size(); ++i) {
      if (nodes_[args[i]].kind == Kind::Or && nodes_[args[i]].has(kHasVar)) {
        std::vector<NodeId> branches(list(args[i]).begin(), list(args[i]).end());
        for (NodeId& branch : branches) {
          std::vector<NodeId> conjunct = args;
          conjunct[i] = branch;
          branch = all_of(conjunct);
        }
        return any_of(branches);
      }
    }
    absorb(args, Kind::Or);
    return args.size() == 1 ? args[0] : intern_members(Kind::And, args, true);
  }

  // The complement: all other words over bytes and symbols.
  NodeId negate(NodeId a) {
    if (nodes_[a].kind == Kind::Not) return nodes_[a].a;
    if (a == kEmpty) return kUniverse;
    if (a == kUniverse) return kEmpty;
    const Node& node = nodes_[a];
    const bool finite = node.traits == 0;
    const uint16_t traits = (node.traits & ~kEndless) | kHasLoop | (finite ? kEndless : 0);
    return intern({Kind::Not, !node.nullable, finite, traits, deeper(node.depth), a, 0, 0, 0});
  }

 protected:
  using Concatenations::Concatenations;

 private:
  struct NestingGuard {
    explicit NestingGuard(BooleanOperations& owner) : owner_(owner) {
      check_stack();
      if (owner_.nesting_ >= kMaxDepth) throw BudgetExceeded("levels of nesting", kMaxDepth, "");
      ++owner_.nesting_;
    }
    ~NestingGuard() {
      if (--owner_.nesting_ == 0) owner_.unions_.clear();
    }
    BooleanOperations& owner_;
  };

  static void sort_unique(std::vector<NodeId>& args) {
    std::sort(args.begin(), args.end());
    args.erase(std::unique(args.begin(), args.end()), args.end());
  }

  // The union of at least two flat, sorted, distinct members.
  NodeId normal_union(std::vector<NodeId> args) {
    join_heads(args);
    absorb(args, Kind::And);
    if (args.size() > 1 && args[0] == kEpsilon) {
      if (std::any_of(args.begin() + 1, args.end(), [&](NodeId arg) { return surely_nullable(arg); })) args.erase(args.begin());
    }
    if (args.size() <= 1) return args.empty() ? kEmpty : args[0];
    return intern_members(Kind::Or, args, false);
  }

  bool counts(NodeId head) const { return nodes_[head].kind == Kind::Repeat && nodes_[head].high != kUnbounded; }

  // x{i,j}·r | x{k,l}·r = x{i..l}·r if the ranges touch.
  void join_counters(std::vector<NodeId>& pairs) {
    auto tail_key = [&](NodeId id) {
      const Node& head = nodes_[nodes_[id].a];
      const bool counter = counts(nodes_[id].a);
      return std::tuple(counter ? head.a : kNone, counter ? nodes_[id].b : 0, counter ? head.low : 0, counter ? head.high : 0, id);
    };
    std::sort(pairs.begin(), pairs.end(), [&](NodeId x, NodeId y) { return tail_key(x) < tail_key(y); });
    std::vector<NodeId> joined;
    joined.reserve(pairs.size());
    for (NodeId id : pairs) {
      if (!joined.empty()) {
        const Node last = nodes_[joined.back()], now = nodes_[id];
        const Node x = nodes_[last.a], y = nodes_[now.a];
        bool counters = x.kind == Kind::Repeat && y.kind == Kind::Repeat && x.a == y.a && last.b == now.b && x.high != kUnbounded &&
                        y.high != kUnbounded;
        if (counters && uint64_t{y.low} <= uint64_t{x.high} + 1) {
          joined.back() = concat(repeat(x.a, std::min(x.low, y.low), std::max(x.high, y.high)), last.b);
          continue;
        }
      }
      joined.push_back(id);
    }
    pairs = std::move(joined);
  }

  // x·a | x·b = x·(a | b), after counters are joined.
  void join_heads(std::vector<NodeId>& args) {
    bool counters = false;
    size_t pairs = 0;
    std::array<NodeId, 16> heads{};  // of the first pairs
    for (NodeId arg : args) {
      if (nodes_[arg].kind != Kind::Concat) continue;
      counters |= counts(nodes_[arg].a);
      if (++pairs <= heads.size()) heads[pairs - 1] = nodes_[arg].a;
    }
    if (pairs < 2) return;
    if (!counters && pairs <= heads.size()) {  // most unions: no two have the same head
      const auto end = heads.begin() + pairs;
      std::sort(heads.begin(), end);
      if (std::adjacent_find(heads.begin(), end) == end) return;
    }
    std::vector<NodeId> joined, rest;
    joined.reserve(pairs);
    std::ranges::copy_if(args, std::back_inserter(joined), [&](NodeId arg) { return nodes_[arg].kind == Kind::Concat; });
    if (counters) join_counters(joined);
    auto head = [&](NodeId id) { return nodes_[id].a; };
    std::ranges::stable_sort(joined, {}, head);
    if (!counters && std::ranges::adjacent_find(joined, {}, head) == joined.end()) return;
    for (NodeId arg : args) {
      if (nodes_[arg].kind != Kind::Concat) rest.push_back(arg);
    }
    for (size_t i = 0; i < joined.size();) {
      NodeId shared_head = nodes_[joined[i]].a;
      size_t end = i + 1;
      while (end < joined.size() && nodes_[joined[end]].a == shared_head && nodes_[joined[end]].kind == Kind::Concat) ++end;
      if (end == i + 1 || nodes_[joined[i]].kind != Kind::Concat) {
        rest.push_back(joined[i]);
        end = i + 1;
      } else {
        std::vector<NodeId> tails(joined.data() + i, joined.data() + end);
        size_t base = spine_.size();
        while (std::all_of(tails.begin(), tails.end(),
                           [&](NodeId tail) { return nodes_[tail].kind == Kind::Concat && nodes_[tail].a == shared_head; })) {
          spine_.push_back(shared_head);
          for (NodeId& tail : tails) tail = nodes_[tail].b;
          shared_head = nodes_[tails[0]].kind == Kind::Concat ? nodes_[tails[0]].a : kNone;
        }
        NodeId shared = any_of(tails);
        while (spine_.size() > base) {
          shared = concat(spine_.back(), shared);
          spine_.pop_back();
        }
        rest.push_back(shared);
      }
      i = end;
    }
    args = std::move(rest);
    sort_unique(args);
  }

  // a | (a & b) = a, and a & (a | b) = a.
  void absorb(std::vector<NodeId>& args, Kind inner) {
    if (args.size() > 64 || std::ranges::none_of(args, [&](NodeId arg) { return nodes_[arg].kind == inner; })) return;
    const std::vector<NodeId> all = args;
    std::erase_if(args, [&](NodeId arg) {
      return nodes_[arg].kind == inner &&
             std::ranges::any_of(list(arg), [&](NodeId member) { return std::ranges::binary_search(all, member); });
    });
  }

  NodeId intern_members(Kind kind, const std::vector<NodeId>& args, bool conjunction) {
    Node node{kind, conjunction, false, 0, 0, 0, 0, 0, 0};
    size_t others = 0, endless = 0;  // members other than complements of finite languages, and how many of them are endless
    for (NodeId arg : args) {
      const Node& part = nodes_[arg];
      if (conjunction && !(part.kind == Kind::Not && nodes_[part.a].traits == 0)) ++others, endless += part.has(kEndless);
      node.nullable = conjunction ? node.nullable && part.nullable : node.nullable || part.nullable;
      node.certain |= !conjunction && part.certain;
      node.traits |= part.traits;
      node.depth = std::max(node.depth, deeper(part.depth));
    }
    if (conjunction) {
      node.certain = others == endless && others <= 1 && (node.traits & kHasToken) == 0;
      node.traits = (node.traits & ~kEndless) | (node.certain ? kEndless : 0);
    }
    return intern_list(node, args);
  }

  uint32_t nesting_ = 0;
  std::map<std::vector<NodeId>, NodeId> unions_;  // of the outermost call: tails are shared, so the same unions occur again
};

}  // namespace tokenfst
