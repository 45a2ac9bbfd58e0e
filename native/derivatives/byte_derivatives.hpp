// The derivative of an expression by one byte, without those by other bytes: only the parts that a text reaches are
// derived.
//
// Brzozowski's recursion ("Derivatives of regular expressions", JACM 1964), together with the set of all bytes that
// have the same derivative: the bytes that nothing on the way distinguishes from this one. The result is the same
// expression as the target of the move that contains the byte (derivatives.hpp). Moves are used if they are known, and
// computed for parts that occur at many places: loops (the inside of a string precedes hundreds of rests), machines,
// sets of words, and wide unions, in which each byte would otherwise take its own way through all members. Members in
// any order are derived through the union of their options, which all sets of used options share; only the result
// depends on the set.
#pragma once

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>
#include <vector>

#include "derivatives/derivatives.hpp"

namespace tokenfst {

class ByteDerivatives {
 public:
  // A byte or a symbol, as its bit in a ByteSet.
  struct Letter {
    uint32_t word;
    uint64_t bit;
    static Letter byte(uint8_t byte) { return {uint32_t{byte} >> 6, 1ull << (byte & 63)}; }
    static Letter symbol(uint32_t symbol) { return {4, 1ull << symbol}; }
    bool in(const ByteSet& set) const { return (set.words[word] & bit) != 0; }
    uint32_t code() const { return word << 6 | static_cast<uint32_t>(std::countr_zero(bit)); }
  };
  // A derivative.
  struct Left {
    NodeId node;
    ByteSet same;  // all letters with this derivative
  };

  ByteDerivatives(Arena& arena, Derivatives& derivatives) : arena_(arena), derivatives_(derivatives) {}

  // The derivative of a closed expression by a letter. Expressions are graphs: each part is visited once.
  Left after(NodeId id, Letter letter) {
    room_ = &StackSpace::of_thread();
    ++call_, found_ = 0;
    lefts_.clear();
    return left_of(id, letter);
  }

  size_t memory() const { return known_.capacity() * sizeof(Known) + read_.size() * (sizeof(ByteSet) + 24) + sure_.size() * 24; }

  Unordered& unordered() { return derivatives_.unordered(); }

  // The letters with a non-empty derivative; a superset, if only computing derivatives can decide.
  ByteSet readable(NodeId id) {
    room_ = &StackSpace::of_thread();
    return read_by(id);
  }

  // Whether the derivative by each letter of readable() surely has a word, as far as this follows without computing derivatives;
  // false if it does not follow.
  bool surely_reads(NodeId id) {
    room_ = &StackSpace::of_thread();
    return has_sure_letters(id);
  }

 private:
  static constexpr uint32_t kWide = 16;  // members of a union from which it counts as wide
  static constexpr size_t kLeastKept = 16, kKept = 1024, kMostKept = 1 << 20;  // powers of two

  Left left_of(NodeId id, Letter letter) {
    const Node node = arena_[id];
    if (node.kind == Kind::Set)
      return letter.in(arena_.set(id)) ? Left{kEpsilon, arena_.set(id)} : Left{kEmpty, arena_.everything() - arena_.set(id)};
    if (id == kEpsilon) return {kEmpty, arena_.everything()};
    if (by_moves(id, node)) return after_move(id, letter);
    if (known_.empty()) known_.resize(kLeastKept);
    const Known& known = place_of(id, letter.code());
    if (known.is(id, letter.code())) return known.left;
    room_->check();
    arena_.tick();
    const uint64_t cut = cut_;
    const Left left = find(id, node, letter);
    if (cut == cut_) keep({id, letter.code(), left, call_});
    return left;
  }
  Left find(NodeId id, const Node& node, Letter letter) {
    switch (node.kind) {
      case Kind::Concat: {
        if (!arena_[node.a].nullable) {
          const Left left = left_of(node.a, letter);
          return {arena_.concat(left.node, node.b), left.same};
        }
        const size_t base = lefts_.size();
        ByteSet same = arena_.everything();
        for (bool more = true; more;) {
          const Node link = arena_[id];
          const bool last = link.kind != Kind::Concat;
          const Left left = left_of(last ? id : link.a, letter);
          same = same & left.same;
          if (left.node != kEmpty) lefts_.push_back(last ? left.node : arena_.concat(left.node, link.b));
          more = !last && arena_[link.a].nullable;
          id = link.b;
        }
        return {take_union(base), same};
      }
      case Kind::Or: {
        const size_t base = lefts_.size();
        ByteSet same = arena_.everything();
        for (uint32_t k = 0; k < node.b; ++k) {
          const Left left = left_of(arena_.list(id)[k], letter);
          same = same & left.same;
          if (left.node != kEmpty) lefts_.push_back(left.node);
        }
        return {take_union(base), same};
      }
      case Kind::And: {
        Left all = left_of(arena_.list(id)[0], letter);
        for (uint32_t k = 1; k < node.b && all.node != kEmpty; ++k) {
          const Left left = left_of(arena_.list(id)[k], letter);
          if (left.node == kEmpty) return left;
          const NodeId parts[] = {all.node, left.node};
          all = {arena_.all_of(parts), all.same & left.same};
        }
        return all;
      }
      case Kind::Call: {
        if (is_called(id)) return ++cut_, after_move(id, letter);
        const Calling guard(calls_, id);
        const Left left = left_of(arena_.rule(node.a), letter);
        return {arena_.concat(left.node, arena_.returning()), left.same};
      }
      case Kind::Unordered: {
        const Left left = left_of(node.a, letter);
        if (left.node == kEmpty) return left;
        return {unordered().resolved(left.node, node.b, node.low, node.high), left.same};
      }
      default: {  // Not
        const Left left = left_of(node.a, letter);
        return {arena_.negate(left.node), left.same};
      }
    }
  }

