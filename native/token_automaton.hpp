// The composition of a vocabulary's detokenizing transducer with a byte automaton, determinized: configurations are the
// byte automaton's states and stacks at token boundaries, and a token's arc is its bytes run through the class table.
// No token arc is stored.
//
// Masks and distances are made when first asked for and kept: by state where there are no stacks, else by the state and
// what was looked at of the stacks (ask_tree.hpp). Where not every byte is a token, spelling matters: a token is allowed
// only if tokens lead on from its end to acceptance, which is searched for and remembered. With stacks, whoever makes the
// automaton must see to it that each byte of its words is a token.
//
// distance(c) is the least number of tokens, the end token not counted, that spell some completion. It is found on a
// graph whose vertices may also be members of unions and rests of fragments, since the distance of a union is the
// least of its members'. With stacks it is an upper bound: the distance of the top, and of each frame below on its own,
// added up. It is sound, since a text may always be completed frame by frame with tokens that end where frames end.
// Ambiguous grammars and large selections of words have very many states; a search for distances goes through some, and takes lengths in bytes for
// those behind: bounds still, and as before a token leads on from each to a smaller one.
#pragma once

#include "ask_tree.hpp"
#include "composition.hpp"
#include "exclusion.hpp"
#include "lengths.hpp"
#include "mask_maker.hpp"

namespace tokenfst {

class TokenAutomaton {
 public:
  // Walks of the vocabulary that enter at most `narrow` trie nodes are not worth a fragment.
  static constexpr uint32_t kNarrowWalk = 192;

  // `specials`: the special tokens that are symbols of the byte automaton, with their columns, ascending.
  TokenAutomaton(std::shared_ptr<ByteAutomaton> bytes, std::shared_ptr<const Vocabulary> vocabulary,
                 std::vector<std::pair<uint32_t, uint32_t>> specials = {}, uint32_t narrow = kNarrowWalk)
      : bytes_(std::move(bytes)), vocabulary_(std::move(vocabulary)),
        composition_(*bytes_, *vocabulary_, narrow), complete_(composition_.tokens_lead_on()), lengths_(*bytes_), masks_(vocabulary_->size()) {
    composition_.adopt_specials(std::move(specials));
    if (!vocabulary_->complete()) bytes_->marks().refuse_gaps();
  }

