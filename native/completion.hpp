// How a text can be completed where strings must differ from each other, so that a budget of tokens can be kept.
//
// Distances (token_automaton.hpp) know nothing of what is excluded: a shortest completion may end a name as one that is
// known. So a completion is looked for, byte by byte: best first by its length and what is missing, each configuration and
// reading once. Its text is then cut into the fewest tokens. What is found is a way to go, hence an upper bound; the least
// number may be smaller. A completion found for one sequence mostly serves others in the same configuration: it is run
// before a new one is looked for.
//
// Cost: about 20 microseconds for each byte of the completion, so it is looked for only near the end of a budget: where
// `kTimes` the distance and `kMore` tokens are left, strings of a language that is not thin find room to differ.
#pragma once

#include <map>
#include <queue>

#include "token_automaton.hpp"

namespace tokenfst {

class Completion {
 public:
  static constexpr uint32_t kTimes = 3, kMore = 8;

  Completion(TokenAutomaton& automaton, Stacks& stacks, Exclusion& exclusion)
      : automaton_(automaton), bytes_(automaton.bytes()), stacks_(stacks), exclusion_(exclusion), walker_(bytes_, stacks) {}

  // Whether so many tokens are enough without a look.
  static bool plenty(uint32_t distance, uint32_t left) { return distance < (left - std::min(left, kMore)) / kTimes; }
  // Whether a configuration that the exclusion is at can be completed in so many tokens.
  bool fits(Config config, uint32_t left) {
    const uint32_t distance = automaton_.distance(config, stacks_);
    return distance <= left && (plenty(distance, left) || length(config) <= left);
  }
  // The tokens of a completion; kUnreachable where none is found.
  uint32_t length(Config config) {
    if (automaton_.accepting(config)) return 0;
    for (const auto& [text, tokens] : known_[config]) {
      if (runs(config, text)) return tokens;
    }
    const std::optional<std::string> text = find(config);
    if (!text) return kUnreachable;
    known_[config].emplace_back(*text, fewest_tokens(*text));
    return known_[config].back().second;
  }

 private:
  static constexpr size_t kMostTried = 4096;

  struct Place {
    size_t length;
    size_t number;  // newer ones first
    std::string text;
    bool operator<(const Place& other) const { return std::tie(other.length, number) < std::tie(length, other.number); }
  };

  bool runs(Config config, const std::string& text) {
    const StacksTrial trial(stacks_);
    const Exclusion::Checkpoint before = exclusion_.checkpoint();
    const Config end = exclusion_.run(bytes_, walker_, config, text);
    exclusion_.restore(before);
    return !is_dead(end) && automaton_.accepting(end);
  }

  std::optional<std::string> find(Config start) {
    const StacksTrial trial(stacks_);
    const Exclusion::Checkpoint before = exclusion_.checkpoint();
    std::optional<std::string> found;
    std::priority_queue<Place> queue;
    std::set<std::pair<Config, Reading>> seen;
    queue.push({0, 0, ""});
    for (size_t tried = 0, number = 1; !found && !queue.empty() && tried < kMostTried; ++tried) {
      const std::string text = queue.top().text;
      queue.pop();
      const Config from = exclusion_.run(bytes_, walker_, start, text);
      const Exclusion::Checkpoint here = exclusion_.checkpoint();
      for (int k = 0; k < 256 && !found; ++k) {
        const char byte[] = {static_cast<char>((k + '{') % 256)};  // letters last, and so first among equals
        const Config to = exclusion_.run(bytes_, walker_, from, {byte, 1});
        Reading reading = exclusion_.reading();
        if (!is_dead(to) && exclusion_.escapes(bytes_, walker_, stacks_, to, reading)) {
          reading.begin = 0;
          if (automaton_.accepting(to)) found = text + byte[0];
          else if (seen.insert({to, reading}).second) queue.push({text.size() + automaton_.bytes_left(to, stacks_), number++, text + byte[0]});
        }
        exclusion_.restore(here);
      }
      exclusion_.restore(before);
    }
    return found;
  }

  uint32_t fewest_tokens(const std::string& text) const {
    const Trie& trie = automaton_.vocabulary().trie();
    std::vector<uint32_t> least(text.size() + 1, kUnreachable);
    least[0] = 0;
    for (size_t from = 0; from < text.size(); ++from) {
      if (least[from] == kUnreachable) continue;
      uint32_t node = 0;
      for (size_t to = from; to < text.size(); ++to) {
        uint32_t child = node + 1;
        while (child < trie.node(node).end && trie.node(child).byte != static_cast<uint8_t>(text[to])) child = trie.node(child).end;
        if (child >= trie.node(node).end) break;
        node = child;
        if (trie.node(node).first != trie.node(node + 1).first) least[to + 1] = std::min(least[to + 1], least[from] + 1);
      }
    }
    return least.back();
  }

  TokenAutomaton& automaton_;
  ByteAutomaton& bytes_;
  Stacks& stacks_;
  Exclusion& exclusion_;
  Walker walker_;
  std::map<Config, std::vector<std::pair<std::string, uint32_t>>> known_;
};

}  // namespace tokenfst
