// Words of lexicons as expressions, and selections: `low` to `high` words of a lexicon, no word twice, with separators
// in between.
//
// The states of a selection are created on demand: (state in the lexicon, position of the path so far, used words). The
// words that begin with a path are a range of positions, so one binary search in the sorted used words decides whether
// any of them is left. Invariant: every Pick node has a word. Rejected: a copy of the lexicon for each set of used
// words.
//
// Threads. Several Selections, each used by one thread, may share their sets of used words: see node_store.hpp.
#pragma once

#include <atomic>
#include <map>
#include <memory>

#include "words/acyclic.hpp"
#include "expressions/arena.hpp"

namespace tokenfst {

// `low` to `high` different words of a lexicon.
struct Selection {
  uint32_t lexicon, low, high;
  NodeId separator;
  NodeId first = kEmpty;  // the whole selection
};

// Sorted sets of used words, hash-consed: equal sets have the same number; 0 is the empty set.
class UsedWords {
 public:
  UsedWords() { number({}); }
  std::span<const uint32_t> operator[](uint32_t set) const { return *sets_.data()[set]; }
  // A set with one more word.
  std::vector<uint32_t> with(uint32_t set, uint32_t word) const {
    std::vector<uint32_t> more(*sets_.data()[set]);
    more.insert(std::ranges::lower_bound(more, word), word);
    return more;
  }
  size_t memory() const { return memory_.load(std::memory_order_relaxed); }
  void share() { sets_.share(); }

  // The number of a sorted set, which is added if it is new. If several threads use this object, the caller needs exclusive use.
  uint32_t number(std::vector<uint32_t> set) {
    auto [known, fresh] = numbers_.try_emplace(std::move(set), static_cast<uint32_t>(sets_.size()));
    if (fresh) {
      sets_.push_back(&known->first);
      memory_.fetch_add(known->first.capacity() * 4 + 96, std::memory_order_relaxed);
    }
    return known->second;
  }

 private:
  std::map<std::vector<uint32_t>, uint32_t> numbers_;
  GrowingArray<const std::vector<uint32_t>*> sets_;  // the keys of `numbers_`, which never move
  std::atomic<size_t> memory_{0};
};

class Selections {
 public:
  explicit Selections(Arena& arena) : arena_(arena) {}
  // For another arena over the same nodes, used by another thread. Call it after the program has been read.
  Selections(Arena& arena, const Selections& other)
      : arena_(arena), lexicons_(other.lexicons_), selections_(other.selections_), used_(other.used_),
        too_many_states_(other.too_many_states_) {}

  // Call this before others are made from this one.
  void share() {
    if (used_) used_->share();
  }
  // Adds a lexicon and returns its number.
  uint32_t add_lexicon(std::shared_ptr<const Lexicon> lexicon) {
    memory_ += lexicon->memory();
    lexicons_.push_back(std::move(lexicon));
    return static_cast<uint32_t>(lexicons_.size() - 1);
  }
  const Lexicon& lexicon(uint32_t index) const { return *lexicons_[index]; }
  const std::vector<std::shared_ptr<const Lexicon>>& lexicons() const { return lexicons_; }
  const Selection& selection(uint32_t index) const { return selections_[index]; }
  // The positions of the words in a set of used words, ascending.
  std::span<const uint32_t> used(uint32_t set) const { return (*used_)[set]; }
  // In bytes. Shared sets of used words are counted by the object that made them.
  size_t memory() const { return memory_ + (used_ && owns_used_ ? used_->memory() : 0); }
  // Whether a selection may have far more states than a search can visit.
  bool have_too_many_states() const { return too_many_states_; }

