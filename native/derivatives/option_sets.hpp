// The options of members in any order (unordered.hpp) that are left, with a number for each set of them.
//
// A set is a hash-consed tree of bits: equal sets have equal numbers, and removing an option costs O(log n).
//
// Threads. All arenas over the same nodes share one such object. Sets are added under the spin lock of the nodes, and
// readers take no lock: see node_store.hpp.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "expressions/node_store.hpp"

namespace tokenfst {

class OptionSets {
 public:
  // The members of one program instruction. Options are numbered, the required ones first, followed by the repeatable
  // member `other`. `counts`: whether `other` counts towards the least number of members.
  struct Members {
    uint32_t options = 0, required = 0;
    NodeId separator = kEpsilon;
    std::vector<NodeId> bodies;  // of the options and, if there is one, of `other`
    NodeId all = kEmpty;         // the union of the options with their tags
    bool counts = true;
    bool certain = true;  // whether all parts surely have words
    uint16_t traits = 0;
    int depth = 0;  // of the trees of bits: there is room for 64 << depth options

    bool repeats() const { return bodies.size() > options; }
  };
  // The options that may still be used.
  struct Left {
    uint32_t members, set;
    uint32_t options, required;  // how many options are left, and how many of these are required
  };

  // Adds members and returns their number. Only while a program is read.
  uint32_t add(Members made) {
    members_.push_back(std::make_unique<const Members>(std::move(made)));
    return static_cast<uint32_t>(members_.size() - 1);
  }
  // From now on several threads may read while one adds.
  void share() { trees_.share(), left_.share(); }

  // Members by number, the members that were added last, and the options left by number.
  const Members& members(uint32_t number) const { return *members_[number]; }
  const Members& latest() const { return *members_.back(); }
  const Left& left(uint32_t number) const { return left_.data()[number]; }
  // Whether option k is left.
  bool has(const Left& left, uint32_t k) const {
    uint32_t set = left.set;
    for (int depth = members(left.members).depth; depth > 0; --depth) set = k >> (5 + depth) & 1 ? tree(set).b : tree(set).a;
    return (k & 32 ? tree(set).a : tree(set).b) >> (k & 31) & 1;
  }
  // Calls f with the words of a set's bits.
  template <class F>
  void each_leaf(const Left& left, F& f) const {
    each_leaf(left.set, members(left.members).depth, f);
  }
  size_t memory() const { return trees_.size() * (sizeof(Tree) + 64) + left_.size() * (sizeof(Left) + 64); }

  // The following two may add a set. If several threads use this object, the caller needs exclusive use of it.

  // All options of some members.
  uint32_t all(uint32_t number) {
    const Members& of = members(number);
    return add_left({number, full(of.options, of.depth), of.options, of.required});
  }
  // What is left without the option k.
  uint32_t without(uint32_t number, uint32_t k) {
    const Left old = left(number);
    const Members& of = members(old.members);
    return add_left({old.members, without(of.depth, old.set, k), old.options - 1, old.required - (k < of.required)});
  }

 private:
  // A leaf holds 64 bits; any other node has two halves.
  struct Tree {
    uint32_t a, b;
  };

  const Tree& tree(uint32_t number) const { return trees_.data()[number]; }
  uint32_t add_tree(int depth, uint32_t a, uint32_t b) {
    auto [known, fresh] = tree_index_[depth].try_emplace(uint64_t{a} << 32 | b, static_cast<uint32_t>(trees_.size()));
    if (fresh) trees_.push_back({a, b});
    return known->second;
  }
  uint32_t add_left(const Left& left) {
    auto [known, fresh] = left_index_.try_emplace(uint64_t{left.members} << 32 | left.set, static_cast<uint32_t>(left_.size()));
    if (fresh) left_.push_back(left);
    return known->second;
  }
  // The set of the first `count` numbers.
  uint32_t full(uint64_t count, int depth) {
    if (depth == 0) {
      const uint64_t bits = count >= 64 ? UINT64_MAX : (uint64_t{1} << count) - 1;
      return add_tree(0, static_cast<uint32_t>(bits >> 32), static_cast<uint32_t>(bits));
    }
    const uint64_t half = uint64_t{64} << (depth - 1);
    const uint32_t a = full(std::min(count, half), depth - 1), b = full(count - std::min(count, half), depth - 1);
    return add_tree(depth, a, b);
  }
  uint32_t without(int depth, uint32_t set, uint32_t k) {
    const Tree old = tree(set);
    if (depth > 0) {
      return k >> (5 + depth) & 1 ? add_tree(depth, old.a, without(depth - 1, old.b, k))
                                  : add_tree(depth, without(depth - 1, old.a, k), old.b);
    }
    const uint32_t bit = 1u << (k & 31);
    return k & 32 ? add_tree(0, old.a & ~bit, old.b) : add_tree(0, old.a, old.b & ~bit);
  }
  template <class F>
  void each_leaf(uint32_t set, int depth, F& f) const {
    if (depth == 0) return f(uint64_t{tree(set).a} << 32 | tree(set).b);
    each_leaf(tree(set).a, depth - 1, f);
    each_leaf(tree(set).b, depth - 1, f);
  }

  std::vector<std::unique_ptr<const Members>> members_;
  GrowingArray<Left> left_;
  std::unordered_map<uint64_t, uint32_t> left_index_;
  GrowingArray<Tree> trees_;
  std::map<int, std::unordered_map<uint64_t, uint32_t>> tree_index_;  // for each depth
};

}  // namespace tokenfst