  ByteAutomaton& bytes() const { return *bytes_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const MaskPool& masks() const { return masks_; }
  const std::vector<std::pair<uint32_t, uint32_t>>& specials() const { return composition_.specials(); }
  Config start() const { return {bytes_->start()}; }
  bool accepting(Config config) const { return bytes_->accepting(config.state); }

  // Calls f with what runs configurations here. `asked`, if given, takes down which stacks are looked into.
  template <class F>
  auto with_walk(Stacks& stacks, Asked* asked, F&& f) const {
    if (bytes_->is_pushdown()) {
      Walker walk(*bytes_, stacks, asked);
      return f(walk);
    }
    PlainWalk walk(*bytes_);
    return f(walk);
  }
  // The configuration after `token`, or a dead one where the automaton has no such arc. O(bytes of the token). With an
  // `exclusion`, which goes on with it: what is excluded has no arc either.
  Config advance(Config config, uint32_t token, Stacks& stacks, Exclusion* exclusion = nullptr) const {
    std::string_view text = vocabulary_->tokens()[token];
    if (text.empty() && vocabulary_->initial()[token].empty()) {
      return with_walk(stacks, nullptr, [&](auto& walk) { return composition_.special(walk, config, token); });
    }
    if (composition_.is_first(config)) {
      std::string_view first = vocabulary_->initial()[token];
      if (first.empty()) return {composition_.after_empty()};
      text = first;
    }
    if (text.empty()) return {};
    if (!exclusion && !bytes_->is_pushdown()) return PlainWalk(*bytes_).boundary({bytes_->run(config.state, text)});
    Walker walk(*bytes_, stacks);
    return walk.boundary(exclusion ? exclusion->run(*bytes_, walk, config, text) : walk.run(config, text));
  }
  // Whether some token sequence leads from here to acceptance.
  bool spellable(Config config, Stacks& stacks) {
    if (is_dead(config) || accepting(config)) return !is_dead(config);
    if (!complete_) {
      std::lock_guard lock(mutex_);
      return with_walk(stacks, nullptr, [&](auto& walk) { return alive(walk, config); });
    }
    return !composition_.is_first(config) || masks_[mask(config, stacks)].count > 0;
  }

  MaskId mask(Config config, Stacks& stacks) {
    if (MaskId known = known_mask(config, stacks)) return known;
    std::lock_guard lock(mutex_);
    return make_mask(config, stacks);
  }
  // 0: not made yet.
  MaskId known_mask(Config config, Stacks& stacks) {
    uint32_t root = info(config.state).mask.load(std::memory_order_acquire);
    return bytes_->is_pushdown() ? mask_tree_.find(root, config, bytes_->num_stacks(config.state), stacks) : root;
  }

  uint32_t distance(Config config, Stacks& stacks) {
    if (!bytes_->is_pushdown()) {
      uint32_t known = info(config.state).distance.load(std::memory_order_acquire);
      if (known != kUnknown) return known;
    }
    std::lock_guard lock(mutex_);
    return bound(config, stacks);
  }
  // What guides a search for a completion byte by byte: its least length, or about that of its tokens.
  uint32_t bytes_left(Config config, Stacks& stacks) {
    if (!bytes_->is_lazy() && bytes_->is_pushdown()) return std::min(distance(config, stacks), 1u << 20) * kBytesOfToken;
    std::lock_guard lock(mutex_);
    if (bytes_->is_lazy()) return lengths_.of(config, stacks);
    if (byte_lengths_.empty()) byte_lengths_ = lengths_of_tables(*bytes_);
    return byte_lengths_[config.state];
  }
  // The bytes of some completion.
  uint32_t most_bytes_left(Config config, Stacks& stacks) {
    std::lock_guard lock(mutex_);
    return bytes_of(config, stacks);
  }
  // The most of that after any allowed token.
  uint32_t worst_bytes(Config config, Stacks& stacks) {
    std::lock_guard lock(mutex_);
    if (bytes_->num_stacks(config.state) != 0) {
      uint32_t worst = 0;
      for (const Rise& rise : rises(config, stacks)) worst = std::max(worst, plus(rise.bytes, rise.address == kNone ? 0 : bytes_below(stacks.known[rise.address], stacks)));
      return worst;
    }
    auto known = worst_bytes_.find(config.state);
    if (known == worst_bytes_.end()) {
      uint32_t worst = 0;
      for (Config end : ends_of_tokens(config, nullptr, stacks)) worst = std::max(worst, bytes_of(end, stacks));
      known = worst_bytes_.emplace(config.state, worst).first;
    }
    return known->second;
  }
  // Whether distances are known to be the least, and no bounds. Of finished artifacts it is not known.
  bool distances_are_least() const { return bytes_->is_lazy() && !bounds_distances(); }
  // An upper bound for the distance after any allowed token.
  uint32_t worst(Config config, Stacks& stacks) {
    distance(config, stacks);
    if (bytes_->num_stacks(config.state) == 0) return info(config.state).worst;
    std::lock_guard lock(mutex_);
    return worst_with_stacks(config, stacks);
  }

  // Makes the mask of a configuration whose stack ends in `opaque`; false where that needs to know what lies below.
  bool make_mask_above(Config config, StackId opaque, Stacks& stacks) {
    std::lock_guard lock(mutex_);
    if (known_mask(config, stacks)) return true;
    Gathered gathered;
    Asked asked(config, bytes_->num_stacks(config.state), stacks);
    Walker walk(*bytes_, stacks, &asked);
    walk.stop_at(opaque, true);
    {
      StacksTrial trial(stacks);
      gather(walk, config, gathered, stacks);
    }
    if (!walk.stuck()) keep_mask(config, stacks, gathered, asked);
    return !walk.stuck();
  }
  // What is kept for a state with stacks: a mask, or where to go on in `ask_tree()`.
  uint32_t mask_root(State state) { return info(state).mask.load(); }
  AskTree& mask_tree() { return mask_tree_; }
  // The distances of a shape's members by themselves, and of a frame.
  std::vector<uint32_t> top_distances(State state) {
    std::lock_guard lock(mutex_);
    return tops(state);
  }
  uint32_t distance_of_frame(uint32_t frame) {
    std::lock_guard lock(mutex_);
    return frame_distance(frame);
  }
  void adopt_stack_distances(State state, std::vector<uint32_t> tops) { tops_[state] = std::move(tops); }
  void adopt_frame_distances(std::vector<uint32_t> distances) { frame_distances_ = std::move(distances); }

  // The arcs of a configuration: (token, target) in the order of the tokens' bytes. A whole walk of the vocabulary.
  // A token that would look below the node `opaque` rests where it waits for that.
  std::vector<std::pair<uint32_t, Config>> arcs(Config config, Stacks& stacks, StackId opaque = UINT32_MAX) {
    bytes_->marks().refuse();
    std::lock_guard lock(mutex_);
    return with_walk(stacks, nullptr, [&](auto& walk) {
      if constexpr (requires { walk.stop_at(opaque); }) walk.stop_at(opaque);
      auto found = composition_.ends(walk, config);
      if (!complete_) std::erase_if(found, [&](auto& arc) { return !alive(walk, arc.second); });
      return found;
    });
  }

  // The same of a state without stacks.
  std::vector<std::pair<uint32_t, State>> arcs(State state) {
    Stacks stacks;
    std::vector<std::pair<uint32_t, State>> found;
    for (auto& [token, end] : arcs({state}, stacks)) found.emplace_back(token, end.state);
    return found;
  }

  // Fills `out` with the tokens after which acceptance is at most `left` - 1 tokens away (the end tokens need left >= 1).
  // Returns whether there is anything that is not allowed.
  bool fill(Config config, uint32_t left, uint32_t* out, Stacks& stacks) {
    if (left != kUnreachable && (left == 0 || distance(config, stacks) == kUnreachable)) {
      std::memset(out, 0, masks_.words() * 4);
      return true;
    }
    if (left == kUnreachable || worst(config, stacks) <= left - 1) {
      MaskId id = mask(config, stacks);
      masks_.fill(id, out);
      return masks_[id].count < masks_.vocab_size();
    }
    std::lock_guard lock(mutex_);
    std::memset(out, 0, masks_.words() * 4);
    with_walk(stacks, nullptr, [&](auto& walk) {
      for (uint32_t token : exact_tokens(walk, config, left - 1, stacks)) out[token >> 5] |= 1u << (token & 31);
    });
    return true;
  }

  size_t memory() {
    std::lock_guard lock(mutex_);
    return bytes_held();
  }
  struct Stats {
    size_t states, masks_made, distinct_masks, dense_rows, fragments, frames, leaves, deepest_look;
  };
  Stats stats() {
    std::lock_guard lock(mutex_);
    size_t frames = bytes_->is_pushdown() ? bytes_->num_frames() : 0;
    return {bytes_->num_states(), masks_made_, masks_.size() - 1, masks_.num_rows(), composition_.num_fragments(), frames, mask_leaves_, mask_tree_.deepest()};
  }

  // For finished artifacts.
  MaskPool& adopt_masks() { return masks_; }
  void adopt_state(State state, MaskId mask, uint32_t distance, uint32_t worst) {
    Info& entry = info(state);
    entry.mask.store(mask);
    entry.worst = worst;
    entry.distance.store(distance);
    ++masks_made_;
  }

  // The states that token sequences reach from the start (with every byte a token: that bytes reach), breadth first after
  // DEAD; of automata without stacks.
  std::vector<State> reachable() {
    if (complete_ && bytes_->boundary() == kNone) return bytes_->reachable();
    std::vector<State> order{kDead};
    std::set<State> seen{kDead};
    auto visit = [&](State q) {
      if (seen.insert(q).second) order.push_back(q);
    };
    Stacks stacks;
    if (spellable(start(), stacks)) visit(start().state);
    std::lock_guard lock(mutex_);
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

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX - 1, kAtAll = UINT32_MAX - 1;
  static constexpr uint32_t kBytesOfToken = 16;  // more than most tokens have
  static constexpr size_t kMaxExplored = 64;  // states of a push-down automaton that one search for distances goes through

  // What is known of a state; of its configurations, where they have stacks: roots of ask trees.
  struct Info {
    std::atomic<MaskId> mask{0};
    std::atomic<uint32_t> distance{kUnknown};
    uint32_t worst = 0;  // without stacks: the bound; with stacks: the root of its tree
    Life life = Life::Unknown;
  };

  size_t bytes_held() const {
    return bytes_->memory() + masks_.memory() + infos_.size() * sizeof(Info) + composition_.memory() + mask_tree_.memory() + worst_tree_.memory();
  }

  Info& info(State state) {
    if (state >= infos_.size()) {
      std::lock_guard lock(grow_mutex_);
      while (state >= infos_.size()) infos_.grow();
    }
    return infos_[state];
  }

  MaskId make_mask(Config config, Stacks& stacks) {
    if (MaskId known = known_mask(config, stacks)) return known;
    Gathered gathered;
    Asked asked(config, bytes_->num_stacks(config.state), stacks);
    {
      StacksTrial trial(stacks);
      with_walk(stacks, &asked, [&](auto& walk) { gather(walk, config, gathered, stacks); });
    }
    return keep_mask(config, stacks, gathered, asked);
  }
  template <class Walk>
  void gather(Walk& walk, Config config, Gathered& gathered, Stacks& stacks) {
    if (composition_.structural(config)) composition_.gather(walk, config, gathered);
    else gathered.tokens = exact_tokens(walk, config, kAtAll, stacks);
  }
  MaskId keep_mask(Config config, Stacks& stacks, Gathered& gathered, const Asked& asked) {
    if (accepting(config)) gathered.tokens.insert(gathered.tokens.end(), vocabulary_->eos().begin(), vocabulary_->eos().end());
    MaskId id = mask_maker_.make(gathered);
    if (bytes_held() > bytes_->budget().bytes) throw BudgetExceeded("bytes", static_cast<double>(bytes_->budget().bytes), "masks");
    Info& entry = info(config.state);
    uint32_t value = id;
    if (bytes_->is_pushdown()) {
      value = mask_tree_.keep(entry.mask.load(), config, bytes_->num_stacks(config.state), stacks, asked, id);
      ++mask_leaves_;
    }
    if (entry.mask.load() == 0) ++masks_made_;
    entry.mask.store(value, std::memory_order_release);
    return id;
  }

  // Tokens after which acceptance is at most `farthest` tokens away (kAtAll: reachable), and the end tokens where
  // `farthest` is a budget and the configuration accepts.
  template <class Walk>
  std::vector<uint32_t> exact_tokens(Walk& walk, Config config, uint32_t farthest, Stacks& stacks) {
    std::vector<uint32_t> tokens;
    StacksTrial trial(stacks);
    for (auto& [token, end] : composition_.ends(walk, config)) {
      if (farthest == kAtAll ? complete_ || alive(walk, end) : bound(end, stacks) <= farthest) tokens.push_back(token);
    }
    if (farthest != kAtAll && accepting(config)) tokens.insert(tokens.end(), vocabulary_->eos().begin(), vocabulary_->eos().end());
    return tokens;
  }

  // Whether tokens lead from here to acceptance. Where not every byte is a token, and so never with stacks.
  template <class Walk>
  bool alive(Walk& walk, Config start) {
    auto life = [&](State q) {
      if (q == kDead) return Life::Dead;
      if (uint32_t known = info(q).distance.load(); known != kUnknown) return known != kUnreachable ? Life::Alive : Life::Dead;
      return bytes_->accepting(q) ? Life::Alive : info(q).life;
    };
    if (Life known = life(start.state); known != Life::Unknown) return known == Life::Alive;
    Deadline deadline(bytes_->budget().seconds);
    return leads_to_acceptance(
        start.state, life, [&](State q, Life found) { info(q).life = found; },
        [&](State q, auto&& visit) {
          if (deadline.expired()) throw BudgetExceeded("seconds", bytes_->budget().seconds, "the search for strings that tokens spell");
          Onward onward = composition_.onward(walk, {q});
          for (Config config : onward.next) visit(config.state);
          for (Config config : onward.same) visit(config.state);
        });
  }

  // --- distances ---

  // Where there are too many states to find all distances, some are bounds.
  bool bounds_distances() const { return bytes_->is_pushdown() || (bytes_->is_vast() && complete_); }

  // The distance of a state without stacks; what is below it and not known yet is found with it.
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
    Distances distances(bytes_->budget());
    if (bounds_distances() && bytes_->is_lazy()) {
      distances.give_up_after(kMaxExplored, [&](State q) { return lengths_.of(bytes_->node(q)); });
    }
    auto found = distances.solve(
        state, known, [&](State q) { return successors(q); }, [&](State q) { return bytes_->accepting(q); });
    for (const auto& [q, distance, worst] : found) {
      info(q).worst = worst;
      info(q).distance.store(distance, std::memory_order_release);
    }
    return found[0].distance;
  }

  Successors successors(State state) {
    Stacks stacks;
    Onward onward = with_walk(stacks, nullptr, [&](auto& walk) { return composition_.onward(walk, {state}); });
    Successors out;
    auto add = [&](Config config, std::vector<State>& alone, uint32_t cost) {
      if (bytes_->num_stacks(config.state) == 0) alone.push_back(config.state);
      else each_way(config, stacks, [&](std::vector<State> parts) { out.sums.push_back({cost, std::move(parts)}); });
    };
    for (Config config : onward.next) add(config, out.next, 1);
    for (Config config : onward.same) add(config, out.same, 0);
    return out;
  }

  // The bound of a configuration: of its members the least.
  uint32_t bound(Config config, Stacks& stacks) {
    if (bytes_->num_stacks(config.state) == 0) return solve(config.state);
    uint32_t least = kUnreachable;
    const std::vector<uint32_t> above = tops(config.state);
    const auto& members = bytes_->shape(config.state).members;
    for (size_t k = 0; k < members.size(); ++k) {
      uint32_t hole = members[k].hole;
      uint32_t below = hole == kNone ? 0 : stacks.least(stacks.member(config.stack, hole), [&](uint32_t frame) { return frame_distance(frame); });
      least = std::min(least, plus(above[k], below));
    }
    return least;
  }
  // The distances of the members of a shape, by themselves.
  const std::vector<uint32_t>& tops(State state) {
    auto known = tops_.find(state);
    if (known == tops_.end()) {
      std::vector<uint32_t> found;
      for (const Member& member : bytes_->shape(state).members) found.push_back(distance_alone(member.top));
      known = tops_.emplace(state, std::move(found)).first;
    }
    return known->second;
  }
  uint32_t frame_distance(uint32_t frame) {
    if (frame >= frame_distances_.size()) frame_distances_.resize(frame + 1, kUnknown);
    if (frame_distances_[frame] == kUnknown) {
      uint32_t found = distance_alone(bytes_->frame(frame).body);
      frame_distances_[frame] = found;
    }
    return frame_distances_[frame];
  }
  // The distance of a member's top, or of a frame, with nothing below.
  uint32_t distance_alone(NodeId node) {
    Stacks own;
    return bound(Walker(*bytes_, own).arrive(start(), bytes_->intern(bytes_->at_boundary(node))), own);
  }
  // States that complete it one after the other: itself, where it needs no stack; else some way to.
  void append_alone(NodeId node, std::vector<State>& parts) {
    Stacks own;
    Config config = Walker(*bytes_, own).arrive(start(), bytes_->intern(bytes_->at_boundary(node)));
    if (bytes_->num_stacks(config.state) == 0) {
      parts.push_back(config.state);
      return;
    }
    const Member member = bytes_->shape(config.state).members[0];
    append_alone(member.top, parts);
    for (StackId at = member.hole == kNone ? kBottom : own.member(config.stack, member.hole); at != kBottom; at = own.edges(at)[0].below) {
      append_alone(bytes_->frame(own.edges(at)[0].frame).body, parts);
    }
  }
  // Calls f with the states that complete a configuration one after the other, for each way down its stacks. Beyond
  // kMaxWays others are left out, which only makes bounds larger.
  template <class F>
  void each_way(Config config, Stacks& stacks, F&& f) {
    constexpr int kMaxWays = 64;
    int ways = 0;
    std::vector<std::pair<std::vector<State>, StackId>> pending;
    for (const Member& member : bytes_->shape(config.state).members) {
      pending.push_back({{}, member.hole == kNone ? kBottom : stacks.member(config.stack, member.hole)});
      append_alone(member.top, pending.back().first);
    }
    while (!pending.empty() && ways < kMaxWays) {
      auto [parts, node] = std::move(pending.back());
      pending.pop_back();
      if (node == kBottom) {
        f(std::move(parts));
        ++ways;
        continue;
      }
      for (const Edge& edge : stacks.edges(node)) {
        pending.emplace_back(parts, edge.below);
        append_alone(bytes_->frame(edge.frame).body, pending.back().first);
      }
    }
  }

  // The bytes of some completion of a configuration, of a frame, and of all frames from one on.
  uint32_t bytes_of(Config config, Stacks& stacks) {
    if (bytes_->is_lazy()) return lengths_.of(config, stacks);
    if (bytes_->is_pushdown()) return in_bytes(bound(config, stacks));
    if (byte_lengths_.empty()) byte_lengths_ = lengths_of_tables(*bytes_);
    return byte_lengths_[config.state];
  }
  uint32_t in_bytes(uint32_t tokens) const {
    const uint64_t bytes = uint64_t{tokens} * vocabulary_->trie().max_depth();
    return bytes >= kUnknown ? kUnreachable : static_cast<uint32_t>(bytes);
  }
  uint32_t bytes_of_frame(uint32_t frame) { return bytes_->is_lazy() ? lengths_.of(bytes_->frame(frame).body) : in_bytes(frame_distance(frame)); }
  uint32_t bytes_below(StackId node, Stacks& stacks) {
    uint32_t sum = 0;
    for (StackId at = node; at != kBottom && sum < kUnreachable; at = stacks.edges(at)[0].below) sum = plus(sum, bytes_of_frame(stacks.edges(at)[0].frame));
    return sum;
  }
  // Where allowed tokens lead, mostly each place once.
  std::vector<Config> ends_of_tokens(Config config, Asked* asked, Stacks& stacks) {
    std::vector<Config> pending{config}, next;
    std::set<Config> seen;
    with_walk(stacks, asked, [&](auto& walk) {
      for (size_t i = 0; i < pending.size(); ++i) {
        if (!seen.insert(pending[i]).second) continue;
        Onward onward = composition_.onward(walk, pending[i]);
        pending.insert(pending.end(), onward.same.begin(), onward.same.end());
        next.insert(next.end(), onward.next.begin(), onward.next.end());
      }
    });
    return next;
  }

  // Bounds after one token, in terms of the stacks that stay: kept by what was looked at of the stacks.
  struct Rise {
    uint32_t address;  // of the node that is below then; kNone: nothing is
    uint32_t length;   // of what is above it
    uint32_t bytes;    // the same
  };
  // Sets what is known of the stacks, too.
  const std::vector<Rise>& rises(Config config, Stacks& stacks) {
    const uint32_t count = bytes_->num_stacks(config.state);
    Info& entry = info(config.state);
    uint32_t leaf = worst_tree_.find(entry.worst, config, count, stacks);
    if (!leaf) {
      Asked asked(config, count, stacks);
      StacksTrial trial(stacks);
      const std::vector<Config> next = ends_of_tokens(config, &asked, stacks);
      leaf = static_cast<uint32_t>(worsts_.size() + 1);
      entry.worst = worst_tree_.keep(entry.worst, config, count, stacks, asked, leaf);
      const std::vector<StackId> known = stacks.known;
      std::map<uint32_t, Rise> highest;
      for (Config end : next) {
        const Rise found = rise(end, stacks, known);
        if (found.length == kUnreachable) continue;
        auto [at, fresh] = highest.try_emplace(found.address, found);
        at->second.length = std::max(at->second.length, found.length);
        at->second.bytes = std::max(at->second.bytes, found.bytes);
      }
      worsts_.emplace_back();
      for (auto& [address, rise] : highest) worsts_.back().push_back(rise);
      worst_tree_.find(entry.worst, config, count, stacks);
    }
    return worsts_[leaf - 1];
  }
  uint32_t worst_with_stacks(Config config, Stacks& stacks) {
    uint32_t worst = 0;
    const std::vector<Rise>& found = rises(config, stacks);
    const std::vector<StackId> known = stacks.known;
    for (const Rise& rise : found) {
      uint32_t below = rise.address == kNone ? 0 : stacks.least(known[rise.address], [&](uint32_t frame) { return frame_distance(frame); });
      worst = std::max(worst, plus(rise.length, below));
    }
    return worst;
  }
  // Of some way to complete a configuration: the first node on it that is known, and the bound of what is above it.
  Rise rise(Config config, Stacks& stacks, const std::vector<StackId>& known) {
    if (bytes_->num_stacks(config.state) == 0) return {kNone, solve(config.state), bytes_of(config, stacks)};
    Rise best{kNone, kUnreachable, kUnreachable};
    const std::vector<uint32_t> above = tops(config.state);
    const auto& members = bytes_->shape(config.state).members;
    for (size_t k = 0; k < members.size(); ++k) {
      StackId node = members[k].hole == kNone ? kBottom : stacks.member(config.stack, members[k].hole);
      uint32_t length = above[k], bytes = bytes_->is_lazy() ? lengths_.of(members[k].top) : in_bytes(above[k]);
      auto address = std::ranges::find(known, node);
      for (; node != kBottom && address == known.end(); address = std::ranges::find(known, node)) {
        Edge edge = stacks.edges(node)[0];
        length = plus(length, frame_distance(edge.frame));
        bytes = plus(bytes, bytes_of_frame(edge.frame));
        node = edge.below;
      }
      if (length < best.length) best = {node == kBottom ? kNone : static_cast<uint32_t>(address - known.begin()), length, bytes};
    }
    return best;
  }

  std::shared_ptr<ByteAutomaton> bytes_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  Composition composition_;
  const bool complete_;  // tokens lead on from wherever bytes do
  Lengths lengths_;
  MaskPool masks_;
  MaskMaker mask_maker_{masks_};
  StableVector<Info> infos_;
  AskTree mask_tree_, worst_tree_;
  std::vector<std::vector<Rise>> worsts_;
  std::unordered_map<State, std::vector<uint32_t>> tops_;  // by shape
  std::unordered_map<State, uint32_t> worst_bytes_;
  std::vector<uint32_t> frame_distances_, byte_lengths_;
  size_t masks_made_ = 0, mask_leaves_ = 0;
  std::mutex mutex_, grow_mutex_;
};

}  // namespace tokenfst
