// Fragments: the part of an expression's masks that does not depend on what follows.
//
// A state's expression is often f·r with a wide loop in f: a string's interior, a number, white space. For every
// token read from f, one of three things happens, and the first two are found once per vocabulary:
//   * the token stays inside f: it is allowed whatever r is (r is not empty);
//   * it leaves f, possibly at several places: for each exit, the residual suffix has to be read by r;
//   * it can do neither: never allowed.
// So the mask in any context is a fixed row plus a walk of the small trie of residuals from r. Exits before the first
// byte are not recorded: there the whole mask of r joins in. Where very many tokens begin alike (with a space), there is
// a fragment for what is left of those tokens, too: the text is often in a loop only behind that.
//
// A counted fragment stands for x{m,n}·b·r with any m and n, where the byte set b cannot begin x and x can be read in
// one way only. Tokens then carry the number of iterations they begin (inside) or complete (exits); masks for
// different counts are nested, and no walk is needed per count.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "byte_automaton.hpp"
#include "trie.hpp"

namespace tokenfst {

struct Fragment {
  bool usable = false;
  bool ambiguous = false;  // a token that stays inside could also have left before its end
  std::vector<uint32_t> row;           // dense: tokens that stay inside
  std::vector<std::vector<uint32_t>> nested;  // counted: the rows for at most 1, 2, ... iterations, while they differ much
  std::vector<uint32_t> longest;       // counted: tokens of `row` with more iterations than that, most first
  std::vector<uint16_t> iterations;    // counted: begun by each of `longest`
  std::unique_ptr<Trie> residuals;     // over entries; an empty residual is at the root
  std::vector<uint32_t> tokens;        // token of each entry
  std::vector<uint16_t> completed;     // counted: iterations completed before the exit, per entry
  std::vector<uint32_t> representatives;  // tokens that stay inside, one per distinct place they lead to
  std::vector<uint16_t> representative_iterations;
  uint32_t completion = UINT32_MAX;  // widened: from each place that tokens inside lead to, at most so many bytes complete the fragment

