// Three faces of a byte automaton: what steps do to stacks, what is excluded as the text goes on, and the expressions that states
// stand for. A walk without stacks and without exclusion needs none of them. A face is a reference and costs nothing.
#pragma once

#include "byte_automata/byte_automaton.hpp"

namespace tokenfst {

// Of push-down automata: what a step to a state does to the stacks (stacks/pushdown.hpp). A target of a step is `raw` before its
// effect is applied, and a state behind it.
class StackFace {
 public:
  explicit StackFace(ByteAutomaton& automaton) : automaton_(automaton) {}

  const PushDown& pushdown() const { return *automaton_.pushdown_; }
  // Of finished tables: makes it a push-down automaton, to be told what states do to stacks.
  PushDown& adopt_pushdown() const {
    if (!automaton_.pushdown_) automaton_.pushdown_ = std::make_unique<PushDown>(automaton_.arena_);
    return *automaton_.pushdown_;
  }
  void adopt(State state, uint32_t stacks, uint32_t effect, uint32_t shape) const {
    ByteAutomaton::StateInfo& info = automaton_.states_[state];
    info.stacks = stacks;
    info.effect = effect;
    info.shape.store(shape, std::memory_order_relaxed);
    info.arrival.store(effect ? PushDown::kPasses : stacks);
  }

  // Whether the step from `from` leads to `raw` as it is, with the stacks as they were.
  bool keeps(State from, State raw) const {
    return !automaton_.pushdown_ || automaton_.arrival(raw, automaton_.states_[raw]) == automaton_.states_[from].stacks;
  }
  // The same, and there are no marks to pass.
  bool rests(State from, State raw) const { return !automaton_.states_[raw].marked && keeps(from, raw); }
  uint32_t count(State state) const { return automaton_.states_[state].stacks; }
  // Null: none.
  const Effect* effect(State raw) const {
    uint32_t index = automaton_.states_[raw].effect;
    return index ? &pushdown().effect(index) : nullptr;
  }
  const Shape& shape(State state) const { return automaton_.shape(state); }
  // The stack that is looked into before the next step; kNone: none.
  uint32_t to_reveal(State state) const { return shape(state).reveal; }
  // The effect of looking into it where its top edges are these.
  const Effect& revealed(State state, std::span<const Edge> edges) const {
    if (const auto signature = pushdown().known_signature(edges)) {
      if (uint32_t known = pushdown().revealed(state, *signature)) return pushdown().effect(known);
    }
    return automaton_.make_revealed(state, edges);
  }

  size_t num_frames() const { return automaton_.pushdown_ ? pushdown().settler().num_frames() : 0; }
  const Settler::Frame& frame(uint32_t id) const { return pushdown().settler().frame(id); }
  // The frame that a nullable frame makes with the frame it is put on; kNone: they stay apart.
  uint32_t chain(uint32_t upper, uint32_t lower) const {
    uint32_t frame;
    return pushdown().chained(upper, lower, frame) ? frame : automaton_.make_chain(upper, lower);
  }
  // The frame that is either of two.
  uint32_t unite(uint32_t a, uint32_t b) const {
    if (a == b) return a;
    const uint32_t known = pushdown().united(a, b);
    return known ? known - 1 : automaton_.make_union(a, b);
  }

 private:
  ByteAutomaton& automaton_;
};

// Of strings and items that must differ from each other: marks in front of states (expressions/marks.hpp).
class MarkFace {
 public:
  explicit MarkFace(ByteAutomaton& automaton) : any(automaton.marks_.any), room(automaton.marks_.room), automaton_(automaton) {}

  const bool any;
  const Room& room;

  template <class... Known>
  void adopt(State raw, Known... known) const {
    automaton_.states_[raw].marked = true, automaton_.marks_.adopt(raw, known...);
  }
  void adopt_room(const Room& given) const { automaton_.marks_.room = given; }

  // Of the target of a step: whether marks are ahead, which, and where it leads once they are passed.
  bool lie_ahead(State raw) const { return automaton_.states_[raw].marked; }
  uint32_t signs(State raw) const {
    const uint32_t known = automaton_.marks_.signs(raw);
    return known ? known - 1 : automaton_.make_signs(raw);
  }
  State passed(State raw, bool holds) const {
    const uint32_t known = automaton_.marks_.passed(raw, holds);
    return known ? known - 1 : automaton_.make_passed(raw, holds);
  }
  // Where they cannot be: finite automata, vocabularies that lack bytes.
  void refuse() const { automaton_.marks_.refuse(); }
  void refuse_gaps() const { automaton_.marks_.refuse_gaps(); }

 private:
  ByteAutomaton& automaton_;
};

// Of automata that are made as they are walked: the expressions that states stand for, and the arena that holds them.
class ExpressionFace {
 public:
  explicit ExpressionFace(ByteAutomaton& automaton) : automaton_(automaton) {}

  NodeId node(State state) const { return automaton_.states_[state].node; }
  // The live state of an expression, or DEAD.
  State intern(NodeId node) const { return automaton_.intern(node); }
  // Exclusive use of the arena.
  template <class F>
  auto with_arena(F&& f) const {
    return automaton_.with_arena(std::forward<F>(f));
  }
  // Whether choices of members may have far more states than anyone can go through; exclusive use of these choices.
  bool is_vast() const { return automaton_.derivatives_.selections().is_vast(); }
  template <class F>
  auto with_selections(F&& f) const {
    auto lock = automaton_.enter();
    return f(std::as_const(automaton_.derivatives_).selections());
  }

  // An expression at a boundary of tokens.
  NodeId at_boundary(NodeId node) const;
  // Whether tokens surely lead from a state to its end, if each byte is one: `Derivatives::surely_spelled`.
  bool surely_spelled(State state) const;
  // What an expression is, in every process that read the same program.
  Digest digest(NodeId node) const;
  // Where an expression is all that a lexicon reads from one of its states on: the lexicon, and that state; else null.
  std::pair<const Lexicon*, uint32_t> words_of(NodeId id) const;
  // What leads on from an expression without calls, dead ends among it.
  std::vector<Move> moves(NodeId node) const;
  // What may come of a node Unordered.
  Unordered::Demand demand(NodeId node) const;

 private:
  ByteAutomaton& automaton_;
};

inline StackFace ByteAutomaton::stacks() { return StackFace(*this); }
inline MarkFace ByteAutomaton::marks() { return MarkFace(*this); }
inline ExpressionFace ByteAutomaton::expressions() { return ExpressionFace(*this); }

}  // namespace tokenfst
