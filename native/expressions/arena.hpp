// Hash-consed extended regular expressions: equal expressions have the same number.
//
// Constructors normalize (concatenations.hpp, boolean_operations.hpp). Normal forms keep the number of distinct
// derivatives finite and close to minimal; exactness depends on none of their rules. Here are the other kinds of nodes:
// tokens, machines, recursion, rules and look-behind.
//
// A node knows whether it is nullable, and whether it is `certain`: certain nodes other than kEmpty denote a non-empty
// language by construction; the others (with intersection, complement, look-behind, recursion) need a search. The
// difference of an endless language (kEndless) and finitely many finite ones, such as the names that are not in a list,
// is certain and endless. Cost: a hash look-up for each node that is constructed. Every construction may raise
// BudgetExceeded (watch(), and nesting deeper than kMaxDepth).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "expressions/boolean_operations.hpp"
#include "expressions/machine.hpp"

namespace tokenfst {

class Arena : public BooleanOperations {
 public:
  Arena() {
    store_.nodes.reserve(16);
    intern({Kind::Empty, false, true, 0, 0, 0, 0, 0, 0});
    intern({Kind::Epsilon, true, true, 0, 0, 0, 0, 0, 0});
    uint32_t any = set_number(ByteSet::all());
    append({Kind::Repeat, true, true, kHasLoop | kEndless, 1, 3, 0, 0, kUnbounded});  // kUniverse; its body is node 3
    intern({Kind::Set, false, true, 0, 0, any, 0, 0, 0});
  }

  // Another arena over the same nodes, for another thread; `other` must outlive it. Call it after the program has been read.
  Arena(Arena& other, std::nullptr_t)
      : BooleanOperations(other, nullptr), everything_(other.everything_), token_in_rules_(other.token_in_rules_),
        machines_(other.machines_), rules_(other.rules_) {}

  size_t memory() const { return memory_of_store() + memory_beside_store(); }
  size_t memory_beside_store() const { return memory_of_concatenations(); }
  const Machine& machine(NodeId id) const { return *machines_[nodes_[id].a]; }
  const std::vector<std::shared_ptr<const Machine>>& machines() const { return machines_; }

  // Declares, before any node is created, that the alphabet has symbols beside bytes, and whether rules may contain
  // tokens.
  void widen(uint32_t symbols, bool tokens_in_rules) {
    if (symbols > 0) {
      store_.clear_sets();
      set_number(everything_ = ByteSet::all(symbols));
    }
    if (tokens_in_rules) token_in_rules_ = kHasToken;
  }
  // The set of all bytes and symbols.
  const ByteSet& everything() const { return everything_; }
  // One token whose bytes are a word of `text`, from one token boundary to the next: Token; if the first boundary is
  // here, Begun; if some bytes were read since, Inside.
  NodeId token(NodeId text, Kind place = Kind::Token) {
    if (text == kEmpty || (text == kEpsilon && place != Kind::Inside)) return kEmpty;
    const Node& node = nodes_[text];
    const uint16_t traits = static_cast<uint16_t>((node.traits & ~kEndless) | kHasToken);
    return intern({place, false, node.certain, traits, deeper(node.depth), text, 0, 0, 0});
  }
  // The words of `text` whose bytes belong to at most `left` tokens: Few; FewInside if the current token has such a
  // byte (few_tokens.hpp).
  NodeId few_tokens(NodeId text, uint32_t left, Kind place = Kind::Few) {
    if (text == kEmpty || text == kEpsilon) return text;
    const Node& node = nodes_[text];
    if (left == 0) return node.nullable ? kEpsilon : kEmpty;
    const uint16_t traits = static_cast<uint16_t>((node.traits & ~kEndless) | kHasToken);
    return intern({place, node.nullable, node.certain, traits, deeper(node.depth), text, 0, left, 0});
  }
  // Adds a machine and returns its number.
  uint32_t add_machine(std::shared_ptr<const Machine> machine) {
    machines_.push_back(std::move(machine));
    return static_cast<uint32_t>(machines_.size() - 1);
  }
  // The words that a machine reads from one of its states on.
  NodeId state_of(uint32_t machine, uint32_t state) {
    if (state == 0) return kEmpty;
    return intern({Kind::Machine, machines_[machine]->accepting[state] != 0, true, machines_[machine]->loops ? kHasLoop : uint16_t{0}, 0,
                   machine, state, 0, 0});
  }

  // Call this when a program has been read, before anything else: frees what only reading needs.
  void trim() {
    trim_store();
    forget_concatenations();
  }

  // Declares that a node has a word, so that no search is needed. Call it before nodes are built from this one.
  void assure(NodeId id) { nodes_[id].certain = true; }

  // A new recursion variable, which define() must give a body.
  NodeId new_variable() {
    return append({Kind::Var, false, false, static_cast<uint16_t>(kHasVar | kHasLoop | token_in_rules_ | (rules_.empty() ? 0 : kHasCall)),
                   0, kNone, static_cast<uint32_t>(size()), 0, 0});
  }

