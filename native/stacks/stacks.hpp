// The stacks of one sequence: a graph of hash-consed nodes with shared tails (a graph-structured stack, Tomita 1985).
//
// A node is a set of edges (frame, node below); BOTTOM is the empty stack. Equal sets are the same node, so pushing
// what was popped before creates nothing new: memory is proportional to the number of distinct stacks of a text, and
// not to its length. The stacks of a configuration are one number: nothing, a node, or a tuple of nodes.
//
// Invariant: nodes are closed under nullable frames. If a frame whose language has the empty word lies on a
// node (and is not chained to the frame below, see settle.hpp), the edges of that node are also edges of the new node.
// So the top edges alone determine what may come next.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "calls/budget.hpp"
#include "graph_searches/distances.hpp"
#include "support/bytes.hpp"

namespace tokenfst {

using StackId = uint32_t;
constexpr StackId kBottom = 0;

struct Edge {
  uint32_t frame;
  StackId below;
  auto operator<=>(const Edge&) const = default;
};

// A configuration of a push-down automaton: a state of the byte automaton, and its stacks.
struct Config {
  uint32_t state = 0;
  StackId stack = kBottom;
  auto operator<=>(const Config&) const = default;
};
// Whether it is the dead configuration (or state), from which nothing leads to acceptance.
inline bool is_dead(Config config) { return config.state == 0; }
inline bool is_dead(uint32_t state) { return state == 0; }

// Finds nodes by their hashes: open addressing over numbers of nodes, in 16 bits while that is enough. Slots are taken
// in the order of the nodes, and freed only in the reverse order.
class NodeIndex {
 public:
  NodeIndex() { clear(); }
  void clear() {
    wide_ = {};
    narrow_.assign(kSlots, kBottom);
  }
  size_t memory() const { return narrow_.capacity() * 2 + wide_.capacity() * 4; }

  // The node with this hash that `is` accepts, or kBottom.
  template <class Is>
  StackId find(uint64_t hash, Is&& is) const {
    for (size_t slot = first(hash);; slot = after(slot)) {
      StackId id = at(slot);
      if (id == kBottom || is(id)) return id;
    }
  }
  // Adds the newest node. When the table grows, by half, `hash_of` is called for all nodes; at most seven of eight
  // slots are taken.
  template <class HashOf>
  void add(StackId id, HashOf&& hash_of) {
    if (size_t{id} * 8 <= slots() * 7 && (wide_.size() || id <= UINT16_MAX)) return place(hash_of(id), id);
    size_t grown = slots() + slots() / 2;
    narrow_ = {};
    wide_ = {};
    if (id < UINT16_MAX) narrow_.assign(grown, kBottom);
    else wide_.assign(grown, kBottom);
    for (StackId each = 1; each <= id; ++each) place(hash_of(each), each);
  }
  // Removes the newest node.
  void remove(StackId id, uint64_t hash) {
    size_t slot = first(hash);
    while (at(slot) != id) slot = after(slot);
    set(slot, kBottom);
  }

 private:
  static constexpr size_t kSlots = 16;

  size_t slots() const { return wide_.empty() ? narrow_.size() : wide_.size(); }
  size_t first(uint64_t hash) const { return (hash >> 32) * slots() >> 32; }
  size_t after(size_t slot) const { return slot + 1 == slots() ? 0 : slot + 1; }
  StackId at(size_t slot) const { return wide_.empty() ? narrow_[slot] : wide_[slot]; }
  void set(size_t slot, StackId id) {
    if (wide_.empty()) narrow_[slot] = static_cast<uint16_t>(id);
    else wide_[slot] = id;
  }
  void place(uint64_t hash, StackId id) {
    size_t slot = first(hash);
    while (at(slot) != kBottom) slot = after(slot);
    set(slot, id);
  }

  std::vector<uint16_t> narrow_;
  std::vector<uint32_t> wide_;
};

// Functions that create or visit nodes raise BudgetExceeded (see limit()). One thread at a time uses it.
class Stacks {
 public:
  Stacks() { clear(); }

  std::vector<StackId> known;  // the nodes that the last look-up of a decision tree knows, by address (decision_tree.hpp)

  // Sets the budget: the seconds of a call, and the bytes of all stacks. The edges that one step visits may grow with the
  // square of the text's length, so every loop over edges counts them with spend(), which reads the clock once for kEach edges.
  void limit(const Budget& budget) { seconds_ = budget.seconds, bytes_ = budget.bytes; }
  void spend(size_t edges) {
    if ((spent_ += edges) >= kEach) look();
  }

  // The node with `frame` on top of `below`.
  StackId push(uint32_t frame, StackId below) { return single(frame, below); }
  // The node with these edges, which may be in any order.
  StackId node(std::vector<Edge>& edges) {
    make_distinct(edges);
    return edges.size() == 1 ? single(edges[0].frame, edges[0].below) : list(kMany, edges);
  }
  // The number for several stacks; for one stack its node, for none BOTTOM.
  StackId tuple(std::span<const StackId> parts) {
    if (parts.size() <= 1) return parts.empty() ? kBottom : parts[0];
    std::vector<Edge> members;
    for (StackId part : parts) members.push_back({part, 0});
    return list(kTuple, members);
  }

