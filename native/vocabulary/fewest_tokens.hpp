// The fewest tokens that spell a text. O(length of the text times length of a token).
#pragma once

#include <string_view>
#include <vector>

#include "graph_searches/distances.hpp"
#include "vocabulary/vocabulary.hpp"

namespace tokenfst {

namespace fewest_tokens {

// The first of the fewest tokens that spell the rest of a text.
struct Piece {
  uint32_t least = kUnreachable, token = 0;
  size_t length = 0;
};

inline void begin_piece(const Trie& trie, std::string_view text, size_t from, std::vector<Piece>& best) {
  uint32_t node = 0;
  for (size_t to = from; to < text.size(); ++to) {
    const std::span<const uint8_t> bytes = trie.child_bytes(node);
    const auto child = std::ranges::lower_bound(bytes, static_cast<uint8_t>(text[to]));
    if (child == bytes.end() || *child != static_cast<uint8_t>(text[to])) return;
    node = trie.children(node)[static_cast<size_t>(child - bytes.begin())].node;
    const uint32_t rest = best[to + 1].least;
    if (trie.node(node).first == trie.node(node + 1).first || rest == kUnreachable || rest + 1 >= best[from].least) continue;
    best[from] = {rest + 1, trie.string_at(trie.node(node).first), to + 1 - from};
  }
}

}  // namespace fewest_tokens

// Returns the fewest tokens that spell a text; none if the text is empty or no tokens spell it. `first`: the text is at the
// start of all text, where tokens may have other forms.
inline std::vector<uint32_t> spelled_by_fewest(const Vocabulary& vocabulary, std::string_view text, bool first) {
  std::vector<fewest_tokens::Piece> best(text.size() + 1);
  best[text.size()].least = 0;
  for (size_t at = text.size(); at-- > 0;)
    fewest_tokens::begin_piece(at == 0 && first ? vocabulary.initial_trie() : vocabulary.trie(), text, at, best);
  std::vector<uint32_t> tokens;
  if (best[0].least == kUnreachable) return tokens;
  for (size_t at = 0; at < text.size(); at += best[at].length) tokens.push_back(best[at].token);
  return tokens;
}

}  // namespace tokenfst
