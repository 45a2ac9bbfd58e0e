// Where tokens lead from a configuration, by walks of the vocabulary's trie.
#pragma once

#include <algorithm>
#include <vector>

#include "stacks/stacks.hpp"
#include "vocabulary/trie.hpp"

namespace tokenfst {

// `next`: the configurations one token away; `same`: members, whose languages are subsets of this one's, and whose tokens
// are not in `next`.
struct TokenTargets {
  std::vector<Config> next, same;
  bool whole = false;  // it takes a walk of the whole vocabulary; without `walks` (Composition::onward) nothing else is found then

  void sort() {
    std::ranges::sort(next);
    next.erase(std::unique(next.begin(), next.end()), next.end());
  }
  // Collects them by a walk; returns false, having collected nothing, if it visits more than `limit` nodes.
  template <class Walk>
  bool gather_few(const Trie& trie, Walk& walk, Config config, std::vector<Config>& path, uint32_t limit) {
    auto take = [&](const TrieChild& at, Config end) {
      if (at.strings != 0) add(walk.boundary(end));
    };
    const bool all = trie.walk_few(walk, config, path, take, limit);
    if (all) sort();
    else next.clear();
    return all;
  }
  // Collects them by a walk of all nodes, except of those below a node where `stays(node, configuration)`: all tokens below it lead
  // to this configuration.
  template <class Walk, class Stays>
  void gather_all(const Trie& trie, Walk& walk, Config config, std::vector<Config>& path, Stays&& stays) {
    auto take = [&](uint32_t index, Config end) {
      if (trie.node(index).first != trie.node(index + 1).first) add(walk.boundary(end));
    };
    auto below = [&](uint32_t, Config end) { add(walk.boundary(end)); };
    trie.walk(walk, config, path, take, [](uint32_t) {}, 0, stays, below);
    sort();
    whole = true;
  }

 private:
  void add(Config end) {
    if (!is_dead(end) && (next.empty() || next.back() != end)) next.push_back(end);
  }
};

}  // namespace tokenfst
