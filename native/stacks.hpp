// The stacks of one sequence: a graph of hash-consed nodes with shared tails (a graph-structured stack: Tomita 1985).
//
// A node is a set of edges (frame, node below); BOTTOM is the empty stack. Equal sets are the same node, so pushing what
// was popped before makes nothing new: memory follows the distinct stacks that a text went through, and not its
// length. A configuration's stacks are one number: nothing, a node, or a tuple of nodes.
//
// Invariant: nodes are closed under frames that may be left out. Where a frame that has the empty word lies on a node
// (and is not chained to the frame below, see settle.hpp), the edges of that node are edges of the new one too. So the
// top edges alone say what may come next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "budget.hpp"
#include "bytes.hpp"
#include "distances.hpp"

namespace tokenfst {

using StackId = uint32_t;
constexpr StackId kBottom = 0;

struct Edge {
  uint32_t frame;
  StackId below;
  auto operator<=>(const Edge&) const = default;
};

// A configuration of a push-down automaton: a state of the byte automaton, and what its stacks hold.
struct Config {
  uint32_t state = 0;
  StackId stack = kBottom;
  auto operator<=>(const Config&) const = default;
};
inline bool is_dead(Config config) { return config.state == 0; }
inline bool is_dead(uint32_t state) { return state == 0; }

class Stacks {
 public:
  Stacks() { clear(); }

  std::vector<StackId> known;  // scratch of look-ups (see ask_tree.hpp)

  // The node with `frame` on top of `below`.
  StackId push(uint32_t frame, StackId below) { return single(frame, below); }
  // The node with these edges, in any order.
  StackId node(std::vector<Edge>& edges) {
    std::ranges::sort(edges);
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    return edges.size() == 1 ? single(edges[0].frame, edges[0].below) : list(kMany, edges);
  }
  StackId tuple(std::span<const StackId> parts) {
    if (parts.size() <= 1) return parts.empty() ? kBottom : parts[0];
    std::vector<Edge> members;
    for (StackId part : parts) members.push_back({part, 0});
    return list(kTuple, members);
  }

  // Spans are valid until something is made.
  std::span<const Edge> edges(StackId id) const {
    if (nodes_[id].frame != kMany) return {&nodes_[id], id == kBottom ? size_t{0} : size_t{1}};
    return {lists_.data() + list_at_[nodes_[id].below].first, list_at_[nodes_[id].below].second};
  }
  // The node of a configuration's stack `index`.
  StackId member(StackId id, uint32_t index) const {
    return nodes_[id].frame == kTuple ? lists_[list_at_[nodes_[id].below].first + index].frame : id;
  }

  size_t size() const { return nodes_.size(); }
  size_t memory() const {
    return nodes_.capacity() * sizeof(Edge) + index_.capacity() * 4 + lists_.capacity() * sizeof(Edge) + list_at_.capacity() * 8 +
           least_.capacity() * 4;
  }

  void clear() {
    nodes_.assign(1, {kNoFrame, kBottom});
    index_.assign(16, kBottom);
    lists_.clear();
    list_at_.clear();
    least_.clear();
  }
  // Forgets the nodes made since there were `size` of them. Newest first: then no older one was placed behind it.
  void shrink(size_t size) {
    while (nodes_.size() > size) {
      StackId id = static_cast<StackId>(nodes_.size() - 1);
      size_t slot = hash_of(id) & (index_.size() - 1);
      while (index_[slot] != id) slot = (slot + 1) & (index_.size() - 1);
      index_[slot] = kBottom;
      if (nodes_.back().frame >= kTuple) {
        lists_.resize(list_at_.back().first);
        list_at_.pop_back();
      }
      nodes_.pop_back();
    }
    if (least_.size() > size) least_.resize(size);
  }

