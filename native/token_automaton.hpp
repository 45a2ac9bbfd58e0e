// The composition of a vocabulary's detokenizing transducer with a byte automaton, determinized: states are the byte
// automaton's states at token boundaries, and a token's arc is its bytes run through the class table. No token arc is
// stored.
//
// Masks and distances are made when first asked for and kept. A mask is found in this order, cheapest first:
//   1. the state's expression splits at a fragment that is already known: its row and a walk of its residuals;
//   2. a walk of the vocabulary's trie, given up when it grows wide;
//   3. a union: the masks of its members;
//   4. the fragment is built, once for this vocabulary;
//   5. the whole walk.
// All give the same mask. Where not every byte is a token, spelling matters: a token is allowed only if tokens lead on
// from its end state to acceptance, which is searched for and remembered.
//
// distance(q) is the least number of tokens, the end token not counted, that spell some word of q's language. It is
// found on a graph whose vertices may also be members of unions and rests of fragments, since the distance of a union
// is the least of its members': shortest paths with unit weights (0 for such membership).
#pragma once

#include "distances.hpp"
#include "fragment_builder.hpp"
#include "masks.hpp"

namespace tokenfst {

class TokenAutomaton {
 public:
  // Walks of the vocabulary that enter at most `narrow` trie nodes are not worth a fragment.
  static constexpr uint32_t kNarrowWalk = 192;

  TokenAutomaton(std::shared_ptr<ByteAutomaton> bytes, std::shared_ptr<const Vocabulary> vocabulary, uint32_t narrow = kNarrowWalk)
      : bytes_(std::move(bytes)), vocabulary_(std::move(vocabulary)), narrow_(narrow), masks_(vocabulary_->size()) {}

