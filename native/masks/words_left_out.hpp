// Fragments from which finitely many words are excluded (Split::excluded): a free name, for example, is any string but the
// listed names.
//
// All such fragments are replaced by the one fragment without exclusions, and a mask then leaves out the tokens for which the two
// differ. The same words are excluded in many masks of an object (before each name, and where a listed name could end), so each
// thread keeps a few results.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "expression_forms/splits.hpp"
#include "support/unique_number.hpp"
#include "vocabulary/vocabulary.hpp"
#include "walks/plain_walk.hpp"

namespace tokenfst {

class WordsLeftOut {
 public:
  // The tokens that a fragment loses. Both lists are ascending.
  struct Lost {
    std::vector<uint32_t> closing;  // tokens that stay inside the fragment and end with such a word
    std::vector<uint32_t> entries;  // the entries (Fragment::tokens) of tokens that begin with such a word and leave the fragment
  };

  WordsLeftOut(ByteAutomaton& bytes, const Vocabulary& vocabulary) : bytes_(bytes), vocabulary_(vocabulary) {}

  // `fragment` is held by the automaton, and `top` is the node of the vocabulary's trie at which it begins. The result is valid until
  // this thread calls this again, for any automaton.
  const Lost& of(const Split& at, const Fragment& fragment, uint32_t top) {
    Kept& kept = kept_at(mix(mix(owner_.value(), at.excluded), mix(at.fragment, top)));
    if (kept.owner == owner_.value() && kept.fragment == &fragment && kept.excluded == at.excluded && kept.top == top) return kept.lost;
    kept.owner = 0;  // an exception may end what follows
    find(at, fragment, top, kept.lost);
    kept.owner = owner_.value(), kept.fragment = &fragment, kept.excluded = at.excluded, kept.top = top;
    return kept.lost;
  }

 private:
  static constexpr size_t kKept = 8;
  struct Kept {
    uint64_t owner = 0;  // 0: nothing is kept here
    const Fragment* fragment = nullptr;
    NodeId excluded = kEmpty;
    uint32_t top = 0;
    Lost lost;
  };
  static Kept& kept_at(uint64_t hash) {
    static thread_local std::array<Kept, kKept> kept;
    return kept[hash % kKept];
  }

  void find(const Split& at, const Fragment& fragment, uint32_t top, Lost& lost) {
    lost.closing.clear(), lost.entries.clear();
    static thread_local std::vector<Config> path;
    PlainWalk walk(bytes_);
    const uint32_t count = static_cast<uint32_t>(fragment.tokens.size());
    const Trie& words = fragment.words_left(vocabulary_.tokens(), vocabulary_.trie().node(top).depth);
    auto take = [&](const TrieChild& child, Config end) {
      if (!bytes_.accepting(end.state)) return;
      // Of the words that are equal, entries come before closing tokens.
      const std::span ending(words.strings() + words.node(child.node).first, words.strings() + words.node(child.node + 1).first);
      const auto closing = std::ranges::lower_bound(ending, count);
      lost.entries.insert(lost.entries.end(), ending.begin(), closing);
      for (auto word = closing; word != ending.end(); ++word) lost.closing.push_back(fragment.closing[*word - count]);
    };
    words.walk_few(walk, Config{bytes_.expressions().intern(at.excluded)}, path, take);
    std::ranges::sort(lost.closing);
    if (!std::ranges::is_sorted(lost.entries)) std::ranges::sort(lost.entries);
  }

  ByteAutomaton& bytes_;
  const Vocabulary& vocabulary_;
  const UniqueNumber owner_;
};

}  // namespace tokenfst
