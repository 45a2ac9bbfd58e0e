// The checks of what lies in an artifact.
#include "artifact/view.hpp"

namespace tokenfst {

void require_ascending(std::span<const uint32_t> rows, const char* rule) {
  for (size_t k = 3; k < rows.size(); k += 3) {
    require(rows[k - 3] < rows[k] || (rows[k - 3] == rows[k] && rows[k - 2] < rows[k + 1]), rule);
  }
}

void check_stacks(const StackView& view, size_t states, std::span<const uint32_t> roots, std::span<const uint32_t> worst, size_t masks) {
  require(view.effects.size() % 3 == 0 && view.reveals.size() % 3 == 0 && view.chains.size() % 3 == 0 && view.asks.size() % 3 == 0 &&
              view.frames.size() % 2 == 0,
          "rows of stacks are whole");
  const size_t effects = view.effects.size() / 3, frames = view.frames.size() / 2;
  require(view.states.size() == states * 4, "each state has its stacks");
  for (size_t q = 0; q < states; ++q) {
    const uint32_t* row = view.states.data() + 4 * q;
    require(row[0] <= 1 && row[2] <= row[0], "a state has one stack or none, and looks only into what it has");
    require(row[1] <= effects, "states have effects that exist");
    require(row[0] == 1 || row[3] == kUnreachable, "only states with a stack have a distance without it");
    require(row[0] == 0 || worst[q] == 0, "states with a stack have the bound 0");
  }
  require(view.states[0] == 0 && view.states[1] == 0, "state 0 has no stack and no effect");
  uint32_t end = 0;
  for (size_t e = 0; e < effects; ++e) {
    const uint32_t* row = view.effects.data() + 3 * e;
    require(row[0] != 0 && row[0] < states, "effects lead to states");
    require(row[1] <= 1 && row[2] >= end, "an effect keeps the stack or not, and its pushes follow those before");
    require((view.states[size_t{4} * row[0]] == 1) == (row[1] == 1 || row[2] > end),
            "an effect leads to a state with a stack just if there is one");
    end = row[2];
  }
  require(end == view.pushes.size(), "effects cover the pushes");
  for (uint32_t frame : view.pushes) require(frame < frames, "pushes are frames");
  for (size_t f = 0; f < frames; ++f) require(view.frames[2 * f] <= 1, "a frame may be left out (1) or not (0)");
  require_ascending(view.reveals, "answers ascend, and each is given once");
  for (size_t r = 0; r < view.reveals.size(); r += 3) {
    const uint32_t* row = view.reveals.data() + r;
    require(row[0] < states && view.states[4 * row[0] + 2] == 1, "answers are given to states that look into the stack");
    require(row[1] >> 1 < frames && row[2] >= 1 && row[2] <= effects, "answers name frames, and have effects that exist");
    require((row[1] & 1) || view.effects[3 * (row[2] - 1) + 1] == 0, "nothing stays below where nothing lies");
  }
  require_ascending(view.chains, "chains ascend, and each is there once");
  for (size_t c = 0; c < view.chains.size(); c += 3) {
    const uint32_t* row = view.chains.data() + c;
    require(row[0] < frames && row[1] < frames && row[2] < frames && view.frames[size_t{2} * row[0]] == 1,
            "chains are of frames, the upper of which may be left out");
  }
  // Inner nodes: a root inspects the top of the stack, its child the node below.
  const size_t nodes = states + view.asks.size() / 3;
  std::unordered_set<uint32_t> met;
  for (size_t q = 0; q < states; ++q) {
    if (!(roots[q] & DecisionTree::kInner)) continue;
    const uint32_t root = roots[q] & ~DecisionTree::kInner;
    require(root - 1 < nodes, "inner nodes count from 1");
    require(view.states[4 * q] == 1 && met.insert(root).second, "each state with a stack has its own tree");
  }
  // Rows are sorted, and the number of a node is less than those of its children, so the row that leads to a node comes
  // before the node's own rows.
  require_ascending(view.asks, "look-ups ascend, and each has one outcome");
  for (size_t k = 0; k < view.asks.size(); k += 3) {
    const uint32_t* row = view.asks.data() + k;
    require(row[0] - 1 < nodes && row[1] >> 1 < frames && row[2] != 0, "look-ups ask for frames and lead somewhere");
    require(met.contains(row[0]), "look-ups begin at states");
    if (row[2] & DecisionTree::kInner) {
      const uint32_t child = row[2] & ~DecisionTree::kInner;
      require(child - 1 < nodes, "inner nodes count from 1");
      require(row[1] & 1, "a look-up goes on only where something lies below");
      require(child > row[0] && met.insert(child).second, "look-ups are trees");
    } else {
      require(row[2] < masks, "look-ups end in masks that exist");
    }
  }
}

bool all_below(std::span<const uint32_t> values, size_t bound) {
  uint32_t largest = 0;
  for (uint32_t value : values) largest = std::max(largest, value);
  return values.empty() || largest < bound;
}

void check_masks(std::span<const uint32_t> mask_row, std::span<const uint32_t> flip_offsets, std::span<const uint32_t> flips,
                 std::span<const uint32_t> rows, const Vocabulary& vocabulary) {
  const size_t words = (vocabulary.size() + 31) / 32;
  require(!mask_row.empty() && flip_offsets.size() == mask_row.size() + 1, "each mask has a range of flips");
  require(rows.size() % words == 0, "rows are whole");
  require(all_below(mask_row, rows.size() / words + 1), "masks have rows that exist");
  require(flip_offsets[0] == 0 && flip_offsets.back() == flips.size(), "flip ranges cover the flips");
  require(mask_row[0] == 0 && flip_offsets[1] == 0, "mask 0 is the empty one");
  for (size_t m = 1; m < flip_offsets.size(); ++m) require(flip_offsets[m - 1] <= flip_offsets[m], "flip ranges ascend");
  for (size_t m = 0; m + 1 < flip_offsets.size(); ++m) {
    for (uint32_t i = flip_offsets[m]; i < flip_offsets[m + 1]; ++i) {
      require(flips[i] < vocabulary.size(), "flips are token ids");
      require(i == flip_offsets[m] || flips[i - 1] < flips[i], "flips ascend");
    }
  }
  if (vocabulary.size() % 32) {
    for (size_t r = 0; r * words < rows.size(); ++r)
      require(rows[(r + 1) * words - 1] >> (vocabulary.size() % 32) == 0, "rows end with the vocabulary");
  }
}

void check_view(const View& view, const Vocabulary& vocabulary) {
  const size_t states = view.accepting.size();
  require(view.num_classes >= 1 && view.num_classes <= 256 + (view.columns.empty() ? 0 : ByteSet::kMaxSymbols + 1),
          "there are 1 to 256 byte classes");
  require(states >= 1, "state 0 is there");
  require(view.table.size() == states * view.num_classes, "the table has a row of classes for each state");
  require(view.mask.size() == states && view.distance.size() == states && view.worst.size() == states,
          "each state has a mask, a distance and a bound");
  require(view.start < states && view.inner_start < states, "start states are states");
  for (int byte = 0; byte < 256; ++byte) require(view.classes[byte] < view.num_classes, "each byte has a class");
  for (uint32_t c = 0; c < view.num_classes; ++c) require(view.table[c] == 0, "state 0 is absorbing");
  require(view.columns.size() % 2 == 0, "columns of tokens have two numbers");
  require(view.columns.empty() || view.stacks.empty(), "automata with a stack have no columns of tokens");
  for (size_t k = 0; k < view.columns.size(); k += 2) {
    const uint32_t token = view.columns[k], column = view.columns[k + 1];
    require(k == 0 || view.columns[k - 2] < token, "columns of tokens ascend by token");
    require(column < view.num_classes && std::find(view.classes, view.classes + 256, column) == view.classes + 256,
            "columns of tokens are columns of no byte");
    if (token == kNone) continue;
    require(token < vocabulary.size() && vocabulary.tokens()[token].empty() && vocabulary.initial()[token].empty(),
            "tokens with columns have no bytes");
  }
  require(all_below(view.table, states), "transitions lead to states");
  for (uint8_t accepts : view.accepting) require(accepts <= 1, "a state accepts (1) or not (0)");
  require(!view.accepting[0] && view.mask[0] == 0 && view.distance[0] == kUnreachable,
          "state 0 does not accept, allows nothing, and leads nowhere");
  for (uint32_t distance : view.distance) {
    require(distance < states || distance == kUnreachable || !view.stacks.empty(), "a distance is less than the number of states");
  }
  check_masks(view.mask_row, view.flip_offsets, view.flips, view.rows, vocabulary);
  if (view.stacks.empty()) {
    require(all_below(view.mask, view.mask_row.size()), "states have masks that exist");
  } else {
    for (uint32_t mask : view.mask) require((mask & DecisionTree::kInner) || mask < view.mask_row.size(), "states have masks that exist");
    check_stacks(view.stacks, states, view.mask, view.worst, view.mask_row.size());
  }
  require(view.marks.size() % 4 == 0, "marks have four numbers");
  for (size_t k = 0; k < view.marks.size(); k += 4) {
    const uint32_t* row = view.marks.data() + k;
    if (k == 0 && row[0] == 0) continue;  // the row with the numbers of DistinctFacts
    require(row[0] < states && (k == 0 || row[-4] < row[0]) && row[2] < states && row[3] < states,
            "marks are of states, ascend, and lead to states");
    require((row[1] & ~(kFewEndingsBit | kValuesBit)) >= 1 && row[1] < 16, "a mark has kinds that exist");
  }
}

void check_learned(const LearnedView& view, const Vocabulary& vocabulary) {
  require(view.states.size() % Learned::kStateRow == 0 && view.answers.size() % Learned::kAnswerRow == 0,
          "rows of what was learned are whole");
  check_masks(view.mask_row, view.flip_offsets, view.flips, view.rows, vocabulary);
  const size_t nodes = view.nodes.size(), masks = view.mask_row.size();
  // `least`: the least number of an inner node that is allowed here. Answers lead only to nodes with greater numbers,
  // so look-ups end.
  auto leads_on = [&](uint32_t value, uint64_t least) {
    if (value & DecisionTree::kInner) return (value & ~DecisionTree::kInner) < nodes && (value & ~DecisionTree::kInner) >= least;
    return value <= masks;
  };
  std::vector<uint8_t> met(nodes);
  auto is_first = [&](uint32_t value) {
    return !(value & DecisionTree::kInner) || !std::exchange(met[value & ~DecisionTree::kInner], uint8_t{1});
  };
  auto ascends = [](const uint32_t* row, size_t width, size_t key) {
    return std::lexicographical_compare(row - width, row - width + key, row, row + key);
  };
  for (size_t k = 0; k < view.states.size(); k += Learned::kStateRow) {
    const uint32_t* row = view.states.data() + k;
    require(k == 0 || ascends(row, Learned::kStateRow, 4), "learned states ascend");
    require(leads_on(row[4], 0), "learned states have masks and inner nodes that exist");
    require(is_first(row[4]), "each learned state has its own tree");
  }
  for (size_t k = 0; k < view.answers.size(); k += Learned::kAnswerRow) {
    const uint32_t* row = view.answers.data() + k;
    require(k == 0 || ascends(row, Learned::kAnswerRow, 5), "learned answers ascend");
    require(row[0] < nodes && row[5] != 0 && leads_on(row[5], uint64_t{row[0]} + 1),
            "learned answers lead to masks, or to inner nodes after their own");
    require(is_first(row[5]), "what was learned are trees");
  }
}

}  // namespace tokenfst
