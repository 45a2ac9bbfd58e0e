// Least lengths of words, found from the form of an expression.
#include "byte_automata/lengths.hpp"

#include <queue>
#include <tuple>

namespace tokenfst {

uint32_t Lengths::of(NodeId id) {
  if (!solved_) solve();
  return length(id);
}

uint32_t Lengths::of(Config config, Stacks& stacks) {
  if (bytes_.stacks().count(config.state) == 0) return of(bytes_.expressions().node(config.state));
  uint32_t least = kUnreachable;
  for (const Member& member : bytes_.stacks().shape(config.state).members) {
    const StackId node = member.hole == kNone ? kBottom : stacks.member(config.stack, member.hole);
    const uint32_t below = stacks.least(node, Stacks::Sum::Bytes, [&](uint32_t frame) { return of(bytes_.stacks().frame(frame).body); });
    least = std::min(least, plus(of(member.top), below));
  }
  return least;
}

void Lengths::solve() {
  const auto [rules, variables] = bytes_.expressions().with_arena([](Arena& arena) {
    std::vector<NodeId> found;
    const std::span<const Node> nodes = arena.all();
    for (NodeId id = 0; id < nodes.size(); ++id) {
      if (nodes[id].kind == Kind::Var) found.push_back(id);
    }
    return std::pair(arena.num_rules(), found);
  });
  rules_.assign(rules, kUnreachable);
  for (NodeId id : variables) variables_[id] = kUnreachable;
  for (bool changed = true; changed;) {
    changed = false;
    memo_.clear();
    auto improve = [&](uint32_t& known, NodeId body) {
      if (uint32_t found = length(body); found < known) known = found, changed = true;
    };
    for (uint32_t k = 0; k < rules; ++k)
      improve(rules_[k], bytes_.expressions().with_arena([&](const Arena& arena) { return arena.rule(k); }));
    for (auto& [id, known] : variables_) improve(known, node(id).a);
  }
  memo_.clear();
  solved_ = true;
}

// Of a concatenation, the lengths of all its tails are kept: the states along a text are tails of one concatenation.
uint32_t Lengths::length(NodeId id) {
  check_stack();
  std::vector<NodeId> whole;  // concatenations, each the tail of the one before
  auto known = memo_.find(id);
  for (Node at = node(id); known == memo_.end() && at.kind == Kind::Concat; at = node(id)) {
    whole.push_back(id);
    id = at.b;
    known = memo_.find(id);
  }
  uint32_t sum = known != memo_.end() ? known->second : keep(id, element(id));
  for (; !whole.empty(); whole.pop_back()) sum = keep(whole.back(), plus(length(node(whole.back()).a), sum));
  return sum;
}

uint32_t Lengths::keep(NodeId id, uint32_t length) {
  time_limit_.step(16);
  return memo_[id] = length;
}

uint32_t Lengths::element(NodeId id) {
  const Node at = node(id);
  if (at.has(kHasBehind) && !(at.kind == Kind::Or || at.kind == Kind::Repeat || at.kind == Kind::Var)) return kUnreachable;
  if (at.nullable && !at.has(kHasBehind)) return 0;
  switch (at.kind) {
    case Kind::Empty: return kUnreachable;
    case Kind::Set:
    case Kind::Token:
    case Kind::Begun:
    case Kind::Inside: return 1;
    case Kind::Few:
    case Kind::FewInside: return length(at.a);
    case Kind::Or: {
      uint32_t least = kUnreachable;
      for (NodeId member : bytes_.expressions().with_arena(
               [&](const Arena& arena) { return std::vector<NodeId>(arena.list(id).begin(), arena.list(id).end()); })) {
        least = std::min(least, length(member));
      }
      return least;
    }
    case Kind::Repeat: {
      uint64_t total = uint64_t{length(at.a)} * at.low;
      return total >= kUnknown ? kUnreachable : static_cast<uint32_t>(total);
    }
    case Kind::Call: return rules_[at.a];
    case Kind::Var: return variables_[id];
    case Kind::Unordered: return unordered(bytes_.expressions().demand(id));
    case Kind::Words: return bytes_.expressions().with_selections([&](const Selections& them) { return them.lexicon(at.a).nearest(at.b); });
    case Kind::Pick: {
      const uint32_t between =
          length(bytes_.expressions().with_selections([&](const Selections& them) { return them.selection(at.a).separator; }));
      uint64_t total = bytes_.expressions().with_selections([&](const Selections& them) { return them.length(at, between); });
      return total >= kUnknown ? kUnreachable : static_cast<uint32_t>(total);
    }
    default: return search(id);
  }
}

uint32_t Lengths::unordered(const Unordered::Demand& demand) {
  const uint32_t separator = length(demand.separator);
  const size_t options = demand.bodies.size() - demand.repeats;
  std::vector<uint32_t> sizes, optional;  // including a separator; `optional`: of those that are not required, ascending
  uint32_t needed = 0, missing = 0, count = 0;
  for (size_t tag = 0; tag < demand.bodies.size(); ++tag) {
    const NodeId body = demand.bodies[tag];
    sizes.push_back(body == kEmpty ? kUnreachable : plus(length(body), separator));
    if (body == kEmpty) continue;
    if (tag >= options) continue;
    if (tag >= demand.required) optional.push_back(sizes[tag]);
    else if (++count; sizes[tag] == kUnreachable) ++missing;
    else needed += sizes[tag];
  }
  std::ranges::sort(optional);
  // The total size of the `more` shortest optional members; one member of the size `but` is left out.
  auto shortest = [&](uint32_t more, uint32_t but) {
    uint32_t sum = 0;
    const uint32_t again = demand.repeats && demand.counts ? sizes.back() : kUnreachable;
    bool left_out = but == kUnreachable;
    for (size_t k = 0; more > 0; ++k) {
      if (k < optional.size() && !left_out && optional[k] == but) {
        left_out = true;
        continue;
      }
      if (k >= optional.size() || optional[k] >= again) {
        const uint64_t others = uint64_t{again} * more;
        return again == kUnreachable || others >= kUnknown ? kUnreachable : plus(sum, static_cast<uint32_t>(others));
      }
      sum = plus(sum, optional[k]);
      --more;
    }
    return sum;
  };
  // For each member that may be the one that is being read: the bytes that must follow it.
  std::vector<uint32_t> after(demand.bodies.size(), kUnreachable);
  const uint32_t more = demand.low > count ? demand.low - count : 0;
  for (size_t tag = 0; tag < after.size(); ++tag) {
    if (!demand.possible[tag]) continue;
    const bool required = tag < demand.required, lost = required && sizes[tag] == kUnreachable;
    if (missing > lost) continue;
    const uint32_t others = needed - (required && !lost ? sizes[tag] : 0);
    const bool counts = !required && (tag < options || demand.counts);
    const uint32_t extra = counts && more > 0 ? more - 1 : more;
    after[tag] = plus(others, shortest(extra, tag >= demand.required && tag < options ? sizes[tag] : kUnreachable));
  }
  uint32_t least = kUnreachable;
  std::vector<std::pair<NodeId, uint32_t>> stack{{demand.rest, 0}};
  while (!stack.empty()) {
    auto [id, before] = stack.back();
    stack.pop_back();
    Node at = node(id);
    for (; at.kind == Kind::Concat; id = at.b, at = node(id)) before = plus(before, length(at.a));
    if (at.kind == Kind::Tag) {
      least = std::min(least, plus(before, after[at.a]));
    } else {
      for (NodeId branch : bytes_.expressions().with_arena(
               [&](const Arena& arena) { return std::vector<NodeId>(arena.list(id).begin(), arena.list(id).end()); })) {
        stack.emplace_back(branch, before);
      }
    }
  }
  return least;
}

uint32_t Lengths::search(NodeId id) {
  if (const auto known = searched_.find(id); known != searched_.end()) return known->second;
  struct Open {
    uint32_t whole, read;  // bytes of a text through the state, at least; bytes up to the state
    State state;
    // Of states with equal bounds, the one nearest to the end comes first.
    bool operator<(const Open& other) const { return std::tie(whole, other.read, state) > std::tie(other.whole, read, other.state); }
  };
  struct Met {
    uint32_t read;
    State before;
  };
  std::priority_queue<Open> open;
  std::unordered_map<State, Met> met;
  const auto node_of = [&](State state) { return bytes_.expressions().node(state); };
  auto known = [&](State state) {
    if (bytes_.accepting(state)) return std::optional<uint32_t>(0);
    const auto found = searched_.find(node_of(state));
    return found == searched_.end() ? std::nullopt : std::optional(found->second);
  };
  auto meet = [&](State state, uint32_t read, State before) {
    const auto [at, fresh] = met.try_emplace(state, read, before);
    if (!fresh && at->second.read <= read) return;
    at->second = {read, before};
    const std::optional<uint32_t> rest = known(state);
    open.push({plus(read, rest ? *rest : bytes_.expressions().least_length(node_of(state))), read, state});
  };
  const State start = bytes_.expressions().intern(id);
  if (start != kDead) meet(start, 0, kDead);
  for (size_t visited = 0; !open.empty() && visited < kMaxSearch;) {
    const Open at = open.top();
    open.pop();
    if (at.read > met.at(at.state).read) continue;
    if (known(at.state)) {  // its whole length is the least: so are the rests of the states before it
      for (State state = at.state; state != kDead; state = met.at(state).before)
        searched_[node_of(state)] = at.whole == kUnreachable ? kUnreachable : at.whole - met.at(state).read;
      return searched_[id] = at.whole;
    }
    ++visited;
    const State* row = bytes_.row(at.state);
    for (uint32_t c = 0; c < bytes_.num_classes(); ++c) {
      if (row[c] != kDead) meet(row[c], at.read + 1, at.state);
    }
  }
  return searched_[id] = kUnreachable;
}

std::vector<uint32_t> lengths_of_tables(ByteAutomaton& bytes) {
  const State states = static_cast<State>(bytes.num_states());
  std::vector<std::vector<State>> before(states);
  std::vector<State> queue;
  std::vector<uint32_t> lengths(states, kUnreachable);
  for (State q = 1; q < states; ++q) {
    const State* row = bytes.row(q);
    for (uint32_t c = 0; c < bytes.num_classes(); ++c) {
      for (State to : after_marks(bytes, row[c])) before[to].push_back(q);
    }
    if (bytes.accepting(q)) lengths[q] = 0, queue.push_back(q);
  }
  for (size_t k = 0; k < queue.size(); ++k) {
    for (State q : before[queue[k]]) {
      if (lengths[q] == kUnreachable) lengths[q] = lengths[queue[k]] + 1, queue.push_back(q);
    }
  }
  return lengths;
}

}  // namespace tokenfst
