// Shortest completions in bytes, as an upper bound of the distance in tokens where a search over all tokens takes too long.
//
// The least length of a completion follows from the form of an expression (byte_automata/lengths.hpp). So no search is needed: from
// each configuration some byte leads to one whose least length is one less. Split into the fewest tokens, it gives a path of
// tokens to acceptance, which is seldom longer than a shortest one.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "byte_automata/lengths.hpp"
#include "vocabulary/fewest_tokens.hpp"

namespace tokenfst {

class ShortestTexts {
 public:
  ShortestTexts(ByteAutomaton& bytes, const Vocabulary& vocabulary, Lengths& lengths)
      : bytes_(bytes), vocabulary_(vocabulary), lengths_(lengths) {}

  // The configurations after each token of a shortest completion of a state, which must not be the start of the whole text. Empty if
  // the state accepts, or if no completion of at most kLongest bytes is found: for selections of words, least lengths are upper bounds
  // and may not lead to acceptance.
  // O(length of the completion, times classes of bytes).
  template <class Walk>
  std::vector<Config> path(Walk& walk, State start, Stacks& stacks) {
    std::string text;
    std::vector<Config> configs{{start}};  // after each byte
    const std::vector<uint8_t> bytes = one_byte_of_each_class();
    TimeLimit time_limit(bytes_.budget().seconds, "the search for a completion");
    for (uint32_t left = lengths_.of(configs[0], stacks); !bytes_.accepting(configs.back().state);) {
      if (left == 0 || left > kLongest) return {};
      time_limit.step(64);
      const auto byte = std::ranges::find_if(bytes, [&](uint8_t each) {
        const Config to = walk.next(configs.back(), bytes_.classes()[each]);
        if (is_dead(to)) return false;
        const uint32_t after = lengths_.of(to, stacks);
        if (after >= left) return false;
        configs.push_back(to);
        left = after;
        return true;
      });
      if (byte == bytes.end()) return {};
      text += static_cast<char>(*byte);
    }
    std::vector<Config> found;
    size_t at = 0;
    for (const uint32_t token : spelled_by_fewest(vocabulary_, text, false))
      found.push_back(configs[at += vocabulary_.tokens()[token].size()]);
    return found;
  }

 private:
  static constexpr uint32_t kLongest = 1 << 14;  // bytes

  // Small letters first: the tokens of a text of letters are longer than those of others.
  std::vector<uint8_t> one_byte_of_each_class() const {
    std::vector<bool> met(bytes_.num_classes());
    std::vector<uint8_t> found;
    for (int k = 0; k < 256; ++k) {
      const uint8_t byte = static_cast<uint8_t>((k + 'a') % 256);
      if (met[bytes_.classes()[byte]]) continue;
      met[bytes_.classes()[byte]] = true;
      found.push_back(byte);
    }
    return found;
  }

  ByteAutomaton& bytes_;
  const Vocabulary& vocabulary_;
  Lengths& lengths_;
};

}  // namespace tokenfst
