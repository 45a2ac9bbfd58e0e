// The deterministic byte automaton of an expression, whose states are created on demand (as in OpenFst's delayed
// operations), or given as finished tables.
//
// A state is a distinct derivative. State 0 is DEAD; every other state is live: before an entry of a row is created, a target whose
// language is empty is replaced by DEAD (convention 3); for certain expressions this is known by construction, for others by a search that
// caches its outcome. Rows are indexed by column (columns.hpp) and created entry by entry (rows.hpp). Readers take no lock; states are
// appended under the mutex. The number of a state reaches other threads through the table of states, an entry, or a step over a text: each
// is stored (release) after the state is complete, and loaded (acquire) before it is used. Whatever creates states or rows raises
// BudgetExceeded when the budget is used up. Any thread may call any function of a shared automaton.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "expression_forms/growth_report.hpp"
#include "expression_forms/digests.hpp"
#include "byte_automata/columns.hpp"
#include "support/cache_line.hpp"
#include "threads/fork_gate.hpp"
#include "byte_automata/text_steps.hpp"
#include "expression_forms/estimates.hpp"
#include "graph_searches/liveness.hpp"
#include "containers/sparse_numbers.hpp"
#include "expression_forms/parts.hpp"
#include "programs/program.hpp"
#include "stacks/pushdown.hpp"
#include "byte_automata/rows.hpp"
#include "byte_automata/workspaces.hpp"

namespace tokenfst {

class ExpressionFace;
class MarkFace;
class StackFace;

class ByteAutomaton {
 public:
  // The automaton of a program. With `own_start`, no transition enters the start state: inner_start() stands for it elsewhere.
  // Raises an Error if the program is invalid.
  ByteAutomaton(const Program& program, Budget budget, bool own_start = false);
  ~ByteAutomaton();

  // An automaton of finished tables. `num_classes` counts all columns; `rows` (states x columns) stays owned by the caller and must
  // outlive this object.
  ByteAutomaton(const std::array<uint8_t, 256>& classes, uint32_t num_classes, const State* rows, const uint8_t* accepting,
                uint32_t num_states, State start, State inner_start, uint32_t symbols = 0, uint32_t boundary = kNone);

  // The class (column) of each of the 256 bytes.
  const uint8_t* classes() const { return columns_.classes(); }
  // The number of columns of a row: the classes of bytes, then symbols, then the token boundary.
  uint32_t num_classes() const { return columns_.count(); }
  // Whether tokens are in an intersection, or limited in a language without a stack: then only a search decides whether tokens lead on.
  bool tokens_intersected() const { return tokens_intersected_; }
  // Whether tokens matter beyond their bytes.
  bool is_token_level() const { return columns_.num_symbols() > 0 || boundary() != kNone; }
  uint32_t symbol_column(uint32_t symbol) const { return columns_.of_symbol(symbol); }
  // The column of token boundaries; kNone: boundaries make no difference.
  uint32_t boundary() const { return columns_.boundary(); }
  State start() const { return start_; }
  // The state with the start's language that transitions may enter; the start itself unless it has an `own_start`.
  State inner_start() const { return inner_start_; }
  size_t num_states() const { return states_.size(); }
  bool accepting(State state) const { return states_[state].accepting; }
  const Budget& budget() const { return budget_; }
  // Whether states are created on demand; false for finished tables.
  bool is_lazy() const { return columns_.distinguishes_bytes(); }

