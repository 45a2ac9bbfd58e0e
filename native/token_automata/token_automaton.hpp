// The composition of a vocabulary's detokenizing transducer with a byte automaton, determinized: configurations are the
// byte automaton's states and stacks at token boundaries, and a token's arc is its bytes run through the class table.
// No token arc is stored.
//
// Masks and distances are made when first asked for and kept: by state where there are no stacks, else by the state and
// what was looked at of the stacks (ask_tree.hpp). Where not every byte is a token, spelling matters: a token is allowed
// only if tokens lead on from its end to acceptance, which is searched for and remembered. With stacks, whoever makes the
// automaton must see to it that each byte of its words is a token.
//
// Threads. What was made is read without a lock, and nothing is written then. A mask is composed without a lock, in the thread's own
// room, and kept under `masks_mutex_` if no other thread was first; who wants the first mask of a state that is being made waits for
// it, others do not. Distances, and whether tokens lead on, are searched for under `mutex_`. Whoever takes several takes them in this
// order: the making of a mask, `mutex_`, the making of a fragment, `masks_mutex_`, those of fragments, the byte automaton's.
#pragma once

#include "byte_automata/searches.hpp"
#include "exclusion/exclusion.hpp"
#include "masks/mask_maker.hpp"
#include "token_automata/learned.hpp"
#include "token_automata/token_distances.hpp"

namespace tokenfst {

class TokenAutomaton : protected TokenDistances {
 public:
  using TokenDistances::accepting;
  using TokenDistances::start;
  using TokenDistances::with_walk;

  // Walks of the vocabulary that enter at most `narrow` trie nodes are not worth a fragment.
  static constexpr uint32_t kNarrowWalk = 192;

  // `specials`: the special tokens that are symbols of the byte automaton, with their columns, ascending.
  TokenAutomaton(std::shared_ptr<ByteAutomaton> bytes, std::shared_ptr<const Vocabulary> vocabulary,
                 std::vector<std::pair<uint32_t, uint32_t>> specials = {}, uint32_t narrow = kNarrowWalk);

