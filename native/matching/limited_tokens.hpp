// Removes from a mask the tokens that a limit of new tokens forbids, if strings must differ: those after which no completion
// fits into the tokens that are left.
//
// There are three cases, the cheapest first (Matcher::exclude chooses):
//   1. All tokens fit, except inside a string that may still become a known one: the longest of the least completions after
//      any token leaves enough tokens to replace every string in it by a different one (`Completion::enough`). Then only
//      tokens that end inside such a string are checked; if items of any kind must differ, only tokens after which a known
//      item restricts the text (`remove_matching`).
//   2. Every token that the distances allow leads to a state whose safe text fits (safe_texts.hpp). Then only tokens after
//      which a known string may restrict the text are checked, one by one (`remove_unsafe`).
//   3. Otherwise tokens are grouped by their future (`remove`): the configuration that they lead to, what is being read there,
//      and the text of the token up to its last quotation mark, which finishes strings. Within a group, the prefix of the
//      string that a token leaves open may differ. If no known string begins with that prefix, it matters only if the string
//      becomes equal to a string of the completion; such tokens are checked one by one. The cost is proportional to the number
//      of groups, plus one walk of the vocabulary inside a string.
//
// The completions that were found are kept as offers: the next token that is accepted is checked against them first.
#pragma once

#include "matching/completion.hpp"
#include "matching/excluded_tokens.hpp"

namespace tokenfst {

class LimitedTokens {
 public:
  // `left`: how many tokens may follow the next one.
  LimitedTokens(TokenAutomaton& automaton, Stacks& stacks, Exclusion& exclusion, Completion& completion, uint32_t left,
                std::vector<std::string>& offers);

  // Whether all tokens of a configuration's mask surely fit, except those that end inside a string that may still
  // become a known one.
  bool all_fit(Config from) { return completion_.all_fit(from, exclusion_.reading(), left_); }

  // Whether a safe text that fits follows each token of the mask for `left` + 1 tokens.
  bool safely_fit(Config from) { return automaton_.safely_fits(from, left_, stacks_); }
  // Removes the tokens that do not fit from a mask, if safely_fit(). Only two kinds can fail: tokens that end a known string,
  // and tokens that leave a string open that may become a known one. Returns whether there were any.
  bool remove_unsafe(Config from, uint32_t* mask);
  // Removes the tokens that do not fit from a mask; returns whether there were any.
  bool remove(Config from, uint32_t* mask);
  // The same if all_fit(): only tokens that end inside a string that may become a known one can fail. It is the string that
  // is being read, or one that the token begins.
  bool remove_matching(Config from, uint32_t* mask);

 private:
  // remove_matching() for items of any kind: checks the tokens after which a known item restricts the text or has excluded a
  // reading of it, and those in which an item begins after another one.
  bool remove_near_known(uint32_t* mask);
  // remove() for items of any kind: checks the tokens of `row` one by one, and removes from `mask` those that do not fit.
  // Tokens cannot be grouped, because the text of an open item matters. But after a token that leaves no such array open,
  // the future depends only on the position, so one check serves all tokens that lead there.
  bool remove_each(const uint32_t* row, uint32_t* mask);
  // Identifies tokens with the same future, except for the prefix of the string that they leave open.
  struct Key {
    Config end;
    Reading reading;
    std::string_view text;  // the part of the token's text that matters
    auto operator<=>(const Key&) const = default;
  };
  struct Place {
    Config config;
    Reading reading;
    std::vector<uint32_t>* group = nullptr;
  };

  template <class F>
  void each(const uint32_t* row, F&& f) const {
    for (size_t word = 0; word < automaton_.masks().words(); ++word) {
      for (uint32_t bits = row[word]; bits; bits &= bits - 1) f(static_cast<uint32_t>(word * 32 + std::countr_zero(bits)));
    }
  }

  std::vector<uint32_t>* group(Config end, Reading reading, std::string_view token);

  // Calls f(token) for each token that ends inside the string that is being read, while it may still become a known
  // one. They lie along the known strings in the trie.
  template <class F>
  void each_matching(F&& f) const {
    const Trie& trie = automaton_.vocabulary().trie();
    std::vector<std::pair<uint32_t, Reading>> pending{{0, exclusion_.reading()}};
    while (!pending.empty()) {
      const auto [node, at] = pending.back();
      pending.pop_back();
      const std::span<const uint8_t> bytes = trie.child_bytes(node);
      exclusion_.each_onward(at, bytes, [&](size_t place) {
        const TrieChild& child = trie.children(node)[place];
        Reading next = at;
        if (exclusion_.follow(next, bytes[place]) != Ending::None || !Exclusion::matches(next)) return;
        trie.each_string(child, f);
        pending.emplace_back(child.node, next);
      });
    }
  }
  // Inside a string: groups the tokens that stay inside it, by one walk. The others remain in `rest`.
  void walk_string(uint32_t* rest);
  void walk_token(uint32_t token);

  // Calls f with the tokens of a group after which no completion fits.
  template <class F>
  void judge(const Key& key, const std::vector<uint32_t>& tokens, F&& f) {
    time_limit_.step(256);
    std::optional<std::string> text;
    bool plenty = false;
    for (size_t k = 0; k < std::min<size_t>(tokens.size(), 2) && !text && !plenty; ++k) {
      const ExclusionTrial reading(exclusion_);
      const Config end = automaton_.advance(from_, tokens[k], stacks_, &exclusion_);
      plenty = !is_dead(end) && surely(end);
      if (!plenty) text = look(end);
    }
    if (plenty) return;
    if (!text) {
      std::ranges::for_each(tokens, f);
      return;
    }
    if (tokens.size() == 1 || !key.reading.inside || !key.reading.sibling) return;
    const std::set<std::string> equal = endings_that_meet(key, *text);
    for (uint32_t token : tokens) {
      std::string_view tail = automaton_.text_of(from_, token).substr(key.text.size());
      const bool unsure = equal.contains(std::string(tail)) || (!equal.empty() && tail.find('\\') != tail.npos);
      if (unsure && !fits(token)) f(token);
    }
  }
  // The texts that, added by a token to the string that it leaves open, make that string equal to a later string of the
  // completion.
  std::set<std::string> endings_that_meet(const Key& key, std::string_view completion) const;
  // Whether a completion fits after a token.
  bool fits(uint32_t token);
  // Whether a completion fits at the exclusion's position.
  bool fits_after(Config end) { return !is_dead(end) && (surely(end) || look(end)); }
  bool surely(Config end) { return completion_.plenty(end, exclusion_.reading(), left_) || completion_.surely(end, left_); }
  // A completion that fits, from the exclusion's position; none if none is found.
  std::optional<std::string> look(Config end);

  static constexpr size_t kMostOffers = 3, kMostMore = 8;
  static constexpr ByteGroups kSpecialInStrings = group_of('"') | group_of('\\');

  TokenAutomaton& automaton_;
  ByteAutomaton& bytes_;
  Stacks& stacks_;
  Exclusion& exclusion_;
  Completion& completion_;
  Walker walker_;
  const uint32_t left_;
  std::vector<std::string>& offers_;
  TimeLimit time_limit_{bytes_.budget().seconds, "the tokens that a limit leaves"};
  Config from_;
  std::map<Key, std::vector<uint32_t>> groups_;
};

}  // namespace tokenfst
