// The tokens of one configuration, uncached: what of the vocabulary is allowed there, and where it leads.
//
// A mask is gathered in this order, cheapest first:
//   1. the state's expression splits at a fragment that is already known: its row and a walk of its residuals;
//   2. what begins letter by letter, as names do, is read beside the vocabulary (chains.hpp);
//   3. a walk of the vocabulary's trie, given up when it grows wide;
//   4. a union: what its members give;
//   5. the fragment is built, once for this vocabulary; where there is none, that up to the next single byte;
//   6. the whole walk, which goes by 1 to 5 again behind nodes with very many tokens below them.
// Where one token of a class may come, the class is a row, found once for this vocabulary (a fragment without residuals).
// Any number of threads gather at once: what they share is the byte automaton, which has its own lock, and the fragments, which have
// theirs. Sets of words are walked as they are, side by side with the vocabulary. All give the same tokens. Walks run through a `Walk`: rows alone, or a Walker where there are stacks.
#pragma once

#include "masks/chains.hpp"
#include "masks/known_fragments.hpp"
#include "masks/known_splits.hpp"

namespace tokenfst {

// What a mask is made of: fragment rows with exceptions, and single tokens.
struct Gathered {
  struct Row {
    const TokenRow* tokens;  // owned by a fragment that the composition keeps
    std::vector<uint32_t> removed;
  };
  std::vector<Row> rows;
  std::vector<uint32_t> tokens;
  std::vector<std::span<const uint32_t>> neighbours;  // more tokens, as they stand in the vocabulary's trie

  void clear() { rows.clear(), tokens.clear(), neighbours.clear(); }
};

// Where tokens lead: configurations one token away, and parts whose language is part of this one's.
struct Onward {
  std::vector<Config> next, same;
  bool whole = false;  // found by a walk of the whole vocabulary
};

class Composition {
 public:
  Composition(ByteAutomaton& bytes, const Vocabulary& vocabulary, uint32_t narrow)
      : bytes_(bytes), vocabulary_(vocabulary), narrow_(narrow),
        unsplit_(static_cast<uint32_t>(std::min<uint64_t>(UINT32_MAX, uint64_t{kUnsplit} * narrow))),
        chained_(static_cast<uint32_t>(std::min<uint64_t>(UINT32_MAX, uint64_t{kChained} * narrow))), fragments_(bytes, vocabulary),
        splits_(bytes, vocabulary) {}

  // Whether tokens lead on from wherever bytes do: every byte that is read is a token, and every class of tokens that is
  // asked for has one. Then shortcuts by expression apply. With a stack whoever makes the automaton sees to the former:
  // whether tokens lead on would be a question about the whole stack.
  bool tokens_lead_on() {
    complete_ = vocabulary_.complete() || bytes_.is_pushdown();
    if (bytes_.boundary() == kNone || !complete_) return complete_;
    complete_ = bytes_.is_lazy() && !bytes_.tokens_intersected() && has_every_class();
    if (bytes_.is_pushdown() && !complete_)
      throw Error(Fault::EmptyLanguage, "no token of the vocabulary has bytes that the grammar asks one token to have");
    return complete_;
  }

  size_t memory() const { return fragments_.memory(); }
  size_t num_fragments() const { return fragments_.size(); }

  // Where a token leads whose initial form is empty.
  State after_empty() const { return vocabulary_.start_absorbs() ? bytes_.start() : bytes_.inner_start(); }
  // Whether the vocabulary spells text in another way here: at the start of some.
  bool is_first(Config config) const { return vocabulary_.has_initial() && config.state == bytes_.start(); }
  // Whether the shortcuts by expression apply: they know bytes only, and no second context.
  bool structural(Config config) const { return bytes_.is_lazy() && complete_ && !is_first(config); }