  // The next state for each column. O(1) once the whole row has been created.
  const State* row(State state) {
    StateInfo& info = states_[state];
    return info.whole.load(std::memory_order_acquire) ? info.row.load(std::memory_order_relaxed) : make_whole(state);
  }
  // The same, but entries may be pending; entry() creates the one that a walk needs.
  const State* entries(State state) {
    const State* known = states_[state].row.load(std::memory_order_acquire);
    return known ? known : make_row(state);
  }
  // The next state by a column, given the row that entries() returned; creates the entry if it is pending.
  State entry(State state, const State* entries, uint32_t byte_class) {
    const State known = load_entry(entries, byte_class);
    return known & kPending ? make_entry(state, byte_class) : known;
  }
  // Whether every entry of the row that is not DEAD is known to lead to a live state, also a pending one. Then a caller that only
  // asks whether an entry leads on need not create it.
  bool surely_leads_on(State state) {
    const Sureness known = states_[state].sureness.load(std::memory_order_relaxed);
    return known == Sureness::Unknown ? find_sureness(state) : known == Sureness::Sure;
  }
  // The next state by a column, by a byte, by a text; DEAD if there is none. O(1) for each byte whose entry has been created.
  State next(State state, uint32_t byte_class) { return entry(state, entries(state), byte_class); }
  State step(State state, uint8_t byte) { return next(state, columns_.of_byte(byte)); }
  State run(State state, std::string_view bytes) {
    for (unsigned char byte : bytes) {
      if ((state = step(state, byte)) == kDead) break;
    }
    return state;
  }

  // The step over a whole text, or over its beginning, without states in between (text_steps.hpp). Null if there is no such step,
  // or if the row of `from` exists already. `number` identifies the text.
  const TextStep* text_step(State from, uint32_t number, std::string_view text) {
    if (!is_lazy() || states_[from].row.load(std::memory_order_acquire)) return nullptr;
    if (const TextStep* known = text_steps_.find(from, number)) return known;
    return make_text_step(from, number, text);
  }

  // The parts of the interface that only some walks need (faces.hpp).

  // Whether rules are called, so that configurations have stacks.
  bool is_pushdown() const { return pushdown_ != nullptr; }
  StackFace stacks();
  MarkFace marks();
  ExpressionFace expressions();

  // The bytes of states, rows and expressions. O(1).
  size_t memory();
  // The same without waiting for other threads: while several derive, as of the last counts, which also their budget is checked with.
  size_t counted_memory();

  // For searches over many states, which themselves hold `bytes` bytes: raises BudgetExceeded if time or memory is exhausted. O(1);
  // checks only if the number of the state is a multiple of 64.
  void check(const Deadline& deadline, State state, size_t bytes);
  // Lets several threads derive at the same time from now on (workspaces.hpp). Returns false for finished tables, which derive
  // nothing. It also happens without a call, once threads have met at the mutex several times.
  bool share();
  // Sets how many bytes the owner holds beside this automaton; they count against the same budget.
  void set_beside(size_t bytes) { beside_.store(bytes, std::memory_order_relaxed); }

 private:
  friend StackFace;
  friend MarkFace;
  friend ExpressionFace;

  uint32_t make_mark_kinds(State raw);
  State make_passed(State raw, bool holds);
  uint32_t make_chain(uint32_t upper, uint32_t lower);
  uint32_t make_union(uint32_t a, uint32_t b);
  const Effect& make_revealed(State state, std::span<const Edge> edges);
  const Shape& shape(State state) const { return pushdown_->shape(states_[state].shape.load(std::memory_order_acquire)); }

  // Whether all entries of a row that are pending lead on.
  enum class Sureness : uint8_t { Unknown, Unsure, Sure };
  struct StateInfo {
    std::atomic<State*> row{nullptr};  // published once, by publish_row(), when it is known which entries are pending
    NodeId node = kEmpty;
    uint8_t accepting = 0;
    bool marked = false;
    std::atomic<Sureness> sureness{Sureness::Unknown};  // every thread computes the same value
    std::atomic<Life> life{Life::Unknown};  // once it is known, it never changes; every thread finds the same
    std::atomic<bool> whole{false};  // no entry of the row is pending; stored after `row` and after all of its entries
    // For push-down automata. Of the target of a step: `arrival` is its number of stacks if it settles to itself, else kPasses, and
    // `effect` is its effect on the stacks. Of a shape: `stacks` is its number of stacks, and `shape` its number.
    std::atomic<uint32_t> arrival{PushDown::kUnknown};
    uint32_t stacks = 0, effect = 0;
    std::atomic<uint32_t> shape{0};
  };

