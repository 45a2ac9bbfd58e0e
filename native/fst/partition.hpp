// The coarsest partition of the states of a labelled graph such that the states of one block have the same arcs into
// the same blocks.
//
// Acyclic graphs: from the last states backwards, states with equal arcs are found by hashing, in one pass (Revuz
// 1992). Deterministic graphs: refinement by the smaller half (Hopcroft 1971, in the form of Valmari 2012), O(m log n).
// Other graphs: rounds of hashing until nothing changes; n rounds at worst.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "containers/hash_index.hpp"
#include "fst/machine.hpp"
#include "fst/meter.hpp"

namespace tokenfst::fst {

struct LabelledEdge {
  Id label, to;
  auto operator<=>(const LabelledEdge&) const = default;
};

// A graph. The edges of a state are sorted. A label is a number for everything of an arc except its target: labels of the
// transducer and the weight. `kind`: the initial block of a state.
struct LabelledGraph {
  std::vector<uint64_t> begin = {0};
  std::vector<LabelledEdge> edges;
  std::vector<Id> kind;
  Id labels = 0, kinds = 0;  // how many labels and kinds there are
  Id size() const { return static_cast<Id>(kind.size()); }
  std::span<const LabelledEdge> of(Id s) const { return {edges.data() + begin[s], begin[s + 1] - begin[s]}; }
};

// Numbers sequences of numbers; equal sequences get equal numbers.
class Signatures {
 public:
  std::vector<Id> current;  // the sequence that number() numbers
  // Sets the current sequence to that of a state.
  void sign(Id kind, const std::vector<LabelledEdge>& edges) {
    current.assign(1, kind);
    for (const LabelledEdge& edge : edges) {
      current.push_back(edge.label);
      current.push_back(edge.to);
    }
  }
  // The number of the current sequence.
  Id number() {
    uint64_t hash = current.size();
    for (Id each : current) {
      hash = (hash ^ static_cast<uint32_t>(each)) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 32;
    }
    const uint32_t small = static_cast<uint32_t>(hash);
    const uint32_t found = index_.find(small, [&](uint32_t at) {
      return std::equal(current.begin(), current.end(), all_.begin() + static_cast<int64_t>(begin_[at]),
                        all_.begin() + static_cast<int64_t>(begin_[at + 1]));
    });
    if (found != HashIndex::kNothing) return static_cast<Id>(found);
    const uint32_t made = static_cast<uint32_t>(begin_.size()) - 1;
    all_.insert(all_.end(), current.begin(), current.end());
    begin_.push_back(all_.size());
    index_.add(small, made);
    return static_cast<Id>(made);
  }
  // The number of different sequences.
  Id size() const { return static_cast<Id>(begin_.size()) - 1; }

 private:
  std::vector<Id> all_;
  std::vector<uint64_t> begin_ = {0};
  HashIndex index_;
};

// Each function returns the block of each state, for the kind of graph that its name says (blocks_by_rounds: any). `order`:
// the states such that edges lead to earlier ones.
std::vector<Id> acyclic_blocks(const LabelledGraph& graph, const std::vector<Id>& order, Meter& meter);
std::vector<Id> deterministic_blocks(const LabelledGraph& graph, Meter& meter);
std::vector<Id> blocks_by_rounds(const LabelledGraph& graph, Meter& meter);

}  // namespace tokenfst::fst
