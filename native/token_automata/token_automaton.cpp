// Computes masks, distances and arcs: all functions of TokenAutomaton that walk the vocabulary.
#include "token_automata/token_automaton.hpp"

namespace tokenfst {

namespace {

// Checks that the bytes of the byte automaton (`of_bytes`) and those of the masks (`beside`) are within their common
// budget. If possible, the former are counted before the masks' lock is taken, so that a thread that waits for the byte
// automaton does not block others from the masks.
void check_held(ByteAutomaton& bytes, size_t of_bytes, size_t beside) {
  bytes.set_beside(beside);
  const size_t most = bytes.budget().bytes;
  if (of_bytes + beside > most) throw BudgetExceeded("bytes", static_cast<double>(most), "masks");
}

}  // namespace

uint32_t TokenAutomaton::find_distance(Config config, Stacks& stacks) {
  const auto lock = locked(mutex_);
  if (bytes_->stacks().count(config.state) == 0 && recall_distance(config.state)) return info(config.state).distance.load();
  return bound(config, stacks);
}

TokenAutomaton::TokenAutomaton(std::shared_ptr<ByteAutomaton> bytes, std::shared_ptr<const Vocabulary> vocabulary,
                               std::vector<std::pair<uint32_t, uint32_t>> specials, uint32_t narrow)
    : TokenDistances(std::move(bytes), std::move(vocabulary), narrow), masks_(vocabulary_->size()) {
  composition_.adopt_specials(std::move(specials));
  if (!vocabulary_->complete()) bytes_->marks().refuse_gaps();
}

TokenAutomaton::~TokenAutomaton() = default;

bool TokenAutomaton::spellable(Config config, Stacks& stacks) {
  if (is_dead(config) || accepting(config)) return !is_dead(config);
  if (!complete_) {
    if (const Life known = known_life(config.state); known != Life::Unknown) return known == Life::Alive;
    const auto lock = locked(mutex_);
    return with_walk(stacks, nullptr, [&](auto& walk) { return alive(walk, config); });
  }
  return !composition_.is_first(config) || masks_[mask(config, stacks)].count > 0;
}

uint32_t TokenAutomaton::bytes_left(Config config, Stacks& stacks) {
  if (!bytes_->is_lazy() && bytes_->is_pushdown()) return std::min(distance(config, stacks), 1u << 20) * kBytesOfToken;
  const auto lock = locked(mutex_);
  if (bytes_->is_lazy()) return lengths_.of(config, stacks);
  if (byte_lengths_.empty()) byte_lengths_ = lengths_of_tables(*bytes_);
  return byte_lengths_[config.state];
}

uint32_t TokenAutomaton::most_bytes_left(Config config, Stacks& stacks) {
  const auto lock = locked(mutex_);
  return bytes_of(config, stacks);
}

uint32_t TokenAutomaton::worst_bytes(Config config, Stacks& stacks) {
  const auto lock = locked(mutex_);
  if (bytes_->stacks().count(config.state) != 0) {
    uint32_t worst = 0;
    for (const BoundAbove& bound : bounds_above(config, stacks))
      worst = std::max(worst, plus(bound.bytes, bound.address == kNone ? 0 : bytes_below(stacks.known[bound.address], stacks)));
    return worst;
  }
  return longest_rest(config, stacks);
}

uint32_t TokenAutomaton::find_most_after(Config config, Stacks& stacks) {
  const auto lock = locked(mutex_);
  return most_after(config, stacks);
}

uint32_t TokenAutomaton::worst(Config config, Stacks& stacks) {
  distance(config, stacks);
  const bool alone = bytes_->stacks().count(config.state) == 0;
  if (alone && (info(config.state).worst != kUnreachable || !bytes_->is_lazy())) return info(config.state).worst;
  const auto lock = locked(mutex_);
  return alone ? worst_after(config, stacks) : worst_with_stacks(config, stacks);
}

bool TokenAutomaton::make_mask_above(Config config, StackId opaque, Stacks& stacks) {
  if (known_mask(config, stacks)) return true;
  MaskParts gathered;
  InspectedNodes asked(config, bytes_->stacks().count(config.state), stacks);
  Walker walk(*bytes_, stacks, &asked);
  walk.stop_at(opaque, true);
  StacksTrial trial(stacks);
  gather(walk, config, gathered, stacks);
  if (!walk.stuck()) keep_gathered(config, stacks, gathered, asked);
  return !walk.stuck();
}

std::vector<uint32_t> TokenAutomaton::top_distances(State state) {
  const auto lock = locked(mutex_);
  return tops(state);
}

uint32_t TokenAutomaton::distance_of_frame(uint32_t frame) {
  const auto lock = locked(mutex_);
  return frame_distance(frame);
}

std::vector<std::pair<uint32_t, State>> TokenAutomaton::arcs(State state) {
  Stacks stacks;
  std::vector<std::pair<uint32_t, State>> found;
  for (auto& [token, end] : arcs({state}, stacks)) found.emplace_back(token, end.state);
  return found;
}

std::vector<std::pair<uint32_t, Config>> TokenAutomaton::arcs(Config config, Stacks& stacks, StackId opaque) {
  bytes_->marks().refuse();
  const auto lock = locked(mutex_);
  return with_walk(stacks, nullptr, [&](auto& walk) {
    if constexpr (requires { walk.stop_at(opaque); }) walk.stop_at(opaque);
    auto found = composition_.ends(walk, config);
    if (!complete_) std::erase_if(found, [&](auto& arc) { return !alive(walk, arc.second); });
    return found;
  });
}

bool TokenAutomaton::fill(Config config, uint32_t left, uint32_t* out, Stacks& stacks) {
  if (left != kUnreachable && left > 0 && is_far(config, left - 1, stacks)) return write(mask(config, stacks), out);
  if (left != kUnreachable && (left == 0 || distance(config, stacks) == kUnreachable)) {
    std::memset(out, 0, masks_.words() * 4);
    return true;
  }
  if (left == kUnreachable || worst(config, stacks) <= left - 1) return write(mask(config, stacks), out);
  const auto lock = locked(mutex_);
  std::memset(out, 0, masks_.words() * 4);
  if (bytes_->stacks().count(config.state) == 0) {
    for (const Grade& grade : grades(config, stacks)) {
      if (grade.distance < left) masks_.flip(grade.tokens, out);
    }
    return true;
  }
  with_walk(stacks, nullptr, [&](auto& walk) {
    for (uint32_t token : exact_tokens(walk, config, left - 1, stacks)) out[token >> 5] |= 1u << (token & 31);
  });
  return true;
}

const std::vector<TokenAutomaton::Grade>& TokenAutomaton::grades(Config config, Stacks& stacks) {
  if (const auto known = grades_.find(config.state); known != grades_.end()) return known->second;
  std::vector<std::pair<uint32_t, uint32_t>> tokens;  // each with its distance
  {
    StacksTrial trial(stacks);
    with_walk(stacks, nullptr, [&](auto& walk) {
      for (auto& [token, end] : composition_.ends(walk, config)) {
        if (const uint32_t distance = bound(end, stacks); distance != kUnreachable) tokens.emplace_back(token, distance);
      }
    });
    if (accepting(config)) {
      for (uint32_t token : vocabulary_->eos()) tokens.emplace_back(token, 0);
    }
  }
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end(), [](auto& a, auto& b) { return a.first == b.first; }), tokens.end());
  std::map<uint32_t, MaskParts> parts;
  for (const auto& [token, distance] : tokens) parts[distance].tokens.push_back(token);
  std::vector<Grade> found;
  const size_t of_bytes = bytes_->memory();
  for (auto& [distance, of_distance] : parts) {
    const MaskMaker::Finished finished = mask_maker_.finish(of_distance);
    const auto lock = locked(masks_mutex_);
    found.push_back({distance, mask_maker_.keep(finished)});
    check_held(*bytes_, of_bytes, held_beside());
  }
  known_bytes_ += kEntry + found.size() * sizeof(Grade);
  return grades_.emplace(config.state, std::move(found)).first->second;
}