  ByteSet read_by(NodeId id) {
    const Node node = arena_[id];
    if (node.kind == Kind::Set) return arena_.set(id);
    if (by_moves(id, node)) {
      ByteSet found;
      for (const Move& move : derivatives_.moves(id)) found = found | move.set;
      return found;
    }
    room_->check();
    arena_.tick();
    // Cached where several parts can read the letter, since many ways may lead to one part.
    const bool several = node.kind != Kind::Call && (node.kind != Kind::Concat || arena_[node.a].nullable);
    if (!several) return read_by_parts(id, node);
    if (auto known = read_.find(id); known != read_.end()) return known->second;
    const ByteSet found = read_by_parts(id, node);
    read_.emplace(id, found);
    return found;
  }
  ByteSet read_by_parts(NodeId id, const Node& node) {
    ByteSet found;
    switch (node.kind) {
      case Kind::Concat:
        for (; arena_[id].kind == Kind::Concat; id = arena_[id].b) {
          found = found | read_by(arena_[id].a);
          if (!arena_[arena_[id].a].nullable) return found;
        }
        return found | read_by(id);
      case Kind::Or:
        for (uint32_t k = 0; k < node.b; ++k) found = found | read_by(arena_.list(id)[k]);
        return found;
      case Kind::And:
        found = read_by(arena_.list(id)[0]);
        for (uint32_t k = 1; k < node.b; ++k) found = found & read_by(arena_.list(id)[k]);
        return found;
      case Kind::Call:
        if (!is_called(id)) {
          const Calling guard(calls_, id);
          return read_by(arena_.rule(node.a));
        }
        return arena_.everything();
      case Kind::Unordered:
        if (arena_[node.a].kind != Kind::Or) return read_by(node.a);
        for (uint32_t k = 0; k < arena_[node.a].b; ++k) {
          const NodeId option = arena_.list(node.a)[k];
          if (unordered().leads_on(option, node).first) found = found | read_by(option);
        }
        return found;
      default: return arena_.everything();  // Not
    }
  }

  bool has_sure_letters(NodeId id) {
    const Node node = arena_[id];
    if (node.kind == Kind::Set || id == kEpsilon || id == kEmpty) return true;
    if (node.has(kHasBehind | kHasVar | kHasToken)) return false;
    // This must not depend on whether moves are known by now: a row that was created before they were known may have more letters
    // (readable() is a superset for intersections and complements).
    if (node.kind == Kind::And || node.kind == Kind::Not) return false;
    if (always_by_moves(node))
      return std::ranges::all_of(derivatives_.moves(id), [&](const Move& move) { return is_certain(move.target); });
    room_->check();
    arena_.tick();
    // Cached as in read_by(). Where a rule calls itself the answer is false, which is always correct.
    if (auto known = sure_.find(id); known != sure_.end()) return known->second;
    const bool found = has_sure_letters_in_parts(id, node);
    sure_.emplace(id, found);
    return found;
  }
  bool has_sure_letters_in_parts(NodeId id, const Node& node) {
    switch (node.kind) {
      case Kind::Concat:
        for (; arena_[id].kind == Kind::Concat; id = arena_[id].b) {
          if (!is_certain(arena_[id].b) || !has_sure_letters(arena_[id].a)) return false;
          if (!arena_[arena_[id].a].nullable) return true;
        }
        return has_sure_letters(id);
      case Kind::Or:
        for (uint32_t k = 0; k < node.b; ++k) {
          if (!has_sure_letters(arena_.list(id)[k])) return false;
        }
        return true;
      case Kind::Call: {
        if (is_called(id)) return false;
        const Calling guard(calls_, id);
        return has_sure_letters(arena_.rule(node.a));
      }
      case Kind::Unordered:
        if (arena_[node.a].kind != Kind::Or) return has_sure_letters(node.a, node);
        for (uint32_t k = 0; k < arena_[node.a].b; ++k) {
          if (!has_sure_letters(arena_.list(node.a)[k], node)) return false;
        }
        return true;
      default: return false;
    }
  }
  bool is_certain(NodeId id) const { return id != kEmpty && arena_[id].certain; }
  // The same for an option of members in any order, or for a place within it: true only if its first part alone decides it.
  bool has_sure_letters(NodeId option, const Node& members) {
    const auto [found, certain] = unordered().leads_on(option, members);
    if (!found) return true;
    const Node node = arena_[option];
    return certain && node.kind == Kind::Concat && !arena_[node.a].nullable && has_sure_letters(node.a);
  }

