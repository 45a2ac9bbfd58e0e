// Computes reserves: the case of each kind of expression, and rules that call each other.
#include "token_automata/reserves.hpp"

namespace tokenfst {

Node Reserves::node(NodeId id) {
  return bytes_.expressions().with_arena([&](const Arena& arena) { return arena[id]; });
}

std::vector<NodeId> Reserves::list(NodeId id) {
  return bytes_.expressions().with_arena(
      [&](const Arena& arena) { return std::vector<NodeId>(arena.list(id).begin(), arena.list(id).end()); });
}

// The result for an expression; the reference is valid until rules are solved again.
const Reserves::Part& Reserves::part(NodeId id) {
  check_stack();
  time_limit_.step(16);
  if (auto known = parts_.find(id); known != parts_.end()) return known->second;
  std::vector<NodeId> lists;  // a concatenation and its tails
  const Part* last = nullptr;
  for (Node at = node(id); at.kind == Kind::Concat && !last; at = node(id)) {
    lists.push_back(id);
    id = at.b;
    if (auto known = parts_.find(id); known != parts_.end()) last = &known->second;
  }
  if (!last) last = &keep(id, element(id));
  for (; !lists.empty(); lists.pop_back()) {
    const Part& head = part(node(lists.back()).a);
    last = &keep(lists.back(), both(head, *last));
  }
  return *last;
}

const Reserves::Part& Reserves::keep(NodeId id, const Part& found) {
  if (solving_ && node(id).has(kHasCall)) passing_.push_back(id);
  return parts_.insert_or_assign(id, found).first->second;
}

Reserves::Part Reserves::element(NodeId id) {
  const Node at = node(id);
  switch (at.kind) {
    case Kind::Empty: return dead();
    case Kind::Epsilon:
    case Kind::Return:
    case Kind::Hole:
    case Kind::Open:
    case Kind::Label:
    case Kind::Tag:
    case Kind::Mark: return of_length(0, 0);
    case Kind::Set: {
      Part made = of_length(1, 1);
      const ByteSet set = bytes_.expressions().with_arena([&](const Arena& arena) { return arena.set(id); });
      made.rare = (set - rare_->set).empty();
      return made;
    }
    case Kind::Token:
    case Kind::Begun:
    case Kind::Inside: return of_length(1, 1);
    case Kind::Few:
    case Kind::FewInside: return part(at.a);
    case Kind::Or: {
      Part made = dead();
      for (NodeId member : list(id)) unite(made, part(member));
      return made;
    }
    case Kind::Repeat: {
      const Part body = part(at.a);
      if (body.dead()) return at.low == 0 ? of_length(0, 0) : dead();
      Part made{times(body.least, at.low), std::min<uint32_t>(times(body.rare, at.low), kColumns), {}};
      const uint32_t others = at.low == 0 ? 0 : times(body.least, at.low - 1);
      for (size_t q = 0; q < kColumns; ++q) made.most[q] = std::max(made.least, plus(body.most[q], others));
      return made;
    }
    case Kind::Call: return of_rule(at.a);
    case Kind::Words:
      return bytes_.expressions().with_selections([&](const Selections& them) { return of_words(them.lexicon(at.a), at.a, at.b); });
    case Kind::Unordered: return unordered(id, at);
    case Kind::Var:
    case Kind::Pick:
    case Kind::Behind: return of_length(lengths_.of(id), kUnreachable);
    case Kind::Machine: return machine(at);
    case Kind::And: return intersection(id);
    default: return explored(id);
  }
}

Reserves::Part Reserves::of_words(const Lexicon& words, uint32_t number, uint32_t state) {
  auto [known, fresh] = words_.try_emplace(number, 0);
  for (uint32_t q = 0; fresh && q < words.num_states(); ++q) known->second = std::max(known->second, words.nearest(q));
  return of_length(words.nearest(state), known->second);
}

const Reserves::Options& Reserves::options(NodeId id, const Node& at) {
  const Bounds key{at.b, at.low, at.high};
  if (auto known = options_.find(key); known != options_.end()) return known->second;
  Options made;
  const Unordered::Demand demand = bytes_.expressions().demand(id);
  const Part separator = part(demand.separator);
  const size_t options = demand.bodies.size() - demand.repeats;
  uint32_t count = 0, longest = 0;
  made.sizes.assign(demand.bodies.size(), 0);
  for (size_t tag = 0; tag < demand.bodies.size(); ++tag) {
    if (demand.bodies[tag] == kEmpty || part(demand.bodies[tag]).dead()) continue;
    const uint32_t size = plus(part(demand.bodies[tag]).least, separator.dead() ? 0 : separator.least);
    if (tag < demand.required) ++count, made.sizes[tag] = size, made.missing = plus(made.missing, size);
    else if (tag < options || demand.counts) longest = std::max(longest, size);
  }
  if (demand.low > count) made.missing = plus(made.missing, times(longest, demand.low - count));
  made.begun = separator.dead() ? dead() : separator;
  for (uint32_t& most : made.begun.most) most = plus(most, made.missing);
  for (size_t tag = 0; tag < demand.bodies.size(); ++tag) {
    if (demand.bodies[tag] == kEmpty) continue;
    const Part& body = part(demand.bodies[tag]);
    const uint32_t others = made.missing == kUnreachable ? kUnreachable : made.missing - made.sizes[tag];
    Part whole = body;
    for (uint32_t& most : whole.most) most = plus(most, others);
    unite(made.begun, whole);
  }
  if (solving_) passing_options_.push_back(key);
  return options_.emplace(key, std::move(made)).first->second;
}

Reserves::Part Reserves::unordered(NodeId id, const Node& at) {
  const Options& left = options(id, at);
  NodeId last = at.a;
  for (Node rest = node(last); rest.kind == Kind::Concat; rest = node(last)) last = rest.b;
  const Node tag = node(last);
  uint32_t others = left.missing;
  if (tag.kind == Kind::Tag && others != kUnreachable) others -= left.sizes[tag.a];
  const Part& rest = part(at.a);
  if (rest.dead()) return dead();
  Part made{plus(rest.least, others), rest.rare, {}};
  for (size_t q = 0; q < kColumns; ++q)
    made.most[q] = std::max(plus(rest.most[q], others), rest.rare <= q ? left.begun.most[q - rest.rare] : 0);
  return made;
}

uint32_t Reserves::longest_token() const {
  return static_cast<uint32_t>(std::max(vocabulary_.trie().max_depth(), vocabulary_.initial_trie().max_depth()));
}

// Intersections, complements and look-behinds: by exploring derivatives, up to expressions whose form decides.
Reserves::Part Reserves::explored(NodeId start) {
  if (exploring_ >= kMostNested) return of_length(kUnreachable, kUnreachable);
  const Nesting nesting(exploring_);
  std::vector<NodeId> met{start};
  std::unordered_map<NodeId, uint32_t> number{{start, 0}};
  std::vector<std::vector<uint32_t>> before(1);
  std::vector<uint32_t> least, most;
  using Item = std::pair<uint32_t, uint32_t>;  // a length, and an index in `met`
  std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
  size_t expanded = 0;
  for (uint32_t k = 0; k < met.size() && expanded < kMostExplored; ++k) {
    time_limit_.step(64);
    least.push_back(kUnreachable);
    most.push_back(0);
    const auto known = parts_.find(met[k]);
    if (k > 0 && (known != parts_.end() || !is_explored(met[k]))) {
      const Part& found = known != parts_.end() ? known->second : part(met[k]);
      if (found.dead()) continue;
      queue.emplace(least[k] = found.least, k);
      most[k] = found.most.back();
      continue;
    }
    ++expanded;
    if (node(met[k]).nullable) queue.emplace(least[k] = 0, k);
    for (const Move& move : bytes_.expressions().moves(met[k])) {
      const auto [at, fresh] = number.try_emplace(move.target, static_cast<uint32_t>(met.size()));
      if (fresh) met.push_back(move.target), before.emplace_back();
      before[at->second].push_back(k);
    }
  }
  if (expanded >= kMostExplored) {
    for (NodeId each : met) {
      if (is_explored(each)) parts_.try_emplace(each, of_length(kUnreachable, kUnreachable));
    }
    return of_length(kUnreachable, kUnreachable);
  }
  while (!queue.empty()) {
    const auto [length, at] = queue.top();
    queue.pop();
    if (length > least[at]) continue;
    for (uint32_t from : before[at]) {
      if (plus(length, 1) < least[from]) queue.emplace(least[from] = plus(length, 1), from);
    }
  }
  // In descending order of bounds: everything that leads to such a state has its bound.
  std::vector<Item> greatest;
  for (uint32_t k = 0; k < met.size(); ++k) {
    if (least[k] != kUnreachable || most[k] != 0) greatest.emplace_back(std::max(least[k], most[k]), k);
  }
  std::ranges::sort(greatest, std::greater<>());
  std::vector<bool> seen(met.size());
  for (const auto& [length, place] : greatest) {
    for (std::vector<uint32_t> leading{place}; !leading.empty();) {
      const uint32_t at = leading.back();
      leading.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      most[at] = length;
      leading.insert(leading.end(), before[at].begin(), before[at].end());
    }
  }
  auto part_of = [&](uint32_t k) { return seen[k] ? of_length(least[k], most[k]) : dead(); };
  for (uint32_t k = 1; k < met.size(); ++k) {
    if (is_explored(met[k])) parts_.try_emplace(met[k], part_of(k));
  }
  return part_of(0);
}
// Whether the derivatives are explored: true if such an expression is read first.
bool Reserves::is_explored(NodeId id) {
  const Node at = node(id);
  switch (at.kind) {
    case Kind::And:
    case Kind::Not:
    case Kind::Scoped: return true;
    case Kind::Concat: return is_explored(at.a);
    case Kind::Or: return std::ranges::any_of(list(id), [&](NodeId member) { return is_explored(member); });
    default: return false;
  }
}

// Two kinds of intersections with many states are decided by their form.
Reserves::Part Reserves::intersection(NodeId id) {
  uint32_t turns = kUnbounded;
  if (const NodeId wider = widened(id, turns); wider != id) {
    // A word of the widened expression that begins with a token's bytes and has at most `most` more bytes has no more
    // iterations than bytes, so it is also a word of the given expression.
    const Part found = part(wider);
    if (found.dead() || plus(found.most.back(), longest_token()) <= turns) return found;
  }
  if (const std::optional<Part> found = without_few(id)) return *found;
  if (const uint32_t most = steps(id); most <= kMostSteps) return bytes_.expressions().intern(id) == kDead ? dead() : of_length(most, most);
  return explored(id);
}
// The greatest number of bytes of a shortest rest of a word, if all loops are of single bytes: in a longer rest, all
// parts of an intersection stay in a loop at some byte, which can be left out. kUnreachable if there are other loops.
uint32_t Reserves::steps(NodeId id) {
  check_stack();
  const Node at = node(id);
  switch (at.kind) {
    case Kind::Empty:
    case Kind::Epsilon: return 0;
    case Kind::Set: return 1;
    case Kind::Concat: return plus(steps(at.a), steps(at.b));
    case Kind::And:
    case Kind::Or: {
      uint32_t most = 0;
      for (NodeId member : list(id)) most = at.kind == Kind::Or ? std::max(most, steps(member)) : plus(most, steps(member));
      return most;
    }
    case Kind::Repeat:
      if (at.high != kUnbounded) return times(steps(at.a), at.high);
      return node(at.a).kind == Kind::Set ? plus(at.low, 1) : kUnreachable;
    default: return kUnreachable;
  }
}
// The expression without the upper bounds of counters that one token cannot reach; `turns` becomes the least of these
// bounds.
NodeId Reserves::widened(NodeId id, uint32_t& turns) {
  check_stack();
  const Node at = node(id);
  switch (at.kind) {
    case Kind::And:
    case Kind::Or: {
      std::vector<NodeId> parts = list(id);
      for (NodeId& part : parts) part = widened(part, turns);
      return bytes_.expressions().with_arena(
          [&](Arena& arena) { return at.kind == Kind::And ? arena.all_of(parts) : arena.any_of(parts); });
    }
    case Kind::Concat: {
      const NodeId head = widened(at.a, turns), tail = widened(at.b, turns);
      return bytes_.expressions().with_arena([&](Arena& arena) { return arena.concat(head, tail); });
    }
    case Kind::Repeat:
      if (at.high == kUnbounded || at.high < longest_token()) return id;
      turns = std::min(turns, at.high);
      return bytes_.expressions().with_arena([&](Arena& arena) { return arena.repeat(at.a, at.low, kUnbounded); });
    default: return id;
  }
}
// For the intersection of complements of finitely many words with an expression that ends with a loop and at most one
// byte after it. Each further iteration gives a longer word. Of so many words, one more than are excluded, at least one is
// not excluded.
std::optional<Reserves::Part> Reserves::without_few(NodeId id) {
  NodeId loop = kEmpty;
  uint64_t words = 0;
  const std::vector<NodeId> members = list(id);
  for (const NodeId member : members) {
    const Node at = node(member);
    if (at.kind == Kind::Not) words += count(at.a);
    else if (loop != kEmpty) return std::nullopt;
    else loop = member;
    if (words > kMostWords) return std::nullopt;
  }
  if (loop == kEmpty) return std::nullopt;
  uint32_t turn = 0;  // the length of the last loop's body, if at most one byte follows it
  bool byte_after = false;
  for (NodeId rest = loop; rest != kEpsilon;) {
    const Node at = node(rest);
    const NodeId head = at.kind == Kind::Concat ? at.a : rest;
    rest = at.kind == Kind::Concat ? at.b : kEpsilon;
    const Node first = node(head);
    if (first.kind == Kind::Repeat && first.high == kUnbounded && !node(first.a).nullable) turn = part(first.a).least, byte_after = false;
    else if (first.kind == Kind::Set && !byte_after) byte_after = true;
    else turn = 0, byte_after = false;
  }
  Part found = part(loop);
  if (turn == 0 || turn == kUnreachable || found.dead()) return std::nullopt;
  const uint32_t longer = times(turn, static_cast<uint32_t>(words));
  found.least = plus(found.least, longer);
  for (uint32_t& most : found.most) most = plus(most, longer);
  return found;
}
// An upper bound of the number of words of an expression; more than kMostWords if there may be many.
uint64_t Reserves::count(NodeId id) {
  check_stack();
  constexpr uint64_t kMany = kMostWords + 1;
  const Node at = node(id);
  switch (at.kind) {
    case Kind::Empty: return 0;
    case Kind::Epsilon: return 1;
    case Kind::Set: return static_cast<uint64_t>(bytes_.expressions().with_arena([&](const Arena& arena) { return arena.set(id).size(); }));
    case Kind::Concat: return std::min(kMany, count(at.a) * count(at.b));
    case Kind::Or: {
      uint64_t sum = 0;
      for (NodeId member : list(id)) sum = std::min(kMany, sum + count(member));
      return sum;
    }
    default: return kMany;
  }
}

// For a machine: the least length to an end from each state, and the greatest of these that each state leads to.
Reserves::Part Reserves::machine(const Node& at) {
  if (auto known = machines_.find(at.a); known != machines_.end()) return known->second[at.b];
  std::vector<Part> found;
  std::vector<std::vector<uint32_t>> before;
  std::vector<uint32_t> queue;
  bytes_.expressions().with_arena([&](const Arena& arena) {
    const Machine& machine = *arena.machines()[at.a];
    before.resize(machine.accepting.size());
    found.assign(machine.accepting.size(), dead());
    for (uint32_t q = 1; q < found.size(); ++q) {
      machine.each_move(q, [&](uint32_t, uint32_t next) {
        if (before[next].empty() || before[next].back() != q) before[next].push_back(q);
      });
      if (machine.accepting[q]) found[q] = of_length(0, kUnknown), queue.push_back(q);
    }
  });
  for (size_t k = 0; k < queue.size(); ++k) {
    for (uint32_t from : before[queue[k]]) {
      if (found[from].dead()) found[from] = of_length(found[queue[k]].least + 1, kUnknown), queue.push_back(from);
    }
  }
  for (size_t k = queue.size(); k-- > 0;) {
    for (std::vector<uint32_t> leading{queue[k]}; !leading.empty();) {
      const uint32_t q = leading.back();
      leading.pop_back();
      if (found[q].most[0] != kUnknown) continue;
      found[q].most.fill(found[queue[k]].least);
      leading.insert(leading.end(), before[q].begin(), before[q].end());
    }
  }
  return machines_.emplace(at.a, std::move(found)).first->second[at.b];
}

const Reserves::Part& Reserves::of_rule(uint32_t rule) {
  if (rules_.empty()) rules_.resize(bytes_.expressions().with_arena([](const Arena& arena) { return arena.num_rules(); }));
  if (rules_[rule].index == 0) connect(rule);
  return rules_[rule].part;
}

void Reserves::connect(uint32_t rule) {
  check_stack();
  Rule& at = rules_[rule];
  at.index = at.low = ++met_;
  at.open = true;
  open_.push_back(rule);
  bool loops = false;
  for (uint32_t called : callees(rule)) {
    loops |= called == rule;
    if (rules_[called].index == 0) connect(called);
    if (rules_[called].open) at.low = std::min(at.low, rules_[called].low);
  }
  if (at.low != at.index) return;
  std::vector<uint32_t> together;
  do together.push_back(open_.back()), open_.pop_back();
  while (together.back() != rule);
  solve(together, loops || together.size() > 1);
  for (uint32_t each : together) rules_[each].open = false;
}

NodeId Reserves::body(uint32_t rule) {
  return bytes_.expressions().with_arena([&](const Arena& arena) { return arena.rule(rule); });
}

std::vector<uint32_t> Reserves::callees(uint32_t rule) {
  std::vector<uint32_t> found;
  std::vector<NodeId> pending{body(rule)};
  std::set<NodeId> seen;
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    const Node at = node(id);
    if (!at.has(kHasCall) || !seen.insert(id).second) continue;
    time_limit_.step(16);
    if (at.kind == Kind::Call) found.push_back(at.a);
    if (at.kind == Kind::Concat) pending.insert(pending.end(), {at.a, at.b});
    if (at.kind == Kind::Repeat) pending.push_back(at.a);
    if (at.kind == Kind::Unordered) {
      const Unordered::Demand demand = bytes_.expressions().demand(id);
      pending.insert(pending.end(), {demand.rest, demand.separator});
      pending.insert(pending.end(), demand.bodies.begin(), demand.bodies.end());
    }
    if (at.kind != Kind::Or) continue;
    for (NodeId member : list(id)) pending.push_back(member);
  }
  return found;
}

