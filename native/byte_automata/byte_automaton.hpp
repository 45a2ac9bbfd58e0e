// The deterministic byte automaton of an expression, made state by state when first asked for (as OpenFst's delayed
// operations are), or given as finished tables.
//
// A state is a distinct derivative. State 0 is DEAD; every other state is live: before an entry of a row is made, a target
// whose language is empty is replaced by DEAD (convention 3), for certain expressions by construction, for others
// by a search that remembers its outcome. Rows are indexed by byte class, and made entry by entry (rows.hpp). Readers take
// no lock; states are appended under the mutex.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "expressions/blame.hpp"
#include "byte_automata/columns.hpp"
#include "threads/fork_gate.hpp"
#include "byte_automata/leaps.hpp"
#include "expressions/least_lengths.hpp"
#include "support/liveness.hpp"
#include "expressions/parts.hpp"
#include "expressions/program.hpp"
#include "stacks/pushdown.hpp"
#include "byte_automata/rows.hpp"

namespace tokenfst {

class ByteAutomaton {
 public:
  // Of a program. With `own_start`, the start state is one that no transition enters again.
  ByteAutomaton(Program program, Budget budget, bool own_start = false) : budget_(budget), derivatives_(arena_), byte_derivatives_(arena_, derivatives_) {
    auto lock = enter();
    arena_.watch([this](size_t bytes) { check_budget(bytes); });
    Loaded loaded = ProgramReader(arena_, derivatives_).read(std::move(program));
    labels_ = std::move(loaded.labels);
    marks_.any = loaded.has_marks, marks_.room = loaded.room;
    if (arena_.has_rules()) pushdown_ = std::make_unique<PushDown>(arena_);
    columns_ = Columns(arena_, derivatives_.selections(), loaded.symbols, loaded.speaks_of_tokens);
    tokens_intersected_ = loaded.tokens_intersected;
    if (boundary() != kNone) loaded.root = derivatives_.at_boundary(loaded.root);
    new_state(kEmpty);
    start_ = state_of(loaded.root);
    if (start_ != kDead && !alive(start_)) start_ = kDead;
    if (own_start && start_ != kDead) {
      inner_start_ = start_;
      start_ = new_state(loaded.root);
      states_[start_].life.store(Life::Alive);
    } else {
      inner_start_ = start_;
    }
  }

  // Of finished tables; `rows` (states x classes) stays owned by the caller and must outlive this.
  ByteAutomaton(const std::array<uint8_t, 256>& classes, uint32_t num_classes, const State* rows, const uint8_t* accepting,
                uint32_t num_states, State start, State inner_start, uint32_t symbols = 0, uint32_t boundary = kNone)
      : derivatives_(arena_), byte_derivatives_(arena_, derivatives_), columns_(classes, num_classes, symbols, boundary), start_(start), inner_start_(inner_start) {
    for (uint32_t q = 0; q < num_states; ++q) {
      StateInfo& info = states_[states_.grow()];
      info.accepting = accepting[q];
      info.life.store(q == 0 ? Life::Dead : Life::Alive, std::memory_order_relaxed);
      info.row.store(const_cast<State*>(rows + size_t{q} * num_classes), std::memory_order_release);  // nothing is pending in it
      info.whole.store(true, std::memory_order_release);
    }
  }

  const uint8_t* classes() const { return columns_.classes(); }
  // Columns of a row: the classes of bytes, then symbols, then the boundary of tokens.
  uint32_t num_classes() const { return columns_.count(); }
  // Whether tokens as such stand in an intersection: then whether there is one that all parts want takes a search.
  bool tokens_intersected() const { return tokens_intersected_; }
  // Whether tokens are more than their bytes.
  bool speaks_of_tokens() const { return columns_.num_symbols() > 0 || boundary() != kNone; }
  uint32_t symbol_column(uint32_t symbol) const { return columns_.of_symbol(symbol); }
  // The column of what a state is where a token ends; kNone: that makes no difference.
  uint32_t boundary() const { return columns_.boundary(); }
  State start() const { return start_; }
  State inner_start() const { return inner_start_; }  // what start() is when text may have come before
  size_t num_states() const { return states_.size(); }
  bool accepting(State state) const { return states_[state].accepting; }
  const Budget& budget() const { return budget_; }
  bool is_lazy() const { return columns_.speaks_of_expressions(); }
  bool is_vast() const { return derivatives_.selections().is_vast(); }
  template <class F>
  auto with_selections(F&& f) {
    auto lock = enter();
    return f(std::as_const(derivatives_).selections());
  }