  State new_state(NodeId node);

  State state_of(NodeId node);

  // The live state of an expression, or DEAD.
  State live_state(NodeId node);
  // The same without the mutex, if the state is there already and it is known whether it is live.
  std::optional<State> known_live_state(NodeId node) const;
  State intern(NodeId node);

  // Calls f(target, set) for each move of a state, before emptiness is known; with an empty set for the token boundary.
  template <class F>
  void each_target(State state, F&& f);

  // Publishes a row of a state unless it has one; returns the row that it has then.
  static State* publish_row(StateInfo& info, State* row) {
    State* found = nullptr;
    return info.row.compare_exchange_strong(found, row, std::memory_order_acq_rel, std::memory_order_acquire) ? row : found;
  }
  // Creates the row of a state; entries that may lead on are pending.
  [[gnu::noinline]] const State* make_row(State state);
  // Creates the entry of a pending column.
  [[gnu::noinline]] State make_entry(State state, uint32_t column);
  [[gnu::noinline]] bool find_sureness(State state);
  State fill_entry(State state, State* row, uint32_t column);
  [[gnu::noinline]] const TextStep* make_text_step(State from, uint32_t number, std::string_view text);
  // The same three in a workspace.
  const State* make_row_in(Workspace& space, State state);
  State make_entry_in(Workspace& space, State state, uint32_t column);
  const TextStep* make_text_step_in(Workspace& space, State from, uint32_t number, std::string_view text);
  // The live state of an expression, or DEAD, for a thread that uses a workspace.
  State intern_in(Workspace& space, NodeId node);
  // Stores an entry, and those of the other columns that are pending. Returns the entry that is there then: once there are workspaces,
  // another thread may store one at the same time. Before that, it is called under the mutex.
  State store(State* row, uint32_t column, State made) {
    return workspaces_.load(std::memory_order_relaxed) ? publish_entry(row, column, made) : store_entry(row, column, made);
  }
  State store(State* row, uint32_t column, const ByteSet& columns, State made);
  // The part of a state's expression to derive. If the expression is one part followed by its only stack (hole 0), it is that part:
  // its derivative, followed by the hole, is in the form that the settler recognizes at once. Else it is the whole expression.
  NodeId top_of(State state) const;
  // For an expression whose first part is nullable and does not read the byte (optional white space before a value, for
  // example): the entry of the rest for that byte, if it has been created; else kPending.
  State entry_after(NodeId node, uint32_t column);
  bool may_lie_after(const Arena& arena, const Node& top, uint32_t column) const;
  State entry_of_rest(const Node& top, uint32_t column) const;
  [[gnu::noinline]] const State* make_whole(State state);

  // Fills the row of a state whose whole expression is the rest of a lexicon; returns false for others. Its bytes are
  // separate classes, and their targets are never empty.
  bool fill_words_row(State state, State* row);

  uint32_t arrival(State raw, const StateInfo& info) {
    const uint32_t known = info.arrival.load(std::memory_order_acquire);
    return known == PushDown::kUnknown ? prepare(raw) : known;
  }
  // Computes how a target of steps settles, at the first step there.
  uint32_t prepare(State raw);
  // The state of a settled expression.
  State shaped(const Settled& settled);

  static constexpr size_t kGlance = 512, kGlanceAtPairs = 8'192, kMostPairs = 64;  // states that a search visits
  static constexpr size_t kHeldBySearch = 64;  // bytes for each state

  // What is known about a state without a search.
  Life life(State state) const;
  // Whether a state can reach acceptance: a search over derivatives. Most states are certain to, and need no search.
  bool alive(State state);
  Life search(State state, size_t limit);

  // Whether short searches show that the parts of one of these pairs have no common word.
  bool exclude_each_other(const std::vector<std::pair<NodeId, NodeId>>& pairs);

