// Digests of expressions that are the same in every process that read the same program.
//
// The numbers of nodes follow the order in which a walk reached them, and the members of a union are sorted by number,
// so neither is stable across processes. A digest is computed from kinds and operands, from the leaves up, with members
// in any order; machines, sets of words, rules, variables, selections and unordered members are identified by their
// numbers in the program. 128 bits: the probability that two of a billion expressions share a digest is 10^-20, and
// only the author of a constraint could construct such a pair. Each node is computed once: O(new nodes).
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <vector>

#include "derivatives/selections.hpp"
#include "derivatives/unordered.hpp"

namespace tokenfst {

// A digest; default-constructed: that of nothing. add() appends a value to what is digested.
struct Digest {
  uint64_t a = 0x6a09e667f3bcc908, b = 0xbb67ae8584caa73b;

  auto operator<=>(const Digest&) const = default;
  void add(uint64_t value) {
    a = mix(a, value);
    b = (b ^ std::rotl(value, 32)) * 0xff51afd7ed558ccdull;
    b ^= b >> 32;
  }
  void add(const Digest& other) { add(other.a), add(other.b); }
  // The digest as four words, whose order is the order of digests.
  std::array<uint32_t, 4> words() const {
    return {static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(a), static_cast<uint32_t>(b >> 32), static_cast<uint32_t>(b)};
  }
  // The digest with these four words.
  static Digest of_words(const uint32_t* words) { return {uint64_t{words[0]} << 32 | words[1], uint64_t{words[2]} << 32 | words[3]}; }
};

// The digests of the expressions of one arena. One thread at a time.
class Digests {
 public:
  Digests(const Arena& arena, const Selections& selections, const Unordered& unordered)
      : arena_(arena), selections_(selections), unordered_(unordered) {}

  // The digest of an expression.
  Digest of(NodeId root) {
    if (known_.size() < arena_.size()) {
      known_.resize(arena_.size() + arena_.size() / 2);
      is_known_.resize(known_.size());
    }
    if (is_known_[root]) return known_[root];
    pending_.assign(1, {root, false});
    while (!pending_.empty()) {
      const auto [id, ready] = pending_.back();
      pending_.pop_back();
      if (is_known_[id]) continue;
      if (ready) {
        known_[id] = compute(id);
        is_known_[id] = true;
        continue;
      }
      pending_.emplace_back(id, true);
      each_operand(id, [&](NodeId operand) {
        if (!is_known_[operand]) pending_.emplace_back(operand, false);
      });
    }
    return known_[root];
  }
  size_t memory() const { return known_.capacity() * sizeof(Digest) + is_known_.capacity() / 8; }

 private:
  template <class F>
  void each_operand(NodeId id, F&& f) const {
    const Node& node = arena_[id];
    switch (node.kind) {
      case Kind::Concat: f(node.a), f(node.b); break;
      case Kind::Not:
      case Kind::Repeat:
      case Kind::Behind:
      case Kind::Token:
      case Kind::Begun:
      case Kind::Inside:
      case Kind::Few:
      case Kind::FewInside:
      case Kind::Unordered: f(node.a); break;
      case Kind::Or:
      case Kind::And:
      case Kind::Scoped: std::ranges::for_each(arena_.list(id), f); break;
      default: break;
    }
  }

  // The digest of a node whose operands are known. Lists follow their lengths, so no encoding is a prefix of another.
  Digest compute(NodeId id) const {
    const Node& node = arena_[id];
    Digest out;
    out.add(static_cast<uint64_t>(node.kind));
    switch (node.kind) {
      case Kind::Concat: out.add(known_[node.a]), out.add(known_[node.b]); break;
      case Kind::Not:
      case Kind::Behind:
      case Kind::Token:
      case Kind::Begun:
      case Kind::Inside: out.add(known_[node.a]); break;
      case Kind::Few:
      case Kind::FewInside: out.add(known_[node.a]), out.add(node.low); break;
      case Kind::Repeat: out.add(known_[node.a]), out.add(uint64_t{node.low} << 32 | node.high); break;
      case Kind::Or:
      case Kind::And: {
        std::vector<Digest> members;
        for (NodeId member : arena_.list(id)) members.push_back(known_[member]);
        add_unordered(members, out);
        break;
      }
      case Kind::Scoped: {  // its body, then pairs
        const auto parts = arena_.list(id);
        out.add(known_[parts[0]]);
        std::vector<Digest> pairs;
        for (size_t k = 1; k + 1 < parts.size(); k += 2) {
          pairs.push_back(known_[parts[k]]);
          pairs.back().add(known_[parts[k + 1]]);
        }
        add_unordered(pairs, out);
        break;
      }
      case Kind::Set:
        for (uint64_t word : arena_.set(id).words) out.add(word);
        break;
      case Kind::Pick:
        out.add(uint64_t{node.a} << 32 | node.b), out.add(uint64_t{node.low} << 32 | selections_.used(node.high).size());
        for (uint32_t word : selections_.used(node.high)) out.add(word);
        break;
      case Kind::Unordered:
        out.add(known_[node.a]), out.add(uint64_t{node.low} << 32 | node.high);
        unordered_.each_number_left(node.b, [&](uint64_t number) { out.add(number); });
        break;
      case Kind::Var: out.add(node.b); break;  // the program defines its body
      default: out.add(uint64_t{node.a} << 32 | node.b);
    }
    return out;
  }
  static void add_unordered(std::vector<Digest>& members, Digest& out) {
    std::ranges::sort(members);
    out.add(members.size());
    for (const Digest& member : members) out.add(member);
  }

  const Arena& arena_;
  const Selections& selections_;
  const Unordered& unordered_;
  std::vector<Digest> known_;  // for each node, if known
  std::vector<bool> is_known_;
  std::vector<std::pair<NodeId, bool>> pending_;
};

}  // namespace tokenfst
