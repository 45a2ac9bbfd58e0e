// The arrays of a push-down automaton: effects, answers, and masks with as much of the stack as they need.
#include "artifact/stacks.hpp"

#include "support/counted.hpp"

namespace tokenfst {

StackExpansion::StackExpansion(TokenAutomaton& automaton)
    : automaton_(automaton), bytes_(automaton.bytes()), levels_(bytes_), deadline_(bytes_.budget().seconds) {
  if (auto text = levels_.conflict()) {
    throw Error(Fault::Nondeterministic, "after " + counted(text->size(), "byte") + " one stack is not enough");
  }
  number(kDead);
  number(bytes_.start());
  number(bytes_.inner_start());
  for (const auto& place : levels_.places()) number(place.state);
  resting_ = order_.size();
  make_masks();
  find_effects();
}

void StackExpansion::append(std::vector<uint32_t>& out, std::vector<std::array<uint32_t, 3>> rows) {
  std::ranges::sort(rows);
  for (const auto& row : rows) out.insert(out.end(), row.begin(), row.end());
}

State StackExpansion::number(State state) {
  auto [it, fresh] = numbers_.try_emplace(state, static_cast<State>(order_.size()));
  if (fresh) order_.push_back(state);
  return it->second;
}

StackExpansion::RegisterContent StackExpansion::chained(const RegisterContent& pile) {
  RegisterContent out{pile.base, {}};
  for (uint32_t frame : pile.frames) {
    const bool known = !out.frames.empty() && (out.base == kNothing || !bytes_.stacks().frame(out.frames.back()).nullable);
    const uint32_t both = known && bytes_.stacks().frame(frame).nullable ? bytes_.stacks().chain(frame, out.frames.back()) : kNone;
    if (both == kNone) out.frames.push_back(frame);
    else out.frames.back() = both;
  }
  return out;
}

std::optional<StackExpansion::RegisterContent> StackExpansion::united(const RegisterContent& a, const RegisterContent& b) {
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

std::optional<uint32_t> StackExpansion::keep(const Effect& effect, uint32_t reg, uint32_t top) {
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

uint32_t StackExpansion::keep(const Chain& chain) {
  number(chain.state);
  auto [it, fresh] = effect_index_.try_emplace(chain, static_cast<uint32_t>(effects_.size() + 1));
  if (fresh) effects_.push_back(chain);
  return it->second;
}

std::optional<uint32_t> StackExpansion::keep_as_found(State state, const Effect& effect, uint32_t reg, uint32_t top) {
  if (std::optional<uint32_t> told = keep(effect, reg, top)) return told;
  const auto found = levels_.outcomes().find({state, top});
  if (found == levels_.outcomes().end()) return std::nullopt;
  return keep(found->second);
}

void StackExpansion::refuse() {
  throw Error(Fault::Nondeterministic,
              "one stack is enough for every text, but some step by itself depends on more than the top of the stack");
}

uint32_t StackExpansion::effect_of(State raw, const Effect& effect) {
  if (std::optional<uint32_t> kept = keep_as_found(raw, effect, 0)) return *kept;
  if (answers_of(raw).empty()) refuse();
  looks_.push_back(raw);
  return keep(Chain{raw, true, {}});
}

std::vector<uint32_t> StackExpansion::answers_of(State raw) const {
  std::vector<uint32_t> found;
  for (auto at = levels_.outcomes().lower_bound({raw, 0}); at != levels_.outcomes().end() && at->first.first == raw; ++at)
    found.push_back(at->first.second);
  for (auto at = levels_.deeper().lower_bound({raw, 0}); at != levels_.deeper().end() && at->first == raw; ++at)
    found.push_back(at->second);
  return found;
}

void StackExpansion::find_effects() {
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

void StackExpansion::make_masks() {
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

}  // namespace tokenfst
