// A weighted grammar without empty words, and the columns of its chart: Earley's items with weights (Stolcke, "An efficient
// probabilistic context-free parsing algorithm that computes prefix probabilities", 1995).
//
// The rules are automata side by side: states with arcs of bytes (`WeightedBytes`), with calls of rules, and final weights. Everything
// that leaves a state adds up to one, so what items weigh is what all texts weigh together that go on from there. An item
// (state, origin) stands for a rule that was begun at the origin and is in that state now. Two closures are solved beforehand, as
// both may go round: which rules begin with a call of which (`predicts`), and which are complete because one is (`units`).
//
// Weights are logarithms, each divided by what all of the text up to there weighs; so an item's weight does not depend on what the
// text has weighed, and equal places have equal columns. They are rounded to 2^-40, for the same reason.
//
// Invariant: of a column, items are sorted by (origin, state) with the last origins first; `waiting` and `predicted` by rule. A column
// is never changed behind the next one's making. Cost of a column: its items, and for each completed rule what waits for it.
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

struct RuleEntry {
  uint32_t rule, target;
  double weight;
};

// Entries by number.
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
    if (!fits) throw Error(Fault::Constraint, "a table of a weighted grammar that does not fit its rules");
  }
  std::span<const RuleEntry> of(uint32_t number) const {
    return {entries_.data() + offsets_[number], entries_.data() + offsets_[number + 1]};
  }

 private:
  std::vector<uint32_t> offsets_;
  std::vector<RuleEntry> entries_;
};

struct RuleColumn {
  struct Item {
    uint32_t state, origin;
    double weight;  // of the item since its origin
    double outer;   // of its rule at the origin, all that is before it included
  };
  struct Waiting {
    uint32_t rule, origin, target;
    double weight, outer;
  };
  struct Predicted {
    uint32_t rule;
    double weight;
  };
  std::vector<Item> items;  // those that read a byte
  std::vector<Waiting> waiting;
  std::vector<Predicted> predicted;
  double end = kMinusInfinity;  // what the text weighs if it ends here

  size_t size() const { return 1 + items.size() + waiting.size() + predicted.size(); }
  double outer(uint32_t rule) const {
    const auto at = std::ranges::lower_bound(predicted, rule, {}, &Predicted::rule);
    return at != predicted.end() && at->rule == rule ? at->weight : kMinusInfinity;
  }
};

struct WeightedRules {
  WeightedBytes bytes;  // final weights are those of the rules
  std::vector<uint32_t> rule_of, starts;  // of states, of rules
  RuleTable calls, predicts;              // by state: its calls; the rules that may begin there
  RuleTable corners, units;               // by rule: which rules begin with it, and where they are then; which end with it alone
  RuleTable first;                        // of one row: the rules that a text begins with
  uint32_t root;
  double empty;  // what the empty text weighs
  std::vector<uint8_t> reads, ends;  // of states: whether there are arcs of bytes, whether they are final

  void check() {
    bool fits = rule_of.size() == bytes.num_states() && root < starts.size() && empty <= 0;
    for (const uint32_t rule : rule_of) fits = fits && rule < starts.size();
    for (const uint32_t state : starts) fits = fits && state < bytes.num_states();
    if (!fits) throw Error(Fault::Constraint, "arrays of a weighted grammar whose sizes do not fit");
    for (uint32_t s = 0; s < bytes.num_states(); ++s) ends.push_back(bytes.final(s) > kMinusInfinity);
  }
};

// Makes columns. `Columns` is called with a position and gives the column there. Not for several threads at once.
class RuleSteps {
 public:
  explicit RuleSteps(const WeightedRules& rules)
      : rules_(rules), complete_(rules.starts.size(), kMinusInfinity), closed_(complete_), begun_(complete_) {}

  // The column before any byte.
  void begin(RuleColumn& column) {
    for (const RuleEntry& each : rules_.first.of(0)) column.predicted.push_back({each.rule, each.weight});
    column.end = rules_.empty;
  }

  // Where `byte` leads from the last column, which stands at `place`, and the log of its share of the weight; -inf: nowhere.
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

  // The column behind what was scanned, whose share was `share`.
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

  // One item for each state of the bucket.
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

  // What goes on because rules that were begun at the origin are complete. Words are not empty, so all of these items are known.
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
  std::vector<double> complete_, closed_, begun_;  // by rule; -inf between calls
  std::vector<uint32_t> completed_, closing_, predicted_;  // whose are not
  std::vector<RuleColumn::Item> scanned_, bucket_;
};

}  // namespace tokenfst