std::string TokenAutomaton::safe_text(Config config) {
  const auto lock = locked(mutex_);
  return find_safe_text(config.state).bytes;
}

uint32_t TokenAutomaton::safe_tokens(Config config) {
  const auto lock = locked(mutex_);
  return has_safe_text(config) ? find_safe_text(config.state).tokens : kUnreachable;
}

const TokenAutomaton::SafeEnds& TokenAutomaton::find_safe_ends(Config from, Stacks& stacks) {
  if (const auto known = safe_ends_.find(from.state); known != safe_ends_.end()) return known->second;
  SafeEnds found;
  StacksTrial trial(stacks);
  for (const Config end : ends_of_tokens(from, nullptr, stacks)) {
    if (is_dead(end)) continue;
    const uint32_t distance = bound(end, stacks), safe = has_safe_text(end) ? find_safe_text(end.state).tokens : kUnreachable;
    found.longest = std::max(found.longest, safe);
    if (safe > distance) found.unsafe.push_back({distance, safe});
  }
  known_bytes_ += kEntry + found.unsafe.size() * sizeof(Unsafe);
  return safe_ends_.emplace(from.state, std::move(found)).first->second;
}

bool TokenAutomaton::safely_fits(Config from, uint32_t left, Stacks& stacks) {
  if (bytes_->stacks().count(from.state) != 0) return false;
  const bool all = is_far(from, left, stacks) || worst(from, stacks) <= left;  // then all allowed tokens fit
  const auto lock = locked(mutex_);
  if (!has_safe_text(from)) return false;
  const SafeEnds& ends = find_safe_ends(from, stacks);
  if (ends.longest <= left) return true;
  return !all && std::ranges::none_of(ends.unsafe, [&](const Unsafe& end) { return end.distance <= left && left < end.safe; });
}

