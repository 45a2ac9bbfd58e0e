// Masks under a limit of new tokens, computed in advance. With n tokens left a state admits the tokens after which acceptance
// is at most n - 1 tokens away, and the end tokens if it accepts. As n grows, these sets are nested, and they change
// only if n - 1 is the distance after some token. So each state has a short ascending list of (least distance, mask),
// whose last entry is its whole mask; the mask for n is the last one whose distance is at most n - 1, or the empty mask
// if there is none.
//
// Cost: one walk of the vocabulary for each state whose tokens do not all lead to the same distance; for most states
// the bound `worst` shows that they do. Masks are interned (vocabulary/masks.hpp) and continue the automaton's numbers.
//
// For a push-down automaton the same is done for each leaf of the masks' decision trees: a state, and the stack symbols
// that tokens inspect. The symbols below these stay the same for every token, so distances are counted without them. A
// look-up first subtracts the tokens that complete the symbols below from n.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "artifact/artifact.hpp"

namespace tokenfst {

struct LimitLayers {
  std::vector<uint32_t> offsets;  // one more than there are states or leaves
  std::vector<uint32_t> layers;   // layers x (least distance, mask)
  std::vector<uint32_t> mask_row, flip_offsets, flips, rows;
};

// Collects the layers of states or leaves, one after the other. Raises BudgetExceeded.
class LayerMaker {
 public:
  using Reached = std::map<uint32_t, std::vector<uint32_t>>;  // tokens by the distance after them

  // `own`: the masks of the automaton, which keep their numbers.
  LayerMaker(const MaskPool& own, const Budget& budget)
      : budget_(budget), deadline_(budget.seconds), pool_(own.vocab_size()), row_(pool_.words()) {
    for (uint32_t r = 1; r <= own.num_rows(); ++r) pool_.adopt_row(own.row(r));
    for (MaskId id = 1; id < own.size(); ++id) pool_.adopt(own[id].base_index, own[id].flips, own[id].num_flips);
  }

  // Begins the next state or leaf.
  void begin() {
    out_.offsets.push_back(static_cast<uint32_t>(out_.layers.size() / 2));
    if (deadline_.expired()) throw BudgetExceeded("seconds", budget_.seconds, "masks under limits of new tokens");
    if (pool_.memory() > budget_.bytes)
      throw BudgetExceeded("bytes", static_cast<double>(budget_.bytes), "masks under limits of new tokens");
  }
  // Adds one layer.
  void add(uint32_t distance, MaskId mask) { out_.layers.insert(out_.layers.end(), {distance, mask}); }
  // Adds a layer for each distance in `reached`; `whole` is the mask of all tokens.
  void add(Reached& reached, MaskId whole) {
    std::erase_if(reached, [](auto& group) { return group.second.empty(); });
    std::ranges::fill(row_, 0);
    list_.clear();
    for (auto& [farthest, tokens] : reached) {
      MaskId mask = whole;
      if (farthest != reached.rbegin()->first) {
        for (uint32_t token : tokens) row_[token >> 5] |= 1u << (token & 31);
        if (list_.size() + tokens.size() <= MaskPool::kMaxFlips) {
          list_.insert(list_.end(), tokens.begin(), tokens.end());
          std::ranges::sort(list_);
          mask = pool_.add(0, list_);
        } else {
          list_.resize(MaskPool::kMaxFlips);  // sets grow; from here on no list is used
          mask = pool_.add_dense(row_.data());
        }
      }
      add(farthest, mask);
    }
  }
  // The layers of all, with all masks.
  LimitLayers finish() {
    out_.offsets.push_back(static_cast<uint32_t>(out_.layers.size() / 2));
    write_masks(pool_, out_);
    return std::move(out_);
  }

