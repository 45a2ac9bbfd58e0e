// Creates states and rows: the functions of ByteAutomaton that run once for each of them.
#include "byte_automata/byte_automaton.hpp"

namespace tokenfst {

ByteAutomaton::~ByteAutomaton() { delete workspaces_.load(std::memory_order_relaxed); }

ByteAutomaton::ByteAutomaton(const std::array<uint8_t, 256>& classes, uint32_t num_classes, const State* rows, const uint8_t* accepting,
                             uint32_t num_states, State start, State inner_start, uint32_t symbols, uint32_t boundary)
    : derivatives_(arena_), byte_derivatives_(arena_, derivatives_), columns_(classes, num_classes, symbols, boundary), start_(start),
      inner_start_(inner_start) {
  for (uint32_t q = 0; q < num_states; ++q) {
    StateInfo& info = states_[states_.grow()];
    info.accepting = accepting[q];
    info.life.store(q == 0 ? Life::Dead : Life::Alive, std::memory_order_relaxed);
    info.row.store(const_cast<State*>(rows + size_t{q} * num_classes), std::memory_order_release);  // no entry of it is pending
    info.whole.store(true, std::memory_order_release);
  }
}

const TextStep* ByteAutomaton::make_text_step(State from, uint32_t number, std::string_view text) {
  const auto [lock, space] = enter_to_derive();
  if (space) return make_text_step_in(*space, from, number, text);
  const auto [left, bytes] = TextDerivatives(arena_, byte_derivatives_).after(states_[from].node, text);
  return left == kNone ? nullptr : text_steps_.add(from, number, {live_state(left), bytes});
}

ByteAutomaton::ByteAutomaton(const Program& program, Budget budget, bool own_start)
    : budget_(budget), derivatives_(arena_), byte_derivatives_(arena_, derivatives_) {
  auto lock = enter();
  arena_.watch([this](size_t bytes) { check_budget(bytes); });
  Loaded loaded = ProgramReader(arena_, derivatives_).read(program);
  labels_ = std::move(loaded.labels);
  marks_.any = loaded.has_marks, marks_.facts = loaded.facts;
  if (arena_.has_rules()) pushdown_ = std::make_unique<PushDown>(arena_);
  columns_ = Columns(arena_, derivatives_.selections(), loaded.symbols, loaded.is_token_level);
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

uint32_t ByteAutomaton::make_mark_kinds(State raw) {
  auto lock = enter();
  marks_.keep_kinds(raw, derivatives_.mark_kinds_ahead(states_[raw].node));
  return marks_.kinds(raw) - 1;
}

State ByteAutomaton::make_passed(State raw, bool holds) {
  auto lock = enter();
  const State state = live_state(derivatives_.passed(states_[raw].node, holds));
  marks_.keep_passed(raw, holds, state);
  return state;
}

uint32_t ByteAutomaton::make_chain(uint32_t upper, uint32_t lower) {
  if (!is_lazy()) throw Error(Fault::Corrupt, "the artifact lacks the chain of two frames of its stack");
  auto lock = enter();
  return pushdown_->make_chain(upper, lower);
}

uint32_t ByteAutomaton::make_union(uint32_t a, uint32_t b) {
  auto lock = enter();
  return pushdown_->make_union(a, b) - 1;
}

const Effect& ByteAutomaton::make_revealed(State state, std::span<const Edge> edges) {
  if (!is_lazy()) throw Error(Fault::Corrupt, "the artifact lacks the effect of a frame that its stack shows");
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

size_t ByteAutomaton::memory() {
  const auto lock = locked(mutex_);
  return bytes_held();
}

size_t ByteAutomaton::counted_memory() {
  const Workspaces* const spaces = workspaces_.load(std::memory_order_acquire);
  return spaces ? bytes_counted(*spaces) : memory();
}

void ByteAutomaton::check(const Deadline& deadline, State state, size_t bytes) {
  if (state % 64 != 0) return;
  const auto lock = locked(mutex_);
  if (deadline.expired()) exceed("seconds", budget_.seconds);
  check_bytes(bytes);
}

State ByteAutomaton::new_state(NodeId node) {
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

State ByteAutomaton::state_of(NodeId node) {
  if (node == kEmpty) return kDead;
  if (const State known = state_index_.find(node)) return known;
  if (states_.size() > std::min<uint64_t>(budget_.states, kPending - 1)) exceed("states", static_cast<double>(budget_.states));
  if (const size_t bytes = states_.growth(); bytes != 0 || states_.size() % 64 == 0) check_budget(bytes);
  const State made = new_state(node);
  state_index_.set(node, made);
  return made;
}

State ByteAutomaton::live_state(NodeId node) {
  const State state = state_of(node);
  return state != kDead && alive(state) ? state : kDead;
}

std::optional<State> ByteAutomaton::known_live_state(NodeId node) const {
  if (node == kEmpty) return kDead;
  const State known = state_index_.find(node);
  if (known == kDead) return std::nullopt;
  const Life life = states_[known].life.load(std::memory_order_relaxed);
  return life == Life::Unknown ? std::nullopt : std::optional(life == Life::Alive ? known : kDead);
}

template <class F>
void ByteAutomaton::each_target(State state, F&& f) {
  const NodeId node = states_[state].node;
  const Node top = arena_[node];
  // If one part is read first, the moves of the whole are its moves, each followed by the rest. So the moves of the whole
  // need not be stored.
  const bool led = top.kind == Kind::Concat && !arena_[top.a].nullable && !arena_[top.a].has(kHasBehind);
  const NodeId head = led ? top.a : node;
  for (size_t k = 0, count = derivatives_.moves(head).size(); k < count; ++k) {
    const Move move = derivatives_.moves(head)[k];  // f may compute further moves
    f(state_of(led ? arena_.concat(move.target, top.b) : move.target), move.set);
  }
  if (boundary() != kNone) f(state_of(derivatives_.at_boundary(node)), ByteSet{});
}

const State* ByteAutomaton::make_row(State state) {
  auto [lock, space] = enter_to_derive();
  if (space) {
    if (space->arena[states_[state].node].kind != Kind::Words) return make_row_in(*space, state);
    lock = enter();
  }
  if (State* known = states_[state].row.load(std::memory_order_acquire)) return known;
  State* row = rows_.add(num_classes());
  const bool whole = fill_words_row(state, row);
  if (!whole) {
    columns_.each(byte_derivatives_.readable(states_[state].node), [&](uint32_t column) { row[column] = kPending; });
    if (boundary() != kNone) row[boundary()] = kPending;
  }
  const State* const published = publish_row(states_[state], row);
  if (whole) states_[state].whole.store(true, std::memory_order_release);  // last: who sees it reads the row without a further check
  return published;
}

State ByteAutomaton::make_entry(State state, uint32_t column) {
  auto [lock, space] = enter_to_derive();
  if (space) return make_entry_in(*space, state, column);
  State* const row = states_[state].row.load(std::memory_order_relaxed);
  const State known = load_entry(row, column);
  return known & kPending ? fill_entry(state, row, column) : known;
}

State ByteAutomaton::fill_entry(State state, State* row, uint32_t column) {
  const NodeId node = states_[state].node;
  if (column == boundary()) return store(row, column, live_state(derivatives_.at_boundary(node)));
  if (const State known = entry_after(node, column); known != kPending) return store(row, column, known);
  const NodeId top = top_of(state);
  const auto [left, same] = byte_derivatives_.after(top, columns_.letter(column));
  return store(row, column, same, live_state(top == node ? left : arena_.concat(left, arena_.hole(0))));
}

State ByteAutomaton::store(State* row, uint32_t column, const ByteSet& columns, State made) {
  made = store(row, column, made);
  columns_.each(columns, [&](uint32_t other) {
    if (load_entry(row, other) == kPending) store(row, other, made);
  });
  return made;
}

bool ByteAutomaton::find_sureness(State state) {
  const auto [lock, space] = enter_to_derive();
  ByteDerivatives& derivatives = space ? space->byte_derivatives : byte_derivatives_;
  const bool sure = boundary() == kNone && derivatives.surely_reads(states_[state].node);
  states_[state].sureness.store(sure ? Sureness::Sure : Sureness::Unsure, std::memory_order_relaxed);
  return sure;
}

NodeId ByteAutomaton::top_of(State state) const {
  if (!pushdown_ || states_[state].shape.load(std::memory_order_acquire) == 0) return states_[state].node;
  const std::vector<Member>& members = shape(state).members;
  const bool one = members.size() == 1 && members[0].hole == 0 && !members[0].open;
  return one ? members[0].top : states_[state].node;
}

State ByteAutomaton::entry_after(NodeId node, uint32_t column) {
  const Node top = arena_[node];
  if (!may_lie_after(arena_, top, column)) return kPending;
  const State known = entry_of_rest(top, column);
  return known != kPending && !columns_.letter(column).in(byte_derivatives_.readable(top.a)) ? known : kPending;
}

bool ByteAutomaton::may_lie_after(const Arena& arena, const Node& top, uint32_t column) const {
  constexpr uint16_t kInContext = kHasBehind | kHasVar;
  return top.kind == Kind::Concat && arena[top.a].nullable && !top.has(kInContext) && columns_.is_byte(column);
}

State ByteAutomaton::entry_of_rest(const Node& top, uint32_t column) const {
  const State rest = state_index_.find(top.b);
  const State* const row = rest == 0 ? nullptr : states_[rest].row.load(std::memory_order_acquire);
  return row ? load_entry(row, column) : kPending;
}

const State* ByteAutomaton::make_whole(State state) {
  constexpr uint32_t kAtOnce = 8;  // entries: after so many, a thread that waits for the lock gets it
  entries(state);
  StateInfo& info = states_[state];
  State* const row = info.row.load(std::memory_order_relaxed);
  for (uint32_t column = 0; column < num_classes();) {
    auto lock = enter();
    for (uint32_t made = 0; column < num_classes() && made < kAtOnce; ++column) {
      if (load_entry(row, column) == kPending) fill_entry(state, row, column), ++made;
    }
  }
  info.whole.store(true, std::memory_order_release);
  return row;
}

bool ByteAutomaton::fill_words_row(State state, State* row) {
  const auto [kind, lexicon, place] =
      std::tuple(arena_[states_[state].node].kind, arena_[states_[state].node].a, arena_[states_[state].node].b);
  if (kind != Kind::Words || boundary() != kNone) return false;
  Selections& selections = derivatives_.selections();
  selections.lexicon(lexicon).each_arc(
      place, [&](Lexicon::Arc arc) { row[columns_.of_byte(arc.byte)] = state_of(selections.words(lexicon, arc.target)); });
  return true;
}

uint32_t ByteAutomaton::prepare(State raw) {
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

State ByteAutomaton::shaped(const Settled& settled) {
  State state = state_of(settled.shape);
  StateInfo& info = states_[state];
  if (info.shape.load(std::memory_order_relaxed) == 0 && !settled.holes.empty()) {
    info.stacks = static_cast<uint32_t>(settled.holes.size());
    info.shape.store(pushdown_->add_shape(settled), std::memory_order_release);
  }
  return state;
}

Life ByteAutomaton::life(State state) const {
  const Life known = states_[state].life.load(std::memory_order_relaxed);
  return known == Life::Unknown && has_word(arena_, states_[state].node) ? Life::Alive : known;
}

bool ByteAutomaton::alive(State state) {
  if (Life known = life(state); known != Life::Unknown) {
    states_[state].life.store(known, std::memory_order_relaxed);
    return known == Life::Alive;
  }
  if (const std::optional<bool> found = alive_by_parts(state)) return *found;
  const auto pairs = pairs_of_parts(arena_, states_[state].node, kMostPairs);
  Life found = search(state, pairs.empty() ? SIZE_MAX : kGlance);
  if (found == Life::Unknown) {
    if (exclude_each_other(pairs)) states_[state].life.store(found = Life::Dead);
    else found = search(state, SIZE_MAX);
  }
  return found == Life::Alive;
}

Life ByteAutomaton::search(State state, size_t limit) {
  const size_t before = looked_at_;
  return leads_to_acceptance(
      state, [&](State q) { return life(q); }, [&](State q, Life found) { states_[q].life.store(found); },
      [&](State q, auto&& visit) {
        if (++looked_at_ % 64 == 0) check_budget((looked_at_ - before) * kHeldBySearch);
        each_target(q, [&](State target, const ByteSet&) { visit(target); });
      },
      [&](State q) { return estimates_.of(states_[q].node); }, limit);
}

bool ByteAutomaton::exclude_each_other(const std::vector<std::pair<NodeId, NodeId>>& pairs) {
  const size_t most = looked_at_ + kGlanceAtPairs;
  return std::ranges::any_of(pairs, [&](const auto& pair) {
    const NodeId both[] = {pair.first, pair.second};
    const State state = state_of(arena_.all_of(both));
    const Life known = life(state);
    return known == Life::Dead || (known == Life::Unknown && looked_at_ < most && search(state, most - looked_at_) == Life::Dead);
  });
}

std::optional<bool> ByteAutomaton::alive_by_parts(State state) {
  const std::optional<std::vector<NodeId>> uncertain = uncertain_parts(arena_, states_[state].node);
  if (!uncertain) return std::nullopt;
  bool all = true;
  for (NodeId part : *uncertain) all = all && alive(state_of(part));
  states_[state].life.store(all ? Life::Alive : Life::Dead);
  return all;
}

size_t ByteAutomaton::bytes_held() const {
  const Workspaces* const spaces = workspaces_.load(std::memory_order_relaxed);
  return arena_.memory_of_store() + bytes_beside_nodes() + (spaces ? spaces->memory() : 0);
}

size_t ByteAutomaton::bytes_beside_nodes() const {
  return (pushdown_ ? pushdown_->memory() : 0) + (digests_ ? digests_->memory() : 0) + arena_.memory_beside_store() +
         derivatives_.memory() + byte_derivatives_.memory() + estimates_.memory() + text_steps_.memory() + rows_.memory() +
         states_.memory() + state_index_.memory();
}

void ByteAutomaton::check_bytes(size_t more) {
  if (workspaces_.load(std::memory_order_relaxed)) bytes_beside_nodes_.store(bytes_beside_nodes(), std::memory_order_relaxed);
  if (bytes_held() + beside_.load(std::memory_order_relaxed) + more > budget_.bytes) exceed("bytes", static_cast<double>(budget_.bytes));
}

void ByteAutomaton::check_budget(size_t more) {
  check_bytes(more);
  if (!deadline_) deadline_.emplace(budget_.seconds);
  if (deadline_->expired()) exceed("seconds", budget_.seconds);
}

void ByteAutomaton::exceed(const char* resource, double limit) {
  std::vector<NodeId> newest;
  for (size_t q = states_.size() > 512 ? states_.size() - 512 : 0; q < states_.size(); ++q) newest.push_back(states_[q].node);
  throw BudgetExceeded(resource, limit, most_around(arena_, derivatives_, newest, labels_));
}

State ByteAutomaton::intern(NodeId node) {
  if (const std::optional<State> known = known_live_state(node)) return *known;
  auto lock = enter();
  return live_state(node);
}

Digest ExpressionFace::digest(NodeId node) const {
  auto lock = automaton_.enter();
  std::unique_ptr<Digests>& digests = automaton_.digests_;
  const Derivatives& derivatives = automaton_.derivatives_;
  if (!digests) digests = std::make_unique<Digests>(automaton_.arena_, derivatives.selections(), derivatives.unordered());
  return digests->of(node);
}

uint32_t ExpressionFace::least_length(NodeId node) const {
  auto lock = automaton_.enter();
  return automaton_.estimates_.of(node).bound;
}

Unordered::Demand ExpressionFace::demand(NodeId node) const {
  auto lock = automaton_.enter();
  return automaton_.derivatives_.unordered().demand(node);
}

std::pair<const Lexicon*, uint32_t> ExpressionFace::words_of(NodeId id) const {
  auto lock = automaton_.enter();
  const Node& node = automaton_.arena_[id];
  if (node.kind != Kind::Words) return {nullptr, 0};
  return {&automaton_.derivatives_.selections().lexicon(node.a), node.b};
}

NodeId ExpressionFace::at_boundary(NodeId node) const {
  if (automaton_.boundary() == kNone) return node;
  auto lock = automaton_.enter();
  return automaton_.derivatives_.at_boundary(node);
}

std::vector<Move> ExpressionFace::moves(NodeId node) const {
  auto lock = automaton_.enter();
  const auto found = automaton_.derivatives_.moves(node);
  return {found.begin(), found.end()};
}

bool ExpressionFace::surely_spelled(State state) const {
  if (!automaton_.is_lazy() || automaton_.is_pushdown() || state == kDead) return false;
  auto lock = automaton_.enter();
  return automaton_.derivatives_.surely_spelled(node(state), true);
}

}  // namespace tokenfst