  // The edges of a node. The span is valid until a node is created.
  std::span<const Edge> edges(StackId id) const {
    if (nodes_[id].frame != kMany) return {&nodes_[id], id == kBottom ? size_t{0} : size_t{1}};
    return members(id);
  }
  // Appends edges. Duplicates are merged before more room is allocated, so there are never many more than distinct
  // ones.
  void append(std::vector<Edge>& all, std::span<const Edge> more) {
    spend(more.size());
    if (all.size() + more.size() > all.capacity()) {
      make_distinct(all);
      all.reserve(std::max({all.capacity(), 2 * all.size(), all.size() + more.size()}));
    }
    all.insert(all.end(), more.begin(), more.end());
  }
  // The same stacks with one edge for each frame: the nodes below are united. (A frame on the empty stack stays an edge
  // of its own.) This is one step of the subset construction, and cached; nodes that are not inspected stay as they were
  // created. O(edges of the nodes below) the first time.
  StackId grouped(StackId id) {
    if (nodes_[id].frame != kMany) return id;
    const uint32_t list = nodes_[id].below;
    if (list_at_[list].grouped != kBottom) return list_at_[list].grouped;
    const std::vector<Edge> before(edges(id).begin(), edges(id).end());
    std::vector<Edge> after, below;
    group(before, after, [&](std::span<const Edge> same) {
      below.clear();
      for (const Edge& edge : same) append(below, edges(edge.below));
      return node(below);
    });
    const StackId made = after.size() == before.size() ? id : node(after);
    return list_at_[list].grouped = made;
  }
  // Merges edges with equal frames, if something lies below each of them, into one edge on `unite` of them.
  template <class Unite>
  static void group(std::span<const Edge> edges, std::vector<Edge>& out, Unite&& unite) {
    for (size_t from = 0, to; from < edges.size(); from = to) {
      to = from + 1;
      while (edges[from].below != kBottom && to < edges.size() && edges[to].frame == edges[from].frame) ++to;
      out.push_back(to == from + 1 ? edges[from] : Edge{edges[from].frame, unite(edges.subspan(from, to - from))});
    }
  }
  // The node of stack `index` of a configuration.
  StackId member(StackId id, uint32_t index) const {
    return nodes_[id].frame == kTuple ? lists_[list_at_[nodes_[id].below].first + index].frame : id;
  }

  size_t size() const { return nodes_.size(); }
  size_t memory() const {
    size_t sums = 0;
    for (const std::vector<uint32_t>& each : least_) sums += each.capacity() * sizeof(uint32_t);
    return nodes_.capacity() * sizeof(Edge) + index_.memory() + lists_.capacity() * sizeof(Edge) + list_at_.capacity() * sizeof(List) +
           sums;
  }

  void clear() {
    nodes_.assign(1, {kNoFrame, kBottom});
    index_.clear();
    lists_.clear();
    list_at_.clear();
    for (std::vector<uint32_t>& sums : least_) sums.clear();
  }
  // Removes the nodes created since there were `size` of them, the newest first, so that no older node was placed
  // after a removed one.
  void shrink(size_t size) {
    while (nodes_.size() > size) {
      StackId id = static_cast<StackId>(nodes_.size() - 1);
      index_.remove(id, hash_of(id));
      if (nodes_.back().frame >= kTuple) {
        lists_.resize(list_at_.back().first);
        list_at_.pop_back();
      }
      nodes_.pop_back();
    }
    for (std::vector<uint32_t>& sums : least_) {
      if (sums.size() > size) sums.resize(size);
    }
    for (List& list : list_at_) {
      if (list.grouped >= size) list.grouped = kBottom;
    }
  }

  // The least sum of `cost(frame)` over all paths down to the bottom; cached for each kind, so a kind must always have the
  // same costs. O(nodes without a sum yet, and their edges).
  enum class Sum { Tokens, Bytes, Needed, Reserve };
  template <class Cost>
  uint32_t least(StackId id, Sum kind, Cost&& cost) {
    return fold(id, kind, UINT32_MAX,
                [&](uint32_t sum, const Edge& edge, uint32_t below) { return std::min(sum, plus(below, cost(edge.frame))); });
  }
  // The greatest value, over all paths down and all frames on them, of `most(frame)` plus the least sum of `cost` below the
  // frame. Cached as Sum::Reserve and Sum::Needed.
  template <class Cost, class Most>
  uint32_t reserve(StackId id, Cost&& cost, Most&& most) {
    least(id, Sum::Needed, cost);
    return fold(id, Sum::Reserve, 0, [&](uint32_t sum, const Edge& edge, uint32_t below) {
      return std::max({sum, below, plus(least_[static_cast<size_t>(Sum::Needed)][edge.below], most(edge.frame))});
    });
  }
  // The cached sum; kUnsummed: it has not been computed.
  uint32_t known_sum(StackId id, Sum kind) const {
    const std::vector<uint32_t>& sums = least_[static_cast<size_t>(kind)];
    return id == kBottom ? 0 : id < sums.size() ? sums[id] : kUnsummed;
  }
  static constexpr uint32_t kUnsummed = UINT32_MAX - 1;

