// Numbers the configurations of a token automaton, with their arcs: for searches that go beyond one sequence.
//
// The stacks of a matcher are its own, so configurations of two matchers cannot be compared. Here all stacks are nodes
// of one graph (stacks.hpp), and equal configurations get one number, in the order in which they are reached, so
// results about a configuration can be stored under its number. Numbers and stacks are never removed. One thread at a
// time uses it, others wait.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "threads/exclusive_use.hpp"
#include "token_automata/token_automaton.hpp"

namespace tokenfst {

class Configurations {
 public:
  // Arcs grouped by target: tokens[offsets[i]] to tokens[offsets[i + 1]] lead to targets[i].
  struct Arcs {
    std::vector<uint32_t> targets, offsets, tokens;
  };

  // Raises an Error (EmptyLanguageError) if no tokens lead from the start to acceptance.
  explicit Configurations(std::shared_ptr<TokenAutomaton> automaton) : automaton_(std::move(automaton)) {
    if (!automaton_->spellable(automaton_->start(), stacks_)) {
      throw Error(Fault::EmptyLanguage, "no token sequence of this vocabulary spells any string of the language");
    }
    number_of(automaton_->start());
  }

  // How many configurations have numbers; number 0 is the start. Other functions raise std::out_of_range for other numbers.
  size_t size() const {
    const InUse::Scope use(in_use_);
    return configs_.size();
  }
  int64_t num_tokens() const { return automaton_->vocabulary().size(); }
  bool accepting(uint32_t number) const {
    const InUse::Scope use(in_use_);
    return automaton_->accepting(configs_.at(number));
  }
  // The distance to acceptance in tokens. With stacks it is an upper bound (token_automaton.hpp).
  uint32_t distance(uint32_t number) {
    const InUse::Scope use(in_use_);
    return automaton_->distance(configs_.at(number), stacks_);
  }
  bool distances_are_least() const { return automaton_->distances_are_least(); }
  size_t memory() const {
    const InUse::Scope use(in_use_);
    return stacks_.memory() + configs_.capacity() * sizeof(Config) + number_.size() * 32;
  }

  // Writes the mask with `left` tokens left (kUnreachable: no limit) into words() words, if a bound shows that every allowed
  // token fits. Returns false, having written nothing, if that is not certain.
  bool fill(uint32_t number, uint32_t left, uint32_t* out) {
    const InUse::Scope use(in_use_);
    const Config config = configs_.at(number);
    if (left != kUnreachable &&
        (left == 0 || automaton_->distance(config, stacks_) == kUnreachable || automaton_->worst(config, stacks_) > left - 1))
      return false;
    automaton_->fill(config, kUnreachable, out, stacks_);
    return true;
  }
  // The 32-bit words of a mask.
  size_t words() const { return (static_cast<size_t>(num_tokens()) + 31) / 32; }

  // The target of a token; -1: it has no arc. End tokens lead nowhere.
  int64_t advance(uint32_t number, uint32_t token) {
    const InUse::Scope use(in_use_);
    Config end = automaton_->advance(configs_.at(number), token, stacks_);
    return is_dead(end) || !automaton_->spellable(end, stacks_) ? -1 : int64_t{number_of(end)};
  }

  // All arcs, by a walk of the vocabulary. Targets are in the order of their first tokens' bytes; end tokens are left
  // out.
  Arcs arcs(uint32_t number) {
    const InUse::Scope use(in_use_);
    auto found = automaton_->arcs(configs_.at(number), stacks_);
    Arcs out;
    std::unordered_map<uint32_t, uint32_t> place;
    std::vector<uint32_t> at;
    for (auto& [token, end] : found) {
      auto [known, fresh] = place.emplace(number_of(end), static_cast<uint32_t>(out.targets.size()));
      if (fresh) out.targets.push_back(known->first);
      at.push_back(known->second);
    }
    out.offsets.assign(out.targets.size() + 1, 0);
    for (uint32_t i : at) ++out.offsets[i + 1];
    for (size_t i = 0; i < out.targets.size(); ++i) out.offsets[i + 1] += out.offsets[i];
    std::vector<uint32_t> next(out.offsets.begin(), out.offsets.end() - 1);
    out.tokens.resize(found.size());
    for (size_t i = 0; i < found.size(); ++i) out.tokens[next[at[i]]++] = found[i].first;
    return out;
  }

 private:
  uint32_t number_of(Config config) {
    auto [known, fresh] = number_.emplace(uint64_t{config.stack} << 32 | config.state, static_cast<uint32_t>(configs_.size()));
    if (fresh) configs_.push_back(config);
    return known->second;
  }

  std::shared_ptr<TokenAutomaton> automaton_;
  Stacks stacks_;
  std::vector<Config> configs_;
  std::unordered_map<uint64_t, uint32_t> number_;
  mutable InUse in_use_;
};

}  // namespace tokenfst