  // The next state for each byte class. O(1) once made.
  const State* row(State state) {
    StateInfo& info = states_[state];
    return info.whole.load(std::memory_order_acquire) ? info.row.load(std::memory_order_relaxed) : make_whole(state);
  }
  // The same, but for entries that are pending: for one that is walked, see entry().
  const State* entries(State state) {
    const State* known = states_[state].row.load(std::memory_order_acquire);
    return known ? known : make_row(state);
  }
  State entry(State state, const State* entries, uint32_t byte_class) {
    const State known = load_entry(entries, byte_class);
    return known & kPending ? make_entry(state, byte_class) : known;
  }
  State next(State state, uint32_t byte_class) { return entry(state, entries(state), byte_class); }
  State step(State state, uint8_t byte) { return next(state, columns_.of_byte(byte)); }
  State run(State state, std::string_view bytes) {
    for (unsigned char byte : bytes) {
      if ((state = step(state, byte)) == kDead) break;
    }
    return state;
  }

  // The leap over a text, or its beginning, where that makes no state on the way (leaps.hpp); null elsewhere, and where steps
  // are known. Texts of one number are the same.
  const Leap* leap(State from, uint32_t number, std::string_view text) {
    if (!is_lazy() || states_[from].row.load(std::memory_order_acquire)) return nullptr;
    if (const Leap* known = leaps_.find(from, number)) return known;
    auto lock = enter();
    return leaps_.make(from, states_[from].node, number, text, [&](NodeId left) { return live_state(left); });
  }

  // --- push-down automata: what a step does to stacks (see walker.hpp) ---

  bool is_pushdown() const { return pushdown_ != nullptr; }
  const PushDown& pushdown() const { return *pushdown_; }
  // Of finished tables: makes it a push-down automaton, to be told what states do to stacks.
  PushDown& adopt_pushdown() {
    if (!pushdown_) pushdown_ = std::make_unique<PushDown>(arena_);
    return *pushdown_;
  }
  void adopt_stacks(State state, uint32_t stacks, uint32_t effect, uint32_t shape) {
    StateInfo& info = states_[state];
    info.stacks = stacks;
    info.effect = effect;
    info.shape = shape;
    info.arrival.store(effect ? PushDown::kPasses : stacks);
  }
  // Whether the step from `from` leads to `raw` as it is, with the stacks as they were.
  bool keeps_stacks(State from, State raw) { return !pushdown_ || arrival(raw, states_[raw]) == states_[from].stacks; }
  // The same, and there are no marks to pass.
  bool rests(State from, State raw) {
    const StateInfo& info = states_[raw];
    return !info.marked && (!pushdown_ || arrival(raw, info) == states_[from].stacks);
  }
  uint32_t num_stacks(State state) const { return states_[state].stacks; }
  // Null: none.
  const Effect* effect(State raw) const {
    uint32_t index = states_[raw].effect;
    return index ? &pushdown_->effect(index) : nullptr;
  }
  const Shape& shape(State state) const { return pushdown_->shape(states_[state].shape); }
  uint32_t to_reveal(State state) const { return shape(state).reveal; }
  size_t num_frames() const { return pushdown_ ? pushdown_->settler().num_frames() : 0; }
  const Settler::Frame& frame(uint32_t id) const { return pushdown_->settler().frame(id); }
  // The frame that a nullable frame makes with the frame it is put on; kNone: they stay apart.
  uint32_t chain(uint32_t upper, uint32_t lower) {
    uint32_t frame;
    if (pushdown_->chained(upper, lower, frame)) return frame;
    if (!is_lazy()) throw Error(Fault::Corrupt, "the artifact does not say what two frames of its stack are together");
    auto lock = enter();
    return pushdown_->make_chain(upper, lower);
  }
  // The frame that is either of two.
  uint32_t unite(uint32_t a, uint32_t b) {
    if (a == b) return a;
    if (uint32_t known = pushdown_->united(a, b)) return known - 1;
    auto lock = enter();
    return pushdown_->make_union(a, b) - 1;
  }
  // The effect of looking into the stack `to_reveal(state)` where its top edges are these.
  const Effect& revealed(State state, std::span<const Edge> edges) {
    if (PushDown::is_single(edges)) {
      if (uint32_t known = pushdown_->revealed(state, PushDown::single_signature(edges[0]))) return pushdown_->effect(known);
    }
    if (!is_lazy()) throw Error(Fault::Corrupt, "the artifact does not say how the text goes on behind a frame of its stack");
    auto lock = enter();
    uint32_t signature = PushDown::is_single(edges) ? PushDown::single_signature(edges[0]) : pushdown_->signature(edges);
    if (uint32_t known = pushdown_->revealed(state, signature)) return pushdown_->effect(known);
    std::vector<std::pair<uint32_t, bool>> shown;
    for (const Edge& edge : edges) shown.emplace_back(edge.frame, edge.below != kBottom);
    const Shape& from = shape(state);
    Settled settled = pushdown_->settler().reveal(from.members, from.stacks, from.reveal, shown);
    uint32_t effect = pushdown_->add_effect(shaped(settled), settled);
    pushdown_->keep_revealed(state, signature, effect);
    return pushdown_->effect(effect);
  }

