// The position of a text in a weighted grammar, as the chart of all its columns, and the scores of tokens after it.
//
// A chart never changes: an extended chart shares the columns of the one before, in blocks, of which only the last is
// copied. Scoring walks the vocabulary's trie once, with one column for each depth. Cost: one column for each inner
// node of the trie that is reached.
#pragma once

#include <array>
#include <bit>
#include <string_view>
#include <unordered_map>

#include "scores/weighted_rules.hpp"
#include "vocabulary/trie.hpp"

namespace tokenfst {

// The columns of a text, one for the start and one after each byte. Copying costs a pointer for every 64 columns.
class RuleChart {
 public:
  const RuleColumn& at(uint32_t place) const { return *(*blocks_[place / kBlock])[place % kBlock]; }
  uint32_t last() const { return length_ - 1; }
  // The number of entries of all columns (RuleColumn::size).
  uint64_t size() const { return size_; }

  // Adds a column. Raises BudgetExceeded("states") if the size exceeds `limit`.
  void append(std::shared_ptr<const RuleColumn> column, uint64_t limit) {
    size_ += column->size();
    if (size_ > limit || length_ == UINT32_MAX) {
      throw BudgetExceeded("states", static_cast<double>(limit), "the chart of a weighted grammar");
    }
    auto block = length_ % kBlock ? std::make_shared<Block>(*blocks_.back()) : std::make_shared<Block>();
    if (length_ % kBlock) blocks_.pop_back();
    (*block)[length_ % kBlock] = std::move(column);
    blocks_.push_back(std::move(block));
    ++length_;
  }

  // A key of everything that the continuation depends on: the last column, and the columns that its items refer back
  // to, renumbered.
  std::string key() const {
    std::string made;
    std::unordered_map<uint32_t, uint32_t> numbers{{last(), 0}};
    std::vector<uint32_t> places{last()};
    const auto put = [&made](auto value) { made.append(reinterpret_cast<const char*>(&value), sizeof value); };
    const auto put_place = [&](uint32_t place) {
      const auto [found, is_new] = numbers.emplace(place, static_cast<uint32_t>(places.size()));
      if (is_new) places.push_back(place);
      put(found->second);
    };
    for (size_t k = 0; k < places.size(); ++k) {
      const RuleColumn& column = at(places[k]);
      put(column.waiting.size());
      for (const auto& [rule, origin, target, weight, outer] : column.waiting) { put(rule), put_place(origin), put(target), put(weight); }
      put(column.predicted.size());
      for (const auto& [rule, weight] : column.predicted) put(rule), put(weight);
      put(places[k] == 0);  // whether it is the column in which a whole text may have begun
      if (k > 0) continue;
      put(column.end);
      put(column.items.size());
      for (const auto& [state, origin, weight, outer] : column.items) put(state), put_place(origin), put(weight);
    }
    return made;
  }

 private:
  static constexpr uint32_t kBlock = 64;
  using Block = std::array<std::shared_ptr<const RuleColumn>, kBlock>;
  std::vector<std::shared_ptr<const Block>> blocks_;
  uint32_t length_ = 0;
  uint64_t size_ = 0;
};

// The chart of the empty text.
inline RuleChart first_chart(const WeightedRules& rules, uint64_t limit) {
  auto column = std::make_shared<RuleColumn>();
  RuleSteps(rules).begin(*column);
  RuleChart made;
  made.append(std::move(column), limit);
  return made;
}

// Reads the bytes `data`. Returns the log of the share of the weight that continues with them; -inf if no text continues so,
// and then the chart is left in the middle and must not be used any more. Raises BudgetExceeded("states" or "seconds").
inline double advance_chart(const WeightedRules& rules, RuleChart& chart, std::string_view data, uint64_t limit, TimeLimit& time_limit) {
  RuleSteps steps(rules);
  double sum = 0;
  for (const char byte : data) {
    const double share = steps.scan(chart.at(chart.last()), chart.last(), static_cast<uint8_t>(byte));
    if (share == kMinusInfinity) return share;
    auto column = std::make_shared<RuleColumn>();
    steps.finish(share, [&chart](uint32_t place) -> const RuleColumn& { return chart.at(place); }, *column);
    time_limit.step(static_cast<uint32_t>(column->size()));
    chart.append(std::move(column), limit);
    sum += share;
  }
  return sum;
}

// Writes the scores of the tokens in `trie`: the log of the share of the weight that continues with their bytes. Scores of
// tokens that no text continues with, or that are not in the trie, stay unchanged. Raises BudgetExceeded("states" or
// "seconds").
inline void rule_scores(const WeightedRules& rules, const RuleChart& chart, const Trie& trie, std::span<float> scores, uint64_t limit,
                        TimeLimit& time_limit) {
  RuleSteps steps(rules);
  std::vector<RuleColumn> made(trie.max_depth() + 1);
  std::vector<double> sums(trie.max_depth() + 1, 0);
  std::vector<uint64_t> sizes(trie.max_depth() + 1, chart.size());
  const uint32_t last = chart.last();
  const auto columns = [&](uint32_t place) -> const RuleColumn& { return place <= last ? chart.at(place) : made[place - last]; };
  const uint32_t count = static_cast<uint32_t>(trie.num_nodes());
  for (uint32_t i = 1; i < count;) {
    const TrieNode& node = trie.node(i);
    const uint32_t depth = node.depth;
    const RuleColumn& from = columns(last + depth - 1);
    time_limit.step(static_cast<uint32_t>(from.size()));
    const double share = steps.scan(from, last + depth - 1, node.byte);
    if (share == kMinusInfinity) {
      i = node.end;
      continue;
    }
    sums[depth] = sums[depth - 1] + share;
    for (uint32_t k = node.first; k < trie.node(i + 1).first; ++k) scores[trie.string_at(k)] = static_cast<float>(sums[depth]);
    if (node.end > i + 1) {
      steps.finish(share, columns, made[depth]);
      sizes[depth] = sizes[depth - 1] + made[depth].size();
      if (sizes[depth] > limit) throw BudgetExceeded("states", static_cast<double>(limit), "the chart of a weighted grammar");
    }
    ++i;
  }
}

}  // namespace tokenfst
