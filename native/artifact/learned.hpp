// The facts that an automaton has learned, as flat arrays (docs/serving/format.md, version 5): those that it found
// itself and those that it took from files, as one set.
//
// States are identified by digests. The decision tree of each state is built anew from its leaves, sorted by their
// paths, so the arrays depend only on the known facts. A leaf is left out if it inspected fewer nodes than the leaves
// before it, or other nodes; its mask can be computed again. Cost: O(n log n) for n facts, and one pass over a row for
// each wide mask.
#pragma once

#include <map>

#include "artifact/artifact.hpp"

namespace tokenfst {

struct LearnedArrays {
  std::vector<uint32_t> states, nodes, answers, mask_row, flip_offsets, flips, rows;
};

class LearnedUnion {
 public:
  explicit LearnedUnion(TokenAutomaton& automaton);

  LearnedArrays& arrays() { return out_; }

 private:
  // A mask in the place where it is stored.
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

  void add_own();

  void add(const Learned& learned);
  // A tree from a stranger's file may be as deep as the file is large, so the bytes of all paths count against the
  // budget.
  void hold(const CanonicalPath& path);
  static size_t size_of(const CanonicalPath& path) { return path.size() * sizeof(path[0]); }
  static void add_distance(Known& known, uint32_t distance, uint32_t worst);

  void write();
  // Inserts a leaf into the tree of its state; `root` is the value of that tree's root.
  void put(uint32_t& root, const Leaf& leaf);
  uint32_t child(uint32_t node, const Digest& shown) const;
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
