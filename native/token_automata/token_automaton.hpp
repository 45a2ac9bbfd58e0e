// The composition of a vocabulary's detokenizing transducer with a byte automaton, determinized: configurations are the
// byte automaton's states and stacks at token boundaries, and the arc of a token is a run of its bytes through the
// class table. No token arc is stored.
//
// Masks and distances are computed on first use and cached: by state, or with stacks by state and the inspected symbols
// of the stacks (decision_tree.hpp). If not every byte is a token, spelling matters: a token is allowed only if tokens
// lead from its end to acceptance, which is searched for and cached. With stacks, whoever creates the automaton must
// make sure that each byte of its words is a token.
//
// Threads. Cached results are read without a lock, and reading writes nothing. A mask is composed without a lock, in
// buffers of the thread, and stored under `masks_mutex_` unless another thread was first. A thread that needs the first
// mask of a state which another thread is computing waits for it; other threads do not wait. Distances, and whether
// tokens lead on, are computed under `mutex_`. Locks are taken in this order: the computation of a mask (InProgress),
// `mutex_`, the computation of a fragment, `masks_mutex_`, the locks of fragments, those of the byte automaton.
#pragma once

#include "byte_automata/searches.hpp"
#include "exclusion/exclusion.hpp"
#include "masks/mask_maker.hpp"
#include "token_automata/learned.hpp"
#include "token_automata/safe_texts.hpp"
#include "token_automata/token_distances.hpp"

namespace tokenfst {

class TokenAutomaton : protected TokenDistances {
 public:
  using TokenDistances::accepting;
  using TokenDistances::start;
  using TokenDistances::with_walk;

  // A walk of the vocabulary that enters at most this many trie nodes is done without a fragment.
  static constexpr uint32_t kNarrowWalk = 192;

  // `specials`: the special tokens that are symbols of the byte automaton, with their columns, ascending. `narrow`: see kNarrowWalk.
  // Raises an Error if strings must differ and the vocabulary lacks bytes, if a special token may come before a text that the
  // vocabulary spells differently at its start, or if a required class of tokens is empty in a grammar with a stack.
  TokenAutomaton(std::shared_ptr<ByteAutomaton> bytes, std::shared_ptr<const Vocabulary> vocabulary,
                 std::vector<std::pair<uint32_t, uint32_t>> specials = {}, uint32_t narrow = kNarrowWalk);
  ~TokenAutomaton();

  ByteAutomaton& bytes() const { return *bytes_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const MaskPool& masks() const { return masks_; }
  const std::vector<std::pair<uint32_t, uint32_t>>& specials() const { return composition_.specials(); }
  // Whether the vocabulary spells text differently here: at the start of a text.
  bool is_first(Config config) const { return composition_.is_first(config); }
  // The text that a token adds here: its initial form at the start of a text.
  std::string_view text_of(Config config, uint32_t token) const {
    return is_first(config) ? vocabulary_->initial()[token] : vocabulary_->tokens()[token];
  }
  // The configuration after `token`, or a dead one if there is no such arc. O(bytes of the token). An `exclusion` reads
  // the token too; then tokens that it excludes have no arc.
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
    const TextStep* text_step = bytes_->boundary() == kNone ? bytes_->text_step(config.state, token, text) : nullptr;
    const std::string_view rest = text_step ? text.substr(text_step->bytes) : text;
    if (!exclusion && !bytes_->is_pushdown())
      return PlainWalk(*bytes_).boundary({bytes_->run(text_step ? text_step->target : config.state, rest)});
    Walker walk(*bytes_, stacks);
    if (text_step)
      config = exclusion ? exclusion->text_step(*bytes_, walk, config, text.substr(0, text_step->bytes), text_step->target)
                         : walk.arrive(config, text_step->target);
    if (is_dead(config)) return config;
    return walk.boundary(exclusion ? exclusion->run(*bytes_, walk, config, rest) : walk.run(config, rest));
  }
  // Whether some token sequence leads from here to acceptance.
  bool spellable(Config config, Stacks& stacks);

  // The mask of a configuration, without a limit of tokens; its number in masks().
  MaskId mask(Config config, Stacks& stacks) {
    if (MaskId known = known_mask(config, stacks)) return known;
    return make_mask(config, stacks);
  }
  // The cached mask; 0: not computed yet.
  MaskId known_mask(Config config, Stacks& stacks) {
    uint32_t root = info(config.state).mask.load(std::memory_order_acquire);
    return bytes_->is_pushdown() ? mask_tree_->find(root, config, bytes_->stacks().count(config.state), stacks) : root;
  }

