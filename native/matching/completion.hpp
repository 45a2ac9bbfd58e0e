// Finds completions of a text if strings must differ from each other, so that a limit of new tokens can be kept.
//
// Distances (token_automaton.hpp) ignore exclusion: a shortest completion may repeat a name. So a completion is
// searched for byte by byte. The search is best-first by the length so far plus the least missing length, and visits each
// pair of a configuration and a reading once. The text that it finds is divided into the fewest tokens. The result is an
// upper bound; the least number may be smaller. A completion found at one position mostly completes the text at other
// positions in the same configuration too, so known completions are tried before a new search. The completion that admitted
// a token is kept as the matcher's plan, and the plan's next token is always admitted too. So a text that was admitted stays
// completable, even if later bounds are worse.
//
// The search explores a tree of texts (exclusion/exclusion_path.hpp), and a completion costs about 20 microseconds for each of its
// bytes, however long it is.
//
// A search takes place only near the end of a limit. Where many tokens are left (`plenty`), the length of a shortest text
// proves that some text fits: a shortest text contains at most one string for every three bytes, and each can be replaced
// by one that differs from all known ones and is longer by a bounded number of bytes (`DistinctFacts`). This argument fails
// after a prefix with few endings, and if a finite set of strings may be exhausted; then a completion is always searched
// for. For items of any kind no such bound is known. But a shortest text begins no item that is not required, unless an
// array requires two (`DistinctFacts::few_bytes`), so it completes every text that no known item restricts any more.
//
// At the start of a text tokens may have other forms. So a text that is right byte by byte may begin with no token's form,
// and a length in bytes does not bound the number of tokens. If a completion cannot be divided into tokens there, a new
// search begins after each of the tokens that may come first.
#pragma once

#include <map>
#include <queue>

#include "exclusion/exclusion_path.hpp"
#include "token_automata/token_automaton.hpp"
#include "vocabulary/fewest_tokens.hpp"

namespace tokenfst {

class Completion {
 public:
  // Completions by the configuration where they begin. Those of other sequences are tested before use, since their
  // stacks may have been different.
  using Known = std::map<Config, std::vector<std::string>>;

  Completion(TokenAutomaton& automaton, Stacks& stacks, Exclusion& exclusion, Known& known)
      : automaton_(automaton), bytes_(automaton.bytes()), stacks_(stacks), exclusion_(exclusion), known_(known), walker_(bytes_, stacks) {}

  // Whether `left` tokens are surely enough to complete the text at the reading `at`. False is no proof. O(1) if the
  // bounds of the configuration are known; walks no vocabulary.
  bool plenty(Config config, const Reading& at, uint32_t left);
  // The same after every token that may come next, `left` tokens after it. Does not consider strings that a token leaves
  // open and that may become known ones.
  bool all_fit(Config from, const Reading& at, uint32_t left);
  // The same, if some text of `bytes` bytes that may repeat strings completes the text, after `finished` strings.
  bool enough(uint32_t bytes, uint32_t finished, uint32_t left) const;
  // Whether the safe text of a configuration (safe_texts.hpp), which no known string restricts, has at most `left` tokens.
  // False while the string that is being read may become a known one.
  bool surely(Config config, uint32_t left) { return !Exclusion::matches(exclusion_.reading()) && automaton_.safe_tokens(config) <= left; }
  // Whether `text` completes a configuration in at most `left` tokens from the exclusion's position.
  bool fits(Config config, const std::string& text, uint32_t left) {
    return runs(config, text) && spelled_within(text, left, automaton_.is_first(config));
  }

  // A completion of at most `left` tokens from the exclusion's position; none if none is found.
  std::optional<std::string> within(Config config, uint32_t left);
  // The number of tokens of a completion; kUnreachable if none is found.
  uint32_t length(Config config);

  // Whether a text can be spelled in at most `left` tokens, at the start of all text (`first`) or later; away from the
  // start, one token for each byte is always enough.
  bool spelled_within(std::string_view text, uint32_t left, bool first) const;
  // The fewest tokens that spell a text; none at the start of a text if no token's form there begins it.
  std::vector<uint32_t> cut(std::string_view text, bool first) const { return spelled_by_fewest(automaton_.vocabulary(), text, first); }

 private:
  // The most places that a search tries besides those of the text itself, which may have kLongest bytes; and the most texts that are
  // known of a configuration, that are longer than the limit, and that are begun by one token at the start.
  static constexpr size_t kMostTried = 16384, kLongest = 1 << 18, kMostKnown = 64, kMostLonger = 4, kMostFirst = 64;

  // A known completion that is valid here, or else one that is searched for; of at most `left` tokens.
  std::optional<std::string> searched(Config config, uint32_t left);

  // A completion from the start of a text, found after each token that may come first; of at most `left` tokens, if one
  // is found. O(bytes of the vocabulary), plus a few searches.
  std::optional<std::string> behind_first(Config start, uint32_t left);

  // A place to be visited: the least total length first, newer ones first among equals.
  struct Next {
    size_t length;
    uint32_t place;
    bool operator<(const Next& other) const { return std::tie(other.length, place) < std::tie(length, other.place); }
  };
  bool runs(Config config, const std::string& text);

  // The bytes that may lead to different places: one of each class, and those that known strings continue with. Lower-case
  // letters come last, so the search takes them first among places of equal length. `plain` caches the bytes for positions
  // where no known string matters, which are the same everywhere; others are written to `own`.
  const std::vector<char>& ways(std::vector<char>& plain, std::vector<char>& own) const;
  std::vector<char> ways_of(bool all) const;
  // Searches for a completion from the exclusion's position. None if none is found.
  std::optional<std::string> find(Config start);

  TokenAutomaton& automaton_;
  ByteAutomaton& bytes_;
  Stacks& stacks_;
  Exclusion& exclusion_;
  Known& known_;
  Walker walker_;
};

}  // namespace tokenfst