  // For a concatenation whose parts' words do not depend on each other: it has a word if each part has one. The result
  // for a part serves all expressions that contain it. None for other expressions.
  std::optional<bool> alive_by_parts(State state);

  size_t bytes_held() const;
  size_t bytes_beside_nodes() const;
  // What is held as of the last counts, once there are workspaces. Without the mutex.
  size_t bytes_counted(const Workspaces& spaces) const {
    return arena_.memory_of_store() + spaces.memory() + bytes_beside_nodes_.load(std::memory_order_relaxed);
  }

  // Calls f with an arena that nobody else uses meanwhile, and its members in any order if f asks for them.
  template <class F>
  auto with_arena(F&& f) {
    auto call = [&](Arena& arena, Derivatives& derivatives) {
      if constexpr (requires { f(arena, derivatives.unordered()); }) return f(arena, derivatives.unordered());
      else return f(arena);
    };
    if (auto [lock, space] = enter_to_derive(); space) return call(space->arena, space->derivatives);
    else return call(arena_, derivatives_);
  }

  // Exclusive use of states, rows and the automaton's own arena. The clock is that of the public call (call.hpp); it is read where the
  // budget is checked.
  std::unique_lock<Mutex> enter() { return entered(locked(mutex_)); }
  std::unique_lock<Mutex> entered(std::unique_lock<Mutex> lock) {
    deadline_.reset();
    if (workspaces_.load(std::memory_order_relaxed)) arena_.renew();
    return lock;
  }
  // What a thread holds while it derives: the lock of a workspace of its own; or, while there are no workspaces, the automaton's lock
  // as by enter(), and no workspace.
  struct Entered {
    std::unique_lock<Mutex> lock;
    Workspace* space;
  };
  Entered enter_to_derive() {
    if (workspaces_.load(std::memory_order_acquire)) return enter_workspace();
    if (std::unique_lock lock(mutex_, std::try_to_lock); lock) return {entered(std::move(lock)), nullptr};
    return wait_to_derive();
  }
  [[gnu::noinline]] Entered wait_to_derive();
  [[gnu::noinline]] Entered enter_workspace();
  void make_workspaces();
  void check_in(Workspace& space, size_t more);
  void check_bytes(size_t more);
  void check_budget(size_t more = 0);

  // Raises BudgetExceeded, naming the counted repetition or other labelled part that contains most of the newest
  // states.
  [[noreturn]] void exceed(const char* resource, double limit);

  Budget budget_;
  Arena arena_;
  Derivatives derivatives_;
  ByteDerivatives byte_derivatives_;
  Estimates estimates_{arena_};
  std::unique_ptr<Digests> digests_;  // created at the first request
  std::unique_ptr<PushDown> pushdown_;  // if rules are called
  Marks marks_;
  std::vector<std::pair<NodeId, std::string>> labels_;
  Columns columns_{{}, 0, 0, kNone};
  StableVector<StateInfo> states_;
  SparseNumbers state_index_;  // for each expression
  Rows rows_;
  TextSteps text_steps_;
  State start_ = kDead, inner_start_ = kDead;
  bool tokens_intersected_ = false;
  std::atomic<size_t> beside_{0};
  std::atomic<Workspaces*> workspaces_{nullptr};  // made once, under the mutex, and stored when everything that they use is shared
  std::atomic<size_t> bytes_beside_nodes_{0};     // the last count, for workspaces
  // What changes with each use of the mutex, on cache lines apart from what others read meanwhile.
  static constexpr uint8_t kMeetings = 4;
  alignas(kCacheLine) Mutex mutex_;
  std::optional<Deadline> deadline_;  // of the thread that holds the mutex
  size_t looked_at_ = 0;              // states visited by all searches for dead states
  uint8_t met_ = 0;                   // how often a thread had to wait to derive, until there are workspaces
};

}  // namespace tokenfst

#include "byte_automata/faces.hpp"
