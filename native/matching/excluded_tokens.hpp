// The tokens that a mask holds and that would end a string which must differ from others at one of them (exclusion.hpp).
//
// A mask is made for a state, as if nothing were excluded. Two kinds of tokens may have to go. Those that end the string
// that is being read: they lie along the paths of the vocabulary's trie on which it can still become a known one, and the
// walk leaves a path where it cannot. And those with a whole string inside: they hold two quotation marks, are few, and
// are tried one by one. So the cost follows the known strings that still match; where none does, it is a look at those few.
//
// Exactness: a string that can still become a known one may end in another way, or it is no prefix of the text: whether
// there is such a way is asked where a token ends inside of one (`escapes`). Languages whose every prefix has infinitely
// many ends answer at once; where there are others (`thin`), tokens that begin a string are tried, too. Where a string is
// yet to begin, there is a way as long as fewer are finished than a finite set has (`fewest`); then tokens with a comma are tried.
#pragma once

#include "token_automata/token_automaton.hpp"

namespace tokenfst {

class ExcludedTokens {
 public:
  ExcludedTokens(TokenAutomaton& automaton, Stacks& stacks, Exclusion& exclusion)
      : automaton_(automaton), bytes_(automaton.bytes()), stacks_(stacks), exclusion_(exclusion) {}

  // Removes them from the mask of a configuration; whether there were any.
  bool remove(Config config, uint32_t* mask) {
    bool some = false;
    if (Exclusion::matches(exclusion_.reading())) some = remove_endings(config, mask);
    // Two strings have to end in one token, or one that begins in it where others are finished, behind a comma or bracket unless
    // it is due; or, if thin, one begins.
    const Reading& at = exclusion_.reading();
    const Room& room = bytes_.marks().room;
    const Vocabulary& vocabulary = automaton_.vocabulary();
    auto try_each = [&](std::span<const uint32_t> tokens) {
      for (uint32_t token : tokens) {
        if (has(mask, token) && !exclusion_.indifferent(vocabulary.tokens()[token], room) && !may_take(config, token)) some = true, take(mask, token);
      }
    };
    const bool two = at.inside || !at.finished;
    try_each(two || at.sibling || room.thin ? vocabulary.quoting((two ? 3 : 2) - (room.thin ? 1 : 0)) : vocabulary.quoting_items());
    if (room.fewest != kUnbounded && at.scope && at.finished + vocabulary.most_quotes() >= room.fewest) try_each(vocabulary.separating(at.inside));
    return some;
  }

  // Whether the string that is being read can end as none of those known.
  bool escapes(Config config, const Reading& reading) {
    if (!Exclusion::may_fail(reading, bytes_.marks().room)) return true;
    Walker walker(bytes_, stacks_);
    return exclusion_.escapes(bytes_, walker, stacks_, config, reading);
  }

 private:
  // What a walk of the vocabulary carries: until the string ends, or can be none of those known.
  struct Place {
    uint32_t node;  // of the vocabulary's trie
    Config config;
    Reading reading;
  };

  static bool has(const uint32_t* mask, uint32_t token) { return mask[token >> 5] >> (token & 31) & 1; }
  static void take(uint32_t* mask, uint32_t token) { mask[token >> 5] &= ~(1u << (token & 31)); }

  // Those that end the string that is being read, and those behind which it could only end as a known one.
  bool remove_endings(Config start, uint32_t* mask) {
    const StacksTrial trial(stacks_);
    const Trie& trie = automaton_.vocabulary().trie();
    Walker walker(bytes_, stacks_);
    bool some = false;
    auto each = [&](uint32_t first, uint32_t last, auto&& stays) {
      for (uint32_t k = trie.node(first).first; k < trie.node(last).first; ++k) {
        const uint32_t token = trie.string_at(k);
        if (has(mask, token) && !stays(token)) some = true, take(mask, token);
      }
    };
    std::vector<Place> pending{{0, start, exclusion_.reading()}};
    while (!pending.empty()) {
      const Place from = pending.back();
      pending.pop_back();
      const std::span<const uint8_t> bytes = trie.child_bytes(from.node);
      exclusion_.each_onward(from.reading, bytes, [&](size_t place) {
        const uint8_t byte = bytes[place];
        Place at = from;
        at.node = trie.children(from.node)[place].node;
        const Ending ending = exclusion_.follow(at.reading, byte);
        if (ending == Ending::New || (ending == Ending::None && at.reading.match == 0)) return;
        const State raw = bytes_.step(at.config.state, byte);
        if (ending == Ending::Known) {
          const bool over = raw == kDead || (bytes_.is_marked(raw) && bytes_.passed(raw, false) == kDead);
          const uint32_t behind = trie.node(at.node).end;
          if (over) each(at.node, behind, [](uint32_t) { return false; });
          else if (bytes_.is_marked(raw)) each(at.node, behind, [&](uint32_t token) { return may_take(start, token); });
          return;
        }
        at.config = raw == kDead ? Config{} : walker.arrive(at.config, raw);
        if (is_dead(at.config)) return;
        each(at.node, at.node + 1, [&](uint32_t) { return escapes(at.config, at.reading); });
        pending.push_back(at);
      });
    }
    return some;
  }

  // Whether a token leads on: by trying.
  bool may_take(Config config, uint32_t token) {
    const StacksTrial trial(stacks_);
    const ExclusionTrial reading(exclusion_);
    const Config end = automaton_.advance(config, token, stacks_, &exclusion_);
    return !is_dead(end) && escapes(end, exclusion_.reading());
  }

  TokenAutomaton& automaton_;
  ByteAutomaton& bytes_;
  Stacks& stacks_;
  Exclusion& exclusion_;
};

}  // namespace tokenfst
