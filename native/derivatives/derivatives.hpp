// Derivatives as linear forms: the moves of a node are disjoint byte sets, each with the derivative by its bytes.
//
// The moves of a node are computed once, by structure, and cached; a byte in no move leads to kEmpty. This is
// Antimirov's linear form, made deterministic: if moves of two parts overlap, the overlap leads to the union (or
// intersection) of their targets. A literal has one move, so the cost is proportional to the number of distinct
// continuations, and not to the size of the alphabet.
#pragma once

#include <unordered_set>
#include <utility>
#include <vector>

#include "derivatives/few_tokens.hpp"
#include "derivatives/marks.hpp"
#include "derivatives/moves.hpp"
#include "derivatives/selections.hpp"
#include "derivatives/unordered.hpp"

namespace tokenfst {

class Derivatives {
 public:
  explicit Derivatives(Arena& arena) : arena_(arena), selections_(arena), unordered_(arena) {}
  // For another arena over the same nodes, used by another thread. `other` must have been shared.
  Derivatives(Arena& arena, const Derivatives& other)
      : arena_(arena), selections_(arena, other.selections_), unordered_(arena, other.unordered_) {}

  // From now on objects for other threads may be made from this one. Called while nobody else uses it.
  void share() {
    arena_.share();
    selections_.share();
    unordered_.share();
  }

  Selections& selections() { return selections_; }
  const Selections& selections() const { return selections_; }
  Unordered& unordered() { return unordered_; }
  const Unordered& unordered() const { return unordered_; }

  // The moves of a closed expression. The span is valid until the next call.
  std::span<const Move> moves(NodeId id) {
    if (!known(id)) get(id, nullptr);
    return {pool_.data() + memo_[id].first, memo_[id].count};
  }

  // Whether the moves of an expression are cached.
  bool known(NodeId id) const { return id < memo_.size() && memo_[id].first != kNone; }

  // What is left of an expression after passing the marks ahead; marks Fresh are passed only if `holds`. Raises an Error if a mark is
  // where it has no meaning.
  NodeId passed(NodeId id, bool holds) {
    check_stack();
    const Node node = arena_[id];
    if (!node.has(kMarkAhead)) return id;
    switch (node.kind) {
      case Kind::Mark: return node.a == static_cast<uint32_t>(MarkKind::Fresh) && !holds ? kEmpty : kEpsilon;
      case Kind::Concat: {
        const NodeId head = passed(node.a, holds);
        if (!arena_[node.a].nullable) return arena_.concat(head, node.b);
        const NodeId rest = arena_[head].nullable ? passed(node.b, holds) : kEmpty;
        if (head == kEpsilon || head == kEmpty) return rest;
        NodeId some[] = {head, arena_.concat(arena_.bytes(ByteSet::all()), kUniverse)};
        return arena_.either(arena_.concat(arena_.all_of(some), node.b), rest);
      }
      case Kind::Or:
      case Kind::And: {
        std::vector<NodeId> parts(arena_.list(id).begin(), arena_.list(id).end());
        for (NodeId& part : parts) part = passed(part, holds);
        return node.kind == Kind::Or ? arena_.any_of(parts) : arena_.all_of(parts);
      }
      case Kind::Unordered: {
        const NodeId rest = passed(node.a, holds);
        return rest == kEmpty ? kEmpty : unordered_.resolved(rest, node.b, node.low, node.high);
      }
      default: throw Error(Fault::Constraint, "a mark of strings that must differ is at a place where it has no meaning");
    }
  }

  // The kinds of all marks ahead, as bits.
  uint32_t mark_kinds_ahead(NodeId id) const {
    uint32_t found = 0;
    std::vector<NodeId> stack{id};
    std::unordered_set<NodeId> seen;
    while (!stack.empty()) {
      const NodeId at = stack.back();
      stack.pop_back();
      const Node& node = arena_[at];
      if (!node.has(kMarkAhead) || !seen.insert(at).second) continue;
      if (node.kind == Kind::Mark) found |= bit(static_cast<MarkKind>(node.a));
      else if (node.kind == Kind::Or || node.kind == Kind::And) stack.insert(stack.end(), arena_.list(at).begin(), arena_.list(at).end());
      else stack.push_back(node.a);
      if (node.kind == Kind::Concat && arena_[node.a].nullable) stack.push_back(node.b);
    }
    return found;
  }

