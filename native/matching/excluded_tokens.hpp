// Removes from a mask the tokens that would end a string which must differ from others as a repetition
// (exclusion/exclusion.hpp).
//
// A mask is computed for a state, as if nothing were excluded. Two kinds of tokens may have to be removed. First,
// tokens that end the string that is being read: they lie along the paths of the vocabulary's trie on which the string
// can still become a known one, and the walk leaves a path when it cannot. Second, tokens that contain a whole string:
// they have two quotation marks, are few, and are tried one by one. So the cost is proportional to the known strings
// that still match; without any, only those few tokens are checked.
//
// Exactness: if a string can still become a known one, it must also be able to end differently, or the text has no
// completion; this is checked if a token ends inside such a string (`can_differ`). The check is immediate for languages
// in which every prefix has infinitely many endings; if some have few (`few_endings`), tokens that begin a string are
// tried too. If a string is yet to begin, one is left as long as fewer are finished than a finite set contains
// (`fewest`); beyond that, tokens with a comma are tried.
//
// If items of any kind must differ, known items restrict the text wherever an item may begin or may still become a
// known one: the walk follows those paths, whatever is read on them. Elsewhere, and after them, only a token in which
// an item begins after another one can be wrong: it has a comma, and is tried.
#pragma once

#include "token_automata/token_automaton.hpp"

namespace tokenfst {

class ExcludedTokens {
 public:
  ExcludedTokens(TokenAutomaton& automaton, Stacks& stacks, Exclusion& exclusion)
      : automaton_(automaton), bytes_(automaton.bytes()), stacks_(stacks), exclusion_(exclusion) {}

  // Removes the excluded tokens from the mask of a configuration; returns whether there were any.
  bool remove(Config config, uint32_t* mask) {
    if (automaton_.is_first(config)) return remove_first(config, mask);
    if (bytes_.marks().facts.values) return remove_items(config, mask);
    bool some = false;
    if (Exclusion::matches(exclusion_.reading())) some = remove_endings(config, mask);
    // Two strings must end in one token, or one that begins in it if others are finished: then it follows a comma or a
    // bracket unless it may begin here. With `few_endings`, it is enough that one begins.
    const Reading& at = exclusion_.reading();
    const DistinctFacts& facts = bytes_.marks().facts;
    const Vocabulary& vocabulary = automaton_.vocabulary();
    auto try_each = [&](std::span<const uint32_t> tokens) {
      for (uint32_t token : tokens) {
        if (has(mask, token) && !exclusion_.never_restricts(vocabulary.tokens()[token], facts) && !may_take(config, token))
          some = true, take(mask, token);
      }
    };
    const bool two = at.inside || !at.finished;
    try_each(two || at.sibling || facts.few_endings ? vocabulary.quoting((two ? 3 : 2) - (facts.few_endings ? 1 : 0))
                                                    : vocabulary.quoting_items());
    if (facts.fewest != kUnbounded && at.scope && at.finished + vocabulary.most_quotes() >= facts.fewest)
      try_each(vocabulary.separating(at.inside));
    return some;
  }

  // Whether the string that is being read can end as none of the known ones. If items of any kind must differ,
  // `reading` is that of the exclusion.
  bool can_differ(Config config, const Reading& reading) {
    if (bytes_.marks().facts.values ? !exclusion_.restricts() : !Exclusion::may_restrict(reading, bytes_.marks().facts)) return true;
    Walker walker(bytes_, stacks_);
    return exclusion_.can_differ(bytes_, walker, stacks_, config, reading);
  }

 private:
  // The state of a walk of the vocabulary, until the string ends or can no longer become a known one.
  struct Place {
    uint32_t node;  // of the vocabulary's trie
    Config config;
    Reading reading;
  };

  static bool has(const uint32_t* mask, uint32_t token) { return mask[token >> 5] >> (token & 31) & 1; }
  static void take(uint32_t* mask, uint32_t token) { mask[token >> 5] &= ~(1u << (token & 31)); }

  // The same at the start of a text, where tokens have other forms than in the vocabulary's lists.
  bool remove_first(Config start, uint32_t* mask) {
    bool some = false;
    for (uint32_t token = 0; token < automaton_.vocabulary().size(); ++token) {
      const std::string_view text = automaton_.text_of(start, token);
      if (has(mask, token) && text.find_first_of("\",") != text.npos && !may_take(start, token)) some = true, take(mask, token);
    }
    return some;
  }
  // Removes tokens that end the string that is being read as a known one, and those after which it could only end as
  // one.
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
          const bool over = raw == kDead || (bytes_.marks().is_marked(raw) && bytes_.marks().passed(raw, false) == kDead);
          const uint32_t behind = trie.node(at.node).end;
          if (over) each(at.node, behind, [](uint32_t) { return false; });
          else if (bytes_.marks().is_marked(raw)) each(at.node, behind, [&](uint32_t token) { return may_take(start, token); });
          return;
        }
        at.config = raw == kDead ? Config{} : walker.arrive(at.config, raw);
        if (is_dead(at.config)) return;
        each(at.node, at.node + 1, [&](uint32_t) { return can_differ(at.config, at.reading); });
        pending.push_back(at);
      });
    }
    return some;
  }

  // The same if items of any kind must differ.
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
          if (exclusion_.restricts() && !can_differ(to, exclusion_.reading())) take_from(node, node + 1);
        });
    return some;
  }

 public:
  // For items of any kind: walks the vocabulary's trie while a known item restricts the text or has excluded a reading
  // of it. Calls over(node) if no reading is left, and there(node, config) otherwise, with the exclusion at that text.
  template <class Over, class There>
  void along_known(Config start, Over&& over, There&& there) {
    if (!exclusion_.restricts()) return;
    const StacksTrial trial(stacks_);
    const ExclusionTrial reading(exclusion_);
    const Trie& trie = automaton_.vocabulary().trie();
    Walker walker(bytes_, stacks_);
    struct Step {
      uint32_t node;
      Config config;
      Exclusion::Checkpoint at;
      bool dropped;     // whether a reading of the text was excluded on the path
      size_t next = 0;  // index of the next child
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
      if (!exclusion_.restricts() && !dropped) continue;
      there(node, to);
      path.push_back({node, to, exclusion_.checkpoint(), dropped});
    }
  }

 private:
  // Whether a token is allowed, found by reading it.
  bool may_take(Config config, uint32_t token) {
    const StacksTrial trial(stacks_);
    const ExclusionTrial reading(exclusion_);
    const Config end = automaton_.advance(config, token, stacks_, &exclusion_);
    return !is_dead(end) && can_differ(end, exclusion_.reading());
  }

  TokenAutomaton& automaton_;
  ByteAutomaton& bytes_;
  Stacks& stacks_;
  Exclusion& exclusion_;
};

}  // namespace tokenfst
