// The tokens of one configuration, uncached: which tokens of the vocabulary are allowed there, and where they lead.
//
// The parts of a mask are collected in this order, the cheapest way first:
//   1. the state's expression splits at a fragment that is already known: its row, and a walk of its residuals;
//   2. text that is read letter by letter, such as names, is matched against the vocabulary (chains.hpp);
//   3. a walk of the vocabulary's trie, which is given up when it becomes wide;
//   4. a union: the tokens of its members; and where rules are called first, the tokens of their bodies;
//   5. the fragment is built, once for each vocabulary; if it is not usable, the one up to the next single byte, or up to a
//      byte that all paths through the expression meet;
//   6. an optional loop, such as white space, and what follows it, each by itself;
//   7. a complete walk, which returns to ways 1 to 6 at nodes with very many tokens below them.
//
// If one token of a class may come, the class is a row, computed once for each vocabulary (a fragment without residuals). Sets of
// words are walked together with the vocabulary. Any number of threads may compute masks at once: they share the byte automaton and
// the fragments, which have their own locks. All ways give the same tokens. The parameter `walk` runs configurations: a PlainWalk, or
// a Walker if there are stacks. Functions raise BudgetExceeded.
#pragma once

#include "masks/chains.hpp"
#include "masks/fragment_tokens.hpp"
#include "masks/known_fragments.hpp"
#include "masks/known_splits.hpp"
#include "masks/mask_parts.hpp"
#include "masks/token_targets.hpp"

namespace tokenfst {

class Composition {
 public:
  using Place = FragmentTokens::Place;

  Composition(ByteAutomaton& bytes, const Vocabulary& vocabulary, uint32_t narrow)
      : bytes_(bytes), vocabulary_(vocabulary), narrow_(narrow),
        unsplit_(static_cast<uint32_t>(std::min<uint64_t>(UINT32_MAX, uint64_t{kUnsplit} * narrow))),
        chained_(static_cast<uint32_t>(std::min<uint64_t>(UINT32_MAX, uint64_t{kChained} * narrow))), fragments_(bytes, vocabulary),
        splits_(bytes, vocabulary), fragment_tokens_(bytes, vocabulary, splits_) {}

  // Whether tokens lead on wherever bytes do: every byte that is read is a token, and every class of tokens that an
  // expression requires has a token. Then shortcuts by expression apply. With a stack, whoever creates the automaton
  // guarantees the former, because whether tokens lead on would depend on the whole stack. Call this once, first. Raises an
  // Error (EmptyLanguageError) for a grammar with a stack if a class has no token.
  bool tokens_lead_on() {
    complete_ = vocabulary_.complete() || bytes_.is_pushdown();
    if (bytes_.boundary() == kNone || !complete_) return complete_;
    complete_ = bytes_.is_lazy() && !bytes_.tokens_intersected() && has_every_class();
    if (bytes_.is_pushdown() && !complete_)
      throw Error(Fault::EmptyLanguage, "no token of the vocabulary has the bytes that the grammar requires of one token");
    return complete_;
  }

  size_t memory() const { return fragments_.memory(); }
  size_t num_fragments() const { return fragments_.size(); }
  // The groups of bytes that lead from a state back to it (self_loops.hpp).
  ByteGroups loops(State state) { return fragments_.loops().of(state); }

  // The state after a token whose initial form is empty.
  State after_empty() const { return vocabulary_.start_absorbs() ? bytes_.start() : bytes_.inner_start(); }
  // Whether the vocabulary spells text differently here: at the start of a text.
  bool is_first(Config config) const { return vocabulary_.has_initial() && config.state == bytes_.start(); }
  // Whether shortcuts by expression apply: they use bytes only, and one form of each token.
  bool structural(Config config) const { return bytes_.is_lazy() && complete_ && !is_first(config); }