// First the least lengths and numbers of rare bytes, then the bounds, which use these.
void Reserves::solve(const std::vector<uint32_t>& rules, bool loops) {
  solving_ = true;
  passing_.clear();
  passing_options_.clear();
  for (uint32_t rule : rules) rules_[rule].part = of_length(kUnreachable, 0);
  auto round = [&] {
    bool changed = false;
    forget();
    for (uint32_t rule : rules) {
      const Part found = part(body(rule));
      changed |= std::exchange(rules_[rule].part, found) != found;
    }
    return changed && loops;
  };
  for (size_t k = 0; round() && k < rules.size() + kColumns; ++k) {}
  if (loops) {
    for (uint32_t rule : rules) rules_[rule].part.most.fill(0);
    for (size_t k = 0; round(); ++k) {
      if (k < kMostRounds) continue;
      for (uint32_t rule : rules) rules_[rule].part = of_length(rules_[rule].part.least, kUnreachable);
      forget();
      break;
    }
  }
  solving_ = false;
}

// Removes results that were begun and are incomplete, as if they had never been computed.
void Reserves::give_up() {
  forget();
  for (Rule& rule : rules_) {
    if (rule.open) rule = {};
  }
  open_.clear();
  solving_ = false;
}
void Reserves::forget() {
  for (NodeId id : passing_) parts_.erase(id);
  for (const auto& key : passing_options_) options_.erase(key);
  passing_.clear();
  passing_options_.clear();
}

}  // namespace tokenfst
