// Decision trees over stacks: a cache of facts about configurations, whose keys contain only the inspected part of the
// stacks.
//
// A value belongs to a state and, if the walk that computed it inspected the stacks, to the answers that it received. An
// inner node asks for the edges of one stack node, given by its address (its index in the order in which nodes become
// known), and has a child for each answer. A walk from another configuration with the same state and the same answers would proceed
// in the same way, so the value holds for all such configurations, however much lies below. There are at most as many
// leaves as pairs of a state and a top of the stacks that some token inspects. A look-up costs one probe for each
// inspected node.
#pragma once

#include "containers/stable_lists.hpp"
#include "walks/walker.hpp"

namespace tokenfst {

class DecisionTree {
 public:
  DecisionTree() { asks_.grow(); }
  // The empty tree of an automaton with stacks; null for one without, which needs none.
  static std::unique_ptr<DecisionTree> of(const ByteAutomaton& bytes) {
    return bytes.is_pushdown() ? std::make_unique<DecisionTree>() : nullptr;
  }

  // The greatest number of questions on a path.
  uint32_t deepest() const { return deepest_; }
  size_t memory() const { return children_.memory() + asks_.size() * 4 + answers_.memory(); }

  static constexpr uint32_t kInner = 1u << 31;  // in a value: this is not a leaf; the other bits are the number of an inner node

  // Calls f(inner node, answer, value) for each child.
  template <class F>
  void for_each(F&& f) const {
    children_.for_each([&](uint64_t key, uint32_t value) { f(static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key), value); });
  }
  // One question on the path to a leaf: the address of a node, and its edges: pairs of a frame and the node below it (0:
  // nothing; else the address plus one of that node; new nodes have the next addresses). For kPattern: for
  // each stack, the address plus one of the first equal node, or 0.
  struct Step {
    uint32_t address;
    std::vector<uint32_t> shown;
  };
  // The children of each inner node, and the answers by number: made once, and used for several roots.
  struct Reader {
    std::unordered_map<uint32_t, std::vector<std::pair<uint32_t, uint32_t>>> children;
    std::vector<const std::vector<uint32_t>*> answers;
  };
  // Reads all children. O(children).
  Reader reader() {
    Reader made;
    for_each([&](uint32_t ask, uint32_t answer, uint32_t value) { made.children[ask].emplace_back(answer, value); });
    std::lock_guard lock(answers_mutex_);
    for (uint32_t number = 0; number < answers_.size(); ++number) made.answers.push_back(&answers_[number]);
    return made;
  }
  // Calls f(steps, leaf) for each leaf below `root`, for a state with `count` stacks.
  template <class F>
  void each_leaf(const Reader& reader, uint32_t root, uint32_t count, F&& f) const {
    struct Branch {
      uint32_t value, known;  // the value here, and the number of addresses
      std::vector<Step> steps;
    };
    for (std::vector<Branch> pending{{root, count, {}}}; !pending.empty();) {
      Branch at = std::move(pending.back());
      pending.pop_back();
      if (!(at.value & kInner)) {
        if (at.value) f(at.steps, at.value);
        continue;
      }
      const uint32_t ask = at.value & ~kInner, address = asks_[ask];
      const auto children = reader.children.find(ask);
      if (children == reader.children.end()) continue;
      for (auto [answer, value] : children->second) {
        Branch next{value, at.known, at.steps};
        if (answer & kMany) next.steps.push_back({address, *reader.answers[answer & ~kMany]});
        else next.steps.push_back({address, {answer >> 1, answer & 1 ? at.known + 1 : 0}});
        for (size_t k = 1; address != kPattern && k < next.steps.back().shown.size(); k += 2)
          next.known = std::max(next.known, next.steps.back().shown[k]);
        pending.push_back(std::move(next));
      }
    }
  }
  static constexpr uint32_t kPattern = UINT32_MAX;  // asks which stacks are equal

  // Adopts the trees of an artifact: the address that each inner node (from 1) asks for, and children.
  void adopt(std::span<const uint32_t> addresses) {
    for (uint32_t address : addresses) asks_[asks_.grow()] = address;
  }
  void adopt_child(uint32_t ask, uint32_t answer, uint32_t value) { children_.insert(uint64_t{ask} << 32 | answer, value); }