  // An expression at a boundary of tokens.
  NodeId at_boundary(NodeId node) {
    if (boundary() == kNone) return node;
    auto lock = enter();
    return derivatives_.at_boundary(node);
  }
  // The expression of a state (lazy automata only), and exclusive use of the arena.
  NodeId node(State state) const { return states_[state].node; }
  template <class F>
  auto with_arena(F&& f) {
    auto lock = enter();
    return f(arena_);
  }
  // Where an expression is all that a lexicon reads from one of its states on: the lexicon, and that state; else null.
  std::pair<const Lexicon*, uint32_t> words_of(NodeId id) {
    auto lock = enter();
    const Node& node = arena_[id];
    if (node.kind != Kind::Words) return {nullptr, 0};
    return {&derivatives_.selections().lexicon(node.a), node.b};
  }
  // What may come of a node Unordered.
  Unordered::Demand demand(NodeId node) {
    auto lock = enter();
    return derivatives_.unordered().demand(node);
  }
  // The live state of an expression, or DEAD.
  State intern(NodeId node) {
    auto lock = enter();
    return live_state(node);
  }

  // --- marks of what is excluded as the text goes on (see marks.hpp, exclusion.hpp) ---
  const Marks& marks() const { return marks_; }
  template <class... Known>
  void adopt_marks(State raw, Known... known) { states_[raw].marked = true, marks_.adopt(raw, known...); }
  void adopt_room(const Room& room) { marks_.room = room; }
  // Of the target of a step: whether marks are ahead, which, and where it leads once they are passed.
  bool is_marked(State raw) const { return states_[raw].marked; }
  uint32_t signs(State raw) {
    if (!marks_.signs(raw)) with_arena([&](Arena&) { marks_.keep_signs(raw, derivatives_.signs_ahead(states_[raw].node)); });
    return marks_.signs(raw) - 1;
  }
  State passed(State raw, bool holds) {
    if (uint32_t known = marks_.passed(raw, holds)) return known - 1;
    const State state = intern(with_arena([&](Arena&) { return derivatives_.passed(states_[raw].node, holds); }));
    with_arena([&](Arena&) { marks_.keep_passed(raw, holds, state); });
    return state;
  }

  size_t memory() {
    const auto lock = locked(mutex_);
    return bytes_held();
  }

  // For searches over many states that hold so many bytes themselves: raises where time or memory is used up. O(1); looks at
  // every 64th state.
  void check(const Deadline& deadline, State state, size_t bytes) {
    if (state % 64 != 0) return;
    const auto lock = locked(mutex_);
    if (deadline.expired()) exceed("seconds", budget_.seconds);
    check_bytes(bytes);
  }
  // Says what is held beside this by whoever has it: it is bounded by the same budget.
  void set_beside(size_t bytes) { beside_.store(bytes, std::memory_order_relaxed); }

 private:
  struct StateInfo {
    std::atomic<State*> row{nullptr};
    NodeId node = kEmpty;
    uint8_t accepting = 0;
    bool marked = false;
    std::atomic<Life> life{Life::Unknown};
    std::atomic<bool> whole{false};  // nothing in the row is pending
    // Of push-down automata. As the target of a step: the number of stacks where it settles to itself, else kPasses;
    // and its effect. As a shape: its stacks.
    std::atomic<uint32_t> arrival{PushDown::kUnknown};
    uint32_t stacks = 0, effect = 0, shape = 0;
  };

