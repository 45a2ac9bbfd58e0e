// The content of an artifact: an expanded token automaton as flat arrays (docs/serving/format.md). An automaton is expanded
// if all of its states, masks and distances are known. expand() writes the arrays; LoadedAutomaton is a token automaton that
// reads them.
//
// Invariant: the arrays depend on the automaton alone, not on the order in which it was walked before (convention 10).
// Cost: expand() computes every state, mask and distance; loading takes time linear in the arrays' size and copies none
// of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artifact/stacks.hpp"
#include "artifact/view.hpp"

namespace tokenfst {

// The arrays, in the order of states; state 0 is DEAD.
struct Arrays {
  std::array<uint8_t, 256> classes{};
  uint32_t num_classes = 0;
  std::vector<uint32_t> table;         // states x classes
  std::vector<uint8_t> accepting;      // for each state: 1 or 0
  std::vector<uint32_t> mask;          // for each state, an index into the masks; 0 is the empty mask
  std::vector<uint32_t> distance;      // for each state: tokens to acceptance, or kUnreachable
  std::vector<uint32_t> worst;         // for each state: an upper bound of the distance after any token of its mask
  std::vector<uint32_t> mask_row;      // for each mask: 0 for no row, else the row number + 1
  std::vector<uint32_t> flip_offsets;  // one more than there are masks
  std::vector<uint32_t> flips;
  std::vector<uint32_t> rows;  // rows x words
  // Marked states x 4: state, kinds, the next state if the condition of the marks holds, and the one if it fails. The first
  // row has state 0 and the numbers of DistinctFacts.
  std::vector<uint32_t> marks;
  std::vector<uint32_t> columns;  // pairs: a special token and its column; the last pair may be kNone and the column of token boundaries
  uint32_t start = 0, inner_start = 0;
  StackArrays stacks;
};

// Returns Arrays::marks; empty if no state in `order` is marked. `number(state)`: the number of a state in the file.
template <class Number>
std::vector<uint32_t> marks_of(ByteAutomaton& bytes, const std::vector<State>& order, Number&& number) {
  std::vector<uint32_t> out;
  const DistinctFacts& facts = bytes.marks().facts;
  for (size_t k = 0; k < order.size(); ++k) {
    const State q = order[k];
    if (!bytes.marks().is_marked(q)) continue;
    if (out.empty()) out = {0, facts.fewest, facts.few_bytes, facts.many_bytes};
    const State holds = bytes.marks().passed(q, true), fails = bytes.marks().passed(q, false);
    out.insert(out.end(), {static_cast<uint32_t>(k),
                           bytes.marks().kinds(q) | (facts.few_endings ? kFewEndingsBit : 0) | (facts.values ? kValuesBit : 0),
                           number(holds), number(fails)});
  }
  return out;
}

// Writes the masks and rows of a pool into `mask_row`, `flip_offsets`, `flips` and `rows` of `out`.
template <class Out>
void write_masks(const MaskPool& masks, Out& out) {
  out.flip_offsets = {0, 0};
  out.mask_row = {0};
  for (MaskId id = 1; id < masks.size(); ++id) {
    const Mask& mask = masks[id];
    out.mask_row.push_back(mask.base_index);
    out.flips.insert(out.flips.end(), mask.flips, mask.flips + mask.num_flips);
    out.flip_offsets.push_back(static_cast<uint32_t>(out.flips.size()));
  }
  for (uint32_t r = 1; r <= masks.num_rows(); ++r) out.rows.insert(out.rows.end(), masks.row(r), masks.row(r) + masks.words());
}

// Masks in a file, numbered in the order in which they are requested. In a running automaton, which rows are kept, and
// which of them a mask is stored as a difference to, depends on earlier walks and on other automata over the same
// vocabulary. Here it depends only on the sets of tokens and their order (convention 10). Equal sets have one number.
class CanonicalMasks {
 public:
  explicit CanonicalMasks(size_t vocab_size) : masks_(vocab_size), row_(masks_.words()), other_(masks_.words()) {}

  // Returns the number of the mask that is `base` (null: the empty row) with the tokens `flips` inverted. O(length of
  // `flips`) without a base, O(words of a row) with one.
  uint32_t number(const uint32_t* base, std::span<const uint32_t> flips);

  // Writes the masks that were requested (write_masks).
  template <class Out>
  void write(Out& out) const {
    write_masks(masks_, out);
  }

 private:
  MaskPool masks_;
  std::unordered_multimap<uint64_t, MaskId> known_;
  std::vector<uint32_t> row_, other_;
};

// Canonical numbers for the masks of one pool. Each mask of the pool is read only once.
class PoolMasks : public CanonicalMasks {
 public:
  explicit PoolMasks(const MaskPool& pool) : CanonicalMasks(pool.vocab_size()), pool_(pool) {}

  // Returns the number in the file of a mask of the pool.
  uint32_t number(MaskId id);

 private:
  const MaskPool& pool_;
  std::unordered_map<MaskId, uint32_t> numbers_;
};

// Computes every state, mask and distance of an automaton without a stack, and numbers the states in breadth-first
// order. Raises BudgetExceeded("bytes" or "seconds"), and ("states") if the automaton grows beyond its budget.
Arrays expand_finite(TokenAutomaton& automaton);

// The same for a push-down automaton. A state that steps only pass through has no row, mask or distance. Raises Constraint
// if the automaton is token-level, and Nondeterministic if one stack is not enough for some text.
Arrays expand_pushdown(TokenAutomaton& automaton);

// The one of the two that fits the automaton.
Arrays expand(TokenAutomaton& automaton);

// A token automaton over the arrays of a file. It computes no states or masks.
class LoadedAutomaton : public TokenAutomaton {
 public:
  // Checks everything that a walk relies on (check_view; raises Corrupt), then uses the arrays without copying them.
  // O(size of the arrays).
  LoadedAutomaton(const View& view, std::shared_ptr<const Vocabulary> vocabulary);

 private:
  // The empty mask of a file, number 0 there. In a running automaton mask 0 means "not computed yet", so it gets a number of
  // its own.
  MaskId pool_empty(MaskPool& pool);

  void adopt_stacks(const View& view);
  // Returns the number of the effect that continues a step which has inspected the top of the stack, given the number of
  // the same effect on a whole stack. The stack below the top is in register 1 instead of 0.
  static uint32_t adopted_reveal(PushDown& pushdown, uint32_t effect);

  static std::shared_ptr<ByteAutomaton> make_bytes(const View& view, const Vocabulary& vocabulary);
  static void adopt_marks(ByteAutomaton& bytes, std::span<const uint32_t> marks);
  static std::vector<std::pair<uint32_t, uint32_t>> specials(const View& view);

  std::shared_ptr<void> owner_;
  MaskId empty_ = 0;
};

}  // namespace tokenfst
