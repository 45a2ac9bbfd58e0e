// Hash-consed extended regular expressions: equal expressions have the same number.
//
// Constructors normalize (Owens, Reppy, Turon, "Regular-expression derivatives re-examined", JFP 2009): unions and
// intersections are flat, sorted, and without duplicate or absorbed members; concatenations nest to the right; the
// members of a union share a common head, and counters over one body are joined if their ranges touch. Normal forms
// keep the number of distinct derivatives finite and close to minimal; exactness depends on none of these rules.
//
// A node knows whether it is nullable, and whether it is `certain`: certain nodes other than kEmpty denote a non-empty
// language by construction; the others (with intersection, complement, look-behind, recursion) need a search. An
// endless language without finitely many finite ones (names that are not in a list, for example) is certain, and
// endless. Cost: a hash look-up for each node that is constructed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "support/bytes.hpp"
#include "support/pair_cache.hpp"
#include "expressions/machine.hpp"
#include "expressions/node_table.hpp"

namespace tokenfst {

class Arena : public NodeTable {
 public:
  Arena() {
    store_.nodes.reserve(16);
    intern({Kind::Empty, false, true, 0, 0, 0, 0, 0, 0});
    intern({Kind::Epsilon, true, true, 0, 0, 0, 0, 0, 0});
    uint32_t any = set_number(ByteSet::all());
    append({Kind::Repeat, true, true, kHasLoop | kEndless, 1, 3, 0, 0, kUnbounded});  // kUniverse; its body is node 3
    intern({Kind::Set, false, true, 0, 0, any, 0, 0, 0});
  }

  // Another arena over the same nodes, for another thread, which lives as long as `other` does. The program has been read.
  Arena(Arena& other, std::nullptr_t)
      : NodeTable(other, nullptr), everything_(other.everything_), token_in_rules_(other.token_in_rules_), machines_(other.machines_),
        rules_(other.rules_) {}

  size_t memory() const { return memory_of_store() + memory_beside_store(); }
  size_t memory_beside_store() const { return nested_.memory(); }
  const ByteSet& set(NodeId id) const { return sets_[nodes_[id].a]; }
  const Machine& machine(NodeId id) const { return *machines_[nodes_[id].a]; }
  std::span<const ByteSet> sets() const { return store_.sets.all(); }
  const std::vector<std::shared_ptr<const Machine>>& machines() const { return machines_; }

  NodeId bytes(const ByteSet& set) {
    if (set.empty()) return kEmpty;
    return intern({Kind::Set, false, true, set.has_symbols() ? kHasToken : uint16_t{0}, 0, set_number(set), 0, 0, 0});
  }
  // The set of one byte; words are made of these.
  NodeId letter(uint8_t byte) {
    if (!letters_) letters_ = std::make_unique<std::array<NodeId, 256>>();
    NodeId& known = (*letters_)[byte];
    if (known == kEmpty) known = bytes(ByteSet::single(byte));
    return known;
  }
  // Declares, before any node is created, that the alphabet has symbols beside bytes, and whether rules may contain
  // tokens.
  void widen(uint32_t symbols, bool tokens_in_rules) {
    if (symbols > 0) {
      store_.clear_sets();
      set_number(everything_ = ByteSet::all(symbols));
    }
    if (tokens_in_rules) token_in_rules_ = kHasToken;
  }
  const ByteSet& everything() const { return everything_; }
  // One token whose bytes are a word of `text`, from one token boundary to the next: Token; if the first boundary is
  // here, Begun; if some bytes were read since, Inside.
  NodeId token(NodeId text, Kind place = Kind::Token) {
    if (text == kEmpty || (text == kEpsilon && place != Kind::Inside)) return kEmpty;
    const Node& node = nodes_[text];
    const uint16_t traits = static_cast<uint16_t>((node.traits & ~kEndless) | kHasToken);
    return intern({place, false, node.certain, traits, deeper(node.depth), text, 0, 0, 0});
  }
  // The words of `text` whose bytes belong to at most `left` tokens: Few; FewInside if the current token has such a
  // byte (few_tokens.hpp).
  NodeId few_tokens(NodeId text, uint32_t left, Kind place = Kind::Few) {
    if (text == kEmpty || text == kEpsilon) return text;
    const Node& node = nodes_[text];
    if (left == 0) return node.nullable ? kEpsilon : kEmpty;
    const uint16_t traits = static_cast<uint16_t>((node.traits & ~kEndless) | kHasToken);
    return intern({place, node.nullable, node.certain, traits, deeper(node.depth), text, 0, left, 0});
  }
  uint32_t add_machine(std::shared_ptr<const Machine> machine) {
    machines_.push_back(std::move(machine));
    return static_cast<uint32_t>(machines_.size() - 1);
  }
  NodeId state_of(uint32_t machine, uint32_t state) {
    if (state == 0) return kEmpty;
    return intern({Kind::Machine, machines_[machine]->accepting[state] != 0, true, machines_[machine]->loops ? kHasLoop : uint16_t{0}, 0,
                   machine, state, 0, 0});
  }

