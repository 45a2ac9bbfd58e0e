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
//
// Where items of any kind must differ, what is known has a say wherever an item is due or may still become a known one: the
// walk follows those paths, whatever is read on them. Elsewhere, and behind them, only a token in which an item begins behind
// another can go wrong: it has a comma, and is tried.
#pragma once

#include "token_automata/token_automaton.hpp"

namespace tokenfst {

class ExcludedTokens {
 public:
  ExcludedTokens(TokenAutomaton& automaton, Stacks& stacks, Exclusion& exclusion)
      : automaton_(automaton), bytes_(automaton.bytes()), stacks_(stacks), exclusion_(exclusion) {}

  // Removes them from the mask of a configuration; whether there were any.
  bool remove(Config config, uint32_t* mask) {
    if (automaton_.is_first(config)) return remove_first(config, mask);
    if (bytes_.marks().room.values) return remove_items(config, mask);
    bool some = false;
    if (Exclusion::matches(exclusion_.reading())) some = remove_endings(config, mask);
    // Two strings have to end in one token, or one that begins in it where others are finished, behind a comma or bracket unless
    // it is due; or, if thin, one begins.
    const Reading& at = exclusion_.reading();
    const Room& room = bytes_.marks().room;
    const Vocabulary& vocabulary = automaton_.vocabulary();
    auto try_each = [&](std::span<const uint32_t> tokens) {
      for (uint32_t token : tokens) {
        if (has(mask, token) && !exclusion_.indifferent(vocabulary.tokens()[token], room) && !may_take(config, token))
          some = true, take(mask, token);
      }
    };
    const bool two = at.inside || !at.finished;
    try_each(two || at.sibling || room.thin ? vocabulary.quoting((two ? 3 : 2) - (room.thin ? 1 : 0)) : vocabulary.quoting_items());
    if (room.fewest != kUnbounded && at.scope && at.finished + vocabulary.most_quotes() >= room.fewest)
      try_each(vocabulary.separating(at.inside));
    return some;
  }

  // Whether the string that is being read can end as none of those known. Where items of any kind must differ, the reading is
  // that of the exclusion.
  bool escapes(Config config, const Reading& reading) {
    if (bytes_.marks().room.values ? !exclusion_.has_say() : !Exclusion::may_fail(reading, bytes_.marks().room)) return true;
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

  // At the start of a text, where tokens have other forms than those that the vocabulary lists.
  bool remove_first(Config start, uint32_t* mask) {
    bool some = false;
    for (uint32_t token = 0; token < automaton_.vocabulary().size(); ++token) {
      const std::string_view text = automaton_.text_of(start, token);
      if (has(mask, token) && text.find_first_of("\",") != text.npos && !may_take(start, token)) some = true, take(mask, token);
    }
    return some;
  }
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
          const bool over = raw == kDead || (bytes_.marks().lie_ahead(raw) && bytes_.marks().passed(raw, false) == kDead);
          const uint32_t behind = trie.node(at.node).end;
          if (over) each(at.node, behind, [](uint32_t) { return false; });
          else if (bytes_.marks().lie_ahead(raw)) each(at.node, behind, [&](uint32_t token) { return may_take(start, token); });
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

  // Where items of any kind must differ.
  bool remove_items(Config start, uint32_t* mask) {
    const StacksTrial trial(stacks_);
    const ExclusionTrial reading(exclusion_);
    const Vocabulary& vocabulary = automaton_.vocabulary();
    const Trie& trie = vocabulary.trie();
    bool some = false;
    for (const uint32_t token : vocabulary.separating(exclusion_.reading().inside)) {
      if (has(mask, token) && !exclusion_.begins_no_second_item(vocabulary.tokens()[token]) && !may_take(start, token))
        some = true, take(mask, token);
    }
    auto take_from = [&](uint32_t first, uint32_t last) {
      for (uint32_t k = trie.node(first).first; k < trie.node(last).first; ++k) {
        if (const uint32_t token = trie.string_at(k); has(mask, token)) some = true, take(mask, token);
      }
    };
    along_known(
        start, [&](uint32_t node) { take_from(node, trie.node(node).end); },
        [&](uint32_t node, Config to) {
          if (exclusion_.has_say() && !escapes(to, exclusion_.reading())) take_from(node, node + 1);
        });
    return some;
  }

 public:
  // Where items of any kind must differ: walks the vocabulary's trie as long as a known item has a say, or has ruled out a
  // reading of the text. Calls over(node) where the text ends, and there(node, config) elsewhere, where the exclusion is at that text.
  template <class Over, class There>
  void along_known(Config start, Over&& over, There&& there) {
    if (!exclusion_.has_say()) return;
    const StacksTrial trial(stacks_);
    const ExclusionTrial reading(exclusion_);
    const Trie& trie = automaton_.vocabulary().trie();
    Walker walker(bytes_, stacks_);
    struct Step {
      uint32_t node;
      Config config;
      Exclusion::Checkpoint at;
      bool dropped;     // whether a reading of the text ended on the way
      size_t next = 0;  // child
    };
    std::vector<Step> path{{0, start, exclusion_.checkpoint(), false}};
    while (!path.empty()) {
      Step& from = path.back();
      if (from.next == trie.children(from.node).size()) {
        path.pop_back();
        continue;
      }
      const uint32_t node = trie.children(from.node)[from.next].node;
      const uint8_t byte = trie.child_bytes(from.node)[from.next++];
      const char text[] = {static_cast<char>(byte)};
      exclusion_.restore(from.at);
      const Config to = exclusion_.run(bytes_, walker, from.config, {text, 1});
      if (is_dead(to)) {
        over(node);
        continue;
      }
      const bool dropped = from.dropped || to != walker.step(from.config, byte);
      if (!exclusion_.has_say() && !dropped) continue;
      there(node, to);
      path.push_back({node, to, exclusion_.checkpoint(), dropped});
    }
  }

 private:
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
