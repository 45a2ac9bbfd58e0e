// A table of nodes in which equal nodes have the same number; the arena builds its normal forms on it.
//
// Lists of operands lie in one array, so a node has a fixed size. A node's number never changes. Cost: a hash and a look-up for each
// node that is requested. Several tables may use one store of nodes (node_store.hpp). Then one thread at a time uses each table, and a
// table's view of the store's arrays is renewed with each addition, and by renew() when a thread begins to use it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "calls/budget.hpp"
#include "expressions/node_store.hpp"

namespace tokenfst {

class NodeTable {
 public:
  NodeTable(const NodeTable&) = delete;
  NodeTable& operator=(const NodeTable&) = delete;

  const Node& operator[](NodeId id) const { return nodes_[id]; }
  size_t size() const { return store_.nodes.size(); }
  // All nodes so far, also those of other threads; renews the view.
  std::span<const Node> all() {
    const size_t count = size();
    renew();
    return {nodes_, count};
  }
  size_t memory_of_store() const { return store_.memory(); }
  // The operands of a node that has a list: Or, And, Scoped.
  std::span<const uint32_t> list(NodeId id) const { return {lists_ + nodes_[id].a, nodes_[id].b}; }

  // From now on other tables of the same nodes may be created. Called while nobody else uses this one.
  void share() { store_.share(); }
  // A thread that begins to use a table of a shared store calls this first.
  void renew() {
    nodes_ = store_.nodes.data();
    lists_ = store_.lists.data();
    sets_ = store_.sets.data();
  }

  // Sets a check that is called regularly while nodes are created, with the bytes that a table is about to allocate; it
  // throws if a budget is exhausted.
  void watch(std::function<void(size_t)> check) { check_ = std::move(check); }
  // Counts a step of a computation, and checks the budget at each 256th.
  void tick() {
    if (++ticks_ % 256 == 0) about_to_take(0);
  }
  // Makes room for `count` nodes in all, if so many are likely. Growing by doubling would copy the tables.
  void expect(size_t count) {
    const size_t more = count > size() ? store_.nodes.growth(count - size()) : 0;
    about_to_take(more + store_.nodes_by_hash.room_for(count));
    store_.nodes.reserve(count);
    store_.nodes_by_hash.expect(count);
    renew();
  }
  // Frees the room that is not used after a program has been read. Called while nobody else uses this table.
  void trim_store() {
    store_.trim();
    renew();
  }
  // Calls f while no other table of the same store adds anything; f must not add nodes, and must not raise.
  template <class F>
  decltype(auto) exclusively(F&& f) {
    if (!store_.is_shared()) return f();
    const NodeStore::Exclusive exclusive(store_);
    return f();
  }
  // Checks the budget before so many bytes are allocated.
  void about_to_take(size_t bytes) const {
    if (check_) check_(bytes);
  }

 protected:
  NodeTable() : own_(std::make_unique<NodeStore>()), store_(*own_) {}
  // Another table of the same nodes; `other` must outlive it.
  explicit NodeTable(NodeTable& other, std::nullptr_t) : store_(other.store_) { renew(); }