  // The sum of `cost(frame)` down to the bottom, least over all ways; kept. O(nodes not summed yet).
  template <class Cost>
  uint32_t least(StackId id, Cost&& cost) {
    least_.resize(nodes_.size(), kUnsummed);
    least_[kBottom] = 0;
    std::vector<StackId> pending{id};
    while (!pending.empty()) {
      StackId top = pending.back();
      if (least_[top] == kUnsummed) {
        uint32_t sum = UINT32_MAX;
        bool ready = true;
        for (const Edge& edge : edges(top)) {
          if (least_[edge.below] == kUnsummed) {
            pending.push_back(edge.below);
            ready = false;
          } else if (ready) {
            sum = std::min(sum, plus(least_[edge.below], cost(edge.frame)));
          }
        }
        if (!ready) continue;
        least_[top] = sum;
      }
      pending.pop_back();
    }
    return least_[id];
  }

 private:
  static constexpr uint32_t kNoFrame = UINT32_MAX - 2, kTuple = UINT32_MAX - 1, kMany = UINT32_MAX, kUnsummed = UINT32_MAX - 1;

  StackId single(uint32_t frame, StackId below) {
    uint64_t hash = mix(mix(1, frame), below);
    for (size_t slot = hash & (index_.size() - 1); index_[slot] != kBottom; slot = (slot + 1) & (index_.size() - 1)) {
      if (nodes_[index_[slot]] == Edge{frame, below}) return index_[slot];
    }
    return add({frame, below}, hash);
  }
  StackId list(uint32_t kind, const std::vector<Edge>& edges) {
    uint64_t hash = hash_of(kind, edges);
    for (size_t slot = hash & (index_.size() - 1); index_[slot] != kBottom; slot = (slot + 1) & (index_.size() - 1)) {
      if (nodes_[index_[slot]].frame == kind && std::ranges::equal(members(index_[slot]), edges)) return index_[slot];
    }
    list_at_.emplace_back(static_cast<uint32_t>(lists_.size()), static_cast<uint32_t>(edges.size()));
    lists_.insert(lists_.end(), edges.begin(), edges.end());
    return add({kind, static_cast<uint32_t>(list_at_.size() - 1)}, hash);
  }
  std::span<const Edge> members(StackId id) const {
    auto [first, count] = list_at_[nodes_[id].below];
    return {lists_.data() + first, count};
  }
  static uint64_t hash_of(uint32_t kind, std::span<const Edge> edges) {
    uint64_t hash = mix(2, kind);
    for (const Edge& edge : edges) hash = mix(mix(hash, edge.frame), edge.below);
    return hash;
  }
  uint64_t hash_of(StackId id) const {
    const Edge& node = nodes_[id];
    return node.frame >= kTuple ? hash_of(node.frame, members(id)) : mix(mix(1, node.frame), node.below);
  }
  StackId add(Edge node, uint64_t hash) {
    if (nodes_.size() >= kMaxNodes) throw BudgetExceeded("bytes", static_cast<double>(kMaxNodes * sizeof(Edge)), "the stacks of one sequence");
    nodes_.push_back(node);
    StackId id = static_cast<StackId>(nodes_.size() - 1);
    if (nodes_.size() * 4 > index_.size() * 3) {
      rehash(index_.size() * 2);
    } else {
      place(hash, id);
    }
    return id;
  }
  void place(uint64_t hash, StackId id) {
    size_t slot = hash & (index_.size() - 1);
    while (index_[slot] != kBottom) slot = (slot + 1) & (index_.size() - 1);
    index_[slot] = id;
  }
  void rehash(size_t slots) {
    index_.assign(slots, kBottom);
    for (StackId id = 1; id < nodes_.size(); ++id) place(hash_of(id), id);
  }

  static constexpr size_t kMaxNodes = 1 << 26;
  std::vector<Edge> nodes_;  // a single edge; or kMany or kTuple, and which list
  std::vector<uint32_t> index_;
  std::vector<Edge> lists_;
  std::vector<std::pair<uint32_t, uint32_t>> list_at_;  // first edge and how many
  std::vector<uint32_t> least_;
};

}  // namespace tokenfst
