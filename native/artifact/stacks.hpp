// The part of an artifact that only push-down automata have: the effects of steps on the stack, and the masks by the
// stack symbols that they depend on.
//
// Only deterministic automata are expanded: they have one stack, and each node of it has one edge. All states that
// bytes can reach are found by levels (walks/levels.hpp). Then each mask is computed with as much of the stack as it
// needs: the callers of a level are pushed one by one until no token inspects anything further down.
// docs/serving/format.md describes the arrays.
//
// Invariant: an artifact has the chain of every two frames that a walk may put on top of each other. An effect is
// written as a sequence of single pushes, as they were when the levels were explored: each push of each step was made
// there on everything that can lie below it, so its chain is known. If a chain would be too long, a stack shows two
// frames for a while, which an artifact cannot express. Such effects are marked as apart (StepLog), and the outcome of
// the whole step is written instead (Levels::outcomes). If that outcome depends on more than the top of the stack
// (Levels::deeper), the grammar is refused.
#pragma once

#include "walks/levels.hpp"
#include "token_automata/token_automaton.hpp"

namespace tokenfst {

struct StackArrays {
  std::vector<uint32_t> states;   // states x 4: number of stacks, effect, whether it must inspect the stack, distance without the stack
  std::vector<uint32_t> effects;  // effects x 3: state, whether the old stack stays below, end of its pushes
  std::vector<uint32_t> pushes;   // frames, lowest first
  std::vector<uint32_t> reveals;  // reveals x 3: state, answer, effect
  std::vector<uint32_t> frames;   // frames x 2: whether the frame may be left out, distance
  std::vector<uint32_t> chains;   // chains x 3: upper frame, lower frame, the frame of both
  std::vector<uint32_t> asks;     // children x 3: inner node, answer, value
};

class StackExpansion {
 public:
  explicit StackExpansion(TokenAutomaton& automaton)
      : automaton_(automaton), bytes_(automaton.bytes()), levels_(bytes_), deadline_(bytes_.budget().seconds) {
    if (auto text = levels_.conflict()) {
      throw Error(Fault::Nondeterministic, "after " + std::to_string(text->size()) + " bytes one stack is not enough");
    }
    number(kDead);
    number(bytes_.start());
    number(bytes_.inner_start());
    for (const auto& place : levels_.places()) number(place.state);
    resting_ = order_.size();
    make_masks();
    find_effects();
  }

  // All states: DEAD first, then the states in which steps rest.
  const std::vector<State>& order() const { return order_; }
  bool rests(size_t index) const { return index < resting_; }
  State number_of(State state) const { return numbers_.at(state); }

  // Returns the arrays, with masks numbered by `mask_number`.
  template <class MaskNumber>
  StackArrays arrays(MaskNumber&& mask_number) {
    StackArrays out;
    for (size_t k = 0; k < order_.size(); ++k) {
      State q = order_[k];
      const bool looks = std::ranges::find(looks_, q) != looks_.end();
      const uint32_t stacks = looks ? 1 : bytes_.stacks().count(q);
      uint32_t closed = kUnreachable, effect = effect_of_[k];
      if (stacks > 0 && rests(k)) {
        const auto tops = automaton_.top_distances(q);
        const auto& members = bytes_.stacks().shape(q).members;
        for (size_t m = 0; m < members.size(); ++m) {
          if (members[m].hole == kNone) closed = tops[m];
        }
      }
      out.states.insert(out.states.end(), {stacks, effect, looks || (stacks > 0 && bytes_.stacks().to_reveal(q) != kNone), closed});
    }
    for (const Chain& each : effects_) {
      out.pushes.insert(out.pushes.end(), each.frames.begin(), each.frames.end());
      out.effects.insert(out.effects.end(), {number_of(each.state), each.keeps, static_cast<uint32_t>(out.pushes.size())});
    }
    append(out.reveals, reveals_);
    for (uint32_t frame = 0; frame < bytes_.stacks().num_frames(); ++frame) {
      out.frames.insert(out.frames.end(), {bytes_.stacks().frame(frame).nullable, automaton_.distance_of_frame(frame)});
    }
    std::vector<std::array<uint32_t, 3>> rows;
    bytes_.stacks().pushdown().for_each_chain(
        [&](uint32_t upper, uint32_t lower, uint32_t frame) { rows.push_back({upper, lower, frame}); });
    append(out.chains, rows);
    rows.clear();
    automaton_.mask_tree().for_each([&](uint32_t ask, uint32_t answer, uint32_t value) {
      rows.push_back({ask, answer, value & DecisionTree::kInner ? value : mask_number(value)});
    });
    append(out.asks, rows);
    return out;
  }