  State new_state(NodeId node) {
    size_t id = states_.grow();
    StateInfo& info = states_[id];
    info.node = node;
    info.accepting = arena_[node].nullable;
    info.marked = arena_[node].has(kMarkAhead);
    if (!arena_[node].has(kHasMark)) info.arrival.store(0, std::memory_order_relaxed);  // nothing lies below
    if (node == kEmpty) {
      info.life.store(Life::Dead);
      info.row.store(rows_.add(num_classes()), std::memory_order_release);
      info.whole.store(true, std::memory_order_release);
    } else if (arena_[node].certain) {
      info.life.store(Life::Alive);
    }
    return static_cast<State>(id);
  }

  State state_of(NodeId node) {
    if (node == kEmpty) return kDead;
    if (state_index_.size() <= node) {
      const size_t more = std::max<size_t>(arena_.size(), node + 1) - state_index_.size();
      if (const size_t bytes = growth(state_index_, more)) check_bytes(bytes);
      state_index_.resize(state_index_.size() + more, 0);
    }
    State& state = state_index_[node];
    if (state == 0) {
      if (states_.size() > std::min<uint64_t>(budget_.states, kPending - 1)) exceed("states", static_cast<double>(budget_.states));
      if (states_.size() % 64 == 0) check_budget(states_.growth());
      state_index_[node] = new_state(node);
    }
    return state_index_[node];
  }

  State live_state(NodeId node) {
    const State state = state_of(node);
    return state != kDead && alive(state) ? state : kDead;
  }

  // Calls f(target, set) for what leads on from a state, before emptiness is known; with an empty set for the boundary of
  // tokens.
  template <class F>
  void each_target(State state, F&& f) {
    const NodeId node = states_[state].node;
    const Node top = arena_[node];
    // Where one part is read first, its moves are the whole's, with the rest behind them: nothing to be kept twice.
    const bool led = top.kind == Kind::Concat && !arena_[top.a].nullable && !arena_[top.a].has(kHasBehind);
    const NodeId head = led ? top.a : node;
    for (size_t k = 0, count = derivatives_.moves(head).size(); k < count; ++k) {
      const Move move = derivatives_.moves(head)[k];  // f may find others
      f(state_of(led ? arena_.concat(move.target, top.b) : move.target), move.set);
    }
    if (boundary() != kNone) f(state_of(derivatives_.at_boundary(node)), ByteSet{});
  }

  // The row of a state, of which is known what may lead on.
  [[gnu::noinline]] const State* make_row(State state) {
    auto lock = enter();
    if (State* known = states_[state].row.load(std::memory_order_acquire)) return known;
    State* row = rows_.add(num_classes());
    if (fill_words_row(state, row)) {
      states_[state].whole.store(true, std::memory_order_release);
    } else {
      columns_.each(byte_derivatives_.readable(states_[state].node), [&](uint32_t column) { row[column] = kPending; });
      if (boundary() != kNone) row[boundary()] = kPending;
    }
    states_[state].row.store(row, std::memory_order_release);
    return row;
  }
  // What a pending column leads to.
  [[gnu::noinline]] State make_entry(State state, uint32_t column) {
    auto lock = enter();
    State* const row = states_[state].row.load(std::memory_order_relaxed);
    return row[column] & kPending ? fill_entry(state, row, column) : row[column];
  }
  State fill_entry(State state, State* row, uint32_t column) {
    const NodeId node = states_[state].node;
    if (column == boundary()) return store_entry(row, column, live_state(derivatives_.at_boundary(node)));
    if (const State* known = entry_behind(node, column)) return store_entry(row, column, *known);
    const NodeId top = top_of(state);
    const auto [left, same] = byte_derivatives_.after(top, columns_.letter(column));
    const State made = live_state(top == node ? left : arena_.concat(left, arena_.hole(0)));
    columns_.each(same, [&](uint32_t other) {
      if (row[other] & kPending) store_entry(row, other, made);
    });
    return made;
  }
  // What is read in a state where nothing but one stack lies below: of its expression all but the stack. What is left of that
  // has the stack behind it as a whole, so it settles at a look.
  NodeId top_of(State state) const {
    if (!pushdown_ || states_[state].shape == 0) return states_[state].node;
    const std::vector<Member>& members = shape(state).members;
    const bool one = members.size() == 1 && members[0].hole == 0 && !members[0].open;
    return one ? members[0].top : states_[state].node;
  }
  // Of an expression whose first part may be left out and does not read a byte (white space before a value, say): what its rest
  // leads to by that byte, where that is made.
  const State* entry_behind(NodeId node, uint32_t column) {
    const Node& top = arena_[node];
    constexpr uint16_t kInContext = kHasBehind | kHasVar;
    if (top.kind != Kind::Concat || !arena_[top.a].nullable || top.has(kInContext) || !columns_.is_byte(column) || top.b >= state_index_.size()) return nullptr;
    const State rest = state_index_[top.b];
    const State* row = rest == 0 ? nullptr : states_[rest].row.load(std::memory_order_relaxed);
    if (!row || (row[column] & kPending) || columns_.letter(column).in(byte_derivatives_.readable(top.a))) return nullptr;
    return row + column;
  }
  [[gnu::noinline]] const State* make_whole(State state) {
    entries(state);
    auto lock = enter();
    StateInfo& info = states_[state];
    State* const row = info.row.load(std::memory_order_relaxed);
    for (uint32_t column = 0; column < num_classes(); ++column) {
      if (row[column] & kPending) fill_entry(state, row, column);
    }
    info.whole.store(true, std::memory_order_release);
    return row;
  }

