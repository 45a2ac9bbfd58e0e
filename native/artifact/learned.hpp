// The facts that an automaton has learned, as flat arrays (docs/serving/format.md, version 5): those that it found
// itself and those that it took from files, as one set.
//
// States are identified by digests (expression_forms/digests.hpp). The decision tree of each state
// (walks/decision_tree.hpp) is built anew from its leaves, sorted by their paths, so the arrays depend only on the known
// facts. A leaf is left out if it inspected other nodes of the stacks than the leaves before it, more of them, or fewer; its
// mask can be computed again. Cost: O(n log n) for n facts, and one pass over a row for each wide mask.
#pragma once

#include <map>

#include "artifact/artifact.hpp"

namespace tokenfst {

// The tensors of learned facts in a file, without the prefix `learned_` of their names (Learned describes the rows).
struct LearnedArrays {
  std::vector<uint32_t> states, nodes, answers, mask_row, flip_offsets, flips, rows;
};

class LearnedUnion {
 public:
  // Collects the facts. Raises BudgetExceeded("bytes" or "seconds").
  explicit LearnedUnion(TokenAutomaton& automaton);

  LearnedArrays& arrays() { return out_; }

 private:
  // A mask, as it is stored in a pool or a file.
  struct Set {
    const uint32_t* base;
    std::span<const uint32_t> flips;
  };
  struct Leaf {
    CanonicalPath path;
    Set set;
  };
  struct Known {
    uint32_t distance = kUnknown, worst = 0;
    std::vector<Leaf> leaves;
  };

  // Adds the facts that the automaton found itself.
  void add_own();
  // Adds the facts of a file.
  void add(const Learned& learned);
  // Counts the bytes of a path against the budget: a tree from an untrusted file may be as deep as the file is large.
  void hold(const CanonicalPath& path);
  static size_t size_of(const CanonicalPath& path) { return path.size() * sizeof(path[0]); }
  // Keeps the lesser of two upper bounds.
  static void add_distance(Known& known, uint32_t distance, uint32_t worst);

  void write();
  // Inserts a leaf into the tree of its state, unless it is left out; `root` is the value of that tree's root.
  void put(uint32_t& root, const Leaf& leaf);
  // The value for the answer `shown` of an inner node; 0: none.
  uint32_t child(uint32_t node, const Digest& shown) const;
  // Sets that value, or that of the root.
  void attach(uint32_t& root, bool at_root, uint32_t node, const Digest& shown, uint32_t value);

  TokenAutomaton& automaton_;
  ByteAutomaton& bytes_;
  CanonicalMasks masks_;
  TimeLimit time_limit_{bytes_.budget().seconds, "what was learned"};
  size_t held_ = 0;  // bytes that the paths take
  std::map<Digest, Known> known_;
  std::vector<std::map<Digest, uint32_t>> children_;  // by inner node
  LearnedArrays out_;
};

}  // namespace tokenfst
