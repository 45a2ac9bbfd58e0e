// A prefix trie of byte strings in preorder, and the one walk that everything runs over it.
//
// Strings are sorted bytewise, so a subtree is a contiguous range of nodes and of strings. A node holds its byte, its
// depth, the index behind its subtree (to skip it) and the first of its strings; the strings that end in node i are
// order[nodes[i].first .. nodes[i + 1].first). Duplicate strings share a node. 12 bytes a node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

namespace tokenfst {

struct TrieNode {
  uint32_t end;    // index behind this node's subtree
  uint32_t first;  // first string that ends here or below
  uint16_t depth;
  uint8_t byte;
};

class Trie {
 public:
  // Builds the trie of strings[k] for the k in `order`, which is sorted here. O(total length).
  template <class Strings>
  Trie(const Strings& strings, std::vector<uint32_t> order) : order_(std::move(order)) {
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t a, uint32_t b) { return std::string_view(strings[a]) < std::string_view(strings[b]); });
    nodes_.push_back({0, 0, 0, 0});
    std::vector<uint32_t> path{0};
    std::string_view previous;
    for (uint32_t k = 0; k < order_.size(); ++k) {
      std::string_view text = strings[order_[k]];
      size_t common = std::mismatch(text.begin(), text.begin() + std::min(text.size(), previous.size()), previous.begin()).first - text.begin();
      for (size_t d = path.size(); d-- > common + 1;) nodes_[path[d]].end = static_cast<uint32_t>(nodes_.size());
      path.resize(common + 1);
      for (size_t d = common; d < text.size(); ++d) {
        path.push_back(static_cast<uint32_t>(nodes_.size()));
        nodes_.push_back({0, k, static_cast<uint16_t>(d + 1), static_cast<uint8_t>(text[d])});
      }
      max_depth_ = std::max(max_depth_, text.size());
      previous = text;
    }
    for (uint32_t index : path) nodes_[index].end = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({static_cast<uint32_t>(nodes_.size() + 1), static_cast<uint32_t>(order_.size()), 0, 0});
  }

  size_t num_nodes() const { return nodes_.size() - 1; }
  size_t max_depth() const { return max_depth_; }
  size_t memory() const { return nodes_.capacity() * sizeof(TrieNode) + order_.capacity() * 4; }
  const TrieNode& node(uint32_t index) const { return nodes_[index]; }
  // How many nodes there are below one.
  uint32_t below(uint32_t index) const { return nodes_[index].end - index - 1; }
  uint32_t string_at(uint32_t position) const { return order_[position]; }
  const uint32_t* strings() const { return order_.data(); }

  // Runs `automaton` from `start` over every string at once. Calls enter(node, state) for each node reached in a live
  // state, parents first (the root is not entered), and leave(node) for each node whose step is dead; `stack[d]` is
  // the state at depth d on the current path. With `top`, only over the strings below that node, from behind it. Stops
  // early, returning false, after `limit` nodes. O(nodes reached).
  template <class Automaton, class Position, class Enter, class Leave>
  bool walk(Automaton& automaton, Position start, std::vector<Position>& stack, Enter&& enter, Leave&& leave,
            uint32_t limit = UINT32_MAX, uint32_t top = 0) const {
    if (stack.size() < max_depth_ + 1) stack.resize(max_depth_ + 1);
    stack[nodes_[top].depth] = start;
    const uint32_t behind = nodes_[top].end;
    const uint8_t* classes = automaton.classes();
    for (uint32_t i = top + 1; i < behind;) {
      const TrieNode& node = nodes_[i];
      Position state = automaton.next(stack[node.depth - 1], classes[node.byte]);
      if (is_dead(state)) {
        leave(i);
        i = node.end;
        continue;
      }
      if (limit-- == 0) return false;
      stack[node.depth] = state;
      enter(i, state);
      ++i;
    }
    return true;
  }

 private:
  std::vector<uint32_t> order_;
  std::vector<TrieNode> nodes_;
  size_t max_depth_ = 0;
};

}  // namespace tokenfst