  // The distance to acceptance in tokens, or a bound of it (distances_are_least()); kUnreachable: no tokens lead there.
  uint32_t distance(Config config, Stacks& stacks) {
    if (!bytes_->is_pushdown()) {
      uint32_t known = info(config.state).distance.load(std::memory_order_acquire);
      if (known != kUnknown) return known;
    }
    return find_distance(config, stacks);
  }
  // An estimate that guides a search for a completion byte by byte: the least length in bytes or, for finished tables with stacks, the
  // distance in tokens times kBytesOfToken.
  uint32_t bytes_left(Config config, Stacks& stacks);
  // The length in bytes of some completion: an upper bound of the least one.
  uint32_t most_bytes_left(Config config, Stacks& stacks);
  // The greatest most_bytes_left() after any allowed token, or an upper bound of it.
  uint32_t worst_bytes(Config config, Stacks& stacks);
  using TokenDistances::bounds_distances;
  // Whether distances are known to be exact, and not upper bounds. Of finished artifacts it is not known, so it is false.
  bool distances_are_least() const { return bytes_->is_lazy() && !bounds_distances(); }
  // The most bytes that may be missing after any allowed token: by the form of the expression, or, without stacks, by a walk of
  // the vocabulary where the form gives no bound; kUnreachable if neither gives one. O(1) once known.
  uint32_t most_bytes_after(Config config, Stacks& stacks) {
    const uint32_t known = known_most_after(config, stacks);
    return known == kUnknown ? find_most_after(config, stacks) : known;
  }
  // The same; kUnknown, which is more than any length, if it is not known. O(1).
  uint32_t known_most_bytes_after(Config config, const Stacks& stacks) { return known_most_after(config, stacks); }
  // Whether `left` tokens surely complete a text after any allowed token; and whether this is already known.
  bool is_far(Config config, uint32_t left, Stacks& stacks) { return most_bytes_after(config, stacks) <= left; }
  bool is_known_far(Config config, uint32_t left, const Stacks& stacks) { return known_most_after(config, stacks) <= left; }
  // The safe text of a configuration (safe_texts.hpp) and the fewest tokens that spell it; kUnreachable: there is none.
  std::string safe_text(Config config);
  uint32_t safe_tokens(Config config);
  // Whether each token after which acceptance is at most `left` tokens away leads to a safe text of at most `left`
  // tokens. A walk of the vocabulary, once for each state.
  bool safely_fits(Config from, uint32_t left, Stacks& stacks);

  // Whether a state reads all tokens below a node of the vocabulary's trie without leaving the state or changing stacks.
  bool stays_below(uint32_t node, State state) { return (vocabulary_->groups()[node] & ~composition_.loops(state)) == 0; }

  // An upper bound of the distance after any allowed token.
  uint32_t worst(Config config, Stacks& stacks);

  // Computes the mask of a configuration whose stack ends in `opaque`; returns false if the mask depends on the stack below
  // that node.
  bool make_mask_above(Config config, StackId opaque, Stacks& stacks);
  // The cached value of a state with stacks: a mask, or an inner node of `mask_tree()`.
  uint32_t mask_root(State state) { return info(state).mask.load(); }
  DecisionTree& mask_tree() { return *mask_tree_; }  // only with stacks
  // The distances of a shape's members, each without the stack below it, and that of a frame.
  std::vector<uint32_t> top_distances(State state);
  uint32_t distance_of_frame(uint32_t frame);
  // For finished artifacts: sets these distances.
  void adopt_stack_distances(State state, std::vector<uint32_t> tops) { tops_[state] = std::move(tops); }
  void adopt_frame_distances(std::vector<uint32_t> distances) { frame_distances_ = std::move(distances); }

  // The arcs of a configuration: (token, target) in the order of the tokens' bytes, by a walk of the whole vocabulary.
  // A token that has to inspect the node `opaque` ends in the state that waits for it. Raises an Error if strings must differ.
  std::vector<std::pair<uint32_t, Config>> arcs(Config config, Stacks& stacks, StackId opaque = UINT32_MAX);

  // The same for a state without stacks.
  std::vector<std::pair<uint32_t, State>> arcs(State state);

  // Writes a mask. Returns whether any token is forbidden.
  bool write(MaskId id, uint32_t* out) const {
    masks_.fill(id, out);
    return masks_[id].count < masks_.vocab_size();
  }
  // Writes the tokens after which acceptance is at most `left` - 1 tokens away (the end tokens need left >= 1). Returns
  // whether any token is forbidden.
  bool fill(Config config, uint32_t left, uint32_t* out, Stacks& stacks);

  // Uses learned facts from now on: masks and distances are looked up there first; in addition to those taken before,
  // or `instead` of them. `learned` must belong to the same program and vocabulary, and have been checked.
  void learn(std::shared_ptr<Learned> learned, bool instead);
  bool has_learned() const { return has_learned_.load(std::memory_order_acquire); }
  // Calls f with all learned facts that are in use, while they cannot change.
  template <class F>
  void with_learned(F&& f) {
    const auto lock = locked(mutex_), masks_lock = locked(masks_mutex_);
    f(std::as_const(learned_));
  }
  // Within with_learned(): the digest of a state, and its distance in tokens, if known.
  Digest digest_of(State state);
  Digest digest_of_frame(uint32_t frame) { return bytes_->expressions().digest(bytes_->stacks().frame(frame).body); }
  std::pair<uint32_t, uint32_t> known_distance(State state);
  // The cached value of a state, as mask_root(); 0: none.
  uint32_t known_root(State state) { return state < infos_.size() ? infos_[state].mask.load() : 0; }

