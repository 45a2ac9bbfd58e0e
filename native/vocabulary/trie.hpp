// A prefix trie of byte strings in preorder, and the walk of an automaton over it that all other code uses.
//
// Strings are sorted bytewise, so a subtree is a contiguous range of nodes and of strings. A node holds its byte, its
// depth, the index after its subtree (to skip it) and the first of its strings; the strings that end in node i are
// order[nodes[i].first .. nodes[i + 1].first). Equal strings share a node. Memory: 16 bytes for each node, 17 for its
// entry among its parent's children, which lie next to each other, and 4 for each string. Most steps of a walk are dead and
// read only a child's byte. A live step finds in the child's entry everything that the walk needs of the node; without
// entries it would read three places in memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "byte_automata/rows.hpp"

namespace tokenfst {

struct TrieNode {
  uint32_t end;    // index after this node's subtree
  uint32_t first;  // first string that ends here or below
  uint32_t child;  // index of its first child among the children of all nodes
  uint16_t depth;
  uint8_t byte;
};

// A node as an entry among its parent's children.
struct TrieChild {
  uint32_t node;
  uint32_t child;         // index of its own first child among the children of all nodes
  uint32_t string;        // the first string that ends here; 0 if there is none
  uint16_t children = 0;  // the number of its own children
  uint8_t strings = 0;    // how many strings end here; at most 255
  uint8_t by_letters = 0;  // how many nodes can be reached from here by the letters a to z alone; at most 255
};

class Trie {
 public:
  // The tables of a trie. The last node is a sentinel after all others.
  struct Tables {
    std::span<const TrieNode> nodes;
    std::span<const TrieChild> children;  // the children of each node, ascending by byte
    std::span<const uint32_t> order;      // the strings, sorted
    std::span<const uint8_t> child_bytes;
  };