  NodeId concat(NodeId a, NodeId b) {
    if (a == kEmpty || b == kEmpty) return kEmpty;
    if (b == kEpsilon) return a;
    if (nodes_[a].kind != Kind::Concat) return a == kEpsilon ? b : pair(a, b);
    // Nest to the right, without recursion, down to an end that was put before b already: lists that follow each other
    // share their ends.
    const size_t base = spine_.size();
    NodeId result = kNone;
    for (; nodes_[a].kind == Kind::Concat; a = nodes_[a].b) {
      result = nested_.find(a, b);
      if (result != kNone) break;
      spine_.push_back(a);
    }
    if (const size_t slots = nested_.wanted(spine_.size() - base, size())) {
      about_to_take(PairCache::bytes(slots));
      nested_.make(slots);
    }
    if (result == kNone) result = a == kEpsilon ? b : pair(a, b);
    for (; spine_.size() > base; spine_.pop_back()) {
      const NodeId list = spine_.back();
      result = pair(nodes_[list].a, result);
      nested_.set(list, b, result);
    }
    return result;
  }

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
  NodeId either(NodeId a, NodeId b) {
    if (a == b || b == kEmpty) return a;
    if (a == kEmpty) return b;
    NodeId parts[] = {a, b};
    return any_of(parts);
  }

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
    return args.size() == 1 ? args[0] : intern_list(Kind::And, args, true);
  }

  // To be called when a program has been read, and nothing else has been done: gives back what only reading needs.
  void trim() {
    trim_store();
    nested_.clear();
    letters_.reset();
  }

  // Declares that the node created last has a word, so that no search is needed.
  void assure(NodeId id) { nodes_[id].certain = true; }

  NodeId negate(NodeId a) {
    if (nodes_[a].kind == Kind::Not) return nodes_[a].a;
    if (a == kEmpty) return kUniverse;
    if (a == kUniverse) return kEmpty;
    const Node& node = nodes_[a];
    const bool finite = node.traits == 0;
    const uint16_t traits = (node.traits & ~kEndless) | kHasLoop | (finite ? kEndless : 0);
    return intern({Kind::Not, !node.nullable, finite, traits, deeper(node.depth), a, 0, 0, 0});
  }

  NodeId repeat(NodeId a, uint32_t low, uint32_t high) {
    if (high == 0 || a == kEpsilon) return kEpsilon;
    if (a == kEmpty) return low == 0 ? kEpsilon : kEmpty;
    if (surely_nullable(a)) low = 0;
    if (low == 1 && high == 1) return a;
    if (const Node inner = nodes_[a]; inner.kind == Kind::Repeat && inner.low <= 1) {
      // (x{p,q}){m,n} = x{pm,qn} for p <= 1: the ranges of successive counts touch.
      bool bounded = inner.high != kUnbounded && high != kUnbounded;
      uint64_t top = bounded ? uint64_t{inner.high} * high : kUnbounded;
      if (!bounded || top < kUnbounded) return repeat(inner.a, inner.low * low, static_cast<uint32_t>(top));
    }
    const Node& node = nodes_[a];
    uint16_t traits = node.traits;
    if (high == kUnbounded) traits |= kHasLoop | (node.certain && !node.nullable ? kEndless : 0);
    return intern({Kind::Repeat, low == 0, node.certain || low == 0, traits, deeper(node.depth), a, 0, low, high});
  }

