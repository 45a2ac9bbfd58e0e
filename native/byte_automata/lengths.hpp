// Least lengths of words in bytes, from the form of an expression: the fallback for distances if a grammar has too many
// states to search, since a word may always be spelled byte by byte.
//
// Lengths add up along concatenations; a union has the least of its members'. Calls and variables are a least fixed
// point. Of unordered members, the required ones are counted and, up to the lower bound, the shortest others.
// Intersections and complements, which contain no calls, are searched (A*: Hart, Nilsson, Raphael 1968) by the greatest least
// length of their members, which is a bound. For selections the result is an upper bound. A symbol that is one token counts as one byte.
#pragma once

#include "byte_automata/byte_automaton.hpp"
#include "support/distances.hpp"

namespace tokenfst {

class Lengths {
 public:
  explicit Lengths(ByteAutomaton& bytes) : bytes_(bytes) {}

  // The least length of an expression. Linear in the nodes not seen before.
  uint32_t of(NodeId id);
  // The least length of a completion of a configuration: its top, plus each frame below by itself.
  uint32_t of(Config config, Stacks& stacks);

 private:
  static constexpr size_t kMaxSearch = 20'000;  // states that one search visits

  // Computes rules and variables, starting from "no word", until no length decreases.
  void solve();

  Node node(NodeId id) {
    return bytes_.expressions().with_arena([&](const Arena& arena) { return arena[id]; });
  }

  uint32_t length(NodeId id);
  uint32_t element(NodeId id);
  uint32_t unordered(const Unordered::Demand& demand);
  uint32_t search(NodeId id);

  ByteAutomaton& bytes_;
  TimeLimit time_limit_{bytes_.budget().seconds, "the least lengths of texts"};
  bool solved_ = false;
  std::vector<uint32_t> rules_;
  std::map<NodeId, uint32_t> variables_;
  std::unordered_map<NodeId, uint32_t> memo_, searched_;
};

// The least lengths in bytes from the states of finished tables without stacks, computed backwards from acceptance.
std::vector<uint32_t> lengths_of_tables(ByteAutomaton& bytes);

}  // namespace tokenfst
