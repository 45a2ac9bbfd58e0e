// Keys of closed expressions that are valid in every arena: equal keys mean equal expressions. An expression must not
// contain tokens (kHasToken) or borders (kHasMark), whose operands a key does not contain.
//
// Nodes are numbered from the operands up and encoded one after the other, in words of four bytes: the kind, the
// numbers of the operands, and the other fields of the node. The tables of a machine occur only once in a key. O(nodes,
// and the machines' tables).
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "expressions/arena.hpp"

namespace tokenfst {

class CanonicalKeys {
 public:
  // The key of an expression. Empty for expressions that are not shared: recursive ones, sets of words, and large
  // machines, whose tables would be in every key.
  std::string of(const Arena& arena, NodeId root) {
    if (numbers_.size() < arena.size()) numbers_.resize(arena.size() + arena.size() / 2, 0);
    words_.clear();
    machines_.clear();
    first_ = next_;
    stack_.assign(1, {root, false});
    while (!stack_.empty()) {
      const auto [id, ready] = stack_.back();
      stack_.pop_back();
      if (numbers_[id] >= first_) continue;
      if (ready) {
        encode(arena, id);
        numbers_[id] = next_++;
        continue;
      }
      if (!is_shared(arena, id)) return {};
      stack_.emplace_back(id, true);
      each_operand(arena, id, [&](NodeId operand) {
        if (numbers_[operand] < first_) stack_.emplace_back(operand, false);
      });
    }
    return std::string(reinterpret_cast<const char*>(words_.data()), words_.size() * 4);
  }

  size_t memory() const { return numbers_.capacity() * 8 + words_.capacity() * 4; }

 private:
  static constexpr size_t kLargeMachine = 4096;

  static bool is_shared(const Arena& arena, NodeId id) {
    switch (arena[id].kind) {
      case Kind::Var:
      case Kind::Call:
      case Kind::Words:
      case Kind::Pick:
      case Kind::Few:
      case Kind::FewInside:
      case Kind::Unordered: return false;
      case Kind::Machine: return arena.machine(id).size() <= kLargeMachine;
      default: return true;
    }
  }
  template <class F>
  static void each_operand(const Arena& arena, NodeId id, F&& f) {
    const Node& node = arena[id];
    switch (node.kind) {
      case Kind::Concat: f(node.a), f(node.b); break;
      case Kind::Not:
      case Kind::Repeat:
      case Kind::Behind: f(node.a); break;
      case Kind::Or:
      case Kind::And:
      case Kind::Scoped: std::ranges::for_each(arena.list(id), f); break;
      default: break;
    }
  }

  void put(uint32_t word) { words_.push_back(word); }
  template <class T>
  void put_all(const T& values) {
    const size_t bytes = values.size() * sizeof(values[0]), at = words_.size();
    words_.resize(at + (bytes + 3) / 4, 0);
    if (bytes > 0) std::memcpy(words_.data() + at, values.data(), bytes);  // the address of an empty array may be null
  }
  void encode(const Arena& arena, NodeId id) {
    const Node& node = arena[id];
    put(static_cast<uint32_t>(node.kind));
    each_operand(arena, id, [&](NodeId operand) { put(static_cast<uint32_t>(numbers_[operand] - first_)); });
    switch (node.kind) {
      case Kind::Or:
      case Kind::And:
      case Kind::Scoped: put(kNone); break;  // the end of the list
      case Kind::Repeat: put(node.low), put(node.high); break;
      case Kind::Mark: put(node.a); break;
      case Kind::Set: put_all(arena.set(id).words); break;
      case Kind::Machine: put(node.b), encode(arena.machine(id)); break;
      default: break;
    }
  }
  void encode(const Machine& machine) {
    const auto known = std::ranges::find(machines_, &machine);
    put(static_cast<uint32_t>(known - machines_.begin()));
    if (known != machines_.end()) return;
    machines_.push_back(&machine);
    put(machine.num_classes);
    put_all(machine.classes);
    put(static_cast<uint32_t>(machine.accepting.size()));
    put_all(machine.accepting);
    for (auto* words : {&machine.table, &machine.offsets, &machine.edges}) {
      put(static_cast<uint32_t>(words->size()));
      put_all(*words);
    }
  }

  ReusedVector<uint64_t> numbers_;  // by node: numbers from first_ on belong to this key, smaller ones to earlier keys
  uint64_t first_ = 1, next_ = 1;
  ReusedVector<uint32_t> words_;
  std::vector<std::pair<NodeId, bool>> stack_;
  std::vector<const Machine*> machines_;  // whose tables the key contains already
};

}  // namespace tokenfst
