// Expanding a token automaton into arrays, and making one of them again.
#include "artifact/artifact.hpp"

namespace tokenfst {

uint32_t CanonicalMasks::number(const uint32_t* base, std::span<const uint32_t> flips) {
  if (!base) return flips.empty() ? 0 : masks_.add(0, flips);
  std::copy_n(base, row_.size(), row_.begin());
  for (uint32_t token : flips) row_[token >> 5] ^= 1u << (token & 31);
  const uint64_t hash = hash_of_row(row_);
  auto [first, last] = known_.equal_range(hash);
  for (; first != last; ++first) {
    masks_.fill(first->second, other_.data());
    if (row_ == other_) return first->second;
  }
  const uint32_t made = std::ranges::all_of(row_, [](uint32_t word) { return word == 0; }) ? 0 : masks_.add_dense(row_.data());
  known_.emplace(hash, made);
  return made;
}

uint32_t PoolMasks::number(MaskId id) {
  auto [it, fresh] = numbers_.try_emplace(id, 0);
  if (fresh) it->second = CanonicalMasks::number(pool_[id].base, {pool_[id].flips, pool_[id].num_flips});
  return it->second;
}

Arrays expand_finite(TokenAutomaton& automaton) {
  ByteAutomaton& bytes = automaton.bytes();
  Arrays out;
  std::copy_n(bytes.classes(), 256, out.classes.begin());
  out.num_classes = bytes.num_classes();
  Stacks stacks;
  std::vector<State> order = reachable(bytes);
  std::vector<State> number = numbering(bytes, order);
  std::vector<bool> token_state(bytes.num_states());
  for (State q : automaton.reachable()) {
    if (q >= token_state.size()) token_state.resize(q + 1);
    token_state[q] = true;
  }
  PoolMasks masks(automaton.masks());
  const Budget& budget = bytes.budget();
  for (auto [token, column] : automaton.specials()) out.columns.insert(out.columns.end(), {token, column});
  if (bytes.boundary() != kNone) out.columns.insert(out.columns.end(), {kNone, bytes.boundary()});
  if (order.size() * out.num_classes * sizeof(State) > budget.bytes)
    throw BudgetExceeded("bytes", static_cast<double>(budget.bytes), "the transition table");
  Deadline deadline(budget.seconds);
  out.table.assign(order.size() * out.num_classes, 0);
  for (size_t k = 0; k < order.size(); ++k) {
    if (deadline.expired()) throw BudgetExceeded("seconds", budget.seconds, "masks");
    State q = order[k];
    bool reached = q != kDead && q < token_state.size() && token_state[q];
    out.accepting.push_back(q != kDead && bytes.accepting(q));
    out.mask.push_back(reached ? masks.number(automaton.mask({q}, stacks)) : 0);
    out.distance.push_back(q == kDead ? kUnreachable : reached ? automaton.distance({q}, stacks) : kUnreachable);
    out.worst.push_back(reached ? automaton.worst({q}, stacks) : 0);
    if (q == kDead) continue;
    const State* row = bytes.row(q);
    for (uint32_t c = 0; c < out.num_classes; ++c) out.table[k * out.num_classes + c] = number[row[c]];
  }
  masks.write(out);
  out.marks = marks_of(bytes, order, [&](State q) { return number[q]; });
  out.start = number[automaton.start().state];
  out.inner_start = number[bytes.inner_start()];
  return out;
}

Arrays expand_pushdown(TokenAutomaton& automaton) {
  ByteAutomaton& bytes = automaton.bytes();
  if (bytes.is_token_level()) {
    throw Error(Fault::Constraint,
                "a grammar that needs a stack and is token-level (it has TEXT_TOKEN, one_token() or special tokens) cannot be expanded: "
                "walk it as it is, or expand its truncate(depth)");
  }
  StackExpansion expansion(automaton);
  Arrays out;
  std::copy_n(bytes.classes(), 256, out.classes.begin());
  out.num_classes = bytes.num_classes();
  const auto& order = expansion.order();
  if (order.size() * out.num_classes * sizeof(State) > bytes.budget().bytes) {
    throw BudgetExceeded("bytes", static_cast<double>(bytes.budget().bytes), "the transition table");
  }
  out.table.assign(order.size() * out.num_classes, 0);
  PoolMasks masks(automaton.masks());
  auto mask_number = [&](uint32_t value) { return value & DecisionTree::kInner ? value : masks.number(value); };
  Stacks stacks;
  for (size_t k = 0; k < order.size(); ++k) {
    State q = order[k];
    const bool rests = q != kDead && expansion.rests(k), stacked = rests && bytes.stacks().count(q) > 0;
    out.accepting.push_back(rests && bytes.accepting(q));
    out.mask.push_back(rests ? mask_number(automaton.mask_root(q)) : 0);
    uint32_t distance = kUnreachable;
    if (stacked) {
      const auto tops = automaton.top_distances(q);
      for (size_t m = 0; m < tops.size(); ++m) {
        if (bytes.stacks().shape(q).members[m].hole != kNone) distance = tops[m];
      }
    } else if (rests) {
      distance = automaton.distance({q}, stacks);
    }
    out.distance.push_back(distance);
    out.worst.push_back(rests && !stacked ? automaton.worst({q}, stacks) : 0);
    if (!rests) continue;
    const State* row = bytes.row(q);
    for (uint32_t c = 0; c < out.num_classes; ++c) out.table[k * out.num_classes + c] = expansion.number_of(row[c]);
  }
  out.stacks = expansion.arrays([&](uint32_t id) { return masks.number(id); });
  masks.write(out);
  out.marks = marks_of(bytes, order, [&](State q) { return expansion.number_of(q); });
  out.start = expansion.number_of(automaton.start().state);
  out.inner_start = expansion.number_of(bytes.inner_start());
  return out;
}

Arrays expand(TokenAutomaton& automaton) { return automaton.bytes().is_pushdown() ? expand_pushdown(automaton) : expand_finite(automaton); }

LoadedAutomaton::LoadedAutomaton(const View& view, std::shared_ptr<const Vocabulary> vocabulary)
    : TokenAutomaton(make_bytes(view, *vocabulary), vocabulary, specials(view)), owner_(view.owner) {
  MaskPool& pool = adopt_masks();
  const size_t words = pool.words();
  for (size_t r = 0; r * words < view.rows.size(); ++r) pool.adopt_row(view.rows.data() + r * words);
  for (size_t m = 1; m < view.mask_row.size(); ++m) {
    uint32_t from = view.flip_offsets[m], to = view.flip_offsets[m + 1];
    pool.adopt(view.mask_row[m], view.flips.data() + from, to - from);
  }
  for (State q = 0; q < view.accepting.size(); ++q) {
    bool later = !view.stacks.empty() && view.mask[q] == 0;
    adopt_state(q, view.mask[q] == 0 && !later ? pool_empty(pool) : view.mask[q], view.distance[q], view.worst[q]);
  }
  if (!view.stacks.empty()) adopt_stacks(view);
}

MaskId LoadedAutomaton::pool_empty(MaskPool& pool) {
  if (empty_ == 0) empty_ = pool.add(0, {});
  return empty_;
}

void LoadedAutomaton::adopt_stacks(const View& view) {
  const StackView& given = view.stacks;
  PushDown& pushdown = bytes().stacks().adopt_pushdown();
  std::vector<uint32_t> frame_distances;
  for (size_t f = 0; f < given.frames.size(); f += 2) {
    pushdown.settler().adopt_frame(given.frames[f] == 1);
    frame_distances.push_back(given.frames[f + 1]);
  }
  adopt_frame_distances(std::move(frame_distances));
  uint32_t begin = 0;
  for (size_t e = 0; e < given.effects.size(); e += 3) {
    Settled settled;
    uint32_t below = given.effects[e + 1] ? 0 : kNothing;
    for (; begin < given.effects[e + 2]; ++begin) {
      settled.ops.push_back({given.pushes[begin], below});
      below = kFirstOp + static_cast<uint32_t>(settled.ops.size() - 1);
    }
    if (below != kNothing) settled.holes.push_back(below);
    pushdown.add_effect(given.effects[e], settled);
  }
  for (State q = 0; q < view.accepting.size(); ++q) {
    const uint32_t* row = given.states.data() + size_t{4} * q;
    uint32_t shape = 0;
    if (row[0] == 1) {
      Settled settled;
      settled.members.push_back({kEpsilon, 0});
      std::vector<uint32_t> tops{view.distance[q]};
      if (row[3] != kUnreachable) {
        settled.members.push_back({kEpsilon});
        tops.push_back(row[3]);
      }
      settled.holes = {0};
      shape = pushdown.add_shape(settled, row[2] ? 0 : kNone);
      adopt_stack_distances(q, std::move(tops));
    }
    bytes().stacks().adopt(q, static_cast<uint8_t>(row[0]), row[1], shape);
  }
  for (size_t r = 0; r < given.reveals.size(); r += 3)
    pushdown.keep_revealed(given.reveals[r], given.reveals[r + 1], adopted_reveal(pushdown, given.reveals[r + 2]));
  for (size_t c = 0; c < given.chains.size(); c += 3) pushdown.adopt_chain(given.chains[c], given.chains[c + 1], given.chains[c + 2]);
  // The root of a state inspects the top of the stack, which has address 0; its child inspects the next node. The
  // number of a node is less than those of its children.
  std::map<uint32_t, uint32_t> address;
  for (uint32_t root : view.mask) {
    if (root & DecisionTree::kInner) address[root & ~DecisionTree::kInner] = 0;
  }
  for (size_t k = 0; k < given.asks.size(); k += 3) {
    if (given.asks[k + 2] & DecisionTree::kInner) address[given.asks[k + 2] & ~DecisionTree::kInner] = address.at(given.asks[k]) + 1;
  }
  std::vector<uint32_t> addresses(address.empty() ? 0 : address.rbegin()->first);
  for (auto& [ask, at] : address) addresses[ask - 1] = at;
  mask_tree().adopt(addresses);
  for (size_t k = 0; k < given.asks.size(); k += 3) mask_tree().adopt_child(given.asks[k], given.asks[k + 1], given.asks[k + 2]);
}

uint32_t LoadedAutomaton::adopted_reveal(PushDown& pushdown, uint32_t effect) {
  Settled settled;
  settled.ops = pushdown.effect(effect).ops;
  settled.holes = pushdown.effect(effect).holes;
  for (StackOp& op : settled.ops) op.below += op.below == 0;
  for (uint32_t& hole : settled.holes) hole += hole == 0;
  return pushdown.add_effect(pushdown.effect(effect).state, settled);
}

std::shared_ptr<ByteAutomaton> LoadedAutomaton::make_bytes(const View& view, const Vocabulary& vocabulary) {
  check_view(view, vocabulary);
  std::array<uint8_t, 256> classes;
  std::copy_n(view.classes, 256, classes.begin());
  const bool bounded = !view.columns.empty() && view.columns[view.columns.size() - 2] == kNone;
  const uint32_t symbols = static_cast<uint32_t>(view.columns.size() / 2 - bounded);
  const uint32_t states = static_cast<uint32_t>(view.accepting.size());
  auto bytes = std::make_shared<ByteAutomaton>(classes, view.num_classes, view.table.data(), view.accepting.data(), states, view.start,
                                               view.inner_start, symbols, bounded ? view.columns.back() : kNone);
  // Stacks and marks are set before the automaton is composed with the vocabulary, because the error for a vocabulary
  // that lacks bytes depends on them.
  if (!view.stacks.empty()) bytes->stacks().adopt_pushdown();
  adopt_marks(*bytes, view.marks);
  return bytes;
}

void LoadedAutomaton::adopt_marks(ByteAutomaton& bytes, std::span<const uint32_t> marks) {
  DistinctFacts facts{false, false, kUnbounded, kUnbounded, kUnbounded};  // the values for a file that does not have this row
  for (size_t k = 0; k < marks.size(); k += 4) {
    const uint32_t* row = marks.data() + k;
    if (row[0]) {
      facts.few_endings |= row[1] & kFewEndingsBit, facts.values |= row[1] & kValuesBit;
      bytes.marks().adopt(row[0], row[1] & ~(kFewEndingsBit | kValuesBit), row[2], row[3]);
    } else {
      facts = {false, false, row[1], row[2], row[3]};
    }
  }
  if (!marks.empty()) bytes.marks().adopt_facts(facts);
}

std::vector<std::pair<uint32_t, uint32_t>> LoadedAutomaton::specials(const View& view) {
  std::vector<std::pair<uint32_t, uint32_t>> found;
  for (size_t k = 0; k < view.columns.size() && view.columns[k] != kNone; k += 2) found.emplace_back(view.columns[k], view.columns[k + 1]);
  return found;
}

}  // namespace tokenfst