  // The special tokens that are symbols of the byte automaton, with their columns, by token.
  // Raises where one could come before the first text, whose form would then be another one.
  void adopt_specials(std::vector<std::pair<uint32_t, uint32_t>> specials) {
    specials_ = std::move(specials);
    if (!vocabulary_.has_initial() || bytes_.start() == kDead) return;
    for (auto [token, column] : specials_) {
      if (bytes_.row(bytes_.start())[column] == kDead) continue;
      throw Error(Fault::Constraint,
                  "a special token (id " + std::to_string(token) +
                      ") may come first, and this vocabulary spells the beginning of a text in its own way: let the text begin before it");
    }
  }
  const std::vector<std::pair<uint32_t, uint32_t>>& specials() const { return specials_; }
  // Where a special token leads.
  template <class Walk>
  Config special(Walk& walk, Config config, uint32_t token) const {
    auto it = std::ranges::lower_bound(specials_, token, {}, &std::pair<uint32_t, uint32_t>::first);
    return it == specials_.end() || it->first != token ? Config{} : walk.boundary(walk.next(config, it->second));
  }

  // The allowed tokens of a configuration where shortcuts apply: the union of what its members and the rests behind its
  // fragments give, each gathered once.
  template <class Walk>
  void gather(Walk& walk, Config start, Gathered& out) {
    each_special(walk, start, [&](uint32_t token, Config) { out.tokens.push_back(token); });
    if (!bytes_.is_pushdown() && bytes_.boundary() == kNone) {
      if (auto [words, state] = bytes_.expressions().words_of(bytes_.expressions().node(start.state)); words)
        return gather_words(*words, state, out);
    }
    std::vector<Place> pending{{start, 0}};
    std::set<Place> seen;
    splits_.clear();
    Pace pace(bytes_.budget().seconds, "the tokens of a mask");
    while (!pending.empty()) {
      pace.step(256);
      const Place place = pending.back();
      pending.pop_back();
      const auto [config, top] = place;
      if (is_dead(config) || !seen.insert(place).second) continue;
      NodeId node = bytes_.expressions().node(config.state);
      if (auto [text, rest] = splits_.begun(node); text != kEmpty) {
        out.rows.push_back({&fragments_.class_of(text)->row, {}});
        continue;
      }
      Split at = splits_.of(node);
      std::shared_ptr<const Fragment> fragment = at ? known_fragment(at, top) : nullptr;
      if (has_many_exits(at, fragment) && splits_.go_on(node, at)) fragment = known_fragment(at, top);
      if (!fragment || !fragment->usable) {
        if (gather_chains(walk, place, node, out, pending)) continue;
        const bool narrow = !at && !reads_letters(config.state);  // most likely: then the parts need not be known
        std::vector<NodeId> members = narrow ? std::vector<NodeId>{} : splits_.members_of(node);
        if (!any_known(members, top) && gather_walk(walk, place, at ? narrow_ : unsplit_, out)) continue;
        if (narrow) members = splits_.members_of(node);
        if (!members.empty()) {
          for (NodeId member : members) pending.emplace_back(walk.arrive(config, bytes_.expressions().intern(member)), top);
          continue;
        }
        if (at || splits_.go_on(node, at)) fragment = fragments_.make(at, top);
        if (has_many_exits(at, fragment) && splits_.go_on(node, at)) fragment = fragments_.make(at, top);
      }
      if (fragment && fragment->usable && splits_.fits(at, *fragment, top) && gather_split(walk, place, at, *fragment, out)) {
        if (splits_.exits_at_once(at)) pending.emplace_back(walk.arrive(config, bytes_.expressions().intern(at.rest)), top);
      } else {
        gather_below(walk, place, out, pending);
      }
    }
  }

  // The pairs (token, configuration it leads to), by a whole walk; end tokens apart.
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
    // A loop at the start alone leads nowhere.
    if (first && !(vocabulary_.start_absorbs() && found.empty() && !bytes_.accepting(config.state))) {
      for (uint32_t token = 0; token < vocabulary_.size(); ++token) {
        if (vocabulary_.initial()[token].empty() && !vocabulary_.tokens()[token].empty()) found.emplace_back(token, Config{after_empty()});
      }
    }
    return found;
  }

