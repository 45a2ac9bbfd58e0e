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
#include "support/boxed.hpp"
#include "matching/limited_tokens.hpp"
#include "matching/excluded_tokens.hpp"
#include "threads/exclusive_use.hpp"
#include "token_automata/token_automaton.hpp"
#include "matching/history.hpp"

namespace tokenfst {

class Matcher {
 public:
  Matcher(std::shared_ptr<TokenAutomaton> automaton, std::optional<uint64_t> max_new_tokens);
  Matcher(const Matcher&);
  Matcher(Matcher&&) noexcept;
  ~Matcher();

  const std::shared_ptr<TokenAutomaton>& automaton() const { return automaton_; }
  Matcher fork() const;
  // A number for the matcher's position: equal numbers mean equal futures; if there are stacks, only among a matcher and its forks.
  uint64_t state() const;
  size_t num_tokens() const {
    const InUse::Scope use(in_use_);
    return tokens_.size();
  }
  std::vector<uint32_t> tokens() const;
  bool is_terminated() const {
    const InUse::Scope use(in_use_);
    return terminated_;
  }
  bool is_accepting() const {
    const InUse::Scope use(in_use_);
    return automaton_->accepting(config());
  }
  uint32_t distance();
  // The bytes of this sequence, without the shared automaton.
  size_t memory() const;

  std::optional<uint64_t> max_tokens_left() const;
  void set_max_tokens_left(std::optional<uint64_t> left);

  bool accept_token(int64_t token);
  bool accept_tokens(const std::vector<int64_t>& tokens);
  // Advances up to the end of the text and ignores the tokens after it. False where one is not allowed; those before it stay accepted.
  bool accept_until_over(const std::vector<int64_t>& tokens);
  // Whether nothing follows: the end token was accepted, or the last token of the limit.
  bool is_over() const {
    const InUse::Scope use(in_use_);
    return terminated_ || tokens_.size() == limit_;
  }
  size_t validate_tokens(const std::vector<int64_t>& tokens);

  // Writes the mask; returns whether any token is forbidden.
  bool fill(uint32_t* out);
  // The same if the mask is cached and needs no check of single tokens; otherwise returns none and writes nothing.
  std::optional<bool> fill_known(uint32_t* out);

  // Masks for a tree of draft tokens: row i of `out` is the mask after the path to node i, all zero if a token on the
  // path is not allowed. Node 0 is the root: the matcher's position (its token is already accepted). -1 is no node.
  // O(nodes); the matcher ends where it began.
  void traverse_draft_tree(std::span<const int64_t> next_token, std::span<const int64_t> next_sibling,
                           std::span<const int64_t> draft_tokens, uint32_t* out, ptrdiff_t stride);

  // The tokens that have no alternative, up to the next choice or the end.
  std::vector<uint32_t> forced_tokens();

  // The bytes that every accepted text continues with.
  std::string forced_bytes();

  void rollback(size_t count);
  void reset();

 private:
  Config config() const {
    return excluding_ ? excluding_->history.last({automaton_->start(), {}}).config : history_.last(automaton_->start());
  }
  // The same if the automaton distinguishes tokens with equal bytes: over all ways to divide the text, until a special token may come.
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

  // Limits a number of tokens to the greatest distance; more makes no difference.
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
