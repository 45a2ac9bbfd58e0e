// Concatenations and repetitions of expressions in normal form, and the sets of bytes that they are made of.
//
// Concatenations nest to the right, and counters over one body are joined (Owens, Reppy, Turon, "Regular-expression
// derivatives re-examined", JFP 2009). Cost: `concat` walks the first concatenation once, and caches the results for its tails.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "support/bytes.hpp"
#include "containers/pair_cache.hpp"
#include "expressions/node_table.hpp"

namespace tokenfst {

class Concatenations : public NodeTable {
 public:
  // The set of a Set node; and all sets of the arena.
  const ByteSet& set(NodeId id) const { return sets_[nodes_[id].a]; }
  std::span<const ByteSet> sets() const { return store_.sets.all(); }

  // One byte or symbol of a set.
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

  // The concatenation.
  NodeId concat(NodeId a, NodeId b) {
    if (a == kEmpty || b == kEmpty) return kEmpty;
    if (b == kEpsilon) return a;
    if (nodes_[a].kind != Kind::Concat) return a == kEpsilon ? b : pair(a, b);
    // Nest to the right, without recursion, down to a tail whose concatenation with b is cached: similar concatenations share
    // their tails.
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

  // `low` to `high` words of `a`, one after the other; kUnbounded: without an upper bound.
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

 protected:
  static constexpr uint16_t kMaxDepth = 2000;

  Concatenations() = default;
  // Another table of the same nodes, for another thread.
  Concatenations(NodeTable& other, std::nullptr_t) : NodeTable(other, nullptr) {}

  uint16_t deeper(uint16_t depth) const {
    if (depth >= kMaxDepth) throw BudgetExceeded("levels of nesting", kMaxDepth, "");
    return static_cast<uint16_t>(depth + 1);
  }

  // Whether an expression is nullable in every context: no look-behind and no mark is involved.
  bool surely_nullable(NodeId id) const { return nodes_[id].nullable && !nodes_[id].has(kHasBehind | kMarkAhead); }
  size_t memory_of_concatenations() const { return nested_.memory(); }
  // Gives back what only reading a program needs.
  void forget_concatenations() {
    nested_.clear();
    letters_.reset();
  }

  std::vector<uint32_t> spine_;  // a stack of the parts to be nested; each call leaves it as it was

 private:
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

  PairCache nested_;  // a concatenation and what follows it -> the whole
  std::unique_ptr<std::array<NodeId, 256>> letters_;  // kEmpty: not asked for yet
};

}  // namespace tokenfst