  bool by_moves(NodeId id, const Node& node) const {
    return derivatives_.known(id) || node.has(kHasBehind | kHasVar) || always_by_moves(node);
  }
  // Whether the moves of such a node are always computed.
  static bool always_by_moves(const Node& node) {
    switch (node.kind) {
      case Kind::Concat:
      case Kind::And:
      case Kind::Call:
      case Kind::Unordered:
      case Kind::Not: return false;
      case Kind::Or: return node.b > kWide;
      default: return true;
    }
  }
  struct Calling {
    Calling(std::vector<NodeId>& calls, NodeId call) : calls_(calls) { calls_.push_back(call); }
    ~Calling() { calls_.pop_back(); }
    std::vector<NodeId>& calls_;
  };
  // Whether the same call is being expanded: its rule then calls itself before it reads a byte, and its moves cannot be
  // computed.
  bool is_called(NodeId call) const { return std::ranges::find(calls_, call) != calls_.end(); }
  Left after_move(NodeId id, Letter letter) {
    ByteSet others = arena_.everything();
    for (const Move& move : derivatives_.moves(id)) {
      if (letter.in(move.set)) return {move.target, move.set};
      others = others - move.set;
    }
    return {kEmpty, others};
  }
  // The union of the results pushed on `lefts_` from index `base` on.
  NodeId take_union(size_t base) {
    const NodeId made = lefts_.size() == base + 1 ? lefts_[base] : arena_.any_of(std::span(lefts_).subspan(base));
    lefts_.resize(base);
    return made;
  }

  Arena& arena_;
  Derivatives& derivatives_;
  const StackSpace* room_ = nullptr;  // of the thread of the current call
  std::vector<NodeId> lefts_;
  std::vector<NodeId> calls_;  // outermost first
  uint64_t cut_ = 0;  // how often a call occurred within itself; results that depend on this are not cached
  // Recent results: the parts of one expression are parts of many others. The table grows with the number of results of
  // one call, because parts that many ways lead to would otherwise be computed again and again. For an automaton of few
  // states it stays small.
  struct Known {
    NodeId id = kNone;
    uint32_t letter;
    Left left;
    uint64_t call = 0;
    bool is(NodeId other, uint32_t code) const { return id == other && letter == code; }
  };
  // The entry of a result: one of two places, preferably one that this call has not used.
  Known& place_of(NodeId id, uint32_t letter) {
    Known* const pair = &known_[mix(0, uint64_t{id} << 9 | letter) & (known_.size() - 2)];
    return pair[0].is(id, letter) || (pair[0].call != call_ && !pair[1].is(id, letter)) ? pair[0] : pair[1];
  }
  void keep(const Known& found) {
    if (++found_ > known_.size() / 4 ? known_.size() < kMostKept : known_.size() < kKept && ++kept_ > known_.size() / 4) {
      ReusedVector<Known> before(known_.size() * 2);
      std::swap(before, known_);
      for (const Known& each : before) {
        if (each.id != kNone) place_of(each.id, each.letter) = each;
      }
    }
    place_of(found.id, found.letter) = found;
  }
  ReusedVector<Known> known_;
  uint64_t call_ = 0, found_ = 0;  // the number of calls of after(), and of results of the last one
  uint64_t kept_ = 0;              // results of all calls, counted while the table is small
  std::unordered_map<NodeId, ByteSet> read_;  // the results of read_by() for expressions with several parts
  std::unordered_map<NodeId, bool> sure_;     // the results of has_sure_letters()
};

}  // namespace tokenfst
