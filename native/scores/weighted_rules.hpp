// A weighted grammar without empty words, and the columns of its chart: Earley's items with weights (Stolcke, "An
// efficient probabilistic context-free parsing algorithm that computes prefix probabilities", 1995).
//
// The rules are automata side by side: states with byte arcs (`WeightedBytes`), calls of rules, and final weights. The
// weights of everything that leaves a state add up to one. So the weight of the items at a position is the total weight of
// all texts that continue from there. An item (state, origin) stands for a rule that began at the column `origin` and is now
// in that state. Two closures are computed in advance, because both may be cyclic: which rules may begin with a call of which
// others (`predicts`), and which rules are complete because another one is (`units`).
//
// Weights are logarithms, relative to the weight of the text so far. So the columns of two texts with the same continuations
// are equal even if the texts' weights differ. For the same reason weights are rounded to multiples of 2^-40.
//
// Invariant: in a column, items are sorted by (origin, state), the greatest origins first; `waiting` and `predicted`
// are sorted by rule. A column does not change once the next one has been made. Cost of a column: its items, and for
// each completed rule the items that wait for it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scores/weighted_bytes.hpp"

namespace tokenfst {

// An entry of a table: a rule, a state to continue in, and a log weight.
struct RuleEntry {
  uint32_t rule, target;
  double weight;
};

// Lists of entries, one list for each number.
class RuleTable {
 public:
  RuleTable(std::span<const uint32_t> offsets, std::span<const uint32_t> rules, std::span<const uint32_t> targets,
            std::span<const double> weights, size_t count, size_t num_rules, size_t num_states)
      : offsets_(offsets.begin(), offsets.end()) {
    bool fits = offsets.size() == count + 1 && offsets[0] == 0 && offsets[count] == rules.size() && targets.size() == rules.size() &&
                weights.size() == rules.size() && std::ranges::is_sorted(offsets);
    for (size_t k = 0; fits && k < rules.size(); ++k) {
      fits = rules[k] < num_rules && targets[k] < num_states && weights[k] < std::numeric_limits<double>::infinity();
      entries_.push_back({rules[k], targets[k], weights[k]});
    }
    if (!fits) throw Error(Fault::Constraint, "a table of a weighted grammar does not match its rules");
  }
  std::span<const RuleEntry> of(uint32_t number) const {
    return {entries_.data() + offsets_[number], entries_.data() + offsets_[number + 1]};
  }

 private:
  std::vector<uint32_t> offsets_;
  std::vector<RuleEntry> entries_;
};

// One column of the chart.
struct RuleColumn {
  struct Item {
    uint32_t state, origin;
    double weight;  // of the item, since its origin
    double outer;   // of its rule at the origin, including everything before it
  };
  struct Waiting {  // an item that continues in `target` when `rule`, which was called here, is complete
    uint32_t rule, origin, target;
    double weight, outer;
  };
  struct Predicted {  // a rule that may begin here
    uint32_t rule;
    double weight;
  };
  std::vector<Item> items;  // the items that read a byte
  std::vector<Waiting> waiting;
  std::vector<Predicted> predicted;
  double end = kMinusInfinity;  // the weight of the text if it ends here

  size_t size() const { return 1 + items.size() + waiting.size() + predicted.size(); }
  // The weight of a rule that may begin here; -inf if it may not.
  double outer(uint32_t rule) const {
    const auto at = std::ranges::lower_bound(predicted, rule, {}, &Predicted::rule);
    return at != predicted.end() && at->rule == rule ? at->weight : kMinusInfinity;
  }
};

// The grammar. All weights are log weights.
struct WeightedRules {
  WeightedBytes bytes;  // its final weights are those of the rules
  std::vector<uint32_t> rule_of, starts;  // the rule of each state; the start of each rule
  RuleTable calls, predicts;              // for each state: its calls; the rules that may begin there
  RuleTable corners, units;               // by rule: rules that begin with it, and their states after it; rules that it alone completes
  RuleTable first;                        // one list: the rules that a text begins with
  uint32_t root;
  double empty;  // the weight of the empty text
  std::vector<uint8_t> reads, ends;  // for each state: whether it has byte arcs, whether it is final

  // Checks the sizes and numbers, and sets `ends`. Raises Constraint.
  void check() {
    bool fits = rule_of.size() == bytes.num_states() && root < starts.size() && empty <= 0;
    for (const uint32_t rule : rule_of) fits = fits && rule < starts.size();
    for (const uint32_t state : starts) fits = fits && state < bytes.num_states();
    if (!fits) throw Error(Fault::Constraint, "the arrays of a weighted grammar differ in size");
    for (uint32_t s = 0; s < bytes.num_states(); ++s) ends.push_back(bytes.final(s) > kMinusInfinity);
  }
};

// Computes columns. `Columns` is a function from a position to the column there. Not for several threads at once.
class RuleSteps {
 public:
  explicit RuleSteps(const WeightedRules& rules)
      : rules_(rules), complete_(rules.starts.size(), kMinusInfinity), closed_(complete_), begun_(complete_) {}

  // Writes the column before any byte.
  void begin(RuleColumn& column) {
    for (const RuleEntry& each : rules_.first.of(0)) column.predicted.push_back({each.rule, each.weight});
    column.end = rules_.empty;
  }