  // Sets the special tokens that are symbols of the byte automaton, with their columns, by token. Raises if one could come before
  // the first text, because that text would then have a different form.
  void adopt_specials(std::vector<std::pair<uint32_t, uint32_t>> specials) {
    specials_ = std::move(specials);
    if (!vocabulary_.has_initial() || bytes_.start() == kDead) return;
    for (auto [token, column] : specials_) {
      if (bytes_.row(bytes_.start())[column] == kDead) continue;
      throw Error(Fault::Constraint,
                  "a special token (id " + std::to_string(token) +
                      ") may come first, and this vocabulary spells the beginning of a text differently: let some text come before it");
    }
  }
  const std::vector<std::pair<uint32_t, uint32_t>>& specials() const { return specials_; }
  // The configuration after a special token, or a dead one.
  template <class Walk>
  Config special(Walk& walk, Config config, uint32_t token) const {
    auto it = std::ranges::lower_bound(specials_, token, {}, &std::pair<uint32_t, uint32_t>::first);
    return it == specials_.end() || it->first != token ? Config{} : walk.boundary(walk.next(config, it->second));
  }

  // Collects the allowed tokens of a configuration, for which structural() must hold: the union of the tokens of its
  // members and of the expressions after its fragments, each collected once. End tokens are left out.
  template <class Walk>
  void gather(Walk& walk, Config start, MaskParts& out) {
    each_special(walk, start, [&](uint32_t token, Config) { out.tokens.push_back(token); });
    if (!bytes_.is_pushdown() && bytes_.boundary() == kNone) {
      if (auto [words, state] = bytes_.expressions().words_of(bytes_.expressions().node(start.state)); words)
        return gather_words(vocabulary_.trie(), *words, state, out);
    }
    std::vector<Place>&pending = scratch().pending, &seen = scratch().seen;
    pending.assign(1, {start, 0}), seen.clear();
    splits_.clear();
    TimeLimit time_limit(bytes_.budget().seconds, "the tokens of a mask");
    while (!pending.empty()) {
      time_limit.step(256);
      const Place place = pending.back();
      pending.pop_back();
      const auto [config, top] = place;
      if (is_dead(config) || !insert(seen, place)) continue;
      NodeId node = bytes_.expressions().node(config.state);
      if (auto [text, rest] = splits_.begun(node); text != kEmpty) {
        out.rows.push_back({&fragments_.class_of(text)->row, {}});
        continue;
      }
      Split at = splits_.of(node);
      std::shared_ptr<const Fragment> fragment = at ? known_fragment(at, top) : nullptr;
      if (has_many_exits(at, fragment) && leaves_no_word(walk, config, at)) fragment = known_fragment(at, top);
      if (has_many_exits(at, fragment) && splits_.go_on(node, at)) fragment = known_fragment(at, top);
      if (!fragment || !fragment->usable) {
        if (gather_chains(walk, place, node, out, pending)) continue;
        const bool narrow = !at && !reads_letters(config.state);  // very likely; then the parts need not be known
        std::vector<NodeId> members = narrow ? std::vector<NodeId>{} : splits_.members_of(node);
        const bool wide = members.empty() && (at ? fragment != nullptr : !narrow);  // a walk would be given up
        Split common = wide ? splits_.up_to_common_byte(node) : Split{};
        if (const auto known = common ? fragments_.find(common, top) : nullptr; known && known->usable) {
          at = common, fragment = known;
        } else {
          // A walk that would be given up is left out where rules are called first, or after a loop.
          const uint32_t limit = at ? narrow_ : unsplit_;
          const bool given_up = wide && vocabulary_.trie().below(top) > limit && reads_letters(config.state);
          std::vector<Config> unfolded = given_up && !at ? unfold(walk, place, node) : std::vector<Config>{};
          const bool skips_walk = given_up && (at ? !splits_.around_loop(node).empty() : !unfolded.empty());
          if (!skips_walk && !any_known(members, top) && gather_walk(walk, place, limit, out)) continue;
          if (narrow) members = splits_.members_of(node);
          if (!members.empty()) {
            for (NodeId member : members) pending.emplace_back(walk.arrive(config, bytes_.expressions().intern(member)), top);
            continue;
          }
          if (!at && !given_up) unfolded = unfold(walk, place, node);
          if (!unfolded.empty()) {
            for (Config each : unfolded) pending.emplace_back(each, top);
            continue;
          }
          if (at || splits_.go_on(node, at)) fragment = fragments_.make(at, top);
          if (has_many_exits(at, fragment) && leaves_no_word(walk, config, at)) fragment = fragments_.make(at, top);
          if (has_many_exits(at, fragment) && splits_.go_on(node, at)) fragment = fragments_.make(at, top);
          if (!fragment || !fragment->usable) {
            if (!wide) common = splits_.up_to_common_byte(node);
            if (common) fragment = fragments_.make(at = common, top);
          }
        }
      }
      if (fragment && fragment->usable && splits_.fits(at, *fragment, top) && fragment_tokens_.gather(walk, place, at, *fragment, out)) {
        if (splits_.exits_at_once(at)) pending.emplace_back(walk.arrive(config, bytes_.expressions().intern(at.rest)), top);
      } else if (const std::vector<NodeId> members = splits_.around_loop(node); !members.empty()) {
        for (NodeId member : members) pending.emplace_back(walk.arrive(config, bytes_.expressions().intern(member)), top);
      } else {
        gather_below(walk, place, out, pending);
      }
    }
  }