  // The expression after a token boundary. Boundaries are not bytes: if nothing depends on tokens, the result is `id`
  // itself. It must be called at each boundary; calling it twice is harmless. Tokens under complements, look-behinds and
  // unordered members are not supported; `program.hpp` refuses them.
  NodeId at_boundary(NodeId id) {
    check_stack();
    arena_.tick();
    const Node node = arena_[id];
    if (!node.has(kHasToken)) return id;
    if (auto it = boundaries_.find(id); it != boundaries_.end()) return it->second;
    size_t outer = std::exchange(outermost_cut_, kNone);
    const NodeId found = begin_tokens(id, node);
    if (outermost_cut_ >= unfolding_.size()) {
      outermost_cut_ = kNone;
      boundaries_.emplace(id, found);
    }
    outermost_cut_ = std::min(outermost_cut_, outer);
    return found;
  }

  // Whether a closed expression without calls has a word of at most `bytes` bytes.
  bool has_word_within(NodeId id, uint32_t bytes) {
    return shortest_.within(arena_, id, bytes, [&](NodeId at) { return moves(at); });
  }

  // For an expression without calls at a token boundary, if each byte is a token: whether tokens surely lead to its end,
  // as far as this follows without a search for tokens. A part with a limit of tokens must have a word of as few bytes.
  // `has_word`: whether the expression is known to have a word.
  bool surely_spelled(NodeId id, bool has_word) {
    check_stack();
    for (;;) {
      const Node node = arena_[id];
      if (!node.has(kHasToken)) return has_word || (node.certain && id != kEmpty);
      if (node.nullable && !node.has(kHasBehind | kMarkAhead)) return true;
      if (node.kind == Kind::Few) return has_word_within(node.a, node.low);
      if (node.kind == Kind::Or) return std::ranges::any_of(arena_.list(id), [&](NodeId member) { return surely_spelled(member, false); });
      if (node.kind != Kind::Concat || !surely_spelled(node.a, has_word)) return false;
      id = node.b;
    }
  }

  size_t memory() const {
    return shortest_.memory() + 32 * boundaries_.size() + pool_.capacity() * sizeof(Move) + memo_.capacity() * sizeof(Known) +
           seen_.capacity() * 8 + selections_.memory() + unordered_.memory();
  }

  // Makes `inner` a scope: wraps it with the expressions of its look-behinds, of which nothing has been read yet.
  NodeId scope(NodeId inner) {
    Pasts pasts;
    for (NodeId past : free_behinds(inner)) pasts.emplace_back(past, past);
    return wrap(inner, pasts);
  }

 private:
  using Pasts = std::vector<std::pair<NodeId, NodeId>>;  // the expression of a look-behind -> what is left of it here

  bool nullable(NodeId id, const Pasts* pasts) {
    check_stack();
    arena_.tick();
    const Node& node = arena_[id];
    if (!node.has(kHasBehind)) return node.nullable;
    switch (node.kind) {
      case Kind::Behind:
        for (auto& [past, left] : *pasts) {
          if (past == node.a) return arena_[left].nullable;
        }
        return false;
      case Kind::Concat:
        for (; arena_[id].kind == Kind::Concat; id = arena_[id].b) {
          if (!nullable(arena_[id].a, pasts)) return false;
        }
        return nullable(id, pasts);
      case Kind::Or: return std::ranges::any_of(arena_.list(id), [&](NodeId arg) { return nullable(arg, pasts); });
      case Kind::And: return std::ranges::all_of(arena_.list(id), [&](NodeId arg) { return nullable(arg, pasts); });
      case Kind::Not: return !nullable(node.a, pasts);
      case Kind::Repeat: return node.low == 0 || nullable(node.a, pasts);
      case Kind::Var: {
        if (is_unfolding(id)) return false;
        Unfold guard(unfolding_, id);
        return nullable(node.a, pasts);
      }
      default: return node.nullable;
    }
  }

