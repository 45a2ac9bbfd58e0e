// Facts that an automaton has learned, read from a file: masks and distances by the digest of a state's expression.
//
// The arrays are borrowed and have been checked (artifact/view.hpp). Nothing here creates a state: a walk that reaches
// a state looks up the facts about it. Rows are sorted by digest, so a look-up is a binary search. With stacks, the
// value of a state may be an inner node, as in a decision tree (decision_tree.hpp), whose children are identified by
// canonical answers (canonical_addresses.hpp).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "vocabulary/masks.hpp"
#include "walks/canonical_addresses.hpp"

namespace tokenfst {

// The arrays of a file; `owner` keeps them alive.
struct LearnedView {
  std::span<const uint32_t> states, nodes, answers, mask_row, flip_offsets, flips, rows;
  std::shared_ptr<void> owner;
};

class Learned {
 public:
  // A row of `states`: a digest, a value, a distance and a bound. A row of `answers`: an inner node, a digest, a value.
  // A value is 0 (not known), the number of a mask plus one, or kInner and an inner node.
  static constexpr size_t kStateRow = 7, kAnswerRow = 6;

  // The value of a state, its distance to acceptance (kUnknown: none), and the bound of the distance after any token.
  struct State {
    uint32_t value, distance, worst;
  };

  explicit Learned(LearnedView view) : view_(std::move(view)), bases_(std::max<size_t>(1, view_.mask_row.size()), 0) {}

  const LearnedView& view() const { return view_; }
  size_t memory() const { return bases_.capacity() * 4; }

  // The row of a state; null: nothing is known.
  const uint32_t* find(const Digest& digest) const {
    if (!trusted_) return nullptr;
    const std::array<uint32_t, 4> wanted = digest.words();
    const size_t at = lower_bound(view_.states, kStateRow, wanted.data(), 4);
    return at * kStateRow < view_.states.size() && std::equal(wanted.begin(), wanted.end(), view_.states.data() + at * kStateRow)
               ? view_.states.data() + at * kStateRow
               : nullptr;
  }
  // Called if a fact contradicts the program: no more facts are taken from this file.
  void distrust() { trusted_ = false; }
  bool trusted() const { return trusted_; }
  // The content of a row.
  static State state(const uint32_t* row) { return {row[4], row[5], row[6]}; }

  // The mask of a configuration whose state has this value: its number plus one; 0: not known. `tops`: the top nodes of its
  // stacks. The stack nodes that the mask depends on are added to `seen`.
  template <class DigestOf>
  uint32_t mask(uint32_t value, std::span<const StackId> tops, Stacks& stacks, std::vector<StackId>& seen, DigestOf&& digest_of) const {
    CanonicalAddresses asks({tops.begin(), tops.end()});
    while (value & DecisionTree::kInner) {
      const uint32_t node = value & ~DecisionTree::kInner, address = view_.nodes[node];
      std::optional<Digest> shown;
      if (address == DecisionTree::kPattern) {
        shown = asks.pattern();
      } else {
        if (address >= asks.size()) return 0;
        seen.push_back(asks.node(address));
        std::vector<std::pair<Digest, uint32_t>> edges;
        for (const Edge& edge : stacks.edges(stacks.grouped(asks.node(address)))) edges.emplace_back(digest_of(edge.frame), edge.below);
        stacks.spend(1 + edges.size());
        shown = asks.shown(std::move(edges));
      }
      value = shown ? answer(node, *shown) : 0;
    }
    return value;
  }
  // The child of an inner node for an answer; 0: none.
  uint32_t answer(uint32_t node, const Digest& shown) const {
    const std::array<uint32_t, 4> words = shown.words();
    const uint32_t wanted[] = {node, words[0], words[1], words[2], words[3]};
    const size_t at = lower_bound(view_.answers, kAnswerRow, wanted, 5) * kAnswerRow;
    return at < view_.answers.size() && std::equal(wanted, wanted + 5, view_.answers.data() + at) ? view_.answers[at + 5] : 0;
  }

  // Adds a mask of the file to a pool; returns the same number every time.
  MaskId adopt(uint32_t number, MaskPool& pool) {
    uint32_t base = 0;
    if (const uint32_t row = view_.mask_row[number]) {
      uint32_t& known = bases_[row - 1];
      if (!known) known = pool.copy_row(view_.rows.subspan((row - 1) * pool.words(), pool.words()));
      base = known;
    }
    return pool.add(base, flips(number));
  }
  // The tokens in which a mask differs from its row; and that row, `words` words; null: the empty row.
  std::span<const uint32_t> flips(uint32_t number) const {
    return view_.flips.subspan(view_.flip_offsets[number], view_.flip_offsets[number + 1] - view_.flip_offsets[number]);
  }
  const uint32_t* row(uint32_t number, size_t words) const {
    return view_.mask_row[number] ? view_.rows.data() + (view_.mask_row[number] - 1) * words : nullptr;
  }

 private:
  // The first row whose first `words` words are not less than the wanted ones.
  static size_t lower_bound(std::span<const uint32_t> rows, size_t width, const uint32_t* wanted, size_t words) {
    size_t first = 0, last = rows.size() / width;
    while (first < last) {
      const size_t middle = (first + last) / 2;
      const uint32_t* row = rows.data() + middle * width;
      if (std::lexicographical_compare(row, row + words, wanted, wanted + words)) first = middle + 1;
      else last = middle;
    }
    return first;
  }

  LearnedView view_;
  bool trusted_ = true;
  std::vector<uint32_t> bases_;  // for each row of the file, its number in the pool; 0: not added yet
};

}  // namespace tokenfst
