// Least lengths of words in bytes, from the form of an expression: the upper bound of distances if a grammar has too many
// states to search and every byte is a token, since a word may then be spelled byte by byte.
//
// Lengths add up along concatenations; a union has the least of its members'. Calls and variables are a least fixed
// point. Of unordered members, the required ones are counted and, up to the lower bound, the shortest others.
// Intersections and complements, which contain no calls, are searched by A* (Hart, Nilsson, Raphael 1968), whose lower bound is the
// greatest least length of the members. A search that visits more than kMaxSearch states gives kUnreachable, and so does what depends
// on a look-behind whose scope lies further out: such an expression has no words of its own. For selections the result is an upper
// bound. A symbol that is one token counts as one byte.
//
// One thread at a time may use it. Raises BudgetExceeded.
#pragma once

#include "byte_automata/byte_automaton.hpp"
#include "graph_searches/distances.hpp"

namespace tokenfst {

class Lengths {
 public:
  explicit Lengths(ByteAutomaton& bytes) : bytes_(bytes) {}

  // The least length of an expression's words; kUnreachable if no word was found. Linear in the nodes not seen before, apart from
  // searches; the first call also computes rules and variables.
  uint32_t of(NodeId id);
  // The least length of a completion of a configuration: the least over its members of the length of the top plus those of the frames
  // below it.
  uint32_t of(Config config, Stacks& stacks);

 private:
  static constexpr size_t kMaxSearch = 20'000;  // states that one search visits

  // Computes rules and variables, starting from "no word", until no length decreases.
  void solve();

  Node node(NodeId id) {
    return bytes_.expressions().with_arena([&](const Arena& arena) { return arena[id]; });
  }

  uint32_t length(NodeId id);
  uint32_t keep(NodeId id, uint32_t length);
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

// For each state of finished tables without stacks, the least length in bytes of a text to acceptance, computed backwards
// from acceptance. Linear in the tables.
std::vector<uint32_t> lengths_of_tables(ByteAutomaton& bytes);

}  // namespace tokenfst