  Moves get(NodeId id, const Pasts* pasts) {
    if (arena_[id].has(kHasBehind)) return compute(id, pasts);
    if (known(id)) return {pool_.begin() + memo_[id].first, pool_.begin() + memo_[id].first + memo_[id].count};
    size_t outer = std::exchange(outermost_cut_, kNone);
    Moves result = compute(id, nullptr);
    // Cached, unless the moves of a variable are missing whose unfolding began further out.
    if (outermost_cut_ >= unfolding_.size()) {
      outermost_cut_ = kNone;
      const auto take = [this](size_t bytes) { arena_.about_to_take(bytes); };
      if (memo_.size() <= id) {
        make_room(memo_, id + 1 - memo_.size(), take);
        memo_.resize(memo_.capacity());
      }
      make_room(pool_, result.size(), take);
      const uint32_t first = static_cast<uint32_t>(pool_.size());
      pool_.insert(pool_.end(), result.begin(), result.end());
      memo_[id] = {first, static_cast<uint32_t>(result.size())};
    }
    outermost_cut_ = std::min(outermost_cut_, outer);
    return result;
  }

  // Whether a variable is being unfolded, in which case it contributes nothing to itself.
  bool is_unfolding(NodeId variable) {
    size_t depth = std::ranges::find(unfolding_, variable) - unfolding_.begin();
    if (depth == unfolding_.size()) return false;
    outermost_cut_ = std::min(outermost_cut_, depth);
    return true;
  }