  NodeId new_variable() {
    return append({Kind::Var, false, false, static_cast<uint16_t>(kHasVar | kHasLoop | token_in_rules_ | (rules_.empty() ? 0 : kHasCall)),
                   0, kNone, static_cast<uint32_t>(size()), 0, 0});
  }

  // Gives a variable its body, and updates the nodes that use it: a least fixed point, starting from "not nullable".
  // Operands have smaller numbers than their users, so one pass settles everything except variables. A variable below a
  // complement is always closed there, and was settled by its own definition. O(nodes) for each pass, and few passes.
  void define(NodeId variable, NodeId body) {
    nodes_[variable].a = body;
    for (bool changed = true; changed;) {
      changed = false;
      for (NodeId id = 0; id < size(); ++id) {
        if (id % 64 == 0) tick();
        Node& node = nodes_[id];
        if (!node.has(kHasVar)) continue;
        bool nullable = node.nullable, behind = node.has(kHasBehind);
        auto part = [&](NodeId arg) -> const Node& { return nodes_[arg]; };
        auto members = is_list(node.kind) ? list(id) : std::span<const uint32_t>{};
        switch (node.kind) {
          case Kind::Var:
            if (node.a == kNone) break;  // not defined yet
            nullable = part(node.a).nullable;
            behind = part(node.a).has(kHasBehind);
            break;
          case Kind::Concat:
            nullable = part(node.a).nullable && part(node.b).nullable;
            behind = part(node.a).has(kHasBehind) || part(node.b).has(kHasBehind);
            break;
          case Kind::Or:
          case Kind::And:
            nullable = node.kind == Kind::And ? std::ranges::all_of(members, [&](NodeId arg) { return part(arg).nullable; })
                                              : std::ranges::any_of(members, [&](NodeId arg) { return part(arg).nullable; });
            behind = std::ranges::any_of(members, [&](NodeId arg) { return part(arg).has(kHasBehind); });
            break;
          case Kind::Not:
            nullable = !part(node.a).nullable;
            behind = part(node.a).has(kHasBehind);
            break;
          case Kind::Repeat:
            nullable = node.low == 0 || part(node.a).nullable;
            behind = part(node.a).has(kHasBehind);
            break;
          default: break;
        }
        changed |= nullable != node.nullable || behind != node.has(kHasBehind);
        node.nullable = nullable;
        node.traits = static_cast<uint16_t>(behind ? node.traits | kHasBehind : node.traits & ~kHasBehind);
      }
    }
  }

  // Push-down automata: see stacks/settle.hpp.

  // Rule `k` may be called from now on; define_rule() sets its body later.
  void declare_rule(bool nullable) { rules_.push_back({kEmpty, nullable}); }
  void define_rule(uint32_t rule, NodeId body) { rules_[rule].body = body; }
  bool has_rules() const { return !rules_.empty(); }
  size_t num_rules() const { return rules_.size(); }
  NodeId rule(uint32_t rule) const { return rules_[rule].body; }

  NodeId call(uint32_t rule) {
    return intern(
        {Kind::Call, rules_[rule].nullable, true, static_cast<uint16_t>(kHasCall | kHasLoop | token_in_rules_), 0, rule, 0, 0, 0});
  }
  // The border after the body of a called rule.
  NodeId returning() { return intern({Kind::Return, true, true, kHasMark, 0, 0, 0, 0, 0}); }
  // The empty word, at the end of what is left of rule `k`: used to print stacks.
  NodeId label(uint32_t rule) { return intern({Kind::Label, true, true, 0, 0, rule, 0, 0, 0}); }
  // Adds a node of a kind that has its own file: selections.hpp, unordered.hpp.
  NodeId node(const Node& made) { return intern(made); }
  // The content of stack `index`. An Open hole follows a nullable frame, and need not be inspected before a byte was
  // read, because other members of the union begin with its content.
  NodeId hole(uint32_t index, bool open = false) {
    return intern({open ? Kind::Open : Kind::Hole, false, true, kHasMark | kHasLoop, 0, index, 0, 0, 0});
  }