  // The pairs (token, target) by a walk of the whole vocabulary, without end tokens.
  template <class Walk>
  std::vector<std::pair<uint32_t, Config>> ends(Walk& walk, Config config) {
    std::vector<std::pair<uint32_t, Config>> found;
    if (is_dead(config)) return found;
    bool first = is_first(config);
    const Trie& trie = first ? vocabulary_.initial_trie() : vocabulary_.trie();
    each_special(walk, config, [&](uint32_t token, Config end) { found.emplace_back(token, end); });
    auto take = [&](uint32_t index, Config end) {
      if (trie.node(index).first == trie.node(index + 1).first || is_dead(end = walk.boundary(end))) return;
      trie.each_string(index, [&](uint32_t token) { found.emplace_back(token, end); });
    };
    trie.walk(walk, config, scratch().path, take, [](uint32_t) {});
    // If only the loop at the start is left, it leads nowhere.
    if (first && !(vocabulary_.start_absorbs() && found.empty() && !bytes_.accepting(config.state))) {
      for (uint32_t token = 0; token < vocabulary_.size(); ++token) {
        if (vocabulary_.initial()[token].empty() && !vocabulary_.tokens()[token].empty()) found.emplace_back(token, Config{after_empty()});
      }
    }
    return found;
  }

  // The configurations that tokens lead to (token_targets.hpp). If `walks` is false, a walk of the whole vocabulary is not made.
  template <class Walk>
  TokenTargets onward(Walk& walk, Config config, bool walks = true) {
    TokenTargets out;
    if (!structural(config)) {
      for (auto& [token, end] : ends(walk, config)) out.next.push_back(end);
      out.sort();
      return out;
    }
    onward_by_bytes(walk, config, out, walks);
    each_special(walk, config, [&](uint32_t, Config end) { out.next.push_back(end); });
    if (!specials_.empty()) out.sort();
    return out;
  }

 private:
  static constexpr uint32_t kUnsplit = 3;  // how many times longer than `narrow` a walk may be if there is no fragment
  static constexpr uint32_t kChained = 24;  // how many times longer chains may be, since they create no state for a letter
  static constexpr uint32_t kSome = 3;  // a fragment may begin at the end of a chain with at least `narrow` / kSome nodes below it
  static constexpr uint32_t kMany = 8'192;  // a fragment may begin at a node with at least so many nodes below it

  // The buffers of a thread while it computes a mask, for one automaton at a time.
  struct Scratch {
    Chains chains;
    std::vector<Chains::Exit> exits;
    std::vector<Place> pending, seen;  // places still to be visited; and visited ones, in ascending order
    std::vector<Config> path;
  };
  static Scratch& scratch() {
    static thread_local Scratch made;
    return made;
  }

