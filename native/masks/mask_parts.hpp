// The parts that the computation of a mask collects, and the tokens along sets of words.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "stacks/stacks.hpp"
#include "vocabulary/masks.hpp"
#include "vocabulary/trie.hpp"
#include "words/acyclic.hpp"

namespace tokenfst {

// The parts of a mask: rows of fragments with exceptions, and single tokens.
struct MaskParts {
  struct Row {
    const TokenRow* tokens;  // owned by a fragment that the composition keeps alive
    std::vector<uint32_t> removed;
  };
  std::vector<Row> rows;
  std::vector<uint32_t> tokens;
  std::vector<std::span<const uint32_t>> neighbours;  // more tokens, as adjacent entries of the vocabulary's trie

  void clear() { rows.clear(), tokens.clear(), neighbours.clear(); }
};

// Collects the tokens along a set of words, from a state of its lexicon on: words and vocabulary are walked together, so that no
// state of the byte automaton is created, and only arcs that both have are visited. O(those, times the log of the vocabulary's).
inline void gather_words(const Trie& trie, const Lexicon& words, uint32_t start, MaskParts& out) {
  static thread_local std::vector<std::pair<uint32_t, uint32_t>> pairs;  // nodes of the vocabulary, and states of the lexicon at them
  pairs.assign(1, {0, start});
  while (!pairs.empty()) {
    const auto [node, state] = pairs.back();
    pairs.pop_back();
    const std::span<const TrieChild> children = trie.children(node);
    const std::span<const uint8_t> bytes = trie.child_bytes(node);
    auto at = bytes.begin();
    words.each_arc(state, [&](Lexicon::Arc arc) {
      at = std::lower_bound(at, bytes.end(), arc.byte);
      if (at == bytes.end() || *at != arc.byte) return;
      const TrieChild& child = children[at - bytes.begin()];
      trie.each_string(child, [&](uint32_t token) { out.tokens.push_back(token); });
      if (child.children > 0) pairs.emplace_back(child.node, arc.target);
    });
  }
}

}  // namespace tokenfst
