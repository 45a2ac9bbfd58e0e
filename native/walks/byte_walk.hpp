// Numbers the configurations of a byte automaton, with their byte arcs: for searches over many texts.
//
// All stacks are nodes of one graph (stacks.hpp), so equal configurations get one number, in the order in which they
// are reached. A text leads to one configuration, however many ways there are to read it, so paths here are texts, and
// counting paths counts texts, not derivations. Every configuration except the dead one, which has no number, can reach
// acceptance. That strings must differ (exclusion.hpp) is ignored: they may be equal. Numbers and stacks are never
// removed; the budget bounds the number of configurations and their bytes. One thread at a time uses it, others wait.
#pragma once

#include <unordered_map>
#include <vector>

#include "byte_automata/lengths.hpp"
#include "threads/exclusive_use.hpp"
#include "walks/walker.hpp"

namespace tokenfst {

class ByteWalk {
 public:
  // Arcs grouped by target: bytes[offsets[i]] to bytes[offsets[i + 1]] lead to targets[i]. Targets are in the order of
  // their first bytes.
  struct Arcs {
    std::vector<uint32_t> targets, offsets;
    std::string bytes;
  };

  explicit ByteWalk(ByteAutomaton& bytes)
      : bytes_(bytes), lengths_(bytes), walker_(bytes, stacks_),
        tells_lengths_(bytes.is_pushdown() &&
                       bytes.expressions().with_selections([](const Selections& them) { return them.lexicons().empty(); })) {
    if (!is_dead(walker_.start())) number_of(walker_.start());
  }

  // How many configurations have numbers. Number 0 is the start, if the language is not empty.
  size_t size() const {
    const InUse::Scope use(in_use_);
    return configs_.size();
  }
  // Whether the configuration with this number accepts. `number` must be less than size(), here and below.
  bool accepting(uint32_t number) const {
    const InUse::Scope use(in_use_);
    return bytes_.accepting(configs_[number].state);
  }
  size_t memory() const {
    const InUse::Scope use(in_use_);
    return stacks_.memory() + configs_.capacity() * sizeof(Config) + number_.size() * 32;
  }

  // A lower bound of the length of a text that leads to acceptance; 0 if none is known.
  uint32_t least(uint32_t number) {
    const InUse::Scope use(in_use_);
    if (!tells_lengths_) return 0;
    const uint32_t found = lengths_.of(configs_[number], stacks_);
    return found == kUnreachable ? 0 : found;
  }

  // The target of a byte; -1: none.
  int64_t advance(uint32_t number, uint8_t byte) {
    const InUse::Scope use(in_use_);
    const Config end = walker_.step(configs_[number], byte);
    return is_dead(end) ? -1 : int64_t{number_of(end)};
  }

  // The target of a token boundary, which matters if something is limited to few tokens; -1: none.
  int64_t boundary(uint32_t number) {
    const InUse::Scope use(in_use_);
    const Config end = walker_.boundary(configs_[number]);
    return is_dead(end) ? -1 : int64_t{number_of(end)};
  }

  // All arcs. Each class of bytes is stepped once.
  Arcs arcs(uint32_t number) {
    const InUse::Scope use(in_use_);
    const Config from = configs_[number];
    const uint8_t* classes = bytes_.classes();
    std::vector<int64_t> place(bytes_.num_classes(), kUnasked);  // for each class, its index in `targets`
    Arcs out;
    std::vector<uint32_t> count;
    std::unordered_map<uint32_t, uint32_t> known;
    for (int byte = 0; byte < 256; ++byte) {
      int64_t& at = place[classes[byte]];
      if (at == kUnasked) {
        const Config end = walker_.next(from, classes[byte]);
        if (is_dead(end)) {
          at = kNowhere;
        } else {
          auto [found, fresh] = known.emplace(number_of(end), static_cast<uint32_t>(out.targets.size()));
          if (fresh) {
            out.targets.push_back(found->first);
            count.push_back(0);
          }
          at = found->second;
        }
      }
      if (at != kNowhere) ++count[static_cast<size_t>(at)];
    }
    out.offsets.assign(1, 0);
    for (uint32_t bytes : count) out.offsets.push_back(out.offsets.back() + bytes);
    out.bytes.resize(out.offsets.back());
    std::vector<uint32_t> next(out.offsets.begin(), out.offsets.end() - 1);
    for (int byte = 0; byte < 256; ++byte) {
      if (const int64_t at = place[classes[byte]]; at != kNowhere) out.bytes[next[static_cast<size_t>(at)]++] = static_cast<char>(byte);
    }
    return out;
  }

 private:
  static constexpr int64_t kUnasked = -2, kNowhere = -1;

  uint32_t number_of(Config config) {
    auto [known, fresh] = number_.emplace(uint64_t{config.stack} << 32 | config.state, static_cast<uint32_t>(configs_.size()));
    if (fresh) {
      const Budget& budget = bytes_.budget();
      if (configs_.size() >= budget.states)
        throw BudgetExceeded("states", static_cast<double>(budget.states), "the configurations that texts lead to");
      if (configs_.size() % 1024 == 0 && memory() > budget.bytes)
        throw BudgetExceeded("bytes", static_cast<double>(budget.bytes), "the configurations that texts lead to");
      configs_.push_back(config);
    }
    return known->second;
  }

  ByteAutomaton& bytes_;
  Lengths lengths_;
  Stacks stacks_;
  Walker walker_;
  const bool tells_lengths_;
  std::vector<Config> configs_;
  std::unordered_map<uint64_t, uint32_t> number_;
  mutable InUse in_use_;
};

}  // namespace tokenfst