  Moves compute(NodeId id, const Pasts* pasts) {
    check_stack();
    arena_.tick();
    const Node node = arena_[id];
    switch (node.kind) {
      case Kind::Empty:
      case Kind::Epsilon:
      case Kind::Behind:
      case Kind::Return:
      case Kind::Hole:
      case Kind::Open:
      case Kind::Label:
      case Kind::Tag:
      case Kind::Mark:
      case Kind::Token: return {};
      case Kind::Begun:
      case Kind::Inside: {
        Moves result = get(node.a, pasts);
        for (Move& move : result) move.target = arena_.token(move.target, Kind::Inside);
        return result;
      }
      case Kind::Few:
      case Kind::FewInside: {
        Moves result = get(node.a, pasts);
        for (Move& move : result) move.target = arena_.few_tokens(move.target, node.low, Kind::FewInside);
        return result;
      }
      case Kind::Set: return {{arena_.set(id), kEpsilon}};
      case Kind::Concat: {
        Moves all;
        NodeId rest = id;
        bool overlapping = false;
        for (;; overlapping = true) {
          const Node link = arena_[rest];
          if (link.kind != Kind::Concat) {
            append(arena_, all, get(rest, pasts), kEpsilon);
            break;
          }
          append(arena_, all, get(link.a, pasts), link.b);
          if (!nullable(link.a, pasts)) break;
          rest = link.b;
        }
        return overlapping ? unite(arena_, all) : all;
      }
      case Kind::Or: {
        Moves all;
        std::vector<NodeId> args(arena_.list(id).begin(), arena_.list(id).end());
        for (NodeId arg : args) append(arena_, all, get(arg, pasts), kEpsilon);
        return unite(arena_, all);
      }
      case Kind::And: {
        std::vector<NodeId> args(arena_.list(id).begin(), arena_.list(id).end());
        Moves result = get(args[0], pasts);
        for (size_t i = 1; i < args.size() && !result.empty(); ++i) result = product(arena_, result, get(args[i], pasts));
        return merge_equal(result);
      }
      case Kind::Not: {
        Moves result;
        ByteSet rest = arena_.everything();
        for (const Move& move : get(node.a, pasts)) {
          rest = rest - move.set;
          if (NodeId target = arena_.negate(move.target); target != kEmpty) result.push_back({move.set, target});
        }
        if (!rest.empty()) result.push_back({rest, kUniverse});
        return merge_equal(result);
      }
      case Kind::Repeat: {
        // Iterations that read nothing here can replace required ones.
        uint32_t low = node.low == 0 || nullable(node.a, pasts) ? 0 : node.low - 1;
        NodeId rest = arena_.repeat(node.a, low, node.high == kUnbounded ? kUnbounded : node.high - 1);
        Moves result;
        append(arena_, result, get(node.a, pasts), rest);
        return merge_equal(result);
      }
      case Kind::Machine: {
        const Machine& machine = arena_.machine(id);
        std::vector<std::pair<uint32_t, ByteSet>> targets;
        machine.each_move(node.b, [&](uint32_t c, uint32_t next) {
          auto it = std::ranges::find(targets, next, &std::pair<uint32_t, ByteSet>::first);
          if (it == targets.end()) targets.emplace_back(next, machine.class_bytes[c]);
          else it->second = it->second | machine.class_bytes[c];
        });
        Moves result;
        for (auto& [next, set] : targets) result.push_back({set, finished(node.a, next)});
        return result;
      }
      case Kind::Words: {
        Moves result;
        selections_.lexicon(node.a).each_arc(
            node.b, [&](Lexicon::Arc arc) { result.push_back({ByteSet::single(arc.byte), selections_.words(node.a, arc.target)}); });
        return merge_equal(result);
      }
      case Kind::Pick: {
        Moves result;
        selections_.lexicon(selections_.selection(node.a).lexicon).each_arc(node.b, [&](Lexicon::Arc arc) {
          if (NodeId target = selections_.pick(node.a, arc.target, node.low + arc.skip, node.high); target != kEmpty)
            result.push_back({ByteSet::single(arc.byte), target});
        });
        NodeId after = selections_.after_pick(node);
        if (after == kEmpty) return merge_equal(result);
        append(arena_, result, get(after, nullptr), kEpsilon);
        return unite(arena_, result);
      }
      case Kind::Var: {
        if (is_unfolding(id)) return {};
        Unfold guard(unfolding_, id);
        return compute(node.a, pasts);
      }
      case Kind::Call: {
        // The body of the rule, followed by a border. Rules are not left-recursive, so this terminates.
        if (is_unfolding(id)) throw Error(Fault::Constraint, "a rule of the expression program calls itself before it reads a byte");
        Unfold guard(unfolding_, id);
        Moves result;
        append(arena_, result, get(arena_.rule(node.a), nullptr), arena_.returning());
        return result;
      }
      case Kind::Unordered: {
        Moves result;
        for (const Move& move : get(node.a, nullptr)) {
          if (NodeId target = unordered_.resolved(move.target, node.b, node.low, node.high); target != kEmpty)
            result.push_back({move.set, target});
        }
        return merge_equal(result);
      }
      case Kind::Scoped: {
        std::vector<uint32_t> parts(arena_.list(id).begin(), arena_.list(id).end());
        Pasts inner;
        for (size_t i = 1; i < parts.size(); i += 2) inner.emplace_back(parts[i], parts[i + 1]);
        struct Piece {
          ByteSet set;
          NodeId target;
          Pasts pasts;
        };
        std::vector<Piece> pieces;
        for (const Move& move : get(parts[0], &inner)) pieces.push_back({move.set, move.target, {}});
        for (auto& [past, left] : inner) {
          Moves steps = get(left, nullptr);
          std::vector<Piece> refined;
          for (Piece& piece : pieces) {
            ByteSet rest = piece.set;
            for (const Move& step : steps) {
              ByteSet both = rest & step.set;
              if (both.empty()) continue;
              refined.push_back({both, piece.target, piece.pasts});
              refined.back().pasts.emplace_back(past, step.target);
              rest = rest - both;
            }
            if (rest.empty()) continue;
            refined.push_back({rest, piece.target, piece.pasts});
            refined.back().pasts.emplace_back(past, kEmpty);
          }
          pieces = std::move(refined);
        }
        Moves result;
        for (Piece& piece : pieces) {
          if (NodeId target = wrap(piece.target, piece.pasts); target != kEmpty) result.push_back({piece.set, target});
        }
        return merge_equal(result);
      }
    }
    return {};
  }