 private:
  using Chain = Levels::Chain;

  static void append(std::vector<uint32_t>& out, std::vector<std::array<uint32_t, 3>> rows) {
    std::ranges::sort(rows);
    for (const auto& row : rows) out.insert(out.end(), row.begin(), row.end());
  }

  State number(State state) {
    auto [it, fresh] = numbers_.try_emplace(state, static_cast<State>(order_.size()));
    if (fresh) order_.push_back(state);
    return it->second;
  }

  // The content of a register: frames, lowest first, on the stack of another register or on nothing.
  struct RegisterContent {
    uint32_t base;
    std::vector<uint32_t> frames;
  };
  // Replaces frames that may be left out by their chains with the frames below them, as steps do, wherever the lower
  // frame is known in advance.
  RegisterContent chained(const RegisterContent& pile) {
    RegisterContent out{pile.base, {}};
    for (uint32_t frame : pile.frames) {
      const bool known = !out.frames.empty() && (out.base == kNothing || !bytes_.stacks().frame(out.frames.back()).nullable);
      const uint32_t both = known && bytes_.stacks().frame(frame).nullable ? bytes_.stacks().chain(frame, out.frames.back()) : kNone;
      if (both == kNone) out.frames.push_back(frame);
      else out.frames.back() = both;
    }
    return out;
  }
  // The union of two contents that differ only in the top frame. None if the result depends on the stack below.
  std::optional<RegisterContent> united(const RegisterContent& a, const RegisterContent& b) {
    RegisterContent out = chained(a), other = chained(b);
    const bool like = out.base == other.base && out.frames.size() == other.frames.size() && !out.frames.empty() &&
                      std::equal(out.frames.begin(), out.frames.end() - 1, other.frames.begin());
    if (!like) return std::nullopt;
    const auto [less, more] = std::minmax(out.frames.back(), other.frames.back());
    if (less == more) return out;
    const uint32_t both = out.frames.back() = bytes_.stacks().unite(less, more);
    const bool on_nothing = out.base == kNothing && out.frames.size() == 1;
    if (bytes_.stacks().frame(both).nullable && !on_nothing) return std::nullopt;  // its chains are not known
    return out;
  }

  // Returns the number of an effect; none if the effect depends on the stack below. `reg` is the register that stands
  // for the old stack: 0, or 1 if its top, which was `top`, has been inspected.
  std::optional<uint32_t> keep(const Effect& effect, uint32_t reg, uint32_t top = kNone) {
    if (effect.holes.size() > 1 || levels_.log().is_apart(effect)) return std::nullopt;
    std::vector<RegisterContent> made;
    auto value = [&](uint32_t from) -> RegisterContent {
      if (from != kNothing && from >= kFirstOp) return made[from - kFirstOp];
      if (from == 0 && reg == 1) return {top & 1 ? 1 : kNothing, {top >> 1}};
      return {from, {}};
    };
    for (const StackOp& op : effect.ops) {
      if (op.joined.empty()) {
        made.push_back(value(op.below));
        made.back().frames.push_back(op.frame);
        continue;
      }
      std::optional<RegisterContent> all;
      for (uint32_t from : op.joined) {
        RegisterContent one = value(from);
        if (one.base == kNothing && one.frames.empty()) continue;
        all = all ? united(*all, one) : std::move(one);
        if (!all) return std::nullopt;
      }
      made.push_back(all.value_or(RegisterContent{kNothing, {}}));
    }
    Chain chain{effect.state, false, {}};
    if (!effect.holes.empty()) {
      RegisterContent pile = value(effect.holes[0]);
      chain.keeps = pile.base == reg;
      chain.frames = std::move(pile.frames);
    }
    return keep(chain);
  }
  uint32_t keep(const Chain& chain) {
    number(chain.state);
    auto [it, fresh] = effect_index_.try_emplace(chain, static_cast<uint32_t>(effects_.size() + 1));
    if (fresh) effects_.push_back(chain);
    return it->second;
  }
  // The same; if the effect depends on the stack below, it takes the outcome that was found for the frame on top.
  std::optional<uint32_t> keep_as_found(State state, const Effect& effect, uint32_t reg, uint32_t top = kNone) {
    if (std::optional<uint32_t> told = keep(effect, reg, top)) return told;
    const auto found = levels_.outcomes().find({state, top});
    if (found == levels_.outcomes().end()) return std::nullopt;
    return keep(found->second);
  }
  [[noreturn]] static void refuse() {
    throw Error(Fault::Nondeterministic,
                "one stack is enough for every text, but some step by itself depends on more than the top of the stack");
  }
  // Returns the effect of a step to `raw`. If the effect depends on the stack below, the step rests in `raw` itself,
  // which then inspects the stack, and there is one answer for each top that was found there.
  uint32_t effect_of(State raw, const Effect& effect) {
    if (std::optional<uint32_t> kept = keep_as_found(raw, effect, 0)) return *kept;
    if (answers_of(raw).empty()) refuse();
    looks_.push_back(raw);
    return keep(Chain{raw, true, {}});
  }
  std::vector<uint32_t> answers_of(State raw) const {
    std::vector<uint32_t> found;
    for (auto at = levels_.outcomes().lower_bound({raw, 0}); at != levels_.outcomes().end() && at->first.first == raw; ++at)
      found.push_back(at->first.second);
    for (auto at = levels_.deeper().lower_bound({raw, 0}); at != levels_.deeper().end() && at->first == raw; ++at)
      found.push_back(at->second);
    return found;
  }