  template <class Walk>
  Onward onward(Walk& walk, Config config) {
    Onward out;
    if (!structural(config)) {
      for (auto& [token, end] : ends(walk, config)) out.next.push_back(end);
      unique(out.next);
      return out;
    }
    onward_by_bytes(walk, config, out);
    each_special(walk, config, [&](uint32_t, Config end) { out.next.push_back(end); });
    if (!specials_.empty()) unique(out.next);
    return out;
  }

 private:
  // A configuration, and the node of the vocabulary's trie that it is reached at: 0, or one with many tokens below it.
  using Place = std::pair<Config, uint32_t>;

  static constexpr uint32_t kUnsplit = 3;  // times as long may a walk be where there is no fragment to be had
  static constexpr uint32_t kChained = 24;  // times as long chains may be: no state is made for a letter
  static constexpr uint32_t kMany = 8'192;  // nodes below one, for fragments that begin there
  static constexpr uint32_t kMostApart = 16'384;  // nodes of the vocabulary where a part of a fragment differs from the whole

  // What a thread has in hand while it gathers: of one automaton at a time.
  struct Scratch {
    Chains chains;
    std::vector<Chains::Exit> exits;
    std::vector<Config> path, residual_path;
    std::vector<std::pair<uint32_t, uint32_t>> pairs;  // nodes of the vocabulary, and states of a lexicon there
  };
  static Scratch& scratch() {
    static thread_local Scratch made;
    return made;
  }

  // Whether some token is in each class that the expression asks for.
  bool has_every_class() {
    const auto texts = bytes_.expressions().with_arena([](const Arena& arena) {
      std::vector<NodeId> found;
      for (NodeId id = 0; id < arena.size(); ++id) {
        if (arena[id].kind == Kind::Token) found.push_back(arena[id].a);
      }
      return found;
    });
    return std::ranges::all_of(texts, [&](NodeId text) { return fragments_.class_of(text)->usable; });
  }
  // Calls f(token, where it leads) for each special token that leads on.
  template <class Walk, class F>
  void each_special(Walk& walk, Config config, F&& f) const {
    for (auto [token, column] : specials_) {
      if (Config end = walk.boundary(walk.next(config, column)); !is_dead(end)) f(token, end);
    }
  }

  template <class Walk>
  void onward_by_bytes(Walk& walk, Config config, Onward& out) {
    // In this order whatever is known by now: bounds depend on the way taken, and artifacts hold them (convention 10).
    NodeId node = bytes_.expressions().node(config.state);
    splits_.clear();
    if (auto [text, rest] = splits_.begun(node); text != kEmpty) {
      out.next.push_back(walk.boundary(walk.arrive(config, bytes_.expressions().intern(rest))));
      return;
    }
    if (narrow_onward(walk, config, out, narrow_)) return;
    if (auto members = splits_.members_of(node); !members.empty()) {
      for (NodeId member : members) out.same.push_back(walk.arrive(config, bytes_.expressions().intern(member)));
      return;
    }
    Split at = splits_.of(node);
    if (at.widened != kUnbounded || at.least != kEmpty) at = {};  // its places are too many to be represented
    auto fragment = at ? known_fragment(at, 0) : nullptr;
    if (at && !fragment) fragment = fragments_.make(at, 0);
    if (fragment && fragment->usable && !fragment->ambiguous && at.part == kEmpty) {
      for (size_t i = 0; i < fragment->representatives.size(); ++i) {
        if (at.counted && fragment->representative_iterations[i] > at.high) continue;
        out.next.push_back(walk.boundary(walk.run(config, vocabulary_.tokens()[fragment->representatives[i]])));
      }
      for_residuals(walk, config, at, *fragment, [&](uint32_t, Config end) { out.next.push_back(walk.boundary(end)); });
      if (splits_.exits_at_once(at)) out.same.push_back(walk.arrive(config, bytes_.expressions().intern(at.rest)));
      unique(out.next);
      return;
    }
    narrow_onward(walk, config, out, UINT32_MAX);
    out.whole = true;
  }

