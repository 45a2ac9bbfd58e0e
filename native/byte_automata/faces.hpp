// Three parts of a byte automaton's interface: the effects of steps on stacks, the marks of exclusion, and the
// expressions of states. A walk without stacks and without exclusion needs none of them. A face is a reference, valid as
// long as the automaton, and costs nothing.
#pragma once

#include "byte_automata/byte_automaton.hpp"

namespace tokenfst {

// For push-down automata: the effect of a step on the stacks (stacks/pushdown.hpp). The target of a step is called
// `raw` before its effect is applied, and a state after that.
class StackFace {
 public:
  explicit StackFace(ByteAutomaton& automaton) : automaton_(automaton) {}

  const PushDown& pushdown() const { return *automaton_.pushdown_; }
  // For finished tables: makes it a push-down automaton, whose effects the caller then adds.
  PushDown& adopt_pushdown() const {
    if (!automaton_.pushdown_) automaton_.pushdown_ = std::make_unique<PushDown>(automaton_.arena_);
    return *automaton_.pushdown_;
  }
  // For finished tables: sets a state's number of stacks, and the numbers of its effect and its shape (0: none).
  void adopt(State state, uint32_t stacks, uint32_t effect, uint32_t shape) const {
    ByteAutomaton::StateInfo& info = automaton_.states_[state];
    info.stacks = stacks;
    info.effect = effect;
    info.shape.store(shape, std::memory_order_relaxed);
    info.arrival.store(effect ? PushDown::kPasses : stacks);
  }

  // Whether the step from `from` leads to `raw` unchanged, with unchanged stacks.
  bool keeps(State from, State raw) const {
    return !automaton_.pushdown_ || automaton_.arrival(raw, automaton_.states_[raw]) == automaton_.states_[from].stacks;
  }
  // Whether the same holds and there are no marks to pass: then nothing needs to be done.
  bool rests(State from, State raw) const { return !automaton_.states_[raw].marked && keeps(from, raw); }
  // The number of stacks of a state.
  uint32_t count(State state) const { return automaton_.states_[state].stacks; }
  // The effect of a step to `raw`; null: it has none. Call keeps() before, which computes it.
  const Effect* effect(State raw) const {
    uint32_t index = automaton_.states_[raw].effect;
    return index ? &pushdown().effect(index) : nullptr;
  }
  // The shape of a state; without members if it has no stacks.
  const Shape& shape(State state) const { return automaton_.shape(state); }
  // The stack that is inspected before the next step; kNone: none.
  uint32_t to_reveal(State state) const { return shape(state).reveal; }
  // The effect of inspecting that stack, if its top edges are these.
  const Effect& revealed(State state, std::span<const Edge> edges) const {
    if (const auto signature = pushdown().known_signature(edges)) {
      if (uint32_t known = pushdown().revealed(state, *signature)) return pushdown().effect(known);
    }
    return automaton_.make_revealed(state, edges);
  }

  // The frames so far, and one of them.
  size_t num_frames() const { return automaton_.pushdown_ ? pushdown().settler().num_frames() : 0; }
  const Settler::Frame& frame(uint32_t id) const { return pushdown().settler().frame(id); }
  // The frame that a nullable frame makes with the frame below it; kNone: they are not chained.
  uint32_t chain(uint32_t upper, uint32_t lower) const {
    uint32_t frame;
    return pushdown().chained(upper, lower, frame) ? frame : automaton_.make_chain(upper, lower);
  }
  // The frame of the union of two frames.
  uint32_t unite(uint32_t a, uint32_t b) const {
    if (a == b) return a;
    const uint32_t known = pushdown().united(a, b);
    return known ? known - 1 : automaton_.make_union(a, b);
  }

 private:
  ByteAutomaton& automaton_;
};

// For strings and items that must differ from each other: marks in front of states (derivatives/marks.hpp).
class MarkFace {
 public:
  explicit MarkFace(ByteAutomaton& automaton) : any(automaton.marks_.any), facts(automaton.marks_.facts), automaton_(automaton) {}

  const bool any;  // whether the automaton has marks
  const DistinctFacts& facts;

  // For finished tables: what Marks::adopt() stores about a state with marks, and the facts about all strings.
  template <class... Known>
  void adopt(State raw, Known... known) const {
    automaton_.states_[raw].marked = true, automaton_.marks_.adopt(raw, known...);
  }
  void adopt_facts(const DistinctFacts& given) const { automaton_.marks_.facts = given; }

  // For the target of a step: whether marks are ahead; which kinds they have, as bits; and the live state after passing them (marks
  // Fresh only if `holds`), or DEAD.
  bool is_marked(State raw) const { return automaton_.states_[raw].marked; }
  uint32_t kinds(State raw) const {
    const uint32_t known = automaton_.marks_.kinds(raw);
    return known ? known - 1 : automaton_.make_mark_kinds(raw);
  }
  State passed(State raw, bool holds) const {
    const uint32_t known = automaton_.marks_.passed(raw, holds);
    return known ? known - 1 : automaton_.make_passed(raw, holds);
  }
  // Raise an Error if there are marks: for finite automata, and for vocabularies that lack bytes.
  void refuse() const { automaton_.marks_.refuse(); }
  void refuse_gaps() const { automaton_.marks_.refuse_gaps(); }

 private:
  ByteAutomaton& automaton_;
};

// For automata that are created on demand: the expressions of states, and the arena that holds them.
class ExpressionFace {
 public:
  explicit ExpressionFace(ByteAutomaton& automaton) : automaton_(automaton) {}

  // The expression of a state.
  NodeId node(State state) const { return automaton_.states_[state].node; }
  // The live state of an expression, or DEAD.
  State intern(NodeId node) const { return automaton_.intern(node); }
  // Calls f with an arena of the automaton's nodes that no other thread uses meanwhile.
  template <class F>
  auto with_arena(F&& f) const {
    return automaton_.with_arena(std::forward<F>(f));
  }
  // Whether a selection of words may have far more states than a search can visit.
  bool has_too_many_states() const { return automaton_.derivatives_.selections().have_too_many_states(); }
  // Calls f with the selections, under the automaton's mutex.
  template <class F>
  auto with_selections(F&& f) const {
    auto lock = automaton_.enter();
    return f(std::as_const(automaton_.derivatives_).selections());
  }

  // The expression after a token boundary.
  NodeId at_boundary(NodeId node) const;
  // A lower bound of the bytes of a word of an expression, from its form (estimates.hpp).
  uint32_t least_length(NodeId node) const;
  // Whether tokens surely lead from a state to acceptance, if each byte is a token: `Derivatives::surely_spelled`.
  bool surely_spelled(State state) const;
  // The digest of an expression, the same in every process that read the same program.
  Digest digest(NodeId node) const;
  // If an expression is the rest of a lexicon: the lexicon and the state in it; else null.
  std::pair<const Lexicon*, uint32_t> words_of(NodeId id) const;
  // The moves of an expression without calls, including those to empty languages.
  std::vector<Move> moves(NodeId node) const;
  // The parts of an Unordered node.
  Unordered::Demand demand(NodeId node) const;

 private:
  ByteAutomaton& automaton_;
};

inline StackFace ByteAutomaton::stacks() { return StackFace(*this); }
inline MarkFace ByteAutomaton::marks() { return MarkFace(*this); }
inline ExpressionFace ByteAutomaton::expressions() { return ExpressionFace(*this); }

}  // namespace tokenfst