  size_t memory() const {
    return row.capacity() * 4 * (1 + nested.size()) + longest.capacity() * 6 + tokens.capacity() * 6 + representatives.capacity() * 6 +
           (residuals ? residuals->memory() : 0) + sizeof(Fragment);
  }
};

// How an expression e splits: e = fragment·rest, or for counted ones e = fragment with its loop counted low..high. Where
// `part` is given, e = part·rest, and `part` is an intersection of `whole` and something else, and `whole` splits so. Where
// the fragment is `widened`, it is an intersection whose counters have no upper bounds any more; the least was this. A
// word w of the fragment has at most |w| iterations, so bounds do not matter to tokens t if |t| and what completes the
// fragment behind t are no longer than that together: the texts of a pattern and of at most 300 characters, say, and not
// almost 300 characters yet.
struct Split {
  NodeId fragment = kEmpty;
  NodeId rest = kEmpty;
  NodeId loop = kEmpty;  // counted: the loop and its terminator, where an iteration begins
  NodeId part = kEmpty, whole = kEmpty;
  uint32_t low = 0, high = kUnbounded;
  uint32_t widened = kUnbounded;
  bool counted = false;
  explicit operator bool() const { return fragment != kEmpty; }
};

// Whether the first loop of an expression counts.
inline bool counts_first(const Arena& arena, NodeId id) {
  while (arena[id].kind == Kind::Concat && arena[arena[id].a].kind != Kind::Repeat) id = arena[id].b;
  const Node& head = arena[id].kind == Kind::Concat ? arena[arena[id].a] : arena[id];
  return head.kind == Kind::Repeat && head.high != kUnbounded;
}

// Takes the byte set off the front of `rest`, if one is there; else the empty word.
inline NodeId take_set(const Arena& arena, NodeId& rest) {
  const Node& node = arena[rest];
  if (node.kind == Kind::Set) return std::exchange(rest, kEpsilon);
  if (node.kind != Kind::Concat || arena[node.a].kind != Kind::Set) return kEpsilon;
  const NodeId set = node.a;
  rest = node.b;
  return set;
}

Split split_intersection(Arena& arena, NodeId element, NodeId rest);

// Finds the first loop among the first elements of a concatenation, with a terminating byte set where one follows. Few
// bytes before a loop make its tokens few, unless it `begins_narrow` anyway.
inline Split split(Arena& arena, NodeId id, bool begins_narrow = false) {
  constexpr int kMaxHeads = 2;
  constexpr int kNarrow = 4;
  std::vector<NodeId> heads;
  NodeId rest = id;
  for (;;) {
    bool last = arena[rest].kind != Kind::Concat;
    NodeId element = last ? rest : arena[rest].a;
    rest = last ? kEpsilon : arena[rest].b;
    const Node node = arena[element];
    if (node.has(kHasCall | kHasMark | kHasToken) || node.kind == Kind::Unordered) return {};
    if (node.kind == Kind::And && heads.empty()) return split_intersection(arena, element, rest);
    if (node.kind == Kind::Set && arena.set(element).size() <= kNarrow && heads.empty() && !begins_narrow) return {};
    if (node.kind != Kind::Repeat) {
      if (last || heads.size() == kMaxHeads) return {};
      heads.push_back(element);
      continue;
    }
    Split found;
    const NodeId terminator = take_set(arena, rest);
    found.counted = node.high != kUnbounded;
    if (found.counted && terminator == kEpsilon) return {};
    found.low = node.low;
    found.high = node.high;
    NodeId loop = found.counted ? arena.repeat(node.a, 0, kUnbounded) : element;
    found.loop = found.fragment = arena.concat(loop, terminator);
    for (size_t k = heads.size(); k-- > 0;) found.fragment = arena.concat(heads[k], found.fragment);
    found.rest = rest;
    return found;
  }
}

// An intersection of members among which there are counters, without their upper bounds.
inline Split split_widened(Arena& arena, std::vector<NodeId> members, NodeId rest) {
  Split found;
  for (NodeId& member : members) {
    const Node node = arena[member];
    if (node.kind != Kind::Repeat || node.high == kUnbounded) continue;
    found.widened = std::min(found.widened, node.high);
    member = arena.repeat(node.a, node.low, kUnbounded);
  }
  if (found.widened == kUnbounded) return {};
  const NodeId terminator = take_set(arena, rest);
  found.fragment = found.loop = arena.concat(arena.all_of(members), terminator);
  found.rest = rest;
  return found;
}

// An intersection, with a terminating byte set where one follows. What excludes single words is left out of the whole; an
// intersection that remains is a fragment itself, unless it counts: then each count would be one, and none met twice.
inline Split split_intersection(Arena& arena, NodeId element, NodeId rest) {
  std::vector<NodeId> members;
  for (NodeId member : arena.list(element)) {
    const Node& node = arena[member];
    if (node.kind != Kind::Not || arena[node.a].has(kHasLoop)) members.push_back(member);
  }
  if (members.size() == arena.list(element).size()) {
    if (Split found = split_widened(arena, members, rest)) return found;
  }
  NodeId part = element, whole = arena.all_of(members);
  Split found;
  if (members.size() == 1) found = split(arena, whole, true);
  if (!found || arena[found.loop].kind == Kind::Repeat) {  // no terminator yet
    const NodeId terminator = take_set(arena, rest);
    part = arena.concat(part, terminator);
    whole = arena.concat(whole, terminator);
    if (members.size() == 1) found = split(arena, whole, true);
    else if (std::ranges::none_of(members, [&](NodeId member) { return counts_first(arena, member); })) found = {.fragment = whole, .rest = kEpsilon, .loop = whole};
  }
  if (found.rest != kEpsilon) return {};
  found.rest = rest;
  if (whole != part) {
    found.part = part;
    found.whole = whole;
  }
  return found;
}

// A description of a closed expression that means the same in every arena: equal keys, equal expressions. Empty for
// what is not shared: recursive expressions, sets of words, and large machines, whose tables every key would repeat.
inline std::string canonical_key(const Arena& arena, NodeId root) {
  constexpr size_t kLargeMachine = 4096;
  std::string key;
  std::unordered_map<NodeId, uint32_t> number;
  std::vector<std::pair<NodeId, bool>> stack{{root, false}};
  auto put = [&](uint32_t value) { key.append(reinterpret_cast<const char*>(&value), 4); };
  while (!stack.empty()) {
    auto [id, ready] = stack.back();
    stack.pop_back();
    if (number.contains(id)) continue;
    const Node& node = arena[id];
    std::vector<NodeId> operands;
    switch (node.kind) {
      case Kind::Concat: operands = {node.a, node.b}; break;
      case Kind::Not:
      case Kind::Repeat:
      case Kind::Behind: operands = {node.a}; break;
      case Kind::Or:
      case Kind::And:
      case Kind::Scoped: operands.assign(arena.list(id).begin(), arena.list(id).end()); break;
      case Kind::Var:
      case Kind::Call:
      case Kind::Words:
      case Kind::Pick:
      case Kind::Unordered: return {};
      case Kind::Machine:
        if (arena.machine(id).size() > kLargeMachine) return {};
        break;
      default: break;
    }
    if (!ready) {
      stack.emplace_back(id, true);
      for (NodeId operand : operands) stack.emplace_back(operand, false);
      continue;
    }
    put(static_cast<uint32_t>(node.kind));
    put(static_cast<uint32_t>(operands.size()));
    for (NodeId operand : operands) put(number.at(operand));
    if (node.kind == Kind::Repeat) put(node.low), put(node.high);
    if (node.kind == Kind::Mark) put(node.a);
    if (node.kind == Kind::Set) key.append(reinterpret_cast<const char*>(arena.set(id).words.data()), sizeof(ByteSet));
    if (node.kind == Kind::Machine) {
      const Machine& machine = arena.machine(id);
      put(node.b);
      put(machine.num_classes);
      put(static_cast<uint32_t>(machine.accepting.size()));
      key.append(reinterpret_cast<const char*>(machine.classes.data()), 256);
      for (auto* words : {&machine.table, &machine.offsets, &machine.edges}) {
        put(static_cast<uint32_t>(words->size()));
        key.append(reinterpret_cast<const char*>(words->data()), words->size() * 4);
      }
      key.append(reinterpret_cast<const char*>(machine.accepting.data()), machine.accepting.size());
    }
    number.emplace(id, static_cast<uint32_t>(number.size()));
  }
  return key;
}

// The fragments of one vocabulary, shared by all automata over it. Bounded: past kMaxBytes the cache is emptied
// (automata keep the fragments they use).
class FragmentCache {
 public:
  std::shared_ptr<const Fragment> find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto it = known_.find(key);
    return it == known_.end() ? nullptr : it->second;
  }
  void insert(const std::string& key, std::shared_ptr<const Fragment> fragment) {
    std::lock_guard lock(mutex_);
    if (bytes_ > kMaxBytes) {
      known_.clear();
      bytes_ = 0;
    }
    if (known_.emplace(key, fragment).second) bytes_ += fragment->memory() + key.size();
  }
  size_t memory() const {
    std::lock_guard lock(mutex_);
    return bytes_;
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return known_.size();
  }

 private:
  static constexpr size_t kMaxBytes = 256 << 20;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Fragment>> known_;
  size_t bytes_ = 0;
};

}  // namespace tokenfst
