// The tokens of a place whose expression splits at a fragment: the fragment's row, without the tokens that this expression forbids,
// and the tokens that leave the fragment and go on with the expression after it (residuals).
//
// A fragment may stand for many expressions; its row then has more tokens than this expression allows. These are removed: tokens that
// end with excluded words (words_left_out.hpp), tokens near bounds that the fragment lacks, and tokens for which a part differs from
// the whole. Cost: a walk of the trie of residuals, and a step for each token that is tried by itself.
#pragma once

#include "masks/known_fragments.hpp"
#include "masks/known_splits.hpp"
#include "masks/mask_parts.hpp"
#include "masks/words_left_out.hpp"

namespace tokenfst {

class FragmentTokens {
 public:
  // A configuration, and the node of the vocabulary's trie at which it is reached: 0, or a node with many tokens below it.
  using Place = std::pair<Config, uint32_t>;

  FragmentTokens(ByteAutomaton& bytes, const Vocabulary& vocabulary, KnownSplits& splits)
      : bytes_(bytes), vocabulary_(vocabulary), splits_(splits), words_left_out_(bytes, vocabulary) {}

  // Collects the tokens of a fragment and of the expression after it, except those of an exit before the first byte.
  // Returns false, having collected nothing, if its part differs from the whole for too many tokens.
  template <class Walk>
  bool gather(Walk& walk, const Place& place, const Split& at, const Fragment& fragment, MaskParts& out) {
    MaskParts::Row row{at.high < fragment.nested.size() ? &fragment.nested[at.high] : &fragment.row, {}};
    std::span<const uint32_t> not_left;  // numbers of entries
    if (at.excluded != kEmpty) {
      const WordsLeftOut::Lost& lost = words_left_out_.of(at, fragment, place.second);
      row.removed = lost.closing, not_left = lost.entries;
      // A token that ends with such a word may also leave the fragment before its end, so it is tried.
      for (size_t i = 0; fragment.ambiguous && i < row.removed.size(); ++i) {
        const auto text = std::string_view(vocabulary_.tokens()[row.removed[i]]).substr(vocabulary_.trie().node(place.second).depth);
        if (!is_dead(walk.boundary(walk.run(place.first, text)))) out.tokens.push_back(row.removed[i]);
      }
    } else if (at.part != kEmpty && !gather_difference(walk, place, at, row.removed, out)) return false;
    if (at.widened != kUnbounded) {
      // Tokens that come near the removed bounds are tried one by one.
      for (uint32_t token : vocabulary_.longer_than(at.widened - fragment.completion)) {
        row.removed.push_back(token);
        if (!splits_.exceeds(at, token) && !is_dead(walk.boundary(walk.run(place.first, vocabulary_.tokens()[token]))))
          out.tokens.push_back(token);
      }
      std::ranges::sort(row.removed);
    }
    const std::vector<uint32_t> apart = row.removed;
    for (size_t i = 0; row.tokens == &fragment.row && i < fragment.longest.size() && fragment.iterations[i] > at.high; ++i)
      row.removed.push_back(fragment.longest[i]);
    // Texts begin after a quotation mark, and names after a comma or white space, too: as so few tokens, they are listed and not
    // combined with another row.
    if (row.tokens == &fragment.row && !fragment.few.empty() && (place.second != 0 || at.excluded != kEmpty)) {
      for (uint32_t token : fragment.few) {
        if (!std::ranges::binary_search(row.removed, token)) out.tokens.push_back(token);
      }
    } else {
      out.rows.push_back(std::move(row));
    }
    Leading<Walk> leading(walk, bytes_);
    for_residuals(leading, place.first, at, fragment, [&](uint32_t entry, Config) {
      const uint32_t token = fragment.tokens[entry];
      if (!std::ranges::binary_search(apart, token) && !std::ranges::binary_search(not_left, entry)) out.tokens.push_back(token);
    });
    return true;
  }

  // Calls f(entry, configuration) for each token that leaves the fragment and that the following expression reads.
  template <class Walk, class F>
  void for_residuals(Walk& walk, Config config, const Split& split, const Fragment& fragment, F&& f) {
    Config rest = walk.arrive(config, bytes_.expressions().intern(split.rest));
    const Trie& trie = *fragment.residuals;
    auto entries = [&](const auto& at, Config end) {
      trie.each_string(at, [&](uint32_t entry) {
        if (split.counted && (fragment.completed[entry] < split.low || fragment.completed[entry] > split.high)) return;
        f(entry, end);
      });
    };
    static thread_local std::vector<Config> path;
    entries(0u, rest);
    trie.walk_few(walk, rest, path, entries);
  }

 private:
  static constexpr uint32_t kMostApart = 16'384;  // nodes of the vocabulary at which a part of a fragment may differ from the whole

  // Collects the allowed tokens for which a part of a fragment differs from the whole, and lists all such tokens in
  // `apart`; returns false, having collected nothing, if they are many.
  template <class Walk>
  bool gather_difference(Walk& walk, const Place& place, const Split& at, std::vector<uint32_t>& apart, MaskParts& out) {
    using Pair = Difference<Walk>;
    const size_t before = out.tokens.size();
    Pair pair{walk, bytes_, splits_.inner_classes(at)};
    std::vector<typename Pair::Position> path;
    const Trie& trie = vocabulary_.trie();
    auto take = [&](const TrieChild& child, const typename Pair::Position& position) {
      trie.each_string(child, [&](uint32_t token) {
        apart.push_back(token);
        if (!is_dead(position.config)) out.tokens.push_back(token);
      });
    };
    const typename Pair::Position start{place.first, bytes_.expressions().intern(at.part), bytes_.expressions().intern(at.whole), false};
    if (!trie.walk_few(pair, start, path, take, kMostApart, place.second)) {
      out.tokens.resize(before);
      return false;
    }
    std::ranges::sort(apart);
    return true;
  }

  ByteAutomaton& bytes_;
  const Vocabulary& vocabulary_;
  KnownSplits& splits_;
  WordsLeftOut words_left_out_;
};

}  // namespace tokenfst