  // Whether each class that the expression requires has a token.
  bool has_every_class() {
    const auto texts = bytes_.expressions().with_arena([](Arena& arena) {
      std::vector<NodeId> found;
      for (const Node& node : arena.all()) {
        if (node.kind == Kind::Token) found.push_back(node.a);
      }
      return found;
    });
    return std::ranges::all_of(texts, [&](NodeId text) { return fragments_.class_of(text)->usable; });
  }
  // Calls f(token, target) for each special token that leads on.
  template <class Walk, class F>
  void each_special(Walk& walk, Config config, F&& f) const {
    for (auto [token, column] : specials_) {
      if (Config end = walk.boundary(walk.next(config, column)); !is_dead(end)) f(token, end);
    }
  }

  // Tells whether all tokens below a node of the vocabulary are read in a state, without leaving it or touching stacks.
  auto staying() {
    return [this](uint32_t index, Config config) { return (vocabulary_.groups()[index] & ~loops(config.state)) == 0; };
  }

  template <class Walk>
  void onward_by_bytes(Walk& walk, Config config, TokenTargets& out, bool walks) {
    // Always in this order, whatever is cached: bounds depend on it, and artifacts contain them (convention 10).
    NodeId node = bytes_.expressions().node(config.state);
    splits_.clear();
    if (auto [text, rest] = splits_.begun(node); text != kEmpty) {
      out.next.push_back(walk.boundary(walk.arrive(config, bytes_.expressions().intern(rest))));
      return;
    }
    if (out.gather_few(vocabulary_.trie(), walk, config, scratch().path, narrow_)) return;
    if (auto members = splits_.members_of(node); !members.empty()) {
      for (NodeId member : members) out.same.push_back(walk.arrive(config, bytes_.expressions().intern(member)));
      return;
    }
    Split at = splits_.of(node);
    if (at.widened != kUnbounded || at.least != kEmpty) at = {};  // it leads to too many places for representatives
    auto fragment = at ? known_fragment(at, 0) : nullptr;
    if (at && !fragment) fragment = fragments_.make(at, 0);
    if (fragment && fragment->usable && !fragment->ambiguous && at.part == kEmpty) {
      const bool exits_at_once = splits_.exits_at_once(at);
      for (size_t i = 0; i < fragment->representatives.size(); ++i) {
        if (at.counted && fragment->representative_iterations[i] > at.high) continue;
        const auto& token = vocabulary_.tokens()[fragment->representatives[i]];
        // If the fragment can be left at once, the representative may also be a token of what follows, while the others are not.
        const Config end = exits_at_once ? walk.arrive(config, splits_.inside(at, token)) : walk.run(config, token);
        out.next.push_back(walk.boundary(end));
      }
      fragment_tokens_.for_residuals(walk, config, at, *fragment, [&](uint32_t, Config end) { out.next.push_back(walk.boundary(end)); });
      if (exits_at_once) out.same.push_back(walk.arrive(config, bytes_.expressions().intern(at.rest)));
      out.sort();
      return;
    }
    if (walks) out.gather_all(vocabulary_.trie(), walk, config, scratch().path, staying());
    else out.whole = true;
  }

  // Adds a place to an ascending list; returns whether it is new.
  static bool insert(std::vector<Place>& places, const Place& place) {
    const auto at = std::ranges::lower_bound(places, place);
    if (at != places.end() && *at == place) return false;
    places.insert(at, place);
    return true;
  }

