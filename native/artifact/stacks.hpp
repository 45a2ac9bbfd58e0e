// The part of an artifact that only push-down automata have: the effects of steps on the stack, and the masks by the
// stack symbols that they depend on.
//
// Only deterministic automata are expanded: they have one stack, and each node of it has one edge. All states that
// bytes can reach are found by levels (walks/levels.hpp). Then each mask is computed with as much of the stack as it
// needs: the callers of a level are pushed one by one until no token inspects anything further down.
// docs/serving/format.md describes the arrays.
//
// A *chain* is the one frame that stands for two frames, of which the upper may be left out (derives the empty word).
// Invariant: an artifact has the chain of every two frames that a walk may put on top of each other. An effect is
// written as a sequence of single pushes, as they were when the levels were explored. There each push of each step was made
// on every frame that can lie below it, so its chain is known. Where a chain would be too long, the walk does
// not make it: its stack gets an edge for each of the two frames, since either may be on top, and an artifact cannot express
// that. Such effects are marked as apart (StepLog), and the outcome of the whole step is written instead
// (Levels::outcomes). If that outcome depends on more than the top of the stack (Levels::deeper), the grammar is refused.
#pragma once

#include "walks/levels.hpp"
#include "token_automata/token_automaton.hpp"

namespace tokenfst {

// The tensors of stacks in a file, without the prefix `stack_` of their names.
struct StackArrays {
  std::vector<uint32_t> states;   // states x 4: number of stacks, effect, whether it must inspect the stack, distance without the stack
  std::vector<uint32_t> effects;  // effects x 3: state, whether the old stack stays below, end of its pushes
  std::vector<uint32_t> pushes;   // frames, lowest first
  std::vector<uint32_t> reveals;  // reveals x 3: state, answer, effect
  std::vector<uint32_t> frames;   // frames x 2: whether the frame may be left out, distance
  std::vector<uint32_t> chains;   // chains x 3: upper frame, lower frame, the frame of both
  std::vector<uint32_t> asks;     // children x 3: inner node, answer, value
};

class StackExpansion {
 public:
  // Finds all states, effects and masks. Raises Nondeterministic if one stack is not enough for some text, or if a step
  // depends on more than the top of the stack; BudgetExceeded.
  explicit StackExpansion(TokenAutomaton& automaton);

  // All states: DEAD first, then the states in which steps rest.
  const std::vector<State>& order() const { return order_; }
  // Whether steps rest in the state of this number; else they only pass through it.
  bool rests(size_t index) const { return index < resting_; }
  State number_of(State state) const { return numbers_.at(state); }

  // Returns the arrays, with masks numbered by `mask_number`.
  template <class MaskNumber>
  StackArrays arrays(MaskNumber&& mask_number) {
    StackArrays out;
    for (size_t k = 0; k < order_.size(); ++k) {
      State q = order_[k];
      const bool looks = std::ranges::find(looks_, q) != looks_.end();
      const uint32_t stacks = looks ? 1 : bytes_.stacks().count(q);
      uint32_t closed = kUnreachable, effect = effect_of_[k];
      if (stacks > 0 && rests(k)) {
        const auto tops = automaton_.top_distances(q);
        const auto& members = bytes_.stacks().shape(q).members;
        for (size_t m = 0; m < members.size(); ++m) {
          if (members[m].hole == kNone) closed = tops[m];
        }
      }
      out.states.insert(out.states.end(), {stacks, effect, looks || (stacks > 0 && bytes_.stacks().to_reveal(q) != kNone), closed});
    }
    for (const Chain& each : effects_) {
      out.pushes.insert(out.pushes.end(), each.frames.begin(), each.frames.end());
      out.effects.insert(out.effects.end(), {number_of(each.state), each.keeps, static_cast<uint32_t>(out.pushes.size())});
    }
    append(out.reveals, reveals_);
    for (uint32_t frame = 0; frame < bytes_.stacks().num_frames(); ++frame) {
      out.frames.insert(out.frames.end(), {bytes_.stacks().frame(frame).nullable, automaton_.distance_of_frame(frame)});
    }
    std::vector<std::array<uint32_t, 3>> rows;
    bytes_.stacks().pushdown().for_each_chain(
        [&](uint32_t upper, uint32_t lower, uint32_t frame) { rows.push_back({upper, lower, frame}); });
    append(out.chains, rows);
    rows.clear();
    automaton_.mask_tree().for_each([&](uint32_t ask, uint32_t answer, uint32_t value) {
      rows.push_back({ask, answer, value & DecisionTree::kInner ? value : mask_number(value)});
    });
    append(out.asks, rows);
    return out;
  }

 private:
  using Chain = Levels::Chain;

  static void append(std::vector<uint32_t>& out, std::vector<std::array<uint32_t, 3>> rows);

  State number(State state);

  // The content of a register: frames, lowest first, on the stack of another register or on nothing.
  struct RegisterContent {
    uint32_t base;
    std::vector<uint32_t> frames;
  };
  // Replaces each frame that may be left out, and the frame below it, by their chain, as steps do, wherever the lower frame
  // is known in advance.
  RegisterContent chained(const RegisterContent& pile);
  // The union of two contents that differ only in the top frame. None if the result depends on the stack below.
  std::optional<RegisterContent> united(const RegisterContent& a, const RegisterContent& b);

  // Returns the number of an effect; none if the effect depends on the stack below. `reg` is the register that stands
  // for the old stack: 0, or 1 if its top, which was `top`, has been inspected.
  std::optional<uint32_t> keep(const Effect& effect, uint32_t reg, uint32_t top = kNone);
  uint32_t keep(const Chain& chain);
  // The same, but if the effect depends on the stack below, returns that of the outcome that was found for the frame `top`.
  std::optional<uint32_t> keep_as_found(State state, const Effect& effect, uint32_t reg, uint32_t top = kNone);
  // Raises Nondeterministic: a step depends on more than the top of the stack.
  [[noreturn]] static void refuse();
  // Returns the effect of a step to `raw`. If the effect depends on the stack below, the step rests in `raw` itself,
  // which then inspects the stack, and there is one answer for each top that was found there.
  uint32_t effect_of(State raw, const Effect& effect);
  // The tops that were found below `raw`, as answers (2 * frame, + 1 if the stack continues below).
  std::vector<uint32_t> answers_of(State raw) const;

  // Finds the effects of all targets of steps, and of all states that must inspect the stack.
  void find_effects();

  // Computes the mask of each state for every stack that it can inspect.
  void make_masks();

  TokenAutomaton& automaton_;
  ByteAutomaton& bytes_;
  Levels levels_;
  Deadline deadline_;
  std::vector<State> order_;
  size_t resting_ = 0;
  std::unordered_map<State, State> numbers_;
  std::vector<Chain> effects_;
  std::map<Chain, uint32_t> effect_index_;
  std::vector<uint32_t> effect_of_;  // by state number; 0: none
  std::vector<std::array<uint32_t, 3>> reveals_;
  std::vector<State> looks_;  // targets of steps that inspect the stack
};

}  // namespace tokenfst
