// Creates rows and entries while several threads derive at the same time: computed in a workspace, stored under the mutex.
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
  const auto lock = enter();
  if (State* known = states_[state].row.load(std::memory_order_relaxed)) return known;
  State* const row = rows_.add(num_classes());
  columns_.each(readable, [&](uint32_t column) { row[column] = kPending; });
  if (boundary() != kNone) row[boundary()] = kPending;
  states_[state].row.store(row, std::memory_order_release);
  return row;
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
      const auto lock = enter();
      if (const State* known = entry_of_rest(top, column)) return store_entry(row, column, *known);
    }
    const NodeId read = top_of(state);
    const ByteDerivatives::Left found = space.byte_derivatives.after(read, columns_.letter(column));
    left = read == node ? found.node : space.arena.concat(found.node, space.arena.hole(0));
    same = found.same;
  }
  const auto lock = enter();
  if (!(row[column] & kPending)) return row[column];
  const State made = live_state(left);
  store_entries(row, same, made);
  return store_entry(row, column, made);
}

void ByteAutomaton::check_in(Workspace& space, size_t more) {
  space.bytes.store(space.memory(), std::memory_order_relaxed);
  const size_t held = arena_.memory_of_store() + workspaces_.load(std::memory_order_relaxed)->memory() +
                      bytes_beside_nodes_.load(std::memory_order_relaxed) + beside_.load(std::memory_order_relaxed);
  if (!space.deadline) space.deadline.emplace(budget_.seconds);
  const bool late = space.deadline->expired();
  if (!late && held + more <= budget_.bytes) return;
  const auto lock = enter();
  if (late) exceed("seconds", budget_.seconds);
  exceed("bytes", static_cast<double>(budget_.bytes));
}

}  // namespace tokenfst