  ByteAutomaton& bytes() const { return *bytes_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const MaskPool& masks() const { return masks_; }
  const std::vector<std::pair<uint32_t, uint32_t>>& specials() const { return composition_.specials(); }
  // Whether the vocabulary spells text in another way here: at the start of some.
  bool is_first(Config config) const { return composition_.is_first(config); }
  // What a token adds to the text here: its initial form at the start.
  std::string_view text_of(Config config, uint32_t token) const {
    return is_first(config) ? vocabulary_->initial()[token] : vocabulary_->tokens()[token];
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
    const Leap* leap = bytes_->boundary() == kNone ? bytes_->leap(config.state, token, text) : nullptr;
    const std::string_view rest = leap ? text.substr(leap->bytes) : text;
    if (!exclusion && !bytes_->is_pushdown()) return PlainWalk(*bytes_).boundary({bytes_->run(leap ? leap->target : config.state, rest)});
    Walker walk(*bytes_, stacks);
    if (leap)
      config =
          exclusion ? exclusion->leap(*bytes_, walk, config, text.substr(0, leap->bytes), leap->target) : walk.arrive(config, leap->target);
    if (is_dead(config)) return config;
    return walk.boundary(exclusion ? exclusion->run(*bytes_, walk, config, rest) : walk.run(config, rest));
  }
  // Whether some token sequence leads from here to acceptance.
  bool spellable(Config config, Stacks& stacks);

  MaskId mask(Config config, Stacks& stacks) {
    if (MaskId known = known_mask(config, stacks)) return known;
    return make_mask(config, stacks);
  }
  // 0: not made yet.
  MaskId known_mask(Config config, Stacks& stacks) {
    uint32_t root = info(config.state).mask.load(std::memory_order_acquire);
    return bytes_->is_pushdown() ? mask_tree_.find(root, config, bytes_->stacks().count(config.state), stacks) : root;
  }

  uint32_t distance(Config config, Stacks& stacks) {
    if (!bytes_->is_pushdown()) {
      uint32_t known = info(config.state).distance.load(std::memory_order_acquire);
      if (known != kUnknown) return known;
    }
    return find_distance(config, stacks);
  }
  // What guides a search for a completion byte by byte: its least length, or about that of its tokens.
  uint32_t bytes_left(Config config, Stacks& stacks);
  // The bytes of some completion.
  uint32_t most_bytes_left(Config config, Stacks& stacks);
  // The most of that after any allowed token.
  uint32_t worst_bytes(Config config, Stacks& stacks);
  using TokenDistances::bounds_distances;
  // Whether distances are known to be the least, and no bounds. Of finished artifacts it is not known.
  bool distances_are_least() const { return bytes_->is_lazy() && !bounds_distances(); }
  // The most bytes that are missing behind any allowed token; kUnreachable where the form of the expression does not tell. O(1) once
  // known.
  uint32_t most_bytes_behind(Config config, Stacks& stacks) {
    const uint32_t known = known_most_behind(config, stacks);
    return known == kUnknown ? find_most_behind(config, stacks) : known;
  }
  // Whether so many tokens are surely enough behind any allowed token; and whether that is known without a look.
  bool is_far(Config config, uint32_t left, Stacks& stacks) { return most_bytes_behind(config, stacks) <= left; }
  bool is_known_far(Config config, uint32_t left, const Stacks& stacks) { return known_most_behind(config, stacks) <= left; }
  // An upper bound for the distance after any allowed token.
  uint32_t worst(Config config, Stacks& stacks);

  // Makes the mask of a configuration whose stack ends in `opaque`; false where that needs to know what lies below.
  bool make_mask_above(Config config, StackId opaque, Stacks& stacks);
  // What is kept for a state with stacks: a mask, or where to go on in `ask_tree()`.
  uint32_t mask_root(State state) { return info(state).mask.load(); }
  AskTree& mask_tree() { return mask_tree_; }
  // The distances of a shape's members by themselves, and of a frame.
  std::vector<uint32_t> top_distances(State state);
  uint32_t distance_of_frame(uint32_t frame);
  void adopt_stack_distances(State state, std::vector<uint32_t> tops) { tops_[state] = std::move(tops); }
  void adopt_frame_distances(std::vector<uint32_t> distances) { frame_distances_ = std::move(distances); }

  // The arcs of a configuration: (token, target) in the order of the tokens' bytes. A whole walk of the vocabulary.
  // A token that would look below the node `opaque` rests where it waits for that.
  std::vector<std::pair<uint32_t, Config>> arcs(Config config, Stacks& stacks, StackId opaque = UINT32_MAX);

  // The same of a state without stacks.
  std::vector<std::pair<uint32_t, State>> arcs(State state);

  // Writes a mask. Returns whether there is anything that is not allowed.
  bool write(MaskId id, uint32_t* out) const {
    masks_.fill(id, out);
    return masks_[id].count < masks_.vocab_size();
  }
  // Fills `out` with the tokens after which acceptance is at most `left` - 1 tokens away (the end tokens need left >= 1).
  // Returns whether there is anything that is not allowed.
  bool fill(Config config, uint32_t left, uint32_t* out, Stacks& stacks);

  // From now on masks and distances are looked up there first; in what was taken up before, too, or instead of that. `learned`
  // must be of the same program and vocabulary, and checked.
  void learn(std::shared_ptr<Learned> learned, bool instead);
  bool has_learned() const { return has_learned_.load(std::memory_order_acquire); }
  // Calls f with everything that was taken up, one after the other, while nothing changes.
  template <class F>
  void with_learned(F&& f) {
    const auto lock = locked(mutex_), masks_lock = locked(masks_mutex_);
    f(std::as_const(learned_));
  }
  // Within with_learned(): what a state is called there, and how many tokens it is from acceptance, where that is known.
  Digest digest_of(State state);
  Digest digest_of_frame(uint32_t frame) { return bytes_->expressions().digest(bytes_->stacks().frame(frame).body); }
  std::pair<uint32_t, uint32_t> known_distance(State state);
  uint32_t known_root(State state) { return state < infos_.size() ? infos_[state].mask.load() : 0; }

  size_t memory();
  // `masks_composed`: by walks and fragments; `masks_recalled`: looked up in what was learned.
  struct Stats {
    size_t states, masks_made, distinct_masks, dense_rows, fragments, frames, leaves, deepest_look, masks_composed, masks_recalled;
  };
  Stats stats();

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
  std::vector<State> reachable();

 private:
  uint32_t find_distance(Config config, Stacks& stacks);
  uint32_t find_most_behind(Config config, Stacks& stacks);

  static constexpr uint32_t kAtAll = UINT32_MAX - 1;
  static constexpr uint64_t kFirstOfText = UINT64_MAX;  // no Kind
  static constexpr uint32_t kBytesOfToken = 16;  // more than most tokens have

  size_t bytes_held() const;
  size_t held_beside() const;

  MaskId make_mask(Config config, Stacks& stacks);
  // Of what was learned; 0: it is not known.
  MaskId recall(Config config, Stacks& stacks);
  bool recall_distance(State state);
  // Whether a mask can be that of a configuration, as far as a look tells.
  bool fits(Config config, MaskId id) const;
  template <class Walk>
  void gather(Walk& walk, Config config, Gathered& gathered, Stacks& stacks);
  // What was gathered, kept as the mask of a configuration, unless it has one by now.
  MaskId keep_gathered(Config config, Stacks& stacks, Gathered& gathered, const Asked& asked);
  // Under `masks_mutex_`.
  MaskId keep_mask(Config config, Stacks& stacks, MaskId id, const Asked& asked);

  // Tokens after which acceptance is at most `farthest` tokens away (kAtAll: reachable), and the end tokens where
  // `farthest` is a budget and the configuration accepts.
  template <class Walk>
  std::vector<uint32_t> exact_tokens(Walk& walk, Config config, uint32_t farthest, Stacks& stacks);

  // Whether tokens lead from here to acceptance. Where not every byte is a token, and so never with stacks.
  template <class Walk>
  bool alive(Walk& walk, Config start);
  // The same, as far as it is known.
  Life known_life(State q);

  MaskPool masks_;
  MaskMaker mask_maker_{masks_};
  AskTree mask_tree_;
  size_t masks_made_ = 0, mask_leaves_ = 0, masks_composed_ = 0, masks_recalled_ = 0;
  std::vector<std::shared_ptr<Learned>> learned_;  // changed under both locks
  std::atomic<bool> has_learned_{false};
  Mutex mutex_;        // of distances, and of what searches for acceptance
  Mutex masks_mutex_;  // of the masks and all that is counted of them
};

}  // namespace tokenfst