  static void unique(std::vector<Config>& configs) {
    std::ranges::sort(configs);
    configs.erase(std::unique(configs.begin(), configs.end()), configs.end());
  }

  // What a set of words reads from one of its states on: words and vocabulary side by side, so that no state of the byte
  // automaton is made, and only arcs that both have are looked at. O(those, times log of the vocabulary's).
  void gather_words(const Lexicon& words, uint32_t start, Gathered& out) {
    const Trie& trie = vocabulary_.trie();
    auto& pairs = scratch().pairs;
    pairs.assign(1, {0, start});
    while (!pairs.empty()) {
      const auto [node, state] = pairs.back();
      pairs.pop_back();
      const std::span<const TrieChild> children = trie.children(node);
      const std::span<const uint8_t> bytes = trie.child_bytes(node);
      auto at = bytes.begin();
      words.each_arc(state, [&](Lexicon::Arc arc) {
        at = std::lower_bound(at, bytes.end(), arc.byte);
        if (at == bytes.end() || *at != arc.byte) return;
        const TrieChild& child = children[at - bytes.begin()];
        trie.each_string(child, [&](uint32_t token) { out.tokens.push_back(token); });
        if (child.children > 0) pairs.emplace_back(child.node, arc.target);
      });
    }
  }
  // Of what begins letter by letter: the chains beside the vocabulary, and what follows them by walks; what else there is, and what
  // has very many tokens below it, is put off. False, and nothing gathered, where they are long, or there are none.
  template <class Walk>
  bool gather_chains(Walk& walk, const Place& place, NodeId node, Gathered& out, std::vector<Place>& pending) {
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
      const Config behind = walk.arrive(config, bytes_.expressions().intern(rest));
      if (is_dead(behind)) continue;
      if (index == top || trie.below(index) >= kMany) pending.emplace_back(behind, index);
      else if (!gather_walk(walk, {behind, index}, unsplit_, out)) gather_walk(walk, {behind, index}, UINT32_MAX, out);
    }
    return true;
  }
  // By a walk of the vocabulary; false, and nothing gathered, where it meets more than `limit` nodes.
  template <class Walk>
  bool gather_walk(Walk& walk, const Place& place, uint32_t limit, Gathered& out) {
    const size_t before = out.tokens.size();
    const Trie& trie = vocabulary_.trie();
    Leading<Walk> leading(walk, bytes_);
    const bool bytes_end = bytes_.boundary() == kNone;
    auto take = [&](const auto& index, Config end) {
      if (bytes_end || !is_dead(walk.boundary(end))) trie.each_string(index, [&](uint32_t token) { out.tokens.push_back(token); });
    };
    if (limit == UINT32_MAX) {
      auto stays = [&](uint32_t index, Config config) { return (vocabulary_.groups()[index] & ~fragments_.loops().of(config.state)) == 0; };
      auto below = [&](uint32_t index, Config config) {
        if (is_dead(walk.boundary(config))) return;
        const uint32_t first = trie.node(index + 1).first, last = trie.node(trie.node(index).end).first;
        out.neighbours.emplace_back(trie.strings() + first, last - first);
      };
      trie.walk(leading, place.first, scratch().path, take, [](uint32_t) {}, place.second, stays, below);
      return true;
    }
    const bool whole = trie.walk_few(leading, place.first, scratch().path, take, limit, place.second);
    if (!whole) out.tokens.resize(before);
    return whole;
  }
  // By a whole walk, but for nodes with many tokens below them, which are put off.
  template <class Walk>
  void gather_below(Walk& walk, const Place& place, Gathered& out, std::vector<Place>& pending) {
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
  template <class Walk>
  bool narrow_onward(Walk& walk, Config config, Onward& out, uint32_t limit) {
    const Trie& trie = vocabulary_.trie();
    auto take = [&](const TrieChild& at, Config end) {
      if (at.strings == 0 || is_dead(end = walk.boundary(end))) return;
      if (out.next.empty() || out.next.back() != end) out.next.push_back(end);
    };
    const bool whole = trie.walk_few(walk, config, scratch().path, take, limit);
    if (whole) unique(out.next);
    else out.next.clear();
    return whole;
  }

  // What a fragment and the rest behind it give, an exit before the first byte apart; false, and nothing gathered, where
  // the part of it that counts is another one for too many tokens.
  template <class Walk>
  bool gather_split(Walk& walk, const Place& place, const Split& at, const Fragment& fragment, Gathered& out) {
    Gathered::Row row{at.high < fragment.nested.size() ? &fragment.nested[at.high] : &fragment.row, {}};
    std::vector<uint32_t> not_left;  // entries
    if (at.excluded != kEmpty) leave_out(at, fragment, place.second, row.removed, not_left);
    else if (at.part != kEmpty && !gather_difference(walk, place, at, row.removed, out)) return false;
    if (at.widened != kUnbounded) {
      // Of tokens that come near the bounds that were left out, by trying.
      for (uint32_t token : vocabulary_.longer_than(at.widened - fragment.completion)) {
        row.removed.push_back(token);
        if (!splits_.exceeds(at, token) && !is_dead(walk.boundary(walk.run(place.first, vocabulary_.tokens()[token]))))
          out.tokens.push_back(token);
      }
      std::ranges::sort(row.removed);
    }
    const std::vector<uint32_t> apart = row.removed;
    for (size_t i = 0; row.tokens == &fragment.row && i < fragment.longest.size() && fragment.iterations[i] > at.high; ++i)
      row.removed.push_back(fragment.longest[i]);
    // Names begin behind a comma, and behind white space: what few tokens that is, is no row to be united with another one.
    if (at.excluded == kEmpty || fragment.wide || row.tokens->count > MaskPool::kMaxFlips) out.rows.push_back(std::move(row));
    else each_left(row, [&](uint32_t token) { out.tokens.push_back(token); });
    Leading<Walk> leading(walk, bytes_);
    for_residuals(leading, place.first, at, fragment, [&](uint32_t entry, Config) {
      const uint32_t token = fragment.tokens[entry];
      if (!std::ranges::binary_search(apart, token) && !std::ranges::binary_search(not_left, entry)) out.tokens.push_back(token);
    });
    return true;
  }

  // Calls f(token) for each token of a row that is not removed; those ascend.
  template <class F>
  static void each_left(const Gathered::Row& row, F&& f) {
    const std::vector<uint32_t>& words = row.tokens->words;
    for (uint32_t k = 0; k < words.size(); ++k) {
      for (uint32_t word = words[k]; word; word &= word - 1) {
        const uint32_t token = k * 32 + static_cast<uint32_t>(std::countr_zero(word));
        if (!std::ranges::binary_search(row.removed, token)) f(token);
      }
    }
  }
  // Where a fragment lacks finitely many words (Split::excluded): the tokens that are such a word, and the entries of those
  // that read one before they go on. What stays inside stays there without those words, too. Both ascending.
  void leave_out(const Split& at, const Fragment& fragment, uint32_t top, std::vector<uint32_t>& closing, std::vector<uint32_t>& entries) {
    PlainWalk walk(bytes_);
    const Trie& words = fragment.words_left(vocabulary_.tokens(), vocabulary_.trie().node(top).depth);
    auto take = [&](const TrieChild& child, Config end) {
      if (!bytes_.accepting(end.state)) return;
      words.each_string(child, [&](uint32_t word) {
        if (word < fragment.tokens.size()) entries.push_back(word);
        else closing.push_back(fragment.closing[word - fragment.tokens.size()]);
      });
    };
    words.walk_few(walk, Config{bytes_.expressions().intern(at.excluded)}, scratch().residual_path, take);
    std::ranges::sort(closing);
    std::ranges::sort(entries);
  }

  // Gathers the tokens that a part of a fragment does not share with the whole, those that are allowed, and lists all of
  // them as `apart`; false, and nothing gathered, where they are many.
  template <class Walk>
  bool gather_difference(Walk& walk, const Place& place, const Split& at, std::vector<uint32_t>& apart, Gathered& out) {
    using Pair = Difference<Walk>;
    const size_t before = out.tokens.size();
    Pair pair{walk, bytes_};
    std::vector<typename Pair::Position> path;
    const Trie& trie = vocabulary_.trie();
    auto take = [&](const TrieChild& child, const typename Pair::Position& position) {
      trie.each_string(child, [&](uint32_t token) {
        apart.push_back(token);
        if (!is_dead(position.config)) out.tokens.push_back(token);
      });
    };
    const typename Pair::Position start{place.first, bytes_.expressions().intern(at.part), bytes_.expressions().intern(at.whole), false};
    if (!trie.walk_few(pair, start, path, take, kMostApart, place.second)) {
      out.tokens.resize(before);
      return false;
    }
    std::ranges::sort(apart);
    return true;
  }

  // Calls f(entry, configuration in the rest) for each token that leaves the fragment and is read on by the rest.
  template <class Walk, class F>
  void for_residuals(Walk& walk, Config config, const Split& split, const Fragment& fragment, F&& f) {
    Config rest = walk.arrive(config, bytes_.expressions().intern(split.rest));
    const Trie& trie = *fragment.residuals;
    auto entries = [&](const auto& at, Config end) {
      trie.each_string(at, [&](uint32_t entry) {
        if (split.counted && (fragment.completed[entry] < split.low || fragment.completed[entry] > split.high)) return;
        f(entry, end);
      });
    };
    entries(0u, rest);
    trie.walk_few(walk, rest, scratch().residual_path, entries);
  }

  // Whether so many tokens leave a fragment that a longer one is better.
  static bool has_many_exits(const Split& at, const std::shared_ptr<const Fragment>& fragment) {
    return at.open && fragment && fragment->crowded;
  }
  // Whether a text may go on with any letter, as far as is known yet.
  bool reads_letters(State state) {
    const State* row = bytes_.entries(state);
    for (uint8_t letter = 'a'; letter <= 'z'; ++letter) {
      if (load_entry(row, bytes_.classes()[letter]) == kDead) return false;
    }
    return true;
  }
  // Whether some part of a union splits at a fragment that is known: then a narrow walk would be given up.
  bool any_known(const std::vector<NodeId>& members, uint32_t top) {
    return std::ranges::any_of(members, [&](NodeId member) {
      const Split at = splits_.of(member);
      const auto fragment = at ? known_fragment(at, top) : nullptr;
      return fragment && fragment->usable && fragment->wide;
    });
  }
  // The fragment that begins behind the node `top` of the vocabulary's trie. Where it leaves out bounds it is made at once: with
  // them a state is met once, and a walk that is given up made one at each of its nodes. So it is where it leaves out words: it
  // is one that all free names have, and what follows is another expression each time.
  std::shared_ptr<const Fragment> known_fragment(const Split& at, uint32_t top) {
    const bool shared = at.widened != kUnbounded || at.excluded != kEmpty;
    if (shared && narrow_ < vocabulary_.trie().num_nodes()) return fragments_.make(at, top);
    return fragments_.find(at, top);
  }

  ByteAutomaton& bytes_;
  const Vocabulary& vocabulary_;
  const uint32_t narrow_, unsplit_, chained_;  // nodes that a walk may enter where there is, and is no fragment instead
  bool complete_ = false;
  KnownFragments fragments_;
  KnownSplits splits_;
  std::vector<std::pair<uint32_t, uint32_t>> specials_;
};

}  // namespace tokenfst
