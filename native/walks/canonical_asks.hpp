// What a walk saw of stacks, told so that every process that read the same program tells it alike.
//
// An ask tree goes by numbers of frames, which are given in the order of the walk. Here a frame goes by the digest of its body, and
// edges stand in the order of these digests, so nodes become known in an order that no walk decides. A node is the same for both
// if it shows the same frames on the same known nodes.
#pragma once

#include <optional>

#include "expression_forms/digests.hpp"
#include "walks/ask_tree.hpp"

namespace tokenfst {

// Nodes by canonical address. As numbers of whatever graph is told; 0 is the bottom.
class CanonicalAsks {
 public:
  explicit CanonicalAsks(std::vector<uint32_t> known) : known_(std::move(known)) {}

  size_t size() const { return known_.size(); }
  uint32_t node(uint32_t address) const { return known_[address]; }
  uint32_t address(uint32_t node) const { return static_cast<uint32_t>(std::ranges::find(known_, node) - known_.begin()); }

  // Which stacks are the same.
  Digest pattern() const {
    Digest out;
    out.add(known_.size());
    for (uint32_t node : known_) out.add(described(node));
    return out;
  }
  // What a node shows; what lies below becomes known. None where two edges cannot be told apart.
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

using CanonicalPath = std::vector<std::pair<uint32_t, Digest>>;  // addresses, and what the nodes showed

// The way to a leaf of an ask tree, of a state with `count` stacks; none where it cannot be told. `digest_of` tells frames.
template <class DigestOf>
std::optional<CanonicalPath> canonical_path(std::span<const AskTree::Step> steps, uint32_t count, DigestOf&& digest_of) {
  // Nodes are named by their address in the tree, plus one. Those of stacks that are the same have the first one's name.
  std::vector<uint32_t> first(count);
  for (uint32_t k = 0; k < count; ++k) first[k] = k + 1;
  if (!steps.empty() && steps[0].address == AskTree::kPattern) first = steps[0].shown;
  CanonicalAsks asks(first);
  CanonicalPath path;
  for (const AskTree::Step& step : steps) {
    if (step.address == AskTree::kPattern) {
      path.emplace_back(AskTree::kPattern, asks.pattern());
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