  // Reads `byte` from the last column, which is at `place`. Returns the log of its share of the weight; -inf: no text
  // continues so.
  double scan(const RuleColumn& last, uint32_t place, uint8_t byte) {
    scanned_.clear();
    for (const RuleColumn::Item& item : last.items) read(item.state, item.origin, item.weight, item.outer, byte);
    for (const auto& [rule, weight] : last.predicted) read(rules_.starts[rule], place, 0, weight, byte);
    if (scanned_.empty()) return kMinusInfinity;
    double most = kMinusInfinity, sum = 0;
    for (const RuleColumn::Item& item : scanned_) most = std::max(most, item.weight + item.outer);
    if (most == kMinusInfinity) return most;
    for (const RuleColumn::Item& item : scanned_) sum += std::exp(item.weight + item.outer - most);
    return most + std::log(sum);
  }

  // Writes the column after the scanned byte, whose share was `share`.
  template <class Columns>
  void finish(double share, const Columns& columns, RuleColumn& column) {
    column.items.clear();
    column.waiting.clear();
    column.predicted.clear();
    column.end = kMinusInfinity;
    for (RuleColumn::Item& item : scanned_) item.weight -= share;
    std::ranges::make_heap(scanned_, {}, &RuleColumn::Item::origin);
    while (!scanned_.empty()) {
      const uint32_t origin = scanned_.front().origin;
      bucket_.clear();
      while (!scanned_.empty() && scanned_.front().origin == origin) {
        std::ranges::pop_heap(scanned_, {}, &RuleColumn::Item::origin);
        bucket_.push_back(scanned_.back());
        scanned_.pop_back();
      }
      merge();
      complete(origin, columns, column);
      for (const RuleColumn::Item& item : bucket_) keep(item, column);
    }
    std::ranges::stable_sort(column.waiting, {}, &RuleColumn::Waiting::rule);
    std::ranges::sort(predicted_);
    for (const uint32_t rule : predicted_) {
      column.predicted.push_back({rule, rounded(begun_[rule])});
      begun_[rule] = kMinusInfinity;
    }
    predicted_.clear();
    column.end = rounded(column.end);
  }

 private:
  static double rounded(double weight) { return std::nearbyint(weight * 0x1p40) * 0x1p-40; }
  static void add(std::vector<double>& sums, std::vector<uint32_t>& touched, uint32_t number, double weight) {
    if (weight == kMinusInfinity) return;
    if (sums[number] == kMinusInfinity) touched.push_back(number);
    sums[number] = log_add(sums[number], weight);
  }
  void put(uint32_t state, uint32_t origin, double weight, double outer) {
    scanned_.push_back({state, origin, weight, outer});
    std::ranges::push_heap(scanned_, {}, &RuleColumn::Item::origin);
  }
  void read(uint32_t state, uint32_t origin, double weight, double outer, uint8_t byte) {
    double cost = weight;
    for (const Weighted& arc : rules_.bytes.arcs(state, byte, cost)) scanned_.push_back({arc.state, origin, cost + arc.weight, outer});
  }

  // Merges the items of the bucket that have the same state.
  void merge() {
    if (bucket_.size() == 1) return;
    std::ranges::stable_sort(bucket_, {}, &RuleColumn::Item::state);
    size_t kept = 0;
    for (size_t k = 1; k < bucket_.size(); ++k) {
      if (bucket_[k].state == bucket_[kept].state) bucket_[kept].weight = log_add(bucket_[kept].weight, bucket_[k].weight);
      else bucket_[++kept] = bucket_[k];
    }
    bucket_.resize(kept + 1);
  }

  // Adds the items that continue because rules that were begun at the origin are complete. Words are not empty, so all
  // of these items are known.
  template <class Columns>
  void complete(uint32_t origin, const Columns& columns, RuleColumn& column) {
    for (const RuleColumn::Item& item : bucket_) {
      if (rules_.ends[item.state]) { add(complete_, completed_, rules_.rule_of[item.state], item.weight + rules_.bytes.final(item.state)); }
    }
    if (completed_.empty()) return;
    for (const uint32_t rule : completed_) {
      for (const RuleEntry& unit : rules_.units.of(rule)) add(closed_, closing_, unit.rule, complete_[rule] + unit.weight);
      complete_[rule] = kMinusInfinity;
    }
    completed_.clear();
    const RuleColumn& from = columns(origin);
    for (const uint32_t rule : closing_) {
      const double weight = closed_[rule];
      closed_[rule] = kMinusInfinity;
      if (origin == 0 && rule == rules_.root) column.end = weight;
      for (const RuleEntry& corner : rules_.corners.of(rule)) {
        const double outer = from.outer(corner.rule);
        if (outer > kMinusInfinity) bucket_.push_back({corner.target, origin, weight + corner.weight, outer});
      }
      for (auto at = std::ranges::lower_bound(from.waiting, rule, {}, &RuleColumn::Waiting::rule);
           at != from.waiting.end() && at->rule == rule; ++at) {
        put(at->target, at->origin, weight + at->weight, at->outer);
      }
    }
    closing_.clear();
    merge();
  }

  void keep(const RuleColumn::Item& item, RuleColumn& column) {
    const double here = item.weight + item.outer;
    if (rules_.reads[item.state]) column.items.push_back({item.state, item.origin, rounded(item.weight), item.outer});
    for (const RuleEntry& call : rules_.calls.of(item.state)) {
      column.waiting.push_back({call.rule, item.origin, call.target, rounded(item.weight + call.weight), item.outer});
    }
    for (const RuleEntry& each : rules_.predicts.of(item.state)) add(begun_, predicted_, each.rule, here + each.weight);
  }

  const WeightedRules& rules_;
  std::vector<double> complete_, closed_, begun_;  // for each rule; -inf between calls
  std::vector<uint32_t> completed_, closing_, predicted_;  // the rules whose entry is not -inf
  std::vector<RuleColumn::Item> scanned_, bucket_;
};

}  // namespace tokenfst
