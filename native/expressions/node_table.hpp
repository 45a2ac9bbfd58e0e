// A table of nodes in which equal ones are the same number: what the arena builds its normal forms on.
//
// Lists of operands stand in one pool, so a node is a few words. A node's number never changes. Cost: a hash and a look-up
// for each node that is asked for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "calls/budget.hpp"
#include "support/hash_index.hpp"
#include "expressions/node.hpp"

namespace tokenfst {

class NodeTable {
 public:
  const Node& operator[](NodeId id) const { return nodes_[id]; }
  size_t size() const { return nodes_.size(); }
  size_t memory_of_nodes() const { return nodes_.capacity() * sizeof(Node) + index_.memory() + pool_.capacity() * 4; }
  std::span<const uint32_t> list(NodeId id) const { return {pool_.data() + nodes_[id].a, nodes_[id].b}; }

  // Called now and then while expressions are made, and with so many bytes before a table takes them: throws where a budget is
  // used up.
  void watch(std::function<void(size_t)> check) { check_ = std::move(check); }
  void tick() {
    if (++ticks_ % 256 == 0) about_to_take(0);
  }
  // Makes room at once for so many nodes in all, which are likely to come: tables that double copy what they have.
  void expect(size_t count) {
    const size_t more = count > nodes_.capacity() ? (count - nodes_.capacity()) * sizeof(Node) : 0;
    about_to_take(more + index_.room_for(count));
    nodes_.reserve(count);
    index_.expect(count);
  }
  void about_to_take(size_t bytes) const {
    if (check_) check_(bytes);
  }

 protected:
  // Interns a node whose list was just appended to the pool, and takes the list back if the node existed.
  NodeId intern_pooled(const Node& node) {
    size_t before = nodes_.size();
    NodeId id = intern(node);
    if (nodes_.size() == before) pool_.resize(node.a);
    return id;
  }

  bool is_list(Kind kind) const { return kind == Kind::Or || kind == Kind::And || kind == Kind::Scoped; }
  uint64_t hash_of(const Node& node) const {
    uint64_t hash = mix(0, static_cast<uint64_t>(node.kind));
    if (is_list(node.kind)) {
      for (uint32_t i = 0; i < node.b; ++i) hash = mix(hash, pool_[node.a + i]);
      return hash;
    }
    hash = mix(hash, uint64_t{node.a} << 32 | node.b);
    return mix(hash, uint64_t{node.low} << 32 | node.high);
  }
  bool same(const Node& x, const Node& y) const {
    if (x.kind != y.kind || x.b != y.b) return false;
    if (is_list(x.kind)) return std::equal(pool_.begin() + x.a, pool_.begin() + x.a + x.b, pool_.begin() + y.a);
    return x.a == y.a && x.low == y.low && x.high == y.high;
  }
  NodeId append(const Node& node) { return append(node, static_cast<uint32_t>(hash_of(node))); }
  NodeId append(const Node& node, uint32_t hash) {
    tick();
    if (const size_t bytes = growth(nodes_, 1) + (index_.is_full() ? index_.memory() : 0)) about_to_take(bytes);
    nodes_.push_back(node);
    const NodeId id = static_cast<NodeId>(nodes_.size() - 1);
    index_.add(hash, id);
    return id;
  }
  NodeId intern(const Node& node) {
    const uint32_t hash = static_cast<uint32_t>(hash_of(node));
    const NodeId known = index_.find(hash, [&](NodeId id) { return same(nodes_[id], node); });
    return known == kNone ? append(node, hash) : known;
  }

  ReusedVector<Node> nodes_;
  HashIndex index_;
  ReusedVector<uint32_t> pool_;

 private:
  uint32_t ticks_ = 0;
  std::function<void(size_t)> check_;
};

}  // namespace tokenfst
