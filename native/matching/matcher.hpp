// One decoding: a token automaton, and the configurations that the accepted tokens led through.
//
// Masks and advances cost the same whatever the number of tokens so far; rollback cuts the history, fork copies it. If
// strings must differ from each other, the sequence also has the record of its strings (exclusion/exclusion.hpp), and
// its history contains checkpoints of that record.
//
// A call that raises leaves a matcher as it was: a token is added to the history once all of it has been read, a plan
// is stored once it is complete, and strings that were read on trial are removed from the record. One thread at a time
// uses a matcher, others wait: every public function acquires it first.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <vector>
#include "containers/boxed.hpp"
#include "matching/limited_tokens.hpp"
#include "matching/excluded_tokens.hpp"
#include "threads/exclusive_use.hpp"
#include "token_automata/token_automaton.hpp"
#include "matching/history.hpp"

namespace tokenfst {

class Matcher {
 public:
  // A matcher at the start of a text. Raises EmptyLanguage if no sequence of tokens spells a text of the language, and
  // TokenLimit if no such text is known to fit into `max_new_tokens` tokens (end token included; none: no limit).
  Matcher(std::shared_ptr<TokenAutomaton> automaton, std::optional<uint64_t> max_new_tokens);
  Matcher(const Matcher&);
  Matcher(Matcher&&) noexcept;
  ~Matcher();

  const std::shared_ptr<TokenAutomaton>& automaton() const { return automaton_; }
  // An independent copy. O(number of tokens and size of the stacks).
  Matcher fork() const;
  // A number for the matcher's position: where it is equal, the same texts can follow. If the automaton has stacks, this
  // holds only among a matcher and its forks.
  uint64_t state() const;
  // The number of accepted tokens, end token included.
  size_t num_tokens() const {
    const InUse::Scope use(in_use_);
    return tokens_.size();
  }
  std::vector<uint32_t> tokens() const;
  // Whether the end token was accepted.
  bool is_terminated() const {
    const InUse::Scope use(in_use_);
    return terminated_;
  }
  // Whether the text so far is in the language.
  bool is_accepting() const {
    const InUse::Scope use(in_use_);
    return automaton_->accepting(config());
  }
  // The number of tokens, without the end token, that complete the text: the least number, or an upper bound if the
  // automaton has stacks or strings must differ. kUnreachable if no completion is found.
  uint32_t distance();
  // The bytes of this sequence, without the shared automaton.
  size_t memory() const;

  // The number of tokens that may still be accepted, end token included; none: no limit. Setting it raises TokenLimit if
  // no completion is known to fit.
  std::optional<uint64_t> max_tokens_left() const;
  void set_max_tokens_left(std::optional<uint64_t> left);

  // Functions that take tokens raise TokenId for a number that is no token of the vocabulary.
  //
  // Advances by one token. Returns false, and changes nothing, if it is not allowed. Raises Terminated after the end token.
  bool accept_token(int64_t token);
  // Advances by all tokens. Returns false, and changes nothing, if one of them is not allowed.
  bool accept_tokens(const std::vector<int64_t>& tokens);
  // Advances up to the end of the text and ignores the tokens after it. Returns false at a token that is not allowed; the
  // tokens before it stay accepted.
  bool accept_until_over(const std::vector<int64_t>& tokens);
  // Whether nothing follows: the end token was accepted, or the last token of the limit.
  bool is_over() const {
    const InUse::Scope use(in_use_);
    return terminated_ || tokens_.size() == limit_;
  }
  // The number of tokens, from the first on, that could be accepted. The matcher ends where it began.
  size_t validate_tokens(const std::vector<int64_t>& tokens);

  // Writes the mask of the next token, ceil(V/32) words, bit 1 = allowed. Returns false only if every token is allowed.
  // After the end token only end tokens are allowed.
  bool fill(uint32_t* out);
  // The same if the mask is cached and, given a limit, the limit is known not to matter. Otherwise returns none and writes
  // nothing.
  std::optional<bool> fill_known(uint32_t* out);

  // Masks for a tree of draft tokens. Entry i of the three arrays is node i: its first child, its next sibling, its token;
  // -1 is no node. Node 0 is the root, the matcher's position; its token is already accepted. Row i of `out` is the mask
  // after the path to node i, all zero if a token on the path is not allowed. `stride`: words from row to row. Raises
  // TokenId if a node does not exist or is reached twice. One step and one mask for each node; the matcher ends where it
  // began.
  void traverse_draft_tree(std::span<const int64_t> next_token, std::span<const int64_t> next_sibling,
                           std::span<const int64_t> draft_tokens, uint32_t* out, ptrdiff_t stride);