  ByteAutomaton& bytes() const { return *bytes_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const MaskPool& masks() const { return masks_; }
  State start() const { return bytes_->start(); }

  // The state after `token`, or DEAD where the automaton has no such arc. O(bytes of the token).
  State advance(State state, uint32_t token) const {
    std::string_view text = vocabulary_->tokens()[token];
    if (state == bytes_->start() && vocabulary_->has_initial()) {
      std::string_view first = vocabulary_->initial()[token];
      if (first.empty()) return text.empty() ? kDead : after_empty();
      text = first;
    }
    return text.empty() ? kDead : bytes_->run(state, text);
  }
  // Whether some token sequence leads from here to acceptance.
  bool spellable(State state) {
    if (state == kDead || bytes_->accepting(state)) return state != kDead;
    if (!vocabulary_->complete()) {
      std::lock_guard lock(mutex_);
      return alive(state);
    }
    return !(vocabulary_->has_initial() && state == start()) || masks_[mask(state)].count > 0;
  }

  MaskId mask(State state) {
    if (MaskId known = info(state).mask.load(std::memory_order_acquire)) return known;
    std::lock_guard lock(mutex_);
    return make_mask(state);
  }
  bool has_mask(State state) { return info(state).mask.load(std::memory_order_acquire) != 0; }

  uint32_t distance(State state) {
    uint32_t known = info(state).distance.load(std::memory_order_acquire);
    if (known != kUnknown) return known;
    std::lock_guard lock(mutex_);
    return solve(state);
  }
  // An upper bound for the distance after any allowed token.
  uint32_t worst(State state) {
    distance(state);
    return info(state).worst;
  }

  // The arcs of a state: (token, target) in the order of the tokens' bytes. A whole walk of the vocabulary.
  std::vector<std::pair<uint32_t, State>> arcs(State state) {
    std::lock_guard lock(mutex_);
    auto found = ends(state);
    if (!vocabulary_->complete()) std::erase_if(found, [&](const auto& arc) { return !alive(arc.second); });
    return found;
  }

  // Fills `out` with the tokens after which acceptance is at most `left` - 1 tokens away (the end tokens need left >= 1).
  void fill(State state, uint32_t left, uint32_t* out) {
    if (left != kUnreachable && (left == 0 || distance(state) == kUnreachable)) {
      std::memset(out, 0, masks_.words() * 4);
      return;
    }
    if (left == kUnreachable || worst(state) <= left - 1) {
      MaskId id = mask(state);
      masks_.fill(id, out);
      return;
    }
    std::lock_guard lock(mutex_);
    std::memset(out, 0, masks_.words() * 4);
    for (uint32_t token : exact_tokens(state, left - 1)) out[token >> 5] |= 1u << (token & 31);
  }

  size_t memory() {
    std::lock_guard lock(mutex_);
    return bytes_held();
  }
  struct Stats {
    size_t states, masks_made, distinct_masks, dense_rows, fragments;
  };
  Stats stats() {
    std::lock_guard lock(mutex_);
    size_t made = 0;
    for (size_t q = 0; q < infos_.size(); ++q) made += infos_[q].mask.load() != 0;
    return {bytes_->num_states(), made, masks_.size() - 1, masks_.num_rows(), fragments_.size()};
  }

  // For finished artifacts.
  MaskPool& adopt_masks() { return masks_; }
  void adopt_state(State state, MaskId mask, uint32_t distance, uint32_t worst) {
    Info& entry = info(state);
    entry.mask.store(mask);
    entry.worst = worst;
    entry.distance.store(distance);
  }

  // The states that token sequences reach from the start (with every byte a token: that bytes reach), breadth first after DEAD.
  std::vector<State> reachable() {
    if (vocabulary_->complete()) return bytes_->reachable();
    std::vector<State> order{kDead};
    std::set<State> seen{kDead};
    auto visit = [&](State q) {
      if (seen.insert(q).second) order.push_back(q);
    };
    if (spellable(start())) visit(start());
    std::lock_guard lock(mutex_);
    Deadline deadline(bytes_->budget().seconds);
    for (size_t i = 1; i < order.size(); ++i) {
      if (deadline.expired()) throw BudgetExceeded("seconds", bytes_->budget().seconds, "states that tokens reach");
      for (State end : successors(order[i]).next) {
        if (alive(end)) visit(end);
      }
    }
    return order;
  }

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX - 1, kAtAll = UINT32_MAX - 1;

  struct Info {
    std::atomic<MaskId> mask{0};
    std::atomic<uint32_t> distance{kUnknown};
    uint32_t worst = 0;
    Life life = Life::Unknown;
  };
  // What a mask is gathered from: fragment rows with exceptions, and single tokens.
  struct Gathered {
    struct Row {
      const std::vector<uint32_t>* words;  // owned by a fragment that the automaton keeps
      std::vector<uint32_t> removed;
    };
    std::vector<Row> rows;
    std::vector<uint32_t> tokens;
  };

  size_t bytes_held() const { return bytes_->memory() + masks_.memory() + infos_.size() * sizeof(Info) + fragment_bytes_; }

  // Where a token leads whose initial form is empty.
  State after_empty() const { return vocabulary_->start_absorbs() ? bytes_->start() : bytes_->inner_start(); }

  Info& info(State state) {
    if (state >= infos_.size()) {
      std::lock_guard lock(grow_mutex_);
      while (state >= infos_.size()) infos_.grow();
    }
    return infos_[state];
  }

  // Whether the shortcuts by expression apply: they know bytes only, and no second context.
  bool structural(State state) const {
    return bytes_->is_lazy() && vocabulary_->complete() && !(vocabulary_->has_initial() && state == bytes_->start());
  }

  MaskId make_mask(State state) {
    if (MaskId known = info(state).mask.load(std::memory_order_acquire)) return known;
    Gathered gathered;
    if (structural(state)) gather(state, gathered);
    else gathered.tokens = exact_tokens(state, kAtAll);
    if (bytes_->accepting(state)) gathered.tokens.insert(gathered.tokens.end(), vocabulary_->eos().begin(), vocabulary_->eos().end());
    MaskId id = intern(gathered);
    if (bytes_held() > bytes_->budget().bytes) throw BudgetExceeded("bytes", static_cast<double>(bytes_->budget().bytes), "masks");
    info(state).mask.store(id, std::memory_order_release);
    return id;
  }

  // The mask of a state is the union of what its members and the rests behind its fragments give, each gathered once.
  void gather(State start, Gathered& out) {
    std::vector<State> pending{start};
    std::set<State> seen{kDead};
    while (!pending.empty()) {
      State state = pending.back();
      pending.pop_back();
      if (!seen.insert(state).second) continue;
      NodeId node = bytes_->node(state);
      Split at = bytes_->with_arena([&](Arena& arena) { return split(arena, node); });
      std::shared_ptr<const Fragment> fragment = at ? known_fragment(at) : nullptr;
      if (!fragment || !fragment->usable) {
        if (gather_walk(state, narrow_, out)) continue;
        if (auto members = members_of(node); !members.empty()) {
          for (NodeId member : members) pending.push_back(bytes_->intern(member));
          continue;
        }
        if (at) fragment = make_fragment(at);
      }
      if (fragment && fragment->usable) {
        gather_split(at, *fragment, out);
        if (exits_at_once(at)) pending.push_back(bytes_->intern(at.rest));
      } else {
        gather_walk(state, UINT32_MAX, out);
      }
    }
  }

  // By a walk of the vocabulary; false, and nothing gathered, where it meets more than `limit` nodes.
  bool gather_walk(State state, uint32_t limit, Gathered& out) {
    const size_t before = out.tokens.size();
    const Trie& trie = vocabulary_->trie();
    auto take = [&](uint32_t index, State) {
      uint32_t last = trie.node(index + 1).first;
      for (uint32_t k = trie.node(index).first; k < last; ++k) out.tokens.push_back(trie.string_at(k));
    };
    bool whole = trie.walk(*bytes_, state, path_, take, [](uint32_t) {}, limit);
    if (!whole) out.tokens.resize(before);
    return whole;
  }

  // What a fragment and the rest behind it give, an exit before the first byte apart.
  void gather_split(const Split& at, const Fragment& fragment, Gathered& out) {
    Gathered::Row row{at.high < fragment.nested.size() ? &fragment.nested[at.high] : &fragment.row, {}};
    for (size_t i = 0; row.words == &fragment.row && i < fragment.longest.size() && fragment.iterations[i] > at.high; ++i) row.removed.push_back(fragment.longest[i]);
    out.rows.push_back(std::move(row));
    for_residuals(at, fragment, [&](uint32_t token, State) { out.tokens.push_back(token); });
  }

  // Calls f(token, state of the rest) for each token that leaves the fragment and is read on by the rest.
  template <class F>
  void for_residuals(const Split& at, const Fragment& fragment, F&& f) {
    State rest = bytes_->intern(at.rest);
    const Trie& trie = *fragment.residuals;
    auto entries = [&](uint32_t index, State state) {
      uint32_t last = trie.node(index + 1).first;
      for (uint32_t k = trie.node(index).first; k < last; ++k) {
        uint32_t entry = trie.string_at(k);
        if (at.counted && (fragment.completed[entry] < at.low || fragment.completed[entry] > at.high)) continue;
        f(fragment.tokens[entry], state);
      }
    };
    entries(0, rest);
    trie.walk(*bytes_, rest, residual_path_, entries, [](uint32_t) {});
  }

  bool exits_at_once(const Split& at) {
    return bytes_->with_arena([&](const Arena& arena) { return arena[at.fragment].nullable; });
  }
  // The members of a union, where going by members pays: where one of them splits.
  std::vector<NodeId> members_of(NodeId node) {
    return bytes_->with_arena([&](Arena& arena) {
      std::vector<NodeId> members;
      if (arena[node].kind == Kind::Or) members.assign(arena.list(node).begin(), arena.list(node).end());
      if (std::ranges::none_of(members, [&](NodeId member) { return bool{split(arena, member)}; })) members.clear();
      return members;
    });
  }

  std::shared_ptr<const Fragment> known_fragment(const Split& at) {
    uint64_t id = uint64_t{at.fragment} << 1 | at.counted;
    auto [it, fresh] = fragments_.try_emplace(id, nullptr);
    if (fresh) {
      std::string key = fragment_key(at);
      if (!key.empty()) it->second = vocabulary_->fragments().find(key);
      if (it->second) fragment_bytes_ += it->second->memory();
    }
    return it->second;
  }
  std::shared_ptr<const Fragment> make_fragment(const Split& at) {
    auto& slot = fragments_[uint64_t{at.fragment} << 1 | at.counted];
    if (!slot) {
      slot = FragmentBuilder(*bytes_, *vocabulary_, at).build();
      fragment_bytes_ += slot->memory();
      if (std::string key = fragment_key(at); !key.empty()) vocabulary_->fragments().insert(key, slot);
    }
    return slot;
  }
  std::string fragment_key(const Split& at) {
    return bytes_->with_arena([&](const Arena& arena) {
      std::string key = canonical_key(arena, at.fragment);
      if (!key.empty()) key += at.counted ? 'c' : 'u';
      return key;
    });
  }

  // The pairs (token, state it leads to) of a state, by a whole walk; end tokens apart.
  std::vector<std::pair<uint32_t, State>> ends(State state) {
    std::vector<std::pair<uint32_t, State>> found;
    if (state == kDead) return found;
    bool first = vocabulary_->has_initial() && state == bytes_->start();
    const Trie& trie = first ? vocabulary_->initial_trie() : vocabulary_->trie();
    auto take = [&](uint32_t index, State end) {
      uint32_t last = trie.node(index + 1).first;
      for (uint32_t k = trie.node(index).first; k < last; ++k) found.emplace_back(trie.string_at(k), end);
    };
    trie.walk(*bytes_, state, path_, take, [](uint32_t) {});
    // A loop at the start alone leads nowhere.
    if (first && !(vocabulary_->start_absorbs() && found.empty() && !bytes_->accepting(state))) {
      for (uint32_t token = 0; token < vocabulary_->size(); ++token) {
        if (vocabulary_->initial()[token].empty() && !vocabulary_->tokens()[token].empty()) found.emplace_back(token, after_empty());
      }
    }
    return found;
  }

  // Tokens after which acceptance is at most `farthest` tokens away (kAtAll: reachable), and the end tokens where
  // `farthest` is a budget and the state accepts.
  std::vector<uint32_t> exact_tokens(State state, uint32_t farthest) {
    std::vector<uint32_t> tokens;
    for (auto& [token, end] : ends(state)) {
      if (farthest == kAtAll ? vocabulary_->complete() || alive(end) : solve(end) <= farthest) tokens.push_back(token);
    }
    if (farthest != kAtAll && bytes_->accepting(state)) tokens.insert(tokens.end(), vocabulary_->eos().begin(), vocabulary_->eos().end());
    return tokens;
  }

  // Whether tokens lead from `state` to acceptance.
  bool alive(State state) {
    auto life = [&](State q) {
      if (q == kDead) return Life::Dead;
      if (uint32_t known = info(q).distance.load(); known != kUnknown) return known != kUnreachable ? Life::Alive : Life::Dead;
      return bytes_->accepting(q) ? Life::Alive : info(q).life;
    };
    if (Life known = life(state); known != Life::Unknown) return known == Life::Alive;
    Deadline deadline(bytes_->budget().seconds);
    return leads_to_acceptance(
        state, life, [&](State q, Life found) { info(q).life = found; },
        [&](State q, auto&& visit) {
          if (deadline.expired()) throw BudgetExceeded("seconds", bytes_->budget().seconds, "the search for strings that tokens spell");
          for (State next : successors(q).next) visit(next);
        });
  }

  MaskId intern(Gathered& gathered) {
    auto& tokens = gathered.tokens;
    std::ranges::sort(tokens);
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    if (gathered.rows.size() <= 1 && tokens.size() <= MaskPool::kMaxFlips) {
      if (gathered.rows.empty()) return masks_.add(0, tokens);
      const auto& [words, removed] = gathered.rows[0];
      auto [base, fresh] = bases_.try_emplace(words, 0);
      if (fresh) base->second = masks_.add_row(words->data());
      std::vector<uint32_t> flips;
      for (uint32_t token : tokens) {
        if (!((*words)[token >> 5] >> (token & 31) & 1)) flips.push_back(token);
      }
      for (uint32_t token : removed) {
        if (!std::ranges::binary_search(tokens, token)) flips.push_back(token);
      }
      std::ranges::sort(flips);
      if (flips.size() <= MaskPool::kMaxFlips) return masks_.add(base->second, flips);
    }
    scratch_.assign(masks_.words(), 0);
    for (const auto& row : gathered.rows) {
      row_scratch_ = *row.words;
      for (uint32_t token : row.removed) row_scratch_[token >> 5] &= ~(1u << (token & 31));
      for (size_t i = 0; i < scratch_.size(); ++i) scratch_[i] |= row_scratch_[i];
    }
    for (uint32_t token : tokens) scratch_[token >> 5] |= 1u << (token & 31);
    return masks_.add_dense(scratch_.data());
  }

  Successors successors(State state) {
    Successors out;
    if (structural(state)) {
      // In this order whatever is known by now: bounds depend on the way taken, and artifacts hold them (convention 10).
      if (narrow_successors(state, out, narrow_)) return out;
      NodeId node = bytes_->node(state);
      if (auto members = members_of(node); !members.empty()) {
        for (NodeId member : members) out.same.push_back(bytes_->intern(member));
        return out;
      }
      Split at = bytes_->with_arena([&](Arena& arena) { return split(arena, node); });
      auto fragment = at ? known_fragment(at) : nullptr;
      if (at && !fragment) fragment = make_fragment(at);
      if (fragment && fragment->usable && !fragment->ambiguous) {
        for (size_t i = 0; i < fragment->representatives.size(); ++i) {
          if (!at.counted || fragment->representative_iterations[i] <= at.high) out.next.push_back(advance(state, fragment->representatives[i]));
        }
        for_residuals(at, *fragment, [&](uint32_t, State end) { out.next.push_back(end); });
        if (exits_at_once(at)) out.same.push_back(bytes_->intern(at.rest));
        unique(out.next);
        return out;
      }
      narrow_successors(state, out, UINT32_MAX);
      return out;
    }
    for (auto& [token, end] : ends(state)) out.next.push_back(end);
    unique(out.next);
    return out;
  }
  bool narrow_successors(State state, Successors& out, uint32_t limit) {
    const Trie& trie = vocabulary_->trie();
    auto take = [&](uint32_t index, State end) {
      if (trie.node(index).first != trie.node(index + 1).first && (out.next.empty() || out.next.back() != end)) out.next.push_back(end);
    };
    bool whole = trie.walk(*bytes_, state, path_, take, [](uint32_t) {}, limit);
    if (whole) unique(out.next);
    else out.next.clear();
    return whole;
  }
  static void unique(std::vector<State>& states) {
    std::ranges::sort(states);
    states.erase(std::unique(states.begin(), states.end()), states.end());
  }

  // The distance of `state`; what is below it and not known yet is found with it.
  uint32_t solve(State state) {
    if (uint32_t known = info(state).distance.load(std::memory_order_acquire); known != kUnknown) return known;
    Distances::Entry entry;
    auto known = [&](State q) -> const Distances::Entry* {
      const Info& kept = info(q);
      uint32_t distance = q == kDead ? kUnreachable : kept.distance.load();
      if (distance == kUnknown) return nullptr;
      entry = {q, distance, kept.worst};
      return &entry;
    };
    if (const Distances::Entry* dead = known(state)) return dead->distance;
    auto found = Distances(bytes_->budget()).solve(
        state, known, [&](State q) { return successors(q); }, [&](State q) { return bytes_->accepting(q); });
    for (const auto& [q, distance, worst] : found) {
      info(q).worst = worst;
      info(q).distance.store(distance, std::memory_order_release);
    }
    return found[0].distance;
  }

  std::shared_ptr<ByteAutomaton> bytes_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  uint32_t narrow_;
  MaskPool masks_;
  StableVector<Info> infos_;
  std::unordered_map<uint64_t, std::shared_ptr<const Fragment>> fragments_;
  size_t fragment_bytes_ = 0;
  std::unordered_map<const std::vector<uint32_t>*, uint32_t> bases_;  // pool rows of fragments' rows
  std::vector<State> path_, residual_path_;
  std::vector<uint32_t> scratch_, row_scratch_;
  std::mutex mutex_, grow_mutex_;
};

}  // namespace tokenfst