  // The leaf for a configuration of a state with the value `root`, or 0. Sets `stacks.known` to the inspected nodes, by
  // address. Takes no lock, except for answers that were never received before.
  uint32_t find(uint32_t root, Config config, uint32_t count, Stacks& stacks) {
    if (!(root & kInner) && count == 0) return root;
    begin(config, count, stacks);
    uint32_t value = root;
    while (value & kInner) {
      uint32_t ask = value & ~kInner;
      value = children_.find(uint64_t{ask} << 32 | answer(asks_[ask], stacks));
    }
    return value;
  }

  // The place of a new leaf: the value of the state, and the answer that leads to it.
  struct Place {
    uint32_t root;
    uint64_t from;  // 0: at the root
  };
  // Creates the place for a configuration, given the nodes that a walk inspected; sets `stacks.known` to the nodes on
  // the path. The place has no leaf yet, so find() returns 0. Under the owner's mutex; readers may continue meanwhile.
  Place make_place(uint32_t root, Config config, uint32_t count, Stacks& stacks, const InspectedNodes& asked) {
    begin(config, count, stacks);
    bool pattern = count > 1;
    std::vector<StackId> seen;
    uint64_t from = 0;  // the answer that leads to `value`; 0 at the root
    uint32_t value = root, depth = 0;
    for (;; ++depth) {
      if (!(value & kInner)) {
        auto next = std::ranges::find_if(asked.nodes, [&](StackId node) { return std::ranges::find(seen, node) == seen.end(); });
        if (!pattern && next == asked.nodes.end()) break;
        uint32_t ask = static_cast<uint32_t>(asks_.grow());
        asks_[ask] = pattern ? kPattern : number(*next, stacks);
        value = attach(root, from, ask | kInner);
      }
      uint32_t ask = value & ~kInner, address = asks_[ask];
      if (address == kPattern) pattern = false;
      else seen.push_back(stacks.known[address]);
      from = uint64_t{ask} << 32 | answer(address, stacks);
      value = children_.find(from);
    }
    deepest_ = std::max(deepest_, depth);
    return {root, from};
  }
  // Stores a leaf at a place. Returns the new value of the state. Under the owner's mutex.
  uint32_t keep(Place place, uint32_t leaf) {
    attach(place.root, place.from, leaf);
    return place.root;
  }

 private:
  static constexpr uint32_t kMany = 1u << 31;

  static void begin(Config config, uint32_t count, Stacks& stacks) {
    stacks.known.clear();
    for (uint32_t k = 0; k < count; ++k) stacks.known.push_back(stacks.member(config.stack, k));
  }
  uint32_t attach(uint32_t& root, uint64_t from, uint32_t value) {
    if (from) children_.insert(from, value);
    else root = value;
    return value;
  }
  static uint32_t number(StackId node, const Stacks& stacks) {
    return static_cast<uint32_t>(std::ranges::find(stacks.known, node) - stacks.known.begin());
  }

  // The answer of the node with this address. The nodes below it become known.
  uint32_t answer(uint32_t address, Stacks& stacks) {
    std::vector<uint32_t> key;
    auto describe = [&](StackId node) { key.push_back(node == kBottom ? 0 : number(node, stacks) + 1); };
    if (address == kPattern) {
      for (StackId node : stacks.known) describe(node);
    } else {
      auto edges = stacks.edges(stacks.grouped(stacks.known[address]));
      auto is_new = [&](StackId node) { return node != kBottom && std::ranges::find(stacks.known, node) == stacks.known.end(); };
      if (PushDown::is_single(edges) && (edges[0].below == kBottom || is_new(edges[0].below))) {
        if (edges[0].below != kBottom) stacks.known.push_back(edges[0].below);
        return PushDown::single_signature(edges[0]);
      }
      for (const Edge& edge : edges) {
        stacks.spend(1 + stacks.known.size() / 8);
        if (is_new(edge.below)) stacks.known.push_back(edge.below);
        key.push_back(edge.frame);
        describe(edge.below);
      }
    }
    if (const auto known = answers_.find(key)) return kMany | *known;
    std::lock_guard lock(answers_mutex_);
    return kMany | answers_.add(key);
  }

  StableVector<uint32_t> asks_;  // the address that each inner node asks for; number 0 is not used
  StableMap children_;           // inner node and answer -> value
  StableLists answers_;
  Mutex answers_mutex_;
  uint32_t deepest_ = 0;
};

}  // namespace tokenfst
