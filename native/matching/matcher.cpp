// Matcher: accepting tokens, masks, and what is forced.
#include "matching/matcher.hpp"

#include "calls/call.hpp"
#include "support/counted.hpp"

namespace tokenfst {

Matcher::Matcher(std::shared_ptr<TokenAutomaton> automaton, std::optional<uint64_t> max_new_tokens) : automaton_(std::move(automaton)) {
  if (!automaton_->spellable(automaton_->start(), stacks_)) {
    throw Error(Fault::EmptyLanguage, "no token sequence of this vocabulary spells any string of the language");
  }
  if (automaton_->bytes().marks().any) excluding_.emplace();
  set_max_tokens_left(max_new_tokens);
}

Matcher::Matcher(const Matcher&) = default;
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher::~Matcher() = default;

Matcher Matcher::fork() const {
  const InUse::Scope use(in_use_);
  return *this;
}

uint64_t Matcher::state() const {
  const InUse::Scope use(in_use_);
  const uint64_t place = uint64_t{config().stack} << 32 | config().state;
  return excluding_ ? mix(place, excluding_->exclusion.fingerprint()) : place;
}

std::vector<uint32_t> Matcher::tokens() const {
  const InUse::Scope use(in_use_);
  return tokens_;
}

uint32_t Matcher::distance() {
  const InUse::Scope use(in_use_);
  const Reread reread(*this);
  if (automaton_->accepting(config())) return 0;
  return excluding_ ? completion().length(config()) : automaton_->distance(config(), stacks_);
}

size_t Matcher::memory() const {
  const InUse::Scope use(in_use_);
  const size_t excluded = excluding_ ? sizeof(Excluding) + excluding_->exclusion.memory() + excluding_->history.memory() : 0;
  return sizeof *this + stacks_.memory() + history_.memory() + tokens_.capacity() * 4 + excluded;
}

std::optional<uint64_t> Matcher::max_tokens_left() const {
  const InUse::Scope use(in_use_);
  if (limit_ == kNoLimit) return std::nullopt;
  return limit_ - tokens_.size();
}

void Matcher::set_max_tokens_left(std::optional<uint64_t> left) {
  const InUse::Scope use(in_use_);
  if (!left) {
    limit_ = kNoLimit;
    return;
  }
  const Reread reread(*this);
  const uint32_t most = at_most(*left);
  const bool plenty = excluding_ && completion().plenty(config(), excluding_->exclusion.reading(), most);
  std::optional<std::string> text;
  if (excluding_ && !plenty && !terminated_) text = completion().within(config(), most);
  const bool far = plenty || text || (!excluding_ && most > 0 && automaton_->is_far(config(), most - 1, stacks_));
  if (const uint32_t least = far ? 0 : distance(); least > most && !terminated_) {
    const bool bound = automaton_->bounds_distances();  // A completion may fit, but none is known.
    const std::string needed = least == kUnreachable
                                   ? "the search for a completion found none"
                                   : (bound ? "enough from here is " : "the least number from here is ") + std::to_string(least);
    throw Error(Fault::TokenLimit, std::string("no accepted text ") + (bound ? "is known to fit" : "fits") + " into " +
                                       counted(*left, "token") + ": " + needed);
  }
  if (excluding_ && !plenty && !terminated_) plan(std::move(text), tokens_.size());
  limit_ = tokens_.size() + std::min<uint64_t>(*left, kNoLimit - 1 - tokens_.size());
}

void Matcher::check(int64_t token) const {
  const int64_t size = automaton_->vocabulary().size();
  if (token >= 0 && token < size) return;
  throw Error(Fault::TokenId, "token id " + std::to_string(token) + " lies outside the vocabulary of " +
                                  counted(static_cast<uint64_t>(size), "token") +
                                  (size == 0   ? ""
                                   : size == 1 ? ", which has the id 0"
                                               : ", which have the ids 0 to " + std::to_string(size - 1)));
}

bool Matcher::accept_token(int64_t token) {
  const InUse::Scope use(in_use_);
  check(token);
  if (terminated_)
    throw Error(Fault::Terminated, "token " + std::to_string(token) + " was offered after the end token; reset() or rollback() first");
  return push(static_cast<uint32_t>(token));
}

bool Matcher::accept_tokens(const std::vector<int64_t>& tokens) {
  const InUse::Scope use(in_use_);
  for (int64_t token : tokens) check(token);
  Trial trial(*this);
  if (!std::ranges::all_of(tokens, [&](int64_t token) { return !terminated_ && push(static_cast<uint32_t>(token)); })) return false;
  trial.keep();
  return true;
}

bool Matcher::accept_until_over(const std::vector<int64_t>& tokens) {
  const InUse::Scope use(in_use_);
  if (tokens.size() > kManySteps) Call::work();
  for (int64_t token : tokens) {
    if (is_over()) break;
    check(token);
    if (!push(static_cast<uint32_t>(token))) return false;
  }
  return true;
}

size_t Matcher::validate_tokens(const std::vector<int64_t>& tokens) {
  const InUse::Scope use(in_use_);
  for (int64_t token : tokens) check(token);
  Trial trial(*this);
  size_t accepted = 0;
  while (accepted < tokens.size() && !terminated_ && push(static_cast<uint32_t>(tokens[accepted]))) ++accepted;
  return accepted;
}

bool Matcher::fill(uint32_t* out) {
  const InUse::Scope use(in_use_);
  if (terminated_) return fill_end(out);
  const Reread reread(*this);
  const bool some = automaton_->fill(config(), left(), out, stacks_) || limit_ != kNoLimit;
  return excluding_ ? exclude(out) || some : some;
}

std::optional<bool> Matcher::fill_known(uint32_t* out) {
  const InUse::Scope use(in_use_);
  if (terminated_) return fill_end(out);
  const bool far = limit_ == kNoLimit || (!excluding_ && left() > 0 && automaton_->is_known_far(config(), left() - 1, stacks_));
  const MaskId known = far ? automaton_->known_mask(config(), stacks_) : 0;
  if (known == 0) return std::nullopt;
  const bool some = automaton_->write(known, out) || limit_ != kNoLimit;
  if (!excluding_) return some;
  const Reread reread(*this);
  return exclude(out) || some;
}

void Matcher::traverse_draft_tree(std::span<const int64_t> next_token, std::span<const int64_t> next_sibling,
                                  std::span<const int64_t> draft_tokens, uint32_t* out, ptrdiff_t stride) {
  const InUse::Scope use(in_use_);
  Trial trial(*this);
  struct Visit {
    int64_t node;
    size_t depth;  // how many tokens are accepted before this node's own
  };
  std::vector<bool> seen(draft_tokens.size());
  std::vector<Visit> stack{{0, tokens_.size()}};
  while (!stack.empty()) {
    auto [node, depth] = stack.back();
    stack.pop_back();
    if (node < 0) continue;
    if (static_cast<size_t>(node) >= seen.size() || seen[node]) {
      throw Error(Fault::TokenId, "node " + std::to_string(node) + " of the draft tree does not exist or has two parents");
    }
    seen[node] = true;
    rollback(tokens_.size() - depth);
    if (node != 0) stack.push_back({next_sibling[node], depth});
    uint32_t token =
        draft_tokens[node] < 0 || draft_tokens[node] >= automaton_->vocabulary().size() ? kNone : static_cast<uint32_t>(draft_tokens[node]);
    if (node != 0 && (token == kNone || terminated_ || !push(token))) {
      blank(next_token[node], next_token, next_sibling, seen, out, stride);
      std::memset(out + node * stride, 0, automaton_->masks().words() * 4);
      continue;
    }
    fill(out + node * stride);
    stack.push_back({next_token[node], tokens_.size()});
  }
}

std::vector<uint32_t> Matcher::forced_tokens() {
  const InUse::Scope use(in_use_);
  std::vector<uint32_t> forced;
  if (terminated_) return forced;
  Trial trial(*this);
  std::vector<uint32_t> row(automaton_->masks().words());
  while (forced.size() < kMaxForced) {
    fill(row.data());
    std::optional<uint32_t> only;
    int count = 0;
    for (size_t i = 0; i < row.size() && count < 2; ++i) {
      if (row[i] == 0) continue;
      count += std::popcount(row[i]);
      only = static_cast<uint32_t>(i * 32 + std::countr_zero(row[i]));
    }
    if (count != 1 || automaton_->vocabulary().is_eos(*only) || !push(*only)) break;
    forced.push_back(*only);
  }
  return forced;
}

std::string Matcher::forced_bytes() {
  const InUse::Scope use(in_use_);
  std::string forced;
  if (terminated_) return forced;
  ByteAutomaton& bytes = automaton_->bytes();
  if (bytes.is_token_level()) {
    Call::work();
    return forced_text();
  }
  std::vector<std::pair<uint32_t, uint8_t>> size_and_byte(bytes.num_classes());
  for (int byte = 0; byte < 256; ++byte) {
    auto& [size, last] = size_and_byte[bytes.classes()[byte]];
    ++size;
    last = static_cast<uint8_t>(byte);
  }
  Walker walker(bytes, stacks_);
  for (Config at = config(); !automaton_->accepting(at) && forced.size() < kMaxForced;) {
    const State* row = bytes.row(at.state);
    uint32_t live = 0, chosen = 0;
    for (uint32_t c = 0; c < bytes.num_classes() && live < 2; ++c) {
      if (row[c] != kDead) live += size_and_byte[c].first, chosen = c;
    }
    if (live != 1) break;
    forced += static_cast<char>(size_and_byte[chosen].second);
    at = walker.next(at, chosen);
    if (forced.size() == kManySteps) Call::work();
  }
  return forced;
}

void Matcher::rollback(size_t count) {
  const InUse::Scope use(in_use_);
  if (count > tokens_.size()) {
    throw Error(Fault::Rollback, "cannot roll back " + counted(count, "token") + ": only " + std::to_string(tokens_.size()) +
                                     (tokens_.size() == 1 ? " was accepted" : " were accepted"));
  }
  if (count == 0) return;
  tokens_.resize(tokens_.size() - count);
  if (excluding_) {
    Exclusion& exclusion = excluding_->exclusion;
    History<Step>& history = excluding_->history;
    excluding_->plans.erase(excluding_->plans.upper_bound(tokens_.size()), excluding_->plans.end());
    history.resize(tokens_.size(), Step{automaton_->start(), {}}, [&](const Step& at, size_t k) {
      exclusion.restore(at.after);
      const Config next = automaton_->advance(at.config, tokens_[k], stacks_, &exclusion);
      return Step{next, exclusion.checkpoint()};
    });
    exclusion.restore(history.last({automaton_->start(), {}}).after);
  } else {
    history_.resize(tokens_.size(), automaton_->start(),
                    [this](Config at, size_t k) { return automaton_->advance(at, tokens_[k], stacks_); });
  }
  terminated_ = false;
  if (tokens_.empty()) stacks_.clear();
}

void Matcher::reset() {
  const InUse::Scope use(in_use_);
  rollback(tokens_.size());
}

std::string Matcher::forced_text() {
  ByteAutomaton& bytes = automaton_->bytes();
  Walker walker(bytes, stacks_);
  std::string forced;
  for (std::set<Config> places{config()}; forced.size() < kMaxForced;) {
    const std::set<Config> inside = places;
    for (Config at : inside) {
      if (Config begun = walker.boundary(at); !is_dead(begun)) places.insert(begun);
    }
    std::optional<uint8_t> only;
    for (Config at : places) {
      if (automaton_->accepting(at)) return forced;
      const State* row = bytes.row(at.state);
      for (auto [token, column] : automaton_->specials()) {
        if (row[column] != kDead) return forced;
      }
      for (int byte = 0; byte < 256; ++byte) {
        if (row[bytes.classes()[byte]] == kDead) continue;
        if (only.value_or(static_cast<uint8_t>(byte)) != byte) return forced;
        only = static_cast<uint8_t>(byte);
      }
    }
    if (!only) break;
    std::set<Config> next;
    for (Config at : places) {
      if (Config to = walker.step(at, *only); !is_dead(to)) next.insert(to);
    }
    places = std::move(next);
    forced += static_cast<char>(*only);
  }
  return forced;
}

bool Matcher::fill_end(uint32_t* out) const {
  std::memset(out, 0, automaton_->masks().words() * 4);
  for (uint32_t token : automaton_->vocabulary().eos()) out[token >> 5] |= 1u << (token & 31);
  return true;
}

void Matcher::blank(int64_t first, std::span<const int64_t> next_token, std::span<const int64_t> next_sibling, std::vector<bool>& seen,
                    uint32_t* out, ptrdiff_t stride) const {
  std::vector<int64_t> stack{first};
  while (!stack.empty()) {
    int64_t node = stack.back();
    stack.pop_back();
    if (node < 0 || static_cast<size_t>(node) >= seen.size() || seen[node]) continue;
    seen[node] = true;
    std::memset(out + node * stride, 0, automaton_->masks().words() * 4);
    stack.push_back(next_sibling[node]);
    stack.push_back(next_token[node]);
  }
}

bool Matcher::push(uint32_t token) {
  if (tokens_.size() == limit_) return false;
  if (excluding_) return push_excluding(token);
  Config next = history_.last(automaton_->start());
  const bool ends = automaton_->vocabulary().is_eos(token);
  if (ends) {
    if (!automaton_->accepting(next)) return false;
  } else {
    next = automaton_->advance(next, token, stacks_);
    if (!automaton_->spellable(next, stacks_) || !keeps_limit(config(), next)) return false;
  }
  make_room();
  history_.push(next);
  tokens_.push_back(token);
  terminated_ = ends;
  return true;
}

bool Matcher::push_excluding(uint32_t token) {
  const Reread reread(*this);  // by then the last step of the history is the new one, if nothing raised
  Exclusion& exclusion = excluding_->exclusion;
  Config next = config();
  const bool ends = automaton_->vocabulary().is_eos(token);
  std::optional<std::string> text;  // a plan for the position after the token
  if (ends) {
    if (!automaton_->accepting(next)) return false;
  } else {
    next = automaton_->advance(next, token, stacks_, &exclusion);
    if (!automaton_->spellable(next, stacks_) || !ExcludedTokens(*automaton_, stacks_, exclusion).can_differ(next, exclusion.reading()))
      return false;
    if (limit_ != kNoLimit && !completes(next, token, text)) return false;
  }
  make_room();
  if (!ends && limit_ != kNoLimit) plan(std::move(text), tokens_.size() + 1);
  excluding_->history.push({next, exclusion.checkpoint()});
  tokens_.push_back(token);
  terminated_ = ends;
  return true;
}

void Matcher::plan(std::optional<std::string> text, size_t position) {
  if (text) excluding_->plans.insert_or_assign(position, std::move(*text));
  else excluding_->plans.erase(position);
}

std::optional<std::string> Matcher::planned(uint32_t token) {
  auto it = excluding_->plans.find(tokens_.size());
  const std::string_view text = automaton_->text_of(config(), token);
  if (it == excluding_->plans.end() || text.empty() || !it->second.starts_with(text)) return std::nullopt;
  std::string rest = it->second.substr(text.size());
  return completion().spelled_within(rest, left() - 1, false) ? std::optional(std::move(rest)) : std::nullopt;
}

bool Matcher::completes(Config next, uint32_t token, std::optional<std::string>& text) {
  if ((text = planned(token))) return true;
  Completion completion = this->completion();
  if (completion.plenty(next, excluding_->exclusion.reading(), left() - 1)) return true;
  if (automaton_->distance(next, stacks_) > left() - 1) return false;
  if (completion.surely(next, left() - 1)) return true;
  if (excluding_->offers_from == tokens_.size()) {
    for (const std::string& offer : excluding_->offers) {
      if (completion.fits(next, offer, left() - 1)) return text = offer, true;
    }
  }
  return (text = completion.within(next, left() - 1)).has_value();
}

bool Matcher::exclude(uint32_t* mask) {
  const Config from = config();
  bool some = ExcludedTokens(*automaton_, stacks_, excluding_->exclusion).remove(from, mask);
  if (limit_ == kNoLimit || left() == 0) return some;
  Completion completion = this->completion();
  excluding_->offers.clear();
  excluding_->offers_from = tokens_.size();
  LimitedTokens tokens(*automaton_, stacks_, excluding_->exclusion, completion, left() - 1, excluding_->offers);
  if (tokens.all_fit(from)) {
    if (const DistinctFacts& facts = automaton_->bytes().marks().facts; !facts.few_endings && !facts.values) return some;
    some |= tokens.remove_matching(from, mask);
  } else if (tokens.safely_fit(from)) {
    some |= tokens.remove_unsafe(from, mask);
  } else {
    if (!excluding_->plans.contains(tokens_.size())) plan(completion.within(from, left()), tokens_.size());
    some |= tokens.remove(from, mask);
  }
  add_planned(from, mask);
  return some;
}

void Matcher::add_planned(Config from, uint32_t* mask) {
  const auto it = excluding_->plans.find(tokens_.size());
  if (it == excluding_->plans.end()) return;
  const auto add = [&](uint32_t token) {
    if (planned(token)) mask[token >> 5] |= 1u << (token & 31);
  };
  if (automaton_->is_first(from)) {  // here tokens have other forms than in the trie
    for (uint32_t token = 0; token < automaton_->vocabulary().size(); ++token) {
      if (it->second.starts_with(automaton_->text_of(from, token))) add(token);
    }
    return;
  }
  const Trie& trie = automaton_->vocabulary().trie();
  uint32_t node = 0;
  for (const char sign : it->second) {
    const std::span<const uint8_t> bytes = trie.child_bytes(node);
    const auto at = std::ranges::lower_bound(bytes, static_cast<uint8_t>(sign));
    if (at == bytes.end() || *at != static_cast<uint8_t>(sign)) return;
    node = trie.children(node)[static_cast<size_t>(at - bytes.begin())].node;
    trie.each_string(node, add);
  }
}

}  // namespace tokenfst
