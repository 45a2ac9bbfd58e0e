// Searches over all states of a byte automaton.
#include "byte_automata/searches.hpp"

namespace tokenfst {

std::optional<std::string> shortest(ByteAutomaton& bytes) {
  const State start = bytes.start();
  if (start == kDead) return std::nullopt;
  struct Step {
    State state;
    uint32_t parent;
    uint8_t byte;
  };
  std::vector<Step> steps{{start, kNone, 0}};
  std::vector<bool> seen(bytes.num_states());
  Deadline deadline(bytes.budget().seconds);
  for (uint32_t i = 0; i < steps.size(); ++i) {
    State state = steps[i].state;
    if (bytes.accepting(state)) {
      std::string word;
      for (uint32_t k = i; steps[k].parent != kNone; k = steps[k].parent) word += static_cast<char>(steps[k].byte);
      return std::string(word.rbegin(), word.rend());
    }
    bytes.check(deadline, state, steps.capacity() * sizeof(Step));
    const State* next = bytes.row(state);
    for (int byte = 0; byte < 256; ++byte) {
      State target = next[bytes.classes()[byte]];
      if (target == kDead) continue;
      if (target >= seen.size()) seen.resize(std::max<size_t>(bytes.num_states(), target + 1));
      if (seen[target]) continue;
      seen[target] = true;
      steps.push_back({target, i, static_cast<uint8_t>(byte)});
    }
  }
  return std::nullopt;
}

std::vector<State> reachable(ByteAutomaton& bytes) {
  std::vector<State> order{kDead};
  std::vector<bool> seen(bytes.num_states());
  seen[kDead] = true;
  auto visit = [&](State q) {
    if (q >= seen.size()) seen.resize(std::max<size_t>(bytes.num_states(), q + 1));
    if (!seen[q]) seen[q] = true, order.push_back(q);
  };
  visit(bytes.start());
  visit(bytes.inner_start());
  Deadline deadline(bytes.budget().seconds);
  for (size_t i = 1; i < order.size(); ++i) {
    bytes.check(deadline, order[i], order.capacity() * sizeof(State));
    const State* next = bytes.row(order[i]);
    for (uint32_t c = 0; c < bytes.num_classes(); ++c) visit(next[c]);
    for (State q : after_marks(bytes, order[i])) visit(q);
  }
  return order;
}

std::vector<State> numbering(const ByteAutomaton& bytes, const std::vector<State>& order) {
  std::vector<State> number(bytes.num_states());
  for (State k = 0; k < order.size(); ++k) number[order[k]] = k;
  return number;
}

Tables determinize(ByteAutomaton& bytes) {
  bytes.marks().refuse();
  const uint32_t num_classes = bytes.num_classes();
  Tables out;
  std::copy_n(bytes.classes(), 256, out.classes.begin());
  out.num_classes = num_classes;
  std::vector<State> order = reachable(bytes);
  std::vector<State> number = numbering(bytes, order);
  const Deadline deadline(bytes.budget().seconds);
  const size_t size = order.size() * num_classes * sizeof(State);
  bytes.check(deadline, 0, size);
  out.table.assign(order.size() * num_classes, 0);
  for (State q : order) {
    bytes.check(deadline, q, size);
    out.accepting.push_back(bytes.accepting(q));
    if (q == kDead) continue;
    const State* next = bytes.row(q);
    for (uint32_t c = 0; c < num_classes; ++c) out.table[size_t{number[q]} * num_classes + c] = number[next[c]];
  }
  out.start = number[bytes.start()];
  return out;
}

}  // namespace tokenfst
