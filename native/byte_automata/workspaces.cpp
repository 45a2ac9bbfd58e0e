// Creates rows and entries while several threads derive at the same time: computed in a workspace, and published by an exchange. The
// mutex is taken for states that are new.
#include "byte_automata/workspaces.hpp"

#include "byte_automata/byte_automaton.hpp"

namespace tokenfst {

ByteAutomaton::Entered ByteAutomaton::wait_to_derive() {
  auto lock = enter();
  if (!workspaces_.load(std::memory_order_relaxed) && is_lazy() && ++met_ == kMeetings) make_workspaces();
  return {std::move(lock), nullptr};
}

bool ByteAutomaton::share() {
  if (!is_lazy()) return false;
  const auto lock = enter();
  if (!workspaces_.load(std::memory_order_relaxed)) make_workspaces();
  return true;
}

void ByteAutomaton::make_workspaces() {
  bytes_beside_nodes_.store(bytes_beside_nodes(), std::memory_order_relaxed);
  derivatives_.share();
  workspaces_.store(new Workspaces, std::memory_order_release);
}

ByteAutomaton::Entered ByteAutomaton::enter_workspace() {
  auto [space, lock] = workspaces_.load(std::memory_order_acquire)->take([&] {
    auto made = std::make_unique<Workspace>(arena_, derivatives_);
    made->arena.watch([this, &here = *made](size_t bytes) { check_in(here, bytes); });
    return made;
  });
  return {std::move(lock), &space};
}

const State* ByteAutomaton::make_row_in(Workspace& space, State state) {
  const ByteSet readable = space.byte_derivatives.readable(states_[state].node);
  if (const State* known = states_[state].row.load(std::memory_order_acquire)) return known;
  const size_t held = space.rows.memory();
  State* const row = space.rows.add(num_classes());
  if (space.rows.memory() != held) check_in(space, 0);
  columns_.each(readable, [&](uint32_t column) { row[column] = kPending; });
  if (boundary() != kNone) row[boundary()] = kPending;
  const State* const published = publish_row(states_[state], row);
  if (published != row) space.rows.take_back(num_classes());
  return published;
}

State ByteAutomaton::make_entry_in(Workspace& space, State state, uint32_t column) {
  const NodeId node = states_[state].node;
  State* const row = states_[state].row.load(std::memory_order_acquire);
  NodeId left = kEmpty;
  ByteSet same;
  if (column == boundary()) {
    left = space.derivatives.at_boundary(node);
  } else {
    const Node top = space.arena[node];
    if (may_lie_after(space.arena, top, column) && !columns_.letter(column).in(space.byte_derivatives.readable(top.a))) {
      if (const State known = entry_of_rest(top, column); known != kPending) return publish_entry(row, column, known);
    }
    const NodeId read = top_of(state);
    const ByteDerivatives::Left found = space.byte_derivatives.after(read, columns_.letter(column));
    left = read == node ? found.node : space.arena.concat(found.node, space.arena.hole(0));
    same = found.same;
  }
  if (const State known = load_entry(row, column); known != kPending) return known;
  return store(row, column, same, intern_in(space, left));
}

const TextStep* ByteAutomaton::make_text_step_in(Workspace& space, State from, uint32_t number, std::string_view text) {
  const auto [left, bytes] = space.text_derivatives.after(states_[from].node, text);
  if (left == kNone) return nullptr;
  const TextStep made{intern_in(space, left), bytes};
  const auto lock = enter();
  return text_steps_.add(from, number, made);
}

State ByteAutomaton::intern_in(Workspace& space, NodeId node) {
  if (const std::optional<State> known = known_live_state(node)) return *known;
  if (const size_t bytes = states_.growth_soon(); bytes != 0) {
    check_in(space, bytes);
    states_.prepare();
  }
  const auto lock = enter();
  return live_state(node);
}

void ByteAutomaton::check_in(Workspace& space, size_t more) {
  space.bytes.store(space.memory(), std::memory_order_relaxed);
  const size_t held = bytes_counted(*workspaces_.load(std::memory_order_relaxed)) + beside_.load(std::memory_order_relaxed);
  if (!space.deadline) space.deadline.emplace(budget_.seconds);
  const bool late = space.deadline->expired();
  if (!late && held + more <= budget_.bytes) return;
  const auto lock = enter();
  if (late) exceed("seconds", budget_.seconds);
  exceed("bytes", static_cast<double>(budget_.bytes));
}

}  // namespace tokenfst
