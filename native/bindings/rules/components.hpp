// Strongly connected components of graphs whose vertices are numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tokenfst {

using Targets = std::vector<std::vector<uint32_t>>;  // by vertex

// The components in reverse topological order: edges lead to the same component or an earlier one (Tarjan's algorithm, without
// recursion). O(vertices and edges).
inline std::vector<std::vector<uint32_t>> strong_components(const Targets& targets) {
  const size_t count = targets.size();
  std::vector<size_t> order(count, count), lowest(count, count);
  std::vector<uint32_t> open;
  std::vector<bool> is_open(count, false);
  size_t seen = 0;
  std::vector<std::vector<uint32_t>> found;
  std::vector<std::pair<uint32_t, size_t>> work;  // a vertex, and its next target
  const auto enter = [&](uint32_t vertex) {
    order[vertex] = lowest[vertex] = seen++;
    open.push_back(vertex);
    is_open[vertex] = true;
    work.emplace_back(vertex, 0);
  };
  for (uint32_t root = 0; root < count; ++root) {
    if (order[root] != count) continue;
    enter(root);
    while (!work.empty()) {
      const uint32_t vertex = work.back().first;
      if (work.back().second < targets[vertex].size()) {
        const uint32_t target = targets[vertex][work.back().second++];
        if (order[target] == count) {
          enter(target);
        } else if (is_open[target]) {
          lowest[vertex] = std::min(lowest[vertex], order[target]);
        }
        continue;
      }
      work.pop_back();
      if (!work.empty()) lowest[work.back().first] = std::min(lowest[work.back().first], lowest[vertex]);
      if (lowest[vertex] != order[vertex]) continue;
      const auto cut = std::find(open.rbegin(), open.rend(), vertex).base() - 1;
      found.emplace_back(cut, open.end());
      for (const uint32_t each : found.back()) is_open[each] = false;
      open.erase(cut, open.end());
    }
  }
  return found;
}

// Whether a component of a graph has a cycle: several vertices, or one with an edge to itself.
inline bool has_cycle(const Targets& targets, const std::vector<uint32_t>& part) {
  return part.size() > 1 || std::ranges::find(targets[part[0]], part[0]) != targets[part[0]].end();
}

}  // namespace tokenfst