  Trie() = default;
  Trie(Trie&&) = default;
  Trie& operator=(Trie&&) = default;
  // Builds the trie of strings[k] for each k in `order`. O(total length), plus the time for sorting.
  template <class Strings>
  Trie(const Strings& strings, std::vector<uint32_t> order) {
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return std::string_view(strings[a]) < std::string_view(strings[b]); });
    std::vector<TrieNode> nodes{{0, 0, 0, 0, 0}};
    std::vector<uint32_t> path{0};
    std::string_view previous;
    for (uint32_t k = 0; k < order.size(); ++k) {
      std::string_view text = strings[order[k]];
      size_t common =
          std::mismatch(text.begin(), text.begin() + std::min(text.size(), previous.size()), previous.begin()).first - text.begin();
      for (size_t d = path.size(); d-- > common + 1;) nodes[path[d]].end = static_cast<uint32_t>(nodes.size());
      path.resize(common + 1);
      for (size_t d = common; d < text.size(); ++d) {
        path.push_back(static_cast<uint32_t>(nodes.size()));
        nodes.push_back({0, k, 0, static_cast<uint16_t>(d + 1), static_cast<uint8_t>(text[d])});
      }
      max_depth_ = std::max(max_depth_, text.size());
      previous = text;
    }
    for (uint32_t index : path) nodes[index].end = static_cast<uint32_t>(nodes.size());
    finish(std::move(nodes), std::move(order));
  }
  // Builds a trie of nodes in preorder and the strings that end in them; computes the end of each node.
  Trie(std::vector<TrieNode> nodes, std::vector<uint32_t> order);
  // A trie over tables that lie elsewhere, for example in a mapped file, as tables() returned them; they must outlive it.
  // None if they are not the tables of a trie of all `strings` that are not empty; everything is compared. O(total length);
  // nothing is copied.
  template <class Strings>
  static std::optional<Trie> over(const Tables& tables, const Strings& strings) {
    Trie made;
    made.tables_ = tables;
    if (!made.holds(strings)) return std::nullopt;
    made.letters_of_root_ = made.by_letters(0);
    return made;
  }
  const Tables& tables() const { return tables_; }

  size_t num_nodes() const { return tables_.nodes.size() - 1; }
  size_t max_depth() const { return max_depth_; }
  // The bytes of its own tables; tables that lie elsewhere are not counted.
  size_t memory() const {
    return nodes_.capacity() * sizeof(TrieNode) + order_.capacity() * 4 + children_.capacity() * sizeof(TrieChild) +
           child_bytes_.capacity();
  }
  const TrieNode& node(uint32_t index) const { return tables_.nodes[index]; }
  // The number of nodes below a node.
  uint32_t below(uint32_t index) const { return tables_.nodes[index].end - index - 1; }
  uint32_t string_at(uint32_t position) const { return tables_.order[position]; }
  const uint32_t* strings() const { return tables_.order.data(); }

  // Calls f(string) for each string that ends in a node.
  template <class F>
  void each_string(uint32_t index, F&& f) const {
    for (uint32_t k = tables_.nodes[index].first; k < tables_.nodes[index + 1].first; ++k) f(tables_.order[k]);
  }
  template <class F>
  void each_string(const TrieChild& at, F&& f) const {
    if (at.strings == 1) f(at.string);
    else if (at.strings > 1) each_string(at.node, f);
  }

  std::span<const TrieChild> children(uint32_t index) const {
    return {tables_.children.data() + tables_.nodes[index].child, tables_.children.data() + tables_.nodes[index + 1].child};
  }
  // The bytes of a node's children, ascending.
  std::span<const uint8_t> child_bytes(uint32_t index) const {
    return {tables_.child_bytes.data() + tables_.nodes[index].child, tables_.child_bytes.data() + tables_.nodes[index + 1].child};
  }

  // Runs `automaton` from `start` over all strings at once. Calls enter(node, state) for each node that is reached in a
  // live state, parents first (not for the root), and leave(node) for each node whose step is dead. `stack[d]` is the
  // state at depth d on the current path. With `top`, the walk begins at that node and visits only the strings below
  // it. O(nodes reached). Faster than walk_few() if most nodes are reached, because they lie in order.
  template <class Automaton, class Position, class Enter, class Leave>
  void walk(Automaton& automaton, Position start, std::vector<Position>& stack, Enter&& enter, Leave&& leave, uint32_t top = 0) const {
    walk(automaton, start, stack, enter, leave, top, [](uint32_t, const Position&) { return false; }, [](uint32_t, const Position&) {});
  }

  // The same, except where `stays(node, state)` is true: then all strings below the node are read in that state, and
  // whole(node, state) is called instead of visiting them.
  template <class Automaton, class Position, class Enter, class Leave, class Stays, class Whole>
  void walk(Automaton& automaton, Position start, std::vector<Position>& stack, Enter&& enter, Leave&& leave, uint32_t top, Stays&& stays,
            Whole&& whole) const {
    if (stack.size() < max_depth_ + 1) stack.resize(max_depth_ + 1);
    stack[tables_.nodes[top].depth] = start;
    const uint32_t after = tables_.nodes[top].end;
    const uint8_t* classes = automaton.classes();
    std::vector<Steps<Automaton, Position>> steps(max_depth_ + 1);
    for (uint32_t i = top + 1; i < after;) {
      const TrieNode& node = tables_.nodes[i];
      const bool last = node.end == i + 1;
      Position state = steps[node.depth - 1].next(automaton, stack[node.depth - 1], classes[node.byte], last);
      if (is_dead(state)) {
        leave(i);
        i = node.end;
        continue;
      }
      if (!last) steps[node.depth] = {};
      stack[node.depth] = state;
      enter(i, state);
      if (node.end - i > kWorthAsking && stays(i, state)) {
        whole(i, state);
        i = node.end;
        continue;
      }
      ++i;
    }
  }

  // The same walk for the case that few nodes are reached; enter() gets each as a TrieChild. Dead steps read only lists of
  // children. It stops early and returns false after `limit` nodes, or if the letters a to z alone lead to more nodes than
  // that, as inside a string.
  template <class Automaton, class Position, class Enter>
  bool walk_few(Automaton& automaton, Position start, std::vector<Position>& stack, Enter&& enter, uint32_t limit = UINT32_MAX,
                uint32_t top = 0) const {
    if (stack.size() < max_depth_ + 1) stack.resize(max_depth_ + 1);
    const uint32_t first_depth = tables_.nodes[top].depth;
    uint32_t depth = first_depth, at = tables_.nodes[top].child, end = tables_.nodes[top + 1].child;
    stack[depth] = start;
    const uint8_t* classes = automaton.classes();
    struct Open {
      uint32_t at, end;
      Steps<Automaton, Position> steps;
    };
    std::array<Open, 256> few;  // for each depth, the children that are still to be visited
    std::vector<Open> many(max_depth_ < few.size() ? 0 : max_depth_ + 1);
    Open* const open = many.empty() ? few.data() : many.data();
    Steps<Automaton, Position> steps{};
    if ((top == 0 ? letters_of_root_ : by_letters(top)) > limit && stays_on_letters(automaton, start)) return false;
    for (;;) {
      if constexpr (requires { automaton.entries(start); }) {
        for (const uint32_t* const row = steps.from(automaton, stack[depth]);
             at != end && load_entry(row, classes[tables_.child_bytes[at]]) == kDead;)
          ++at;
      }
      if (at == end) {
        if (depth == first_depth) return true;
        at = open[--depth].at;
        end = open[depth].end;
        steps = open[depth].steps;
        continue;
      }
      const uint8_t byte_class = classes[tables_.child_bytes[at]];
      const TrieChild& node = tables_.children[at++];
      const bool last = node.children == 0;
      Position state = steps.next(automaton, stack[depth], byte_class, last);
      if (is_dead(state)) continue;
      if (limit-- == 0) return false;
      if (last) {
        enter(node, state);
        continue;
      }
      if (node.by_letters > limit && stays_on_letters(automaton, state)) return false;
      open[depth] = {at, end, steps};
      steps = {};
      stack[++depth] = state;
      enter(node, state);
      at = node.child;
      end = at + node.children;
    }
  }

 private:
  static constexpr uint32_t kWorthAsking = 1;  // nodes

  // Whether every letter from a to z leads back to the position.
  template <class Automaton, class Position>
  static bool stays_on_letters(Automaton& automaton, const Position& at) {
    if constexpr (requires { automaton.entries(at); }) {
      Steps<Automaton, Position> steps{};
      for (uint8_t letter = 'a'; letter <= 'z'; ++letter) {
        if (!(steps.next(automaton, at, automaton.classes()[letter], false) == at)) return false;
      }
      return true;
    } else {
      return false;
    }
  }

  // The steps from one position. If the automaton has rows, the row is looked up once, and dead steps are recognized in
  // it. `last`: no string continues after this byte, which some automata make use of.
  template <class Automaton, class Position>
  struct Steps {
    const uint32_t* row;
    const uint32_t* from(Automaton& automaton, const Position& position) {
      if (!row) row = automaton.entries(position);
      return row;
    }
    [[gnu::always_inline]] Position next(Automaton& automaton, const Position& from, uint8_t byte_class, bool last) {
      if constexpr (requires { automaton.entries(from); }) {
        const uint32_t* const entries = this->from(automaton, from);
        if constexpr (requires { automaton.last(from, entries, byte_class); }) {
          if (last) return automaton.last(from, entries, byte_class);
        }
        const uint32_t raw = automaton.entry(from, entries, byte_class);
        if constexpr (requires { automaton.arrive(from, raw); }) return raw == 0 ? Position{} : automaton.arrive(from, raw);
        else return raw;
      } else {
        return automaton.next(from, byte_class);
      }
    }
  };

  void finish(std::vector<TrieNode> nodes, std::vector<uint32_t> order) {
    nodes_ = std::move(nodes), order_ = std::move(order);
    nodes_.push_back({static_cast<uint32_t>(nodes_.size() + 1), static_cast<uint32_t>(order_.size()), 0, 0, 0});
    tables_.nodes = nodes_, tables_.order = order_;
    list_children();
  }
  void list_children();
  // The number of nodes that a to z alone lead to from a node, given the numbers of its children.
  uint8_t by_letters(uint32_t index) const;

  // Whether the tables are those of a trie of all strings that are not empty. Sets the greatest depth.
  template <class Strings>
  bool holds(const Strings& strings) {
    const auto [nodes, children, order, child_bytes] = tables_;
    if (nodes.size() < 2 || nodes.size() > UINT32_MAX || children.size() != nodes.size() - 2 || child_bytes.size() != children.size())
      return false;
    const uint32_t count = static_cast<uint32_t>(num_nodes());
    const TrieNode &root = nodes[0], &after = nodes[count];
    if (root.end != count || root.depth != 0 || root.first != 0 || root.child != 0 || after.end != count + 1 ||
        after.first != order.size() || after.child != children.size() || after.depth != 0 || after.byte != 0 || root.byte != 0)
      return false;
    for (uint32_t index = 0; index < count; ++index) {
      const TrieNode &node = nodes[index], &next = nodes[index + 1];
      if (node.end <= index || node.end > count || next.first < node.first || next.child < node.child) return false;
    }
    std::string path;  // the string of the current node
    for (uint32_t index = 0; index < count; ++index) {
      const TrieNode &node = nodes[index], &next = nodes[index + 1];
      path.resize(index == 0 ? 0 : node.depth - 1);
      if (index > 0) path += static_cast<char>(node.byte);
      max_depth_ = std::max<size_t>(max_depth_, node.depth);
      for (uint32_t k = node.first; k < next.first; ++k) {
        if (order[k] >= strings.size() || std::string_view(strings[order[k]]) != path || path.empty()) return false;
        if (k > node.first && order[k] <= order[k - 1]) return false;
      }
      uint32_t child = index + 1;  // children follow each other up to the end of the node
      for (uint32_t k = node.child; k < next.child; ++k) {
        const TrieChild& at = children[k];
        if (at.node != child || child >= node.end || nodes[child].depth != node.depth + 1 || nodes[child].byte != child_bytes[k] ||
            (k > node.child && child_bytes[k] <= child_bytes[k - 1]) || at.child != nodes[child].child ||
            at.child + at.children != nodes[child + 1].child)
          return false;
        const uint32_t ends = nodes[child + 1].first - nodes[child].first;
        if (at.strings != std::min(ends, 255u) || at.string != (ends ? order[nodes[child].first] : 0)) return false;
        child = nodes[child].end;
      }
      if (child != node.end) return false;
    }
    for (uint32_t k = 0; k < children.size(); ++k) {
      if (children[k].by_letters != by_letters(children[k].node)) return false;
    }
    size_t spelled = 0;
    for (uint32_t string = 0; string < strings.size(); ++string) spelled += !std::string_view(strings[string]).empty();
    return spelled == order.size();
  }

  // The trie's own tables, unless the tables lie elsewhere.
  std::vector<uint32_t> order_;
  std::vector<TrieNode> nodes_;
  std::vector<TrieChild> children_;
  std::vector<uint8_t> child_bytes_;
  Tables tables_;
  size_t max_depth_ = 0;
  uint8_t letters_of_root_ = 0;
};

}  // namespace tokenfst
