// Identifies the nodes of stacks that a walk inspected, in the same way in every process that read the same program.
//
// A decision tree (decision_tree.hpp) uses numbers of frames, which depend on the order of the walk. Here a frame is
// identified by the digest of its body, and edges are sorted by these digests, so the order in which nodes become known
// does not depend on a walk. Two nodes are the same if they have the same frames on the same known nodes.
#pragma once

#include <optional>

#include "expression_forms/digests.hpp"
#include "walks/decision_tree.hpp"

namespace tokenfst {

// The known stack nodes, by canonical address. The nodes are numbers of any graph; 0 is the bottom.
class CanonicalAddresses {
 public:
  explicit CanonicalAddresses(std::vector<uint32_t> known) : known_(std::move(known)) {}

  size_t size() const { return known_.size(); }
  uint32_t node(uint32_t address) const { return known_[address]; }
  // The first address of a node; size() if it is not known.
  uint32_t address(uint32_t node) const { return static_cast<uint32_t>(std::ranges::find(known_, node) - known_.begin()); }

  // A digest of which stacks are equal.
  Digest pattern() const {
    Digest out;
    out.add(known_.size());
    for (uint32_t node : known_) out.add(described(node));
    return out;
  }
  // A digest of a node's edges (the digest of a frame, and the node below); the nodes below become known. None if two edges cannot be
  // distinguished.
  std::optional<Digest> shown(std::vector<std::pair<Digest, uint32_t>> edges) {
    auto rank = [](const auto& edge) { return std::pair(edge.first, edge.second != kBottom); };
    std::ranges::sort(edges, {}, rank);
    if (std::ranges::adjacent_find(edges, {}, rank) != edges.end()) return std::nullopt;
    Digest out;
    out.add(edges.size());
    for (const auto& [frame, below] : edges) {
      if (below != kBottom && address(below) == known_.size()) known_.push_back(below);
      out.add(frame);
      out.add(described(below));
    }
    return out;
  }

 private:
  uint64_t described(uint32_t node) const { return node == kBottom ? 0 : uint64_t{address(node)} + 1; }

  std::vector<uint32_t> known_;
};

using CanonicalPath = std::vector<std::pair<uint32_t, Digest>>;  // addresses of inspected nodes, and digests of their edges

// The canonical path to a leaf of a decision tree, for a state with `count` stacks; none if it cannot be determined.
// `digest_of` returns the digest of a frame.
template <class DigestOf>
std::optional<CanonicalPath> canonical_path(std::span<const DecisionTree::Step> steps, uint32_t count, DigestOf&& digest_of) {
  // A node is named by its address in the tree, plus one. Equal stacks have the name of the first of them.
  std::vector<uint32_t> first(count);
  for (uint32_t k = 0; k < count; ++k) first[k] = k + 1;
  if (!steps.empty() && steps[0].address == DecisionTree::kPattern) first = steps[0].shown;
  CanonicalAddresses asks(first);
  CanonicalPath path;
  for (const DecisionTree::Step& step : steps) {
    if (step.address == DecisionTree::kPattern) {
      path.emplace_back(DecisionTree::kPattern, asks.pattern());
      continue;
    }
    const uint32_t node = step.address < count ? first[step.address] : step.address + 1;
    std::vector<std::pair<Digest, uint32_t>> edges;
    for (size_t k = 0; k + 1 < step.shown.size(); k += 2) edges.emplace_back(digest_of(step.shown[k]), step.shown[k + 1]);
    const uint32_t address = asks.address(node);
    std::optional<Digest> shown = asks.shown(std::move(edges));
    if (!shown) return std::nullopt;
    path.emplace_back(address, *shown);
  }
  return path;
}

}  // namespace tokenfst
