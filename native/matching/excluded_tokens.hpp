// Removes the excluded tokens from a mask: those after which a string that must differ from the strings before it would
// repeat one of them (exclusion/exclusion.hpp).
//
// A mask is computed for a state, as if nothing were excluded. Two kinds of tokens may have to be removed. First,
// tokens that end the string that is being read. They lie on the paths of the vocabulary's trie along which the string
// can still become a known one, so only these paths are walked. Second, tokens that contain a whole string. They have
// two quotation marks, are few, and are tried one by one. So the cost is proportional to the known strings that still
// match; if there are none, only the few tokens of the second kind are checked.
//
// Exactness: a string that can still become a known one must also be able to end differently, or the text has no
// completion. This is checked for tokens that end inside such a string (`can_differ`). The check is immediate for languages
// in which every prefix has infinitely many endings; if some have few (`few_endings`), tokens that begin a string are
// tried too. A set of strings may also be finite. While fewer strings are finished than it has (`fewest`), a new one
// exists; after that, tokens with a comma are tried.
//
// If items of any kind must differ, known items restrict the text wherever an item may begin or the current item may still
// become a known one: the walk follows these paths, whatever is read on them. Otherwise only a token in which an item
// begins after another one can be wrong. Such a token has a comma, and is tried.
#pragma once

#include "token_automata/token_automaton.hpp"

namespace tokenfst {

class ExcludedTokens {
 public:
  ExcludedTokens(TokenAutomaton& automaton, Stacks& stacks, Exclusion& exclusion)
      : automaton_(automaton), bytes_(automaton.bytes()), stacks_(stacks), exclusion_(exclusion) {}

  // Removes the excluded tokens from the mask of a configuration; returns whether there were any.
  bool remove(Config config, uint32_t* mask);

  // Whether the string that is being read, or that may begin, can end as none of the known ones (Exclusion::can_differ). If
  // items of any kind must differ, `reading` must be the position of `exclusion`.
  bool can_differ(Config config, const Reading& reading);

 private:
  // The state of a walk of the vocabulary, until the string ends or can no longer become a known one.
  struct Place {
    uint32_t node;  // of the vocabulary's trie
    Config config;
    Reading reading;
  };

  static bool has(const uint32_t* mask, uint32_t token) { return mask[token >> 5] >> (token & 31) & 1; }
  static void take(uint32_t* mask, uint32_t token) { mask[token >> 5] &= ~(1u << (token & 31)); }

  // remove() at the start of a text, where tokens have other forms than in the vocabulary's lists.
  bool remove_first(Config start, uint32_t* mask);
  // Removes tokens that end the string that is being read as a known one, and those after which it could only end as
  // one.
  bool remove_endings(Config start, uint32_t* mask);

  // remove() if items of any kind must differ.
  bool remove_items(Config start, uint32_t* mask);

 public:
  // For items of any kind: walks the vocabulary's trie while a known item restricts the text or has excluded a reading
  // of it. Calls over(node) where no reading is left, and otherwise there(node, config), while the exclusion has read the
  // text of that node.
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
  bool may_take(Config config, uint32_t token);

  TokenAutomaton& automaton_;
  ByteAutomaton& bytes_;
  Stacks& stacks_;
  Exclusion& exclusion_;
};

}  // namespace tokenfst