  // The tokens that have no alternative, up to the next choice or the end.
  std::vector<uint32_t> forced_tokens();

  // The bytes that every accepted text continues with, however they are divided into tokens.
  std::string forced_bytes();

  // Removes the last `count` tokens. Raises Rollback if fewer were accepted. At most 32 steps are read again (history.hpp).
  void rollback(size_t count);
  // Returns to the start of the text.
  void reset();

 private:
  Config config() const {
    return excluding_ ? excluding_->history.last({automaton_->start(), {}}).config : history_.last(automaton_->start());
  }
  // forced_bytes() if the automaton is token-level: follows all ways to divide the text into tokens at the same time, and
  // stops where a special token may come.
  std::string forced_text();

  static constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
  static constexpr size_t kMaxForced = 1 << 20;

  // The mask after the end token: only end tokens.
  bool fill_end(uint32_t* out) const;

  // Removes the tokens accepted in its scope when the scope ends, also by an exception.
  class Trial {
   public:
    explicit Trial(Matcher& matcher) : matcher_(matcher), before_(matcher.tokens_.size()) {}
    // NOLINTNEXTLINE(bugprone-exception-escape): it goes back by no more tokens than were accepted
    ~Trial() { matcher_.rollback(matcher_.tokens_.size() - before_); }
    void keep() { before_ = matcher_.tokens_.size(); }

   private:
    Matcher& matcher_;
    size_t before_;
  };

  // Restores the record of strings to the last accepted token when its scope ends: after an exception, or after text
  // was read on trial.
  class Reread {
   public:
    explicit Reread(Matcher& matcher) : matcher_(matcher) {}
    ~Reread() {
      if (matcher_.excluding_)
        matcher_.excluding_->exclusion.restore(matcher_.excluding_->history.last({matcher_.automaton_->start(), {}}).after);
    }

   private:
    Matcher& matcher_;
  };

  // The number of tokens as a distance, at most the greatest one: a larger limit makes no difference.
  static uint32_t at_most(uint64_t tokens) { return static_cast<uint32_t>(std::min<uint64_t>(tokens, kUnknown - 1)); }
  uint32_t left() const { return limit_ == kNoLimit ? kUnreachable : at_most(limit_ - tokens_.size()); }
  // Raises TokenId for a token outside of the vocabulary.
  void check(int64_t token) const;
  // Clears the rows of a subtree that cannot be reached.
  void blank(int64_t first, std::span<const int64_t> next_token, std::span<const int64_t> next_sibling, std::vector<bool>& seen,
             uint32_t* out, ptrdiff_t stride) const;
  bool push(uint32_t token);
  bool push_excluding(uint32_t token);
  // Whether the limit can be kept after a token that leads to `next`, as the mask says.
  bool keeps_limit(Config from, Config next) {
    return limit_ == kNoLimit || automaton_->is_far(from, left() - 1, stacks_) || automaton_->distance(next, stacks_) <= left() - 1;
  }
  // Makes room for one more token, so that nothing raises later.
  void make_room() {
    if (tokens_.size() == tokens_.capacity()) tokens_.reserve(std::max<size_t>(16, 2 * tokens_.size()));
  }
  Completion completion() { return {*automaton_, stacks_, excluding_->exclusion, excluding_->known}; }
  void plan(std::optional<std::string> text, size_t position);
  // The rest of the plan after a token, if the plan begins with the token's text (special tokens have none) and the
  // rest fits into the limit.
  std::optional<std::string> planned(uint32_t token);
  // Whether the limit holds after a token that leads to `next`: with plenty of tokens left, or by a plan.
  bool completes(Config next, uint32_t token, std::optional<std::string>& text);

  // Removes excluded tokens from a mask, and those that the limit forbids because of exclusion.
  bool exclude(uint32_t* mask);
  // Adds the tokens with which the plan for this position begins, as accept_token takes them.
  void add_planned(Config from, uint32_t* mask);

  std::shared_ptr<TokenAutomaton> automaton_;
  struct Step {
    Config config;
    Exclusion::Checkpoint after;
  };
  struct Excluding {
    Exclusion exclusion;
    History<Step> history;
    std::map<size_t, std::string> plans;  // for numbers of accepted tokens: a completion that keeps the limit
    std::vector<std::string> offers;      // completions found after tokens of the mask, after this many accepted tokens
    size_t offers_from = 0;
    Completion::Known known;
  };

  Stacks stacks_;
  History<Config> history_;
  Boxed<Excluding> excluding_;  // used instead of `history_` if strings must differ
  std::vector<uint32_t> tokens_;
  size_t limit_ = kNoLimit;  // of all tokens of the sequence
  bool terminated_ = false;
  mutable InUse in_use_;
};

}  // namespace tokenfst