  bool is_list(Kind kind) const { return kind == Kind::Or || kind == Kind::And || kind == Kind::Scoped; }
  // The hash of a node that has no list.
  static uint64_t hash_of(const Node& node) {
    uint64_t hash = mix(0, static_cast<uint64_t>(node.kind));
    hash = mix(hash, uint64_t{node.a} << 32 | node.b);
    return mix(hash, uint64_t{node.low} << 32 | node.high);
  }
  NodeId append(const Node& node) { return append(node, static_cast<uint32_t>(hash_of(node))); }
  NodeId intern(const Node& node) {
    const auto hash = static_cast<uint32_t>(hash_of(node));
    const auto is_it = [&](NodeId id) {
      const Node& known = store_.nodes.data()[id];
      return known.kind == node.kind && known.b == node.b && known.a == node.a && known.low == node.low && known.high == node.high;
    };
    if (store_.is_shared()) return intern_shared(node, {}, hash, is_it);
    const NodeId known = store_.nodes_by_hash.find(hash, is_it);
    return known == kNone ? append(node, hash) : known;
  }
  // The same for a node with a list; sets the place and the length of the list in the node.
  NodeId intern_list(Node node, std::span<const uint32_t> list) {
    uint64_t mixed = mix(0, static_cast<uint64_t>(node.kind));
    for (const uint32_t each : list) mixed = mix(mixed, each);
    const auto hash = static_cast<uint32_t>(mixed);
    node.b = static_cast<uint32_t>(list.size());
    const auto is_it = [&](NodeId id) {
      const Node& known = store_.nodes.data()[id];
      return known.kind == node.kind && known.b == node.b && std::equal(list.begin(), list.end(), store_.lists.data() + known.a);
    };
    if (store_.is_shared()) return intern_shared(node, list, hash, is_it);
    if (const NodeId known = store_.nodes_by_hash.find(hash, is_it); known != kNone) return known;
    if (const size_t bytes = store_.lists.growth(list.size())) about_to_take(bytes);
    node.a = static_cast<uint32_t>(store_.lists.size());
    store_.lists.append(list);
    lists_ = store_.lists.data();
    return append(node, hash);
  }
  uint32_t set_number(const ByteSet& set) {
    if (!store_.is_shared()) {
      const uint32_t number = store_.add_set(set);
      sets_ = store_.sets.data();
      return number;
    }
    uint32_t number = store_.known_set(set);
    if (number == HashIndex::kNothing) {
      const NodeStore::Exclusive exclusive(store_);
      number = store_.add_set(set);
      store_.measure();
    }
    renew();
    return number;
  }

  std::unique_ptr<NodeStore> own_;  // null where another table has it
  NodeStore& store_;
  // This table's view of the store: at least the nodes that its thread has seen.
  Node* nodes_ = nullptr;
  const uint32_t* lists_ = nullptr;
  const ByteSet* sets_ = nullptr;

 private:
  NodeId append(const Node& node, uint32_t hash) {
    tick();
    if (const size_t bytes = growth()) about_to_take(bytes);
    return add(node, hash);
  }
  size_t growth() const { return store_.nodes.growth(1) + store_.nodes_by_hash.growth(); }
  NodeId add(const Node& node, uint32_t hash) {
    const auto id = static_cast<NodeId>(store_.nodes.size());
    store_.nodes.push_back(node);
    store_.nodes_by_hash.add(hash, id);
    nodes_ = store_.nodes.data();
    return id;
  }
  // A node that is there already is found without the lock. The budget is checked without it, too; then the node is looked up again,
  // since another thread may have added it meanwhile.
  template <class Is>
  [[gnu::noinline]] NodeId intern_shared(const Node& node, std::span<const uint32_t> list, uint32_t hash, Is&& is_it) {
    if (const NodeId known = store_.nodes_by_hash.find_known(hash, is_it); known != kNone) {
      renew();
      return known;
    }
    tick();
    Needed needed;
    if (const NodeId id = find_or_add(node, list, hash, is_it, &needed, nullptr); id != kNone) return id;
    about_to_take(needed.bytes);
    NodeStore::Larger larger = store_.larger(needed.wanted);
    return find_or_add(node, list, hash, is_it, nullptr, &larger);
  }
  struct Needed {
    NodeStore::Wanted wanted;
    size_t bytes = 0;
  };
  // The number of a node, which is added if it is new. If it is new, the tables must grow first and `needed` is given, it returns kNone
  // and sets `needed`. `larger`, if given: the larger tables to grow into.
  template <class Is>
  NodeId find_or_add(Node node, std::span<const uint32_t> list, uint32_t hash, Is& is_it, Needed* needed, NodeStore::Larger* larger) {
    const NodeStore::Exclusive exclusive(store_);
    NodeId id = store_.nodes_by_hash.find(hash, is_it);
    if (id == kNone) {
      const size_t bytes = growth() + store_.lists.growth(list.size());
      if (bytes != 0 && needed != nullptr) return *needed = {store_.wanted(list.size()), bytes}, kNone;
      if (larger != nullptr) store_.adopt(std::move(*larger));
      if (!list.empty()) {
        node.a = static_cast<uint32_t>(store_.lists.size());
        store_.lists.append(list);
      }
      id = add(node, hash);
      if (bytes != 0) store_.measure();
    }
    renew();
    return id;
  }

  uint32_t ticks_ = 0;
  std::function<void(size_t)> check_;
};

}  // namespace tokenfst