  // Gives a variable its body, and updates the nodes that use it: a least fixed point, starting from "not nullable".
  // Operands have smaller numbers than their users, so one pass settles everything except variables. A variable below a
  // complement is closed there, so its own definition has settled it before. O(nodes) for each pass; a pass follows each change.
  void define(NodeId variable, NodeId body) {
    nodes_[variable].a = body;
    for (bool changed = true; changed;) {
      changed = false;
      for (NodeId id = 0; id < size(); ++id) {
        if (id % 64 == 0) tick();
        Node& node = nodes_[id];
        if (!node.has(kHasVar)) continue;
        bool nullable = node.nullable, behind = node.has(kHasBehind);
        auto part = [&](NodeId arg) -> const Node& { return nodes_[arg]; };
        auto members = is_list(node.kind) ? list(id) : std::span<const uint32_t>{};
        switch (node.kind) {
          case Kind::Var:
            if (node.a == kNone) break;  // not defined yet
            nullable = part(node.a).nullable;
            behind = part(node.a).has(kHasBehind);
            break;
          case Kind::Concat:
            nullable = part(node.a).nullable && part(node.b).nullable;
            behind = part(node.a).has(kHasBehind) || part(node.b).has(kHasBehind);
            break;
          case Kind::Or:
          case Kind::And:
            nullable = node.kind == Kind::And ? std::ranges::all_of(members, [&](NodeId arg) { return part(arg).nullable; })
                                              : std::ranges::any_of(members, [&](NodeId arg) { return part(arg).nullable; });
            behind = std::ranges::any_of(members, [&](NodeId arg) { return part(arg).has(kHasBehind); });
            break;
          case Kind::Not:
            nullable = !part(node.a).nullable;
            behind = part(node.a).has(kHasBehind);
            break;
          case Kind::Repeat:
            nullable = node.low == 0 || part(node.a).nullable;
            behind = part(node.a).has(kHasBehind);
            break;
          default: break;
        }
        changed |= nullable != node.nullable || behind != node.has(kHasBehind);
        node.nullable = nullable;
        node.traits = static_cast<uint16_t>(behind ? node.traits | kHasBehind : node.traits & ~kHasBehind);
      }
    }
  }

  // Push-down automata: see stacks/settle.hpp.

  // Rule `k` may be called from now on; define_rule() sets its body later.
  void declare_rule(bool nullable) { rules_.push_back({kEmpty, nullable}); }
  void define_rule(uint32_t rule, NodeId body) { rules_[rule].body = body; }
  bool has_rules() const { return !rules_.empty(); }
  size_t num_rules() const { return rules_.size(); }
  // The body of a rule; kEmpty: not defined yet.
  NodeId rule(uint32_t rule) const { return rules_[rule].body; }

  // The words of a rule.
  NodeId call(uint32_t rule) {
    return intern(
        {Kind::Call, rules_[rule].nullable, true, static_cast<uint16_t>(kHasCall | kHasLoop | token_in_rules_), 0, rule, 0, 0, 0});
  }
  // The border after the body of a called rule.
  NodeId returning() { return intern({Kind::Return, true, true, kHasMark, 0, 0, 0, 0, 0}); }
  // The empty word, at the end of what is left of rule `k`: used to print stacks.
  NodeId label(uint32_t rule) { return intern({Kind::Label, true, true, 0, 0, rule, 0, 0, 0}); }
  // Adds a node of a kind that has its own file: selections.hpp, unordered.hpp.
  NodeId node(const Node& made) { return intern(made); }
  // The content of stack `index`. An Open hole follows a nullable frame. It need not be inspected before a byte has been
  // read, because other members of the union begin with its content.
  NodeId hole(uint32_t index, bool open = false) {
    return intern({open ? Kind::Open : Kind::Hole, false, true, kHasMark | kHasLoop, 0, index, 0, 0, 0});
  }

  // A look-behind: the empty word, where the text since the beginning of the scope is a word of `past`.
  NodeId behind(NodeId past) { return intern({Kind::Behind, false, false, kHasBehind, deeper(nodes_[past].depth), past, 0, 0, 0}); }
  // A scoped expression: `inner`, followed by pairs (past expression of a Behind inside, what is left of it here).
  NodeId scoped(std::span<const uint32_t> parts, bool nullable) {
    return intern_list({Kind::Scoped, nullable, false, static_cast<uint16_t>(nodes_[parts[0]].traits & ~(kHasBehind | kEndless)),
                        deeper(nodes_[parts[0]].depth), 0, 0, 0, 0},
                       parts);
  }

 private:
  ByteSet everything_ = ByteSet::all();
  uint16_t token_in_rules_ = 0;
  std::vector<std::shared_ptr<const Machine>> machines_;
  struct Rule {
    NodeId body;
    bool nullable;
  };
  std::vector<Rule> rules_;
};

}  // namespace tokenfst