  // Collects tokens along chains, and by walks of the expressions that follow them. Other parts, and nodes with very many tokens below
  // them, are added to `pending`. Returns false, having collected nothing, if the chains are long, or if there are none.
  template <class Walk>
  bool gather_chains(Walk& walk, const Place& place, NodeId node, MaskParts& out, std::vector<Place>& pending) {
    if (bytes_.boundary() != kNone) return false;
    const Trie& trie = vocabulary_.trie();
    const auto [config, top] = place;
    const size_t before = out.tokens.size();
    Chains& chains = scratch().chains;
    std::vector<Chains::Exit>& exits = scratch().exits;
    exits.clear();
    const bool whole = bytes_.expressions().with_arena([&](Arena& arena, Unordered& unordered) {
      return Chains::begins(arena, node) && chains.read(arena, unordered, trie, node, top, chained_, exits, [&](const TrieChild& at) {
        trie.each_string(at, [&](uint32_t token) { out.tokens.push_back(token); });
      });
    });
    if (!whole) {
      out.tokens.resize(before);
      return false;
    }
    for (const auto& [index, rest] : exits) {
      const Config after = walk.arrive(config, bytes_.expressions().intern(rest));
      if (is_dead(after)) continue;
      if (index == top || trie.below(index) >= kMany || begins_fragment(after, index)) pending.emplace_back(after, index);
      else if (!gather_walk(walk, {after, index}, unsplit_, out)) gather_walk(walk, {after, index}, UINT32_MAX, out);
    }
    return true;
  }
  // Collects tokens by a walk of the vocabulary; returns false, having collected nothing, if it visits more than `limit` nodes.
  template <class Walk>
  bool gather_walk(Walk& walk, const Place& place, uint32_t limit, MaskParts& out) {
    const size_t before = out.tokens.size();
    const Trie& trie = vocabulary_.trie();
    Leading<Walk> leading(walk, bytes_);
    const bool bytes_end = bytes_.boundary() == kNone;
    auto take = [&](const auto& index, Config end) {
      if (bytes_end || !is_dead(walk.boundary(end))) trie.each_string(index, [&](uint32_t token) { out.tokens.push_back(token); });
    };
    if (limit == UINT32_MAX) {
      auto below = [&](uint32_t index, Config config) {
        if (is_dead(walk.boundary(config))) return;
        const uint32_t first = trie.node(index + 1).first, last = trie.node(trie.node(index).end).first;
        out.neighbours.emplace_back(trie.strings() + first, last - first);
      };
      trie.walk(leading, place.first, scratch().path, take, [](uint32_t) {}, place.second, staying(), below);
      return true;
    }
    const bool whole = trie.walk_few(leading, place.first, scratch().path, take, limit, place.second);
    if (!whole) out.tokens.resize(before);
    return whole;
  }
  // Collects tokens by a complete walk, except below nodes with very many tokens, which are added to `pending`.
  template <class Walk>
  void gather_below(Walk& walk, const Place& place, MaskParts& out, std::vector<Place>& pending) {
    const Trie& trie = vocabulary_.trie();
    const auto [config, top] = place;
    for (const TrieChild& at : trie.children(top)) {
      const uint32_t child = at.node;
      const Config next = walk.next(config, walk.classes()[trie.node(child).byte]);
      if (is_dead(next)) continue;
      if (!is_dead(walk.boundary(next))) trie.each_string(at, [&](uint32_t token) { out.tokens.push_back(token); });
      if (trie.below(child) >= kMany) pending.emplace_back(next, child);
      else gather_walk(walk, {next, child}, UINT32_MAX, out);
    }
  }
  // Whether so many tokens leave a fragment that a longer one is better.
  static bool has_many_exits(const Split& at, const std::shared_ptr<const Fragment>& fragment) {
    return at.open && fragment && fragment->crowded;
  }
  // Whether a usable fragment begins at a node of the vocabulary at the end of a chain. It is built if the same fragment is known at the
  // beginning of tokens: the inside of a string, for example, also comes after its quotation mark.
  bool begins_fragment(Config after, uint32_t index) {
    if (vocabulary_.trie().below(index) < narrow_ / kSome || !structural(after)) return false;
    const Split at = splits_.of(bytes_.expressions().node(after.state));
    if (!at || at.open || at.counted || at.widened != kUnbounded || at.least != kEmpty) return false;
    std::shared_ptr<const Fragment> fragment = fragments_.find(at, index);
    if (!fragment && fragments_.is_shared(at)) fragment = fragments_.make(at, index);
    return fragment && fragment->usable;
  }
  // Whether no token leaves a fragment before a word byte, since the expression after the fragment begins with none; sets the split's
  // no_word_after then.
  template <class Walk>
  bool leaves_no_word(Walk& walk, Config config, Split& at) {
    if (at.no_word_after || at.counted || at.least != kEmpty || at.widened != kUnbounded) return false;
    const Config after = walk.arrive(config, bytes_.expressions().intern(at.rest));
    if (is_dead(after)) return false;
    const State* row = bytes_.entries(after.state);
    at.no_word_after = true;
    for (uint32_t byte = 0; byte <= 0xff && at.no_word_after; ++byte)
      at.no_word_after = !is_word_byte(static_cast<uint8_t>(byte)) || load_entry(row, bytes_.classes()[byte]) == kDead;
    return at.no_word_after;
  }
  // Whether a configuration begins with a fragment that is usable and serves all automata, if it begins with one.
  template <class Walk>
  bool begins_shared(Walk& walk, Config config, uint32_t top) {
    Split at = splits_.of(bytes_.expressions().node(config.state));
    if (!at || fragments_.serves_all(at, top)) return true;
    if (at.open && leaves_no_word(walk, config, at) && fragments_.serves_all(at, top)) return true;
    return std::exchange(at.open, false) && fragments_.serves_all(at, top);
  }
  // Where rules are called first: the configurations of their bodies, if each of these splits at a fragment that serves all automata,
  // or follows an optional loop, or begins with no fragment; else none.
  template <class Walk>
  std::vector<Config> unfold(Walk& walk, const Place& place, NodeId node) {
    std::vector<Config> found;
    for (NodeId member : splits_.members_of(node, true)) {
      const Config each = walk.arrive(place.first, bytes_.expressions().intern(member));
      if (is_dead(each)) continue;
      found.push_back(each);
      if (!begins_shared(walk, each, place.second) && splits_.around_loop(bytes_.expressions().node(each.state)).empty()) return {};
    }
    return found;
  }
  // Whether a text may continue with any small letter, as far as is known; pending entries count as continuing.
  bool reads_letters(State state) {
    const State* row = bytes_.entries(state);
    for (uint8_t letter = 'a'; letter <= 'z'; ++letter) {
      if (load_entry(row, bytes_.classes()[letter]) == kDead) return false;
    }
    return true;
  }
  // Whether some part of a union splits at a known fragment: then a narrow walk would be given up.
  bool any_known(const std::vector<NodeId>& members, uint32_t top) {
    return std::ranges::any_of(members, [&](NodeId member) {
      const Split at = splits_.of(member);
      const auto fragment = at ? known_fragment(at, top) : nullptr;
      return fragment && fragment->usable && fragment->wide;
    });
  }
  // The fragment that begins at the node `top` of the vocabulary's trie; null if it is not known. If the fragment lacks bounds, it is
  // built at once: with bounds, hardly any state occurs twice, and a walk that is given up would create one at each of its nodes. It
  // is also built at once if words are excluded: all free names share one fragment, but different expressions follow them.
  std::shared_ptr<const Fragment> known_fragment(const Split& at, uint32_t top) {
    const bool shared = at.widened != kUnbounded || at.excluded != kEmpty;
    if (shared && narrow_ < vocabulary_.trie().num_nodes()) return fragments_.make(at, top);
    return fragments_.find(at, top);
  }

  ByteAutomaton& bytes_;
  const Vocabulary& vocabulary_;
  const uint32_t narrow_, unsplit_, chained_;  // nodes that a walk may enter: with a fragment, without one, along chains
  bool complete_ = false;
  KnownFragments fragments_;
  KnownSplits splits_;
  FragmentTokens fragment_tokens_;
  std::vector<std::pair<uint32_t, uint32_t>> specials_;
};

}  // namespace tokenfst
