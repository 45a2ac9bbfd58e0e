// The strings that were read, in a trie for each container. The node of the current string's prefix tells which known
// strings begin with it.
//
// A node is a prefix of a known string; 0 stands for all other prefixes. Its children are a linked list: most nodes have
// one. Invariants: nodes are only appended, at the fronts of these lists; changes of older nodes are in a log, so a
// checkpoint is two numbers, and restoring one takes as many steps as were made since. Cost: a letter visits the children of
// one node; 24 bytes for each byte of a new string after its longest known prefix: a node, and its entry in the log.
#pragma once

#include <cstdint>
#include <vector>

#include "support/bytes.hpp"

namespace tokenfst {

// The tries. A letter is one byte of a string's value in UTF-8.
class KnownStrings {
 public:
  struct Checkpoint {
    uint32_t nodes, log;
  };

  Checkpoint checkpoint() const { return {static_cast<uint32_t>(nodes_.size()), static_cast<uint32_t>(log_.size())}; }
  void restore(const Checkpoint& before) {
    for (; log_.size() > before.log; log_.pop_back()) {
      const Change& change = log_.back();
      if (change.node >= before.nodes) continue;
      nodes_[change.node].child = change.child;
      nodes_[change.node].ends = change.ends;
    }
    nodes_.resize(before.nodes);
  }
  size_t memory() const { return nodes_.capacity() * sizeof(Node) + log_.capacity() * sizeof(Change); }

  // The root of a new, empty trie.
  uint32_t begin_trie() {
    if (nodes_.empty()) nodes_.push_back({});
    nodes_.push_back({});
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  // The node of a prefix extended by a letter; 0: no known string begins so.
  uint32_t child(uint32_t node, uint8_t letter) const {
    uint32_t at = nodes_[node].child;
    while (at && nodes_[at].letter != letter) at = nodes_[at].next;
    return at;
  }
  // The same; the node is created if it does not exist.
  uint32_t add(uint32_t node, uint8_t letter) {
    if (const uint32_t known = child(node, letter)) return known;
    const uint32_t next = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({0, nodes_[node].child, letter, false});
    change(node).child = next;
    return next;
  }
  // Makes this prefix a known string.
  void end(uint32_t node) { change(node).ends = true; }

  // Whether this prefix is a known string.
  bool ends(uint32_t node) const { return nodes_[node].ends; }
  // Whether any known string begins so.
  bool any(uint32_t node) const { return nodes_[node].child || nodes_[node].ends; }
  // Calls f(letter) for each letter that known strings continue with.
  template <class F>
  void each_child(uint32_t node, F&& f) const {
    for (uint32_t at = nodes_[node].child; at; at = nodes_[at].next) f(nodes_[at].letter);
  }
  // Mixes the known strings of a trie into a hash.
  uint64_t hash(uint64_t hash, uint32_t root) const {
    std::vector<uint32_t> pending{root};
    while (!pending.empty()) {
      const Node& node = nodes_[pending.back()];
      pending.pop_back();
      hash = mix(hash, uint64_t{node.letter} << 2 | node.ends << 1 | (node.child != 0));
      for (uint32_t child = node.child; child; child = nodes_[child].next) pending.push_back(child);
    }
    return hash;
  }

 private:
  struct Node {
    uint32_t child = 0, next = 0;
    uint8_t letter = 0;
    bool ends = false;
  };
  struct Change {  // the former content of a node
    uint32_t node, child;
    bool ends;
  };

  Node& change(uint32_t node) {
    log_.push_back({node, nodes_[node].child, nodes_[node].ends});
    return nodes_[node];
  }

  std::vector<Node> nodes_;
  std::vector<Change> log_;
};

}  // namespace tokenfst