size_t TokenAutomaton::memory() {
  const auto lock = locked(masks_mutex_);
  return bytes_held();
}

TokenAutomaton::Stats TokenAutomaton::stats() {
  const auto lock = locked(masks_mutex_);
  size_t frames = bytes_->is_pushdown() ? bytes_->stacks().num_frames() : 0;
  return {bytes_->num_states(),
          masks_made_,
          masks_.size() - 1,
          masks_.num_rows(),
          composition_.num_fragments(),
          frames,
          mask_leaves_,
          mask_tree_ ? mask_tree_->deepest() : 0,
          masks_composed_,
          masks_recalled_};
}

std::vector<State> TokenAutomaton::reachable() {
  if (complete_ && bytes_->boundary() == kNone) return tokenfst::reachable(*bytes_);
  std::vector<State> order{kDead};
  std::set<State> seen{kDead};
  auto visit = [&](State q) {
    if (seen.insert(q).second) order.push_back(q);
  };
  Stacks stacks;
  if (spellable(start(), stacks)) visit(start().state);
  const auto lock = locked(mutex_);
  Deadline deadline(bytes_->budget().seconds);
  PlainWalk walk(*bytes_);
  for (size_t i = 1; i < order.size(); ++i) {
    if (deadline.expired()) throw BudgetExceeded("seconds", bytes_->budget().seconds, "states that tokens reach");
    for (auto& [token, end] : composition_.ends(walk, {order[i]})) {
      if (complete_ || alive(walk, end)) visit(end.state);
    }
  }
  return order;
}

size_t TokenAutomaton::bytes_held() const { return bytes_->memory() + held_beside(); }

size_t TokenAutomaton::held_beside() const {
  size_t learned = 0;
  for (const auto& each : learned_) learned += each->memory();
  return learned + masks_.memory() + infos_.memory() + composition_.memory() +
         (mask_tree_ ? mask_tree_->memory() + worst_tree_->memory() : 0) + reserves_.memory() + safe_texts_.memory() + known_bytes_;
}