  NodeId begin_tokens(NodeId id, const Node& node) {
    auto members = [&] {
      std::vector<NodeId> found(arena_.list(id).begin(), arena_.list(id).end());
      for (NodeId& member : found) member = at_boundary(member);
      return found;
    };
    switch (node.kind) {
      case Kind::Token: return arena_.token(node.a, Kind::Begun);
      case Kind::Inside: return arena_[node.a].nullable ? kEpsilon : kEmpty;
      case Kind::FewInside:
        if (arena_.has_rules() && !has_word_within(node.a, node.low - 1)) return kEmpty;
        return arena_.few_tokens(node.a, node.low - 1);
      case Kind::Or: return arena_.any_of(members());
      case Kind::And: return arena_.all_of(members());
      case Kind::Concat: {
        // If a part has ended here, the next one can begin.
        std::vector<NodeId> ways;
        NodeId rest = id;
        for (; arena_[rest].kind == Kind::Concat; rest = arena_[rest].b) {
          const Node link = arena_[rest];
          const NodeId begun = at_boundary(link.a);
          if (begun != kEpsilon && arena_[begun].kind != Kind::Return && arena_[begun].kind != Kind::Label)
            ways.push_back(arena_.concat(begun, link.b));
          if (!arena_[begun].nullable) return arena_.any_of(ways);
        }
        ways.push_back(at_boundary(rest));
        return arena_.any_of(ways);
      }
      case Kind::Repeat: {
        const NodeId begun = at_boundary(node.a);
        if (begun == node.a) return id;
        const NodeId more = arena_.repeat(node.a, node.low == 0 ? 0 : node.low - 1, node.high == kUnbounded ? kUnbounded : node.high - 1);
        return arena_.either(arena_.concat(begun, more), node.low == 0 ? kEpsilon : kEmpty);
      }
      case Kind::Var: {
        if (is_unfolding(id)) return kEmpty;
        Unfold guard(unfolding_, id);
        return at_boundary(node.a);
      }
      case Kind::Call: {
        if (is_unfolding(id)) throw Error(Fault::Constraint, "a rule of the expression program calls itself before it reads a byte");
        Unfold guard(unfolding_, id);
        return arena_.concat(at_boundary(arena_.rule(node.a)), arena_.returning());
      }
      default: return id;  // Begun, Few, symbols
    }
  }

  // The state of a machine. An accepting state without moves is the empty word, so that a machine ends as any other
  // expression does.
  NodeId finished(uint32_t machine, uint32_t state) {
    NodeId id = arena_.state_of(machine, state);
    if (!arena_[id].nullable) return id;
    bool moves = false;
    arena_.machine(id).each_move(state, [&](uint32_t, uint32_t) { moves = true; });
    return moves ? id : kEpsilon;
  }

  // The past expressions of the look-behinds in `id` that no inner scope closes, ascending.
  std::vector<NodeId> free_behinds(NodeId id) {
    std::vector<NodeId> found, stack{id};
    seen_.resize(std::max(seen_.size(), arena_.size()));
    ++search_;
    while (!stack.empty()) {
      NodeId top = stack.back();
      stack.pop_back();
      const Node& node = arena_[top];
      if (!node.has(kHasBehind) || std::exchange(seen_[top], search_) == search_) continue;
      arena_.tick();
      switch (node.kind) {
        case Kind::Behind: found.push_back(node.a); break;
        case Kind::Or:
        case Kind::And: stack.insert(stack.end(), arena_.list(top).begin(), arena_.list(top).end()); break;
        case Kind::Concat: stack.push_back(node.b); [[fallthrough]];
        default: stack.push_back(node.a);
      }
    }
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  NodeId wrap(NodeId inner, const Pasts& pasts) {
    std::vector<NodeId> needed = free_behinds(inner);
    if (needed.empty()) return inner;
    std::vector<uint32_t> parts{inner};
    for (auto& [past, left] : pasts) {
      if (!std::ranges::binary_search(needed, past)) continue;
      parts.push_back(past);
      parts.push_back(left);
    }
    return arena_.scoped(parts, nullable(inner, &pasts));
  }

  struct Unfold {
    Unfold(std::vector<NodeId>& stack, NodeId variable) : stack_(stack) { stack_.push_back(variable); }
    ~Unfold() { stack_.pop_back(); }
    std::vector<NodeId>& stack_;
  };

  Arena& arena_;
  Selections selections_;
  Unordered unordered_;
  ReusedVector<Move> pool_;
  struct Known {
    uint32_t first = kNone, count = 0;  // the index of the first move in the pool, and the number of moves
  };
  ReusedVector<Known> memo_;  // for each node
  std::unordered_map<NodeId, NodeId> boundaries_;
  ShortestWords shortest_;
  ReusedVector<uint64_t> seen_;                       // for each node, the number of the last search for look-behinds that visited it
  uint64_t search_ = 0;
  std::vector<NodeId> unfolding_;                    // variables, outermost first
  size_t outermost_cut_ = kNone;                     // the outermost variable that occurred in its own unfolding
};

}  // namespace tokenfst