  NodeId behind(NodeId past) { return intern({Kind::Behind, false, false, kHasBehind, deeper(nodes_[past].depth), past, 0, 0, 0}); }
  // A scoped expression: `inner`, followed by pairs (past expression of a Behind inside, what is left of it here).
  NodeId scoped(std::span<const uint32_t> parts, bool nullable) {
    return NodeTable::intern_list({Kind::Scoped, nullable, false, static_cast<uint16_t>(nodes_[parts[0]].traits & ~(kHasBehind | kEndless)),
                                   deeper(nodes_[parts[0]].depth), 0, 0, 0, 0},
                                  parts);
  }

 private:
  static constexpr uint16_t kMaxDepth = 2000;
  struct NestingGuard {
    explicit NestingGuard(Arena& arena) : arena_(arena) {
      check_stack();
      if (arena_.nesting_ >= kMaxDepth) throw BudgetExceeded("levels of nesting", kMaxDepth, "");
      ++arena_.nesting_;
    }
    ~NestingGuard() {
      if (--arena_.nesting_ == 0) arena_.unions_.clear();
    }
    Arena& arena_;
  };
  uint16_t deeper(uint16_t depth) const {
    if (depth >= kMaxDepth) throw BudgetExceeded("levels of nesting", kMaxDepth, "");
    return static_cast<uint16_t>(depth + 1);
  }

  // Whether it is nullable in every context: no look-behind and no mark is involved.
  bool surely_nullable(NodeId id) const { return nodes_[id].nullable && !nodes_[id].has(kHasBehind | kMarkAhead); }

  static void sort_unique(std::vector<NodeId>& args) {
    std::sort(args.begin(), args.end());
    args.erase(std::unique(args.begin(), args.end()), args.end());
  }

  NodeId pair(NodeId a, NodeId b) {
    const Node &x = nodes_[a], &y = nodes_[b];
    if (x.kind == Kind::Repeat && x.low == 0 && x.high == kUnbounded && (b == a || (y.kind == Kind::Concat && y.a == a))) return b;
    if (x.kind == Kind::Return) {
      // With two borders in a row, the upper frame has nothing left to do, so one border is enough.
      Kind next = y.kind == Kind::Concat ? nodes_[y.a].kind : y.kind;
      if (next == Kind::Return || next == Kind::Hole || next == Kind::Open) return b;
    }
    const bool certain = x.certain && y.certain;
    const uint16_t traits = (x.traits | (x.nullable ? y.traits : y.traits & ~kMarkAhead)) & (certain ? 0xffff : ~kEndless);
    return intern({Kind::Concat, x.nullable && y.nullable, certain, traits, std::max(deeper(x.depth), y.depth), a, b, 0, 0});
  }

  // The union of at least two flat, sorted, distinct members.
  NodeId normal_union(std::vector<NodeId> args) {
    join_heads(args);
    absorb(args, Kind::And);
    if (args.size() > 1 && args[0] == kEpsilon) {
      if (std::any_of(args.begin() + 1, args.end(), [&](NodeId arg) { return surely_nullable(arg); })) args.erase(args.begin());
    }
    if (args.size() <= 1) return args.empty() ? kEmpty : args[0];
    return intern_list(Kind::Or, args, false);
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

  NodeId intern_list(Kind kind, const std::vector<NodeId>& args, bool conjunction) {
    Node node{kind, conjunction, false, 0, 0, 0, 0, 0, 0};
    size_t others = 0, endless = 0;  // members that are not all but finitely many words
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
    return NodeTable::intern_list(node, args);
  }

  std::vector<uint32_t> spine_;
  PairCache nested_;  // lists and what was put behind them: the concatenations
  uint32_t nesting_ = 0;
  std::map<std::vector<NodeId>, NodeId> unions_;  // made within the outermost call: tails are shared, so the same unions occur again
  ByteSet everything_ = ByteSet::all();
  uint16_t token_in_rules_ = 0;
  std::unique_ptr<std::array<NodeId, 256>> letters_;  // kEmpty: not asked for yet
  std::vector<std::shared_ptr<const Machine>> machines_;
  struct Rule {
    NodeId body;
    bool nullable;
  };
  std::vector<Rule> rules_;
};

}  // namespace tokenfst