 private:
  Budget budget_;
  Deadline deadline_;
  MaskPool pool_;
  LimitLayers out_;
  std::vector<uint32_t> row_, list_;
};

// The layers of a finished automaton without stacks. At worst a walk of the vocabulary for each state. Raises BudgetExceeded.
inline LimitLayers limit_layers(TokenAutomaton& automaton, const Budget& budget) {
  LayerMaker maker(automaton.masks(), budget);
  Stacks stacks;
  LayerMaker::Reached reached;
  const size_t states = automaton.bytes().num_states();
  for (State q = 0; q < states; ++q) {
    maker.begin();
    const uint32_t distance = q == kDead ? kUnreachable : automaton.distance({q}, stacks);
    if (distance == kUnreachable) continue;
    const MaskId whole = automaton.mask({q}, stacks);
    const uint32_t least = distance == 0 ? 0 : distance - 1;
    if (automaton.worst({q}, stacks) <= least) {
      maker.add(least, whole);
      continue;
    }
    for (auto& [farthest, tokens] : reached) tokens.clear();
    std::vector<uint32_t>* last = nullptr;
    uint32_t last_distance = kUnreachable;
    for (auto& [token, target] : automaton.arcs(q)) {
      const uint32_t farthest = automaton.distance({target}, stacks);
      if (farthest == kUnreachable) continue;  // the artifact has a wrong distance
      if (farthest != last_distance) last = &reached[last_distance = farthest];
      last->push_back(token);
    }
    if (automaton.accepting({q}))
      reached[0].insert(reached[0].end(), automaton.vocabulary().eos().begin(), automaton.vocabulary().eos().end());
    maker.add(reached, whole);
  }
  return maker.finish();
}

// The leaves of the masks' decision trees in an artifact: a state, the answers from the top of the stack down, and the
// mask.
struct StackLeaves {
  std::vector<uint32_t> states, masks, offsets, answers;  // offsets: leaves + 1, into answers
};

// Raises an Error if their numbers are not those of this automaton.
inline void check_leaves(TokenAutomaton& automaton, const StackLeaves& leaves) {
  const auto below = [](const std::vector<uint32_t>& values, size_t bound) {
    return std::ranges::all_of(values, [&](uint32_t value) { return value < bound; });
  };
  const bool whole = leaves.masks.size() == leaves.states.size() && leaves.offsets.size() == leaves.states.size() + 1 &&
                     leaves.offsets[0] == 0 && leaves.offsets.back() == leaves.answers.size() && std::ranges::is_sorted(leaves.offsets);
  if (!whole || !below(leaves.states, automaton.bytes().num_states()) || !below(leaves.masks, automaton.masks().size()) ||
      !below(leaves.answers, 2 * automaton.bytes().stacks().num_frames())) {
    throw Error(Fault::Constraint, "the leaves of decision trees do not belong to this automaton: take both from the same artifact");
  }
}

// The distance of a configuration in tokens: `above`, to complete everything above `opaque`, if that node remains; `alone`, to
// acceptance, where it has been removed. kUnreachable: there is no such way.
struct LengthsAbove {
  uint32_t above = kUnreachable, alone = kUnreachable;
};
inline LengthsAbove lengths_above(TokenAutomaton& automaton, Config config, StackId opaque, Stacks& stacks) {
  ByteAutomaton& bytes = automaton.bytes();
  if (bytes.stacks().count(config.state) == 0) return {kUnreachable, automaton.distance(config, stacks)};
  if (bytes.stacks().to_reveal(config.state) != kNone) return {0, kUnreachable};  // the state waits for `opaque`
  LengthsAbove found;
  const std::vector<uint32_t> tops = automaton.top_distances(config.state);
  for (size_t k = 0; k < tops.size(); ++k) {
    const uint32_t hole = bytes.stacks().shape(config.state).members[k].hole;
    StackId node = hole == kNone ? kBottom : stacks.member(config.stack, hole);
    uint32_t sum = tops[k];
    for (; node != kBottom && node != opaque; node = stacks.edges(node)[0].below)
      sum = plus(sum, automaton.distance_of_frame(stacks.edges(node)[0].frame));
    uint32_t& least = node == opaque ? found.above : found.alone;
    least = std::min(least, sum);
  }
  return found;
}

// The layers of a push-down automaton, for each of its leaves (see check_leaves()). Raises an Error if the distance after
// some token depends on symbols that the leaf does not have, and BudgetExceeded.
inline LimitLayers stack_layers(TokenAutomaton& automaton, const StackLeaves& leaves, const Budget& budget) {
  LayerMaker maker(automaton.masks(), budget);
  Stacks stacks;
  const StackId opaque = stacks.push((1u << 30) - 1, kBottom);  // a number that no frame has
  LayerMaker::Reached reached;
  for (size_t leaf = 0; leaf < leaves.states.size(); ++leaf) {
    maker.begin();
    StacksTrial trial(stacks);
    const State q = leaves.states[leaf];
    const std::span answers(leaves.answers.data() + leaves.offsets[leaf], leaves.answers.data() + leaves.offsets[leaf + 1]);
    // Nothing lies below if the last answer said so, or if there is no stack.
    const bool open = answers.empty() ? automaton.bytes().stacks().count(q) > 0 : answers.back() & 1;
    StackId node = open ? opaque : kBottom;
    for (size_t k = answers.size(); k-- > 0;) node = stacks.push(answers[k] >> 1, node);
    for (auto& [farthest, tokens] : reached) tokens.clear();
    auto add = [&](uint32_t distance, uint32_t token) { reached[distance].push_back(token); };
    bool mixed = open && automaton.accepting({q});
    std::map<Config, LengthsAbove> known;
    for (auto& [token, end] : automaton.arcs({q, node}, stacks, opaque)) {
      auto [it, fresh] = known.try_emplace(end);
      if (fresh) it->second = lengths_above(automaton, end, opaque, stacks);
      const LengthsAbove lengths = it->second;
      mixed |= open && lengths.alone != kUnreachable;
      const uint32_t length = open ? lengths.above : lengths.alone;
      if (length != kUnreachable) add(length, token);
    }
    if (mixed)
      throw Error(
          Fault::Constraint,
          "how many tokens complete a text depends on the whole stack after some tokens, and on nothing of it after others: masks under a "
          "limit of new tokens cannot be packed for this grammar");
    if (automaton.accepting({q})) {
      for (uint32_t token : automaton.vocabulary().eos()) add(0, token);
    }
    // A step that pushes a nullable symbol on an unknown one leads nowhere, so its token is missing.
    size_t found = 0;
    for (auto& [distance, tokens] : reached) found += tokens.size();
    if (found < automaton.masks()[leaves.masks[leaf]].count) {
      throw Error(Fault::Constraint,
                  "how many tokens complete a text depends on stack symbols that its mask does not inspect: masks under a limit of new "
                  "tokens cannot be packed for this grammar");
    }
    maker.add(reached, leaves.masks[leaf]);
  }
  return maker.finish();
}

}  // namespace tokenfst