MaskId TokenAutomaton::make_mask(Config config, Stacks& stacks) {
  std::optional<InProgress::Scope> making;
  if (Info& entry = info(config.state); entry.mask.load(std::memory_order_relaxed) == 0) making.emplace(entry.making);
  if (MaskId known = known_mask(config, stacks)) return known;
  if (has_learned()) {
    const auto lock = locked(masks_mutex_);
    if (MaskId known = known_mask(config, stacks)) return known;
    if (MaskId known = recall(config, stacks)) return known;
  }
  static thread_local MaskParts gathered;  // reused, so that its memory is kept
  gathered.clear();
  InspectedNodes asked(config, bytes_->stacks().count(config.state), stacks);
  StacksTrial trial(stacks);
  with_walk(stacks, &asked, [&](auto& walk) { gather(walk, config, gathered, stacks); });
  return keep_gathered(config, stacks, gathered, asked);
}

void TokenAutomaton::learn(std::shared_ptr<Learned> learned, bool instead) {
  std::vector<std::shared_ptr<Learned>> gone;  // freed after the lock is released: Python may own what they borrow
  const auto lock = locked(mutex_), masks_lock = locked(masks_mutex_);
  if (instead) gone.swap(learned_);
  learned_.push_back(std::move(learned));
  has_learned_.store(true, std::memory_order_release);
}

Digest TokenAutomaton::digest_of(State state) {
  const Digest digest = bytes_->expressions().digest(bytes_->expressions().node(state));
  if (!composition_.is_first({state})) return digest;
  Digest first;  // the same expression may also be at another place
  first.add(kFirstOfText);
  first.add(digest);
  return first;
}

std::pair<uint32_t, uint32_t> TokenAutomaton::known_distance(State state) {
  if (state >= infos_.size() || bytes_->stacks().count(state) != 0) return {kUnknown, 0};
  const Info& entry = info(state);
  const uint32_t distance = entry.distance.load();
  return {distance, distance == kUnknown ? 0 : entry.worst};
}

MaskId TokenAutomaton::recall(Config config, Stacks& stacks) {
  const uint32_t count = bytes_->stacks().count(config.state);
  const Digest digest = digest_of(config.state);
  for (const auto& learned : learned_) {
    const uint32_t* row = learned->find(digest);
    if (!row) continue;
    InspectedNodes asked(config, count, stacks);
    const std::vector<StackId> tops = asked.known;
    StacksTrial trial(stacks);
    const uint32_t number =
        learned->mask(Learned::state(row).value, tops, stacks, asked.nodes, [&](uint32_t frame) { return digest_of_frame(frame); });
    if (number == 0) continue;
    const MaskId id = learned->adopt(number - 1, masks_);
    if (!fits(config, id)) {
      learned->distrust();
      continue;
    }
    ++masks_recalled_;
    check_held(*bytes_, bytes_->memory(), held_beside());
    return keep_mask(config, stacks, id, asked);
  }
  return 0;
}

bool TokenAutomaton::fits(Config config, MaskId id) const {
  const auto& ends = vocabulary_->eos();
  const auto allowed = static_cast<size_t>(std::ranges::count_if(ends, [&](uint32_t token) { return masks_.allows(id, token); }));
  if (accepting(config)) return allowed == ends.size();
  return (allowed == 0 || !composition_.specials().empty()) && (masks_[id].count > 0 || !complete_ || composition_.is_first(config));
}

bool TokenAutomaton::recall_distance(State state) {
  if (!has_learned() || state == kDead) return false;
  const auto lock = locked(masks_mutex_);  // both may stop trusting one file
  Info& entry = info(state);
  if (entry.distance.load() != kUnknown) return true;
  const Digest digest = digest_of(state);
  uint32_t distance = kUnknown, worst = 0;  // the least of each, since all are upper bounds
  for (const auto& learned : learned_) {
    const uint32_t* row = learned->find(digest);
    if (!row) continue;
    const Learned::State known = Learned::state(row);
    if (known.distance == kUnknown) continue;
    if ((known.distance == 0) != accepting({state})) {
      learned->distrust();
      continue;
    }
    worst = distance == kUnknown ? known.worst : std::min(worst, known.worst);
    distance = distance == kUnknown ? known.distance : std::min(distance, known.distance);
  }
  if (distance == kUnknown) return false;
  entry.worst = worst;
  entry.distance.store(distance, std::memory_order_release);
  return true;
}