  // The row of a state that is all that a lexicon reads on; false for others. Its bytes are classes of their own, and what
  // they lead to is never empty.
  bool fill_words_row(State state, State* row) {
    const auto [kind, lexicon, place] = std::tuple(arena_[states_[state].node].kind, arena_[states_[state].node].a, arena_[states_[state].node].b);
    if (kind != Kind::Words || boundary() != kNone) return false;
    Selections& selections = derivatives_.selections();
    selections.lexicon(lexicon).each_arc(place, [&](Lexicon::Arc arc) { row[columns_.of_byte(arc.byte)] = state_of(selections.words(lexicon, arc.target)); });
    return true;
  }

  uint32_t arrival(State raw, const StateInfo& info) {
    const uint32_t known = info.arrival.load(std::memory_order_acquire);
    return known == PushDown::kUnknown ? prepare(raw) : known;
  }
  // Finds out how a target of steps settles, when someone first steps there.
  uint32_t prepare(State raw) {
    auto lock = enter();
    StateInfo& info = states_[raw];
    if (uint32_t known = info.arrival.load(std::memory_order_relaxed); known != PushDown::kUnknown) return known;
    Settled settled = pushdown_->settler().settle(states_[raw].node);
    uint32_t arrival = static_cast<uint32_t>(settled.holes.size());
    const bool stays = settled.shape == states_[raw].node && settled.ops.empty() && settled.keeps_stacks();
    State state = shaped(settled);
    if (!stays || shape(state).reveal != kNone) {
      arrival = PushDown::kPasses;
      info.effect = pushdown_->add_effect(state, settled);
    }
    info.arrival.store(arrival, std::memory_order_release);
    return arrival;
  }
  // The state of a settled expression.
  State shaped(const Settled& settled) {
    State state = state_of(settled.shape);
    StateInfo& info = states_[state];
    if (info.shape == 0 && !settled.holes.empty()) {
      info.shape = pushdown_->add_shape(settled);
      info.stacks = static_cast<uint32_t>(settled.holes.size());
    }
    return state;
  }

  static constexpr size_t kGlance = 512, kGlanceAtPairs = 8'192, kMostPairs = 64;  // states that are looked at
  static constexpr size_t kHeldBySearch = 64;  // bytes a state