  // The words that a lexicon reads from one of its states on.
  NodeId words(uint32_t index, uint32_t state) {
    const Lexicon& words = *lexicons_[index];
    if (words.count(state) == 0) return kEmpty;
    if (!words.has_arcs(state)) return kEpsilon;
    return arena_.node({Kind::Words, words.accepting(state), true, 0, 0, index, state, 0, 0});
  }
  // A selection. `separator` must not be nullable, and must not contain anything that depends on its context.
  NodeId select(uint32_t lexicon, uint32_t low, uint32_t high, NodeId separator) {
    const Lexicon& words = *lexicons_[lexicon];
    high = std::min(high, words.size());
    if (low > high || high == 0) return kEmpty;
    if (!used_) used_ = std::make_shared<UsedWords>(), owns_used_ = true;
    selections_.push_back({lexicon, low, high, separator});
    too_many_states_ |= !has_few_states(words, high);
    return selections_.back().first = pick(static_cast<uint32_t>(selections_.size() - 1), words.root(), 0, 0);
  }
  // The rest of a selection inside a word: the path to `state` has been read, which `place` words precede, and `used` is the set of
  // words before this one. Empty if all words that begin with the path are used; a Words node if none of them is used and this is the
  // last word.
  NodeId pick(uint32_t index, uint32_t state, uint32_t place, uint32_t used) {
    const Selection& selection = selections_[index];
    const Lexicon& words = *lexicons_[selection.lexicon];
    const std::span<const uint32_t> before = this->used(used);
    const size_t number = before.size() + 1;
    const uint32_t left = words.left(state, place, before);
    if (left == 0) return kEmpty;
    if (left == words.count(state) && number == selection.high) return this->words(selection.lexicon, state);
    const bool nullable = number >= selection.low && completes(words, state, place, used);
    const uint16_t depth = static_cast<uint16_t>(arena_[selection.separator].depth + 1);
    return arena_.node({Kind::Pick, nullable, true, 0, depth, index, state, place, used});
  }
  // What follows a word that ends here: a separator and the next word; empty if there can be none.
  NodeId after_pick(const Node& node) {
    const Selection& selection = selections_[node.a];
    const Lexicon& words = *lexicons_[selection.lexicon];
    if (used(node.high).size() + 1 == selection.high || !completes(words, node.b, node.low, node.high)) return kEmpty;
    std::vector<uint32_t> more = used_->with(node.high, node.low);
    const uint32_t now = arena_.exclusively([&] { return used_->number(std::move(more)); });
    return arena_.concat(selection.separator, pick(node.a, words.root(), 0, now));
  }

  // An upper bound of the length of the shortest text of a Pick node, with `between` bytes for each separator. Greedy: it takes the
  // shortest unused words, although another choice of the first word may be better.
  uint64_t length(const Node& node, uint32_t between) const {
    const Selection& selection = selections_[node.a];
    const Lexicon& words = *lexicons_[selection.lexicon];
    const std::span<const uint32_t> before = this->used(node.high);
    std::vector<uint32_t> used(before.begin(), before.end());
    auto take = [&](uint32_t state, uint32_t place) -> uint64_t {
      Lexicon::Word word = words.shortest_unused(state, place, used);
      used.insert(std::ranges::lower_bound(used, word.place), word.place);
      return word.length;
    };
    uint64_t sum = take(node.b, node.low);
    while (used.size() < selection.low) sum += between + take(words.root(), 0);
    return sum;
  }

 private:
  // Whether the path to a state of a lexicon is an unused word.
  bool completes(const Lexicon& words, uint32_t state, uint32_t place, uint32_t used) const {
    return words.accepting(state) && !std::ranges::binary_search(this->used(used), place);
  }
  // The number of states is at most the number of sets of words used before the last one, times the positions in words.
  static bool has_few_states(const Lexicon& words, uint32_t high) {
    constexpr double kFew = 50'000;
    const double total = static_cast<double>(words.total_length());
    double sets = 0, of_size = 1;
    for (uint32_t size = 0; size < high && sets * total <= kFew; ++size) {
      sets += of_size;
      of_size *= static_cast<double>(words.size() - size) / (size + 1);
    }
    return sets * total <= kFew;
  }

  Arena& arena_;
  std::vector<std::shared_ptr<const Lexicon>> lexicons_;
  std::vector<Selection> selections_;
  std::shared_ptr<UsedWords> used_;  // if there are selections; of all arenas over the same nodes
  size_t memory_ = 0;
  bool too_many_states_ = false, owns_used_ = false;
};

}  // namespace tokenfst