template <class Walk>
void TokenAutomaton::gather(Walk& walk, Config config, MaskParts& gathered, Stacks& stacks) {
  if (composition_.structural(config)) return composition_.gather(walk, config, gathered);
  std::unique_lock<Mutex> lock;
  if (!complete_) lock = locked(mutex_);
  gathered.tokens = exact_tokens(walk, config, kAtAll, stacks);
}

MaskId TokenAutomaton::keep_gathered(Config config, Stacks& stacks, MaskParts& gathered, const InspectedNodes& asked) {
  if (accepting(config)) gathered.tokens.insert(gathered.tokens.end(), vocabulary_->eos().begin(), vocabulary_->eos().end());
  const MaskMaker::Finished finished = mask_maker_.finish(gathered);
  const size_t of_bytes = bytes_->counted_memory();
  const auto lock = locked(masks_mutex_);
  if (MaskId known = known_mask(config, stacks)) return known;
  ++masks_composed_;
  const MaskId id = mask_maker_.keep(finished);
  check_held(*bytes_, of_bytes, held_beside());
  return keep_mask(config, stacks, id, asked);
}

MaskId TokenAutomaton::keep_mask(Config config, Stacks& stacks, MaskId id, const InspectedNodes& asked) {
  Info& entry = info(config.state);
  uint32_t value = id;
  if (bytes_->is_pushdown()) {
    value = mask_tree_->keep(mask_tree_->make_place(entry.mask.load(), config, bytes_->stacks().count(config.state), stacks, asked), id);
    ++mask_leaves_;
  }
  if (entry.mask.load() == 0) ++masks_made_;
  entry.mask.store(value, std::memory_order_release);
  return id;
}

template <class Walk>
std::vector<uint32_t> TokenAutomaton::exact_tokens(Walk& walk, Config config, uint32_t farthest, Stacks& stacks) {
  std::vector<uint32_t> tokens;
  StacksTrial trial(stacks);
  for (auto& [token, end] : composition_.ends(walk, config)) {
    if (farthest == kAtAll ? complete_ || alive(walk, end) : bound(end, stacks) <= farthest) tokens.push_back(token);
  }
  if (farthest != kAtAll && accepting(config)) tokens.insert(tokens.end(), vocabulary_->eos().begin(), vocabulary_->eos().end());
  return tokens;
}

Life TokenAutomaton::known_life(State q) {
  if (q == kDead) return Life::Dead;
  if (uint32_t known = info(q).distance.load(); known != kUnknown) return known != kUnreachable ? Life::Alive : Life::Dead;
  if (bytes_->accepting(q)) return Life::Alive;
  std::atomic<Life>& life = info(q).life;
  if (life.load(std::memory_order_acquire) == Life::Unknown && vocabulary_->complete() && bytes_->expressions().surely_spelled(q))
    life.store(Life::Alive, std::memory_order_release);
  return life.load(std::memory_order_acquire);
}

template <class Walk>
bool TokenAutomaton::alive(Walk& walk, Config start) {
  const auto life = [&](State q) { return known_life(q); };
  if (Life known = life(start.state); known != Life::Unknown) return known == Life::Alive;
  Deadline deadline(bytes_->budget().seconds);
  return leads_to_acceptance(
             start.state, life, [&](State q, Life found) { info(q).life.store(found, std::memory_order_release); },
             [&](State q, auto&& visit) {
               if (deadline.expired())
                 throw BudgetExceeded("seconds", bytes_->budget().seconds, "the search for strings that tokens spell");
               TokenTargets onward = composition_.onward(walk, {q});
               for (Config config : onward.next) visit(config.state);
               for (Config config : onward.same) visit(config.state);
             },
             [](State) { return 0u; }) == Life::Alive;
}

}  // namespace tokenfst