  // Finds the effects of all targets of steps, and of all states that must inspect the stack.
  void find_effects() {
    for (size_t k = 1; k < resting_; ++k) {
      const State* row = bytes_.row(order_[k]);
      for (uint32_t c = 0; c < bytes_.num_classes(); ++c) {
        number(row[c]);
        for (State raw : after_marks(bytes_, row[c])) number(raw);
      }
    }
    for (size_t k = 0; k < order_.size(); ++k) {
      State q = order_[k];
      const Effect* effect = q == kDead ? nullptr : bytes_.stacks().effect(q);
      effect_of_.push_back(effect ? effect_of(q, *effect) : 0);
    }
    for (bool grown = true; grown;) {
      size_t before = order_.size();
      std::vector<std::array<uint32_t, 3>> rows;
      auto reveal = [&](State state, uint32_t answer, const Effect& effect) {
        if (auto kept = keep_as_found(state, effect, 1, answer)) rows.push_back({numbers_.at(state), answer, *kept});
        else if (levels_.log().is_needed(effect)) refuse();
      };
      bytes_.stacks().pushdown().for_each_revealed([&](State state, uint32_t answer, const Effect& effect) {
        if (numbers_.contains(state) && PushDown::is_single(answer)) reveal(state, answer, effect);
      });
      for (State raw : looks_) {
        for (uint32_t answer : answers_of(raw)) reveal(raw, answer, *bytes_.stacks().effect(raw));
      }
      reveals_ = std::move(rows);
      grown = order_.size() > before;
    }
    effect_of_.resize(order_.size(), 0);
  }

  void make_masks() {
    std::set<std::pair<uint32_t, Config>> seen;
    std::vector<std::pair<uint32_t, Config>> pending;
    Stacks& stacks = levels_.stacks();
    for (const auto& place : levels_.places()) {
      pending.push_back({place.level, {place.state, bytes_.stacks().count(place.state) ? levels_.below(place.level) : kBottom}});
    }
    while (!pending.empty()) {
      auto [level, config] = pending.back();
      pending.pop_back();
      if (!seen.emplace(level, config).second) continue;
      if (seen.size() % 64 == 0 && deadline_.expired()) throw BudgetExceeded("seconds", bytes_.budget().seconds, "masks");
      if (automaton_.make_mask_above(config, levels_.opaque(), stacks)) continue;
      std::vector<uint32_t> known;
      for (StackId node = config.stack; node != levels_.opaque(); node = stacks.edges(node)[0].below)
        known.push_back(stacks.edges(node)[0].frame);
      for (const auto& caller : levels_.levels()[level].callers) {
        StackId node = stacks.push(caller.frame, levels_.below(caller.level));
        for (size_t i = known.size(); i-- > 0;) node = stacks.push(known[i], node);
        pending.push_back({caller.level, {config.state, node}});
      }
    }
  }

  TokenAutomaton& automaton_;
  ByteAutomaton& bytes_;
  Levels levels_;
  Deadline deadline_;
  std::vector<State> order_;
  size_t resting_ = 0;
  std::unordered_map<State, State> numbers_;
  std::vector<Chain> effects_;
  std::map<Chain, uint32_t> effect_index_;
  std::vector<uint32_t> effect_of_;  // by state number; 0: none
  std::vector<std::array<uint32_t, 3>> reveals_;
  std::vector<State> looks_;  // targets of steps that inspect the stack
};

}  // namespace tokenfst