 private:
  static constexpr uint32_t kNoFrame = UINT32_MAX - 2, kTuple = UINT32_MAX - 1, kMany = UINT32_MAX;

  // Computes for each node a sum over its edges, `sum = add(sum, edge, sum of the node below)`, from the bottom up,
  // once.
  template <class Add>
  uint32_t fold(StackId id, Sum kind, uint32_t none, Add&& add) {
    std::vector<uint32_t>& sums = least_[static_cast<size_t>(kind)];
    sums.resize(nodes_.size(), kUnsummed);
    sums[kBottom] = 0;
    std::vector<StackId> pending{id};
    while (!pending.empty()) {
      StackId top = pending.back();
      if (sums[top] == kUnsummed) {
        uint32_t sum = none;
        bool ready = true;
        spend(edges(top).size());
        for (const Edge& edge : edges(top)) {
          if (sums[edge.below] == kUnsummed) {
            pending.push_back(edge.below);
            ready = false;
          } else if (ready) {
            sum = add(sum, edge, sums[edge.below]);
          }
        }
        if (!ready) continue;
        sums[top] = sum;
      }
      pending.pop_back();
    }
    return sums[id];
  }

  [[gnu::noinline]] void look() {
    spent_ = 0;
    if (Deadline(seconds_).expired()) throw BudgetExceeded("seconds", seconds_, "a walk over stacks");
  }
  void make_distinct(std::vector<Edge>& edges) {
    if (edges.size() < 2) return;
    spend(edges.size());
    std::ranges::sort(edges);
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  }

  StackId single(uint32_t frame, StackId below) {
    const Edge node{frame, below};
    const StackId found = index_.find(hash_of(node), [&](StackId id) { return nodes_[id] == node; });
    if (found != kBottom) return found;
    make_room(0);
    return add(node);
  }
  StackId list(uint32_t kind, const std::vector<Edge>& edges) {
    const StackId found =
        index_.find(hash_of(kind, edges), [&](StackId id) { return nodes_[id].frame == kind && std::ranges::equal(members(id), edges); });
    if (found != kBottom) return found;
    make_room(edges.size());
    list_at_.push_back({static_cast<uint32_t>(lists_.size()), static_cast<uint32_t>(edges.size())});
    lists_.insert(lists_.end(), edges.begin(), edges.end());
    return add({kind, static_cast<uint32_t>(list_at_.size() - 1)});
  }
  std::span<const Edge> members(StackId id) const {
    const List& list = list_at_[nodes_[id].below];
    return {lists_.data() + list.first, list.count};
  }
  static uint64_t hash_of(uint32_t kind, std::span<const Edge> edges) {
    uint64_t hash = mix(2, kind);
    for (const Edge& edge : edges) hash = mix(mix(hash, edge.frame), edge.below);
    return hash;
  }
  static uint64_t hash_of(const Edge& single) { return mix(mix(1, single.frame), single.below); }
  uint64_t hash_of(StackId id) const {
    const Edge& node = nodes_[id];
    return node.frame >= kTuple ? hash_of(node.frame, members(id)) : hash_of(node);
  }
  // Called before a node with that many edges is created: if it raises, nothing has changed.
  void make_room(size_t edges) const {
    if (nodes_.size() >= kMaxNodes) throw BudgetExceeded("stacks", static_cast<double>(kMaxNodes), "one sequence of tokens");
    size_t more = nodes_.size() == nodes_.capacity() ? nodes_.capacity() : 0;  // a full table will be doubled
    if (lists_.size() + edges > lists_.capacity()) more += std::max(lists_.capacity(), edges);
    if (more && memory() + more * sizeof(Edge) > bytes_)
      throw BudgetExceeded("bytes", static_cast<double>(bytes_), "the stacks of one sequence of tokens");
  }
  StackId add(Edge node) {
    nodes_.push_back(node);
    StackId id = static_cast<StackId>(nodes_.size() - 1);
    index_.add(id, [this](StackId each) { return hash_of(each); });
    return id;
  }

  static constexpr size_t kMaxNodes = 1 << 26, kEach = 4096;
  std::vector<Edge> nodes_;  // a single edge; or kMany or kTuple, and the number of a list
  NodeIndex index_;
  std::vector<Edge> lists_;
  struct List {
    uint32_t first, count;
    StackId grouped = kBottom;  // the node of grouped(); kBottom: not computed
  };
  std::vector<List> list_at_;
  std::array<std::vector<uint32_t>, 4> least_;  // for each Sum
  double seconds_ = std::numeric_limits<double>::infinity();
  uint64_t bytes_ = UINT64_MAX;
  size_t spent_ = 0;
};

// Removes the nodes that are created in its scope.
struct StacksTrial {
  explicit StacksTrial(Stacks& stacks) : stacks_(stacks), before_(stacks.size()) {}
  ~StacksTrial() { stacks_.shrink(before_); }

 private:
  Stacks& stacks_;
  size_t before_;
};

}  // namespace tokenfst