  // What is known of a state, without a search.
  Life life(State state) const {
    const Life known = states_[state].life.load(std::memory_order_relaxed);
    return known == Life::Unknown && has_word(arena_, states_[state].node) ? Life::Alive : known;
  }
  // Whether a state reaches acceptance: a search over derivatives. Most states are certain to, and cost a look.
  bool alive(State state) {
    if (Life known = life(state); known != Life::Unknown) return known == Life::Alive;
    if (const std::optional<bool> found = alive_by_parts(state)) return *found;
    const auto pairs = pairs_of_parts(arena_, states_[state].node, kMostPairs);
    Life found = search(state, pairs.empty() ? SIZE_MAX : kGlance);
    if (found == Life::Unknown) {
      if (exclude_each_other(pairs)) states_[state].life.store(found = Life::Dead);
      else found = search(state, SIZE_MAX);
    }
    return found == Life::Alive;
  }
  Life search(State state, size_t limit) {
    const size_t before = looked_at_;
    return leads_to_acceptance(
        state, [&](State q) { return life(q); }, [&](State q, Life found) { states_[q].life.store(found); },
        [&](State q, auto&& visit) {
          if (++looked_at_ % 64 == 0) check_budget((looked_at_ - before) * kHeldBySearch);
          each_target(q, [&](State target, const ByteSet&) { visit(target); });
        },
        [&](State q) { return least_lengths_.of(states_[q].node); }, limit);
  }

  // Whether two parts of an intersection share no word, as far as short searches tell.
  bool exclude_each_other(const std::vector<std::pair<NodeId, NodeId>>& pairs) {
    const size_t most = looked_at_ + kGlanceAtPairs;
    return std::ranges::any_of(pairs, [&](const auto& pair) {
      const NodeId both[] = {pair.first, pair.second};
      const State state = state_of(arena_.all_of(both));
      const Life known = life(state);
      return known == Life::Dead || (known == Life::Unknown && looked_at_ < most && search(state, most - looked_at_) == Life::Dead);
    });
  }

  // Of a concatenation whose parts' words do not depend on each other: it has a word if they have. What is found out about a
  // part serves all that it stands in. None for other expressions.
  std::optional<bool> alive_by_parts(State state) {
    const std::optional<std::vector<NodeId>> uncertain = uncertain_parts(arena_, states_[state].node);
    if (!uncertain) return std::nullopt;
    bool all = true;
    for (NodeId part : *uncertain) all = all && alive(state_of(part));
    states_[state].life.store(all ? Life::Alive : Life::Dead);
    return all;
  }

  size_t bytes_held() const { return (pushdown_ ? pushdown_->memory() : 0) + arena_.memory() + derivatives_.memory() + byte_derivatives_.memory() + least_lengths_.memory() + leaps_.memory() + rows_.memory() + states_.memory() + state_index_.capacity() * sizeof(State); }

  // Exclusive use of the arena. Its clock is that of the public call (call.hpp), and asked where the budget is checked.
  std::unique_lock<Mutex> enter() {
    std::unique_lock lock = locked(mutex_);
    deadline_.reset();
    return lock;
  }
  void check_bytes(size_t more) {
    if (bytes_held() + beside_.load(std::memory_order_relaxed) + more > budget_.bytes) exceed("bytes", static_cast<double>(budget_.bytes));
  }
  void check_budget(size_t more = 0) {
    check_bytes(more);
    if (!deadline_) deadline_.emplace(budget_.seconds);
    if (deadline_->expired()) exceed("seconds", budget_.seconds);
  }

  // Names the counted repetition, or other labelled part, that most of the newest states are inside of.
  [[noreturn]] void exceed(const char* resource, double limit) {
    std::vector<NodeId> newest;
    for (size_t q = states_.size() > 512 ? states_.size() - 512 : 0; q < states_.size(); ++q) newest.push_back(states_[q].node);
    throw BudgetExceeded(resource, limit, most_around(arena_, derivatives_, newest, labels_));
  }

  Budget budget_;
  Arena arena_;
  Derivatives derivatives_;
  ByteDerivatives byte_derivatives_;
  LeastLengths least_lengths_{arena_};
  std::unique_ptr<PushDown> pushdown_;  // where rules are called
  Marks marks_;
  std::vector<std::pair<NodeId, std::string>> labels_;
  Columns columns_{{}, 0, 0, kNone};
  StableVector<StateInfo> states_;
  ReusedVector<State> state_index_;  // by expression
  Rows rows_;
  Leaps leaps_{arena_, byte_derivatives_};
  State start_ = kDead, inner_start_ = kDead;
  bool tokens_intersected_ = false;
  std::atomic<size_t> beside_{0};
  size_t looked_at_ = 0;  // states, by all searches for dead ones
  Mutex mutex_;
  std::optional<Deadline> deadline_;  // of whoever entered
};

}  // namespace tokenfst