  // The bytes of this automaton and of its byte automaton.
  size_t memory();
  // `masks_made`: states with a mask; `distinct_masks` and `dense_rows`: of the pool; `leaves` and `deepest_look`: leaves and greatest
  // depth of the decision trees; `masks_composed`: computed by walks and fragments; `masks_recalled`: found in learned facts.
  struct Stats {
    size_t states, masks_made, distinct_masks, dense_rows, fragments, frames, leaves, deepest_look, masks_composed, masks_recalled;
  };
  Stats stats();

  // For finished artifacts: the pool to fill, and what is known about a state.
  MaskPool& adopt_masks() { return masks_; }
  void adopt_state(State state, MaskId mask, uint32_t distance, uint32_t worst) {
    Info& entry = info(state);
    entry.mask.store(mask);
    entry.worst = worst;
    entry.distance.store(distance);
    ++masks_made_;
  }

  // DEAD, then the states that token sequences reach from the start, in breadth-first order (if every byte is a token: the
  // states that bytes reach). For automata without stacks.
  std::vector<State> reachable();

 private:
  uint32_t find_distance(Config config, Stacks& stacks);
  uint32_t find_most_after(Config config, Stacks& stacks);

  static constexpr uint32_t kAtAll = UINT32_MAX - 1;
  static constexpr uint64_t kFirstOfText = UINT64_MAX;  // not a Kind
  static constexpr uint32_t kBytesOfToken = 16;  // more than most tokens have

  size_t bytes_held() const;
  size_t held_beside() const;

  MaskId make_mask(Config config, Stacks& stacks);
  // Looks a mask up in learned facts; 0: not known.
  MaskId recall(Config config, Stacks& stacks);
  bool recall_distance(State state);
  // Whether a mask can belong to a configuration, as far as a quick check shows.
  bool fits(Config config, MaskId id) const;
  template <class Walk>
  void gather(Walk& walk, Config config, MaskParts& gathered, Stacks& stacks);
  // Stores the collected parts as the mask of a configuration, unless it has one by now.
  MaskId keep_gathered(Config config, Stacks& stacks, MaskParts& gathered, const InspectedNodes& asked);
  // To be called under `masks_mutex_`.
  MaskId keep_mask(Config config, Stacks& stacks, MaskId id, const InspectedNodes& asked);

  // Collects the tokens after which acceptance is at most `farthest` tokens away (kAtAll: reachable), and the end
  // tokens if `farthest` is a limit and the configuration accepts.
  template <class Walk>
  std::vector<uint32_t> exact_tokens(Walk& walk, Config config, uint32_t farthest, Stacks& stacks);

  // Whether a configuration may have a safe text (safe_texts.hpp); and, under `mutex_`, its text.
  bool has_safe_text(Config config) const {
    return complete_ && bytes_->boundary() == kNone && !bytes_->marks().facts.values && !composition_.is_first(config) &&
           bytes_->stacks().count(config.state) == 0;
  }
  const SafeTexts::Text& find_safe_text(State state) {
    return safe_texts_.of(state, [this](Config config, Stacks& stacks) { return bytes_of(config, stacks); });
  }
  // `Grade`: the tokens after which acceptance is equally far away. `Unsafe`: a place after a token whose safe text has more tokens than
  // the distance.
  struct Grade {
    uint32_t distance;
    MaskId tokens;
  };
  struct Unsafe {
    uint32_t distance, safe;
  };
  struct SafeEnds {
    uint32_t longest = 0;  // of the safe texts after tokens
    std::vector<Unsafe> unsafe;
  };
  const SafeEnds& find_safe_ends(Config from, Stacks& stacks);
  // Under `mutex_`, for a configuration without stacks: its tokens by distance, ascending.
  const std::vector<Grade>& grades(Config config, Stacks& stacks);

  // Whether tokens lead from here to acceptance. Only if not every byte is a token, and so never with stacks.
  template <class Walk>
  bool alive(Walk& walk, Config start);
  // The same, if it is known.
  Life known_life(State q);

  MaskPool masks_;
  MaskMaker mask_maker_{masks_};
  SafeTexts safe_texts_{*bytes_, *vocabulary_};
  std::unordered_map<State, SafeEnds> safe_ends_;
  std::unordered_map<State, std::vector<Grade>> grades_;
  static constexpr size_t kEntry = 64;        // bytes of an entry of these two maps, without its vector
  std::atomic<size_t> known_bytes_{0};        // bytes of these two maps
  const std::unique_ptr<DecisionTree> mask_tree_ = DecisionTree::of(*bytes_);
  size_t masks_made_ = 0, mask_leaves_ = 0, masks_composed_ = 0, masks_recalled_ = 0;
  std::vector<std::shared_ptr<Learned>> learned_;  // changed only under both locks
  std::atomic<bool> has_learned_{false};
  Mutex mutex_;        // protects distances and searches for acceptance
  Mutex masks_mutex_;  // protects the masks and everything that is counted about them
};

}  // namespace tokenfst
