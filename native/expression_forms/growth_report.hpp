// Finds the part of a constraint that grew, for the error of an exhausted budget.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "derivatives/derivatives.hpp"

namespace tokenfst {

// The text of the label that contains most of these expressions; empty if none has a label.
inline std::string most_around(const Arena& arena, Derivatives& derivatives, const std::vector<NodeId>& newest,
                               const std::vector<std::pair<NodeId, std::string>>& labels) {
  std::unordered_map<NodeId, size_t> hits;
  for (NodeId expression : newest) {
    std::vector<NodeId> stack{expression};
    for (size_t steps = 0; !stack.empty() && steps < 64; ++steps) {
      NodeId id = stack.back();
      stack.pop_back();
      const Node& node = arena[id];
      NodeId counted = id;  // its counts change while it is read, its body does not
      if (node.kind == Kind::Repeat) counted = node.a;
      if (node.kind == Kind::Pick) counted = derivatives.selections().selection(node.a).first;
      if (node.kind == Kind::Unordered) counted = derivatives.unordered().origin(id);
      ++hits[counted];
      if (node.kind == Kind::Concat) stack.insert(stack.end(), {node.b, node.a});
      if (node.kind == Kind::Or || node.kind == Kind::And) stack.insert(stack.end(), arena.list(id).begin(), arena.list(id).end());
      if (node.kind == Kind::Repeat || node.kind == Kind::Not || node.kind == Kind::Few || node.kind == Kind::FewInside)
        stack.push_back(node.a);
    }
  }
  std::string where;
  size_t most = 0;
  for (auto& [node, text] : labels) {
    if (auto it = hits.find(node); it != hits.end() && it->second > most) most = it->second, where = text;
  }
  return where;
}

}  // namespace tokenfst
