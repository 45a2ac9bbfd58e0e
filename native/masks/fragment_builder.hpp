// Builds a fragment: one walk of the vocabulary's trie from the fragment's start state.
//
// The walk begins in the coarsest trie (vocabulary/coarse_trie.hpp), where one step serves all tokens with bytes of the
// same groups, and continues in a finer one below the nodes at which a state distinguishes bytes of a group. Tokens are
// recorded as ranges of a trie's strings, and put into the row at the end: either those that stay inside are added, or
// the others are removed from the set of all, whichever are fewer.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "vocabulary/masks.hpp"
#include "vocabulary/vocabulary.hpp"

namespace tokenfst {

class FragmentBuilder {
 public:
  // Beyond the first two limits a fragment is not worthwhile, and plain walks are used instead.
  static constexpr size_t kMaxEntries = 8'192;  // residuals: sorting more takes longer than a walk of the whole vocabulary
  static constexpr size_t kMaxNested = 256;       // rows for counts
  static constexpr ptrdiff_t kNarrowRow = 64;     // words of a row: below this, few walks of the vocabulary find its tokens

  // For one fragment. `top`: the node of the vocabulary's trie at which the fragment begins.
  FragmentBuilder(ByteAutomaton& automaton, SelfLoops& loops, const Vocabulary& vocabulary, const Split& split, uint32_t top)
      : automaton_(automaton), loops_(loops), vocabulary_(vocabulary), rows_{{{automaton, kCoarse}, {automaton, kHexadecimal}}},
        split_(split), top_(top) {
    tries_ = {&vocabulary.coarse_tries()[0].trie(), &vocabulary.coarse_tries()[1].trie(), &vocabulary.trie()};
    groups_ = {&vocabulary.coarse_tries()[0].groups(), &vocabulary.coarse_tries()[1].groups(), &vocabulary.groups()};
  }

  // Builds it; the result is not `usable` if it is not worthwhile. Raises BudgetExceeded.
  std::shared_ptr<const Fragment> build() {
    auto fragment = std::make_shared<Fragment>();
    start_ = automaton_.expressions().intern(split_.fragment);
    loop_ = automaton_.expressions().intern(split_.loop);
    end_ = automaton_.expressions().intern(kEpsilon);
    if (start_ == kDead || (split_.counted && !counts_are_unique())) return fragment;
    // If each iteration is one character, the number of characters is the number of iterations.
    if (split_.counted) one_each_ = loops_.once(loop_);
    const size_t depths = tries_[kFinest]->max_depth() + 1;
    path_.resize(depths), step_.resize(depths), bytes_.resize(depths), counts_.resize(depths), exits_.resize(depths);
    const auto [level, top] = coarsest_top();
    walk(level, top, start_);
    fragment->crowded = overflow_ || suffixes_.size() > Fragment::kManyExits;
    if (overflow_ || broken_ || !finish(*fragment)) {
      auto none = std::make_shared<Fragment>();
      none->crowded = fragment->crowded;
      none->too_large = overflow_ && !split_.open;
      return none;
    }
    fragment->usable = true;
    fragment->wide = std::ranges::count(fragment->row.words, 0u) + kNarrowRow < static_cast<ptrdiff_t>(fragment->row.words.size());
    return fragment;
  }

 private:
  static constexpr size_t kFinest = Vocabulary::kCoarseTries;
  // A range of strings of one of the tries.
  struct Strings {
    size_t level;
    uint32_t first, last;
    uint32_t size() const { return last - first; }
  };
  struct Inside {
    Strings strings;
    State state;
    uint16_t iterations;
  };

  // The coarsest trie that has a node for `top_` alone, and that node.
  std::pair<size_t, uint32_t> coarsest_top() const {
    uint32_t index = top_;
    for (size_t level = kFinest; level > 0; --level) {
      const CoarseTrie& coarser = vocabulary_.coarse_tries()[level - 1];
      const Trie& trie = *tries_[level];
      uint32_t found = 0;
      for (uint32_t at = 0; at != index;) {
        const auto children = trie.children(at);
        at = std::ranges::find_if(children, [&](const TrieChild& child) { return index < trie.node(child.node).end; })->node;
        const uint8_t byte = coarser.grouping().least[coarser.grouping().group[trie.node(at).byte]];
        found = std::ranges::find_if(coarser.trie().children(found), [&](const TrieChild& child) {
                  return coarser.trie().node(child.node).byte == byte;
                })->node;
      }
      if (coarser.members(found).size() > 1) return {level, index};
      index = found;
    }
    return {0, index};
  }

  // Walks the subtree of a node that is reached in a state.
  void walk(size_t level, uint32_t top, State start) {
    const Trie& trie = *tries_[level];
    const uint8_t* classes = level == kFinest ? automaton_.classes() : rows_[level].classes();
    path_[trie.node(top).depth] = start;
    step_[trie.node(top).depth] = row(level, start);
    for (uint32_t index = top + 1; index < trie.node(top).end && !overflow_;) {
      const TrieNode& node = trie.node(index);
      const State state = step(level, path_[node.depth - 1], step_[node.depth - 1], classes[node.byte]);
      if (state == kDead) {
        record_dead(level, index);
        index = node.end;
      } else if (state == GroupRows::kMembersDiffer) {
        walk_members(level, index, path_[node.depth - 1]);
        index = node.end;
      } else {
        record_live(level, index, state);
        if (node.end == index + 1) {
          ++index;
        } else if (stays_below(level, index, state)) {
          take_below(level, index, state);
          index = node.end;
        } else {
          path_[node.depth] = state;
          step_[node.depth] = row(level, state);
          ++index;
        }
      }
    }
  }
  const State* row(size_t level, State state) { return level == kFinest ? automaton_.entries(state) : rows_[level].row(state); }
  State step(size_t level, State from, const State* row, uint32_t group) {
    return level == kFinest ? automaton_.entry(from, row, group) : row[group];
  }

  // Continues in the finer trie below a node at which the state distinguishes members.
  void walk_members(size_t level, uint32_t index, State from) {
    const size_t finer = level + 1;
    const Trie& trie = *tries_[finer];
    const State* steps = row(finer, from);
    const uint8_t* classes = finer == kFinest ? automaton_.classes() : rows_[finer].classes();
    for (uint32_t member : vocabulary_.coarse_tries()[level].members(index)) {
      const State state = step(finer, from, steps, classes[trie.node(member).byte]);
      if (state == kDead) {
        record_dead(finer, member);
      } else if (state == GroupRows::kMembersDiffer) {
        walk_members(finer, member, from);
      } else {
        record_live(finer, member, state);
        if (trie.below(member) == 0) continue;
        if (stays_below(finer, member, state)) take_below(finer, member, state);
        else walk(finer, member, state);
      }
      if (overflow_) return;
    }
  }

  // A step to a live state has reached a node.
  void record_live(size_t level, uint32_t index, State state) {
    const Trie& trie = *tries_[level];
    const TrieNode& node = trie.node(index);
    const State from = path_[node.depth - 1];
    bytes_[node.depth] = node.byte;
    if (split_.counted && !broken_) {
      counts_[node.depth] = static_cast<uint16_t>(counts_[node.depth - 1] + (from == loop_ && state != end_));
      if (state != end_ && state != loop_ && !inside_iteration(state)) broken_ = true;
    }
    exits_[node.depth] = static_cast<uint8_t>(std::min(255, exits_[node.depth - 1] + automaton_.accepting(state)));
    const Strings strings{level, node.first, trie.node(index + 1).first};
    if (strings.size() == 0) return;
    if (split_.counted && state == end_) {
      outside(strings);
      return add_entries(strings, node.depth);
    }
    stay(strings, state, counts_[node.depth], exits_[node.depth - 1] > 0);
  }
  // A step to a dead state: the strings below the node leave the fragment at the exits recorded so far.
  void record_dead(size_t level, uint32_t index) {
    const TrieNode& node = tries_[level]->node(index);
    const Strings strings{level, node.first, tries_[level]->node(node.end).first};
    outside(strings);
    if (exits_[node.depth - 1] == 0 || overflow_) return;
    bytes_[node.depth] = node.byte;
    for (uint32_t depth = tries_[kFinest]->node(top_).depth + 1; depth < node.depth; ++depth) {
      const bool may_leave = !split_.no_word_after || !is_word_byte(bytes_[depth + 1]);  // the same for all bytes of a group
      if (may_leave && automaton_.accepting(path_[depth])) add_entries(strings, depth);
    }
  }
  bool stays_below(size_t level, uint32_t index, State state) {
    const ByteGroups below = (*groups_[level])[index];
    if (split_.counted) return state == loop_ && (below & ~one_each_) == 0;
    return (below & ~loops_.of(state)) == 0;
  }
  // All strings below a node stay inside; in counted fragments, each character is an iteration.
  void take_below(size_t level, uint32_t index, State state) {
    const Trie& trie = *tries_[level];
    const uint32_t end = trie.node(index).end, depth = trie.node(index).depth;
    if (!split_.counted) return stay({level, trie.node(index + 1).first, trie.node(end).first}, state, 0, exits_[depth] > 0);
    for (uint32_t at = index + 1; at < end; ++at) {
      const TrieNode& node = trie.node(at);
      counts_[node.depth] = static_cast<uint16_t>(counts_[node.depth - 1] + ((node.byte & 0xc0) != 0x80));
      stay({level, node.first, trie.node(at + 1).first}, loop_, counts_[node.depth], false);
    }
  }
  void stay(Strings strings, State state, uint16_t iterations, bool could_leave) {
    if (strings.size() == 0) return;
    ambiguous_ |= could_leave;
    const uint16_t counted = split_.counted ? iterations : uint16_t{0};
    if (!inside_.empty()) {
      Inside& last = inside_.back();
      if (last.state == state && last.iterations == counted && joins(last.strings, strings)) return;
    }
    inside_.push_back({strings, state, counted});
  }
  void outside(Strings strings) {
    if (outside_.empty() || !joins(outside_.back(), strings)) outside_.push_back(strings);
  }
  static bool joins(Strings& before, const Strings& strings) {
    if (before.level != strings.level || before.last != strings.first) return false;
    before.last = strings.last;
    return true;
  }

  void add_entries(const Strings& strings, uint32_t depth) {
    if (suffixes_.size() + strings.size() > (split_.open ? Fragment::kManyExits : kMaxEntries)) {
      overflow_ = true;
      return;
    }
    each_token(strings, [&](uint32_t token) {
      suffixes_.push_back(vocabulary_.tokens()[token].substr(depth));
      entry_tokens_.push_back(token);
      if (split_.counted) completed_.push_back(counts_[depth]);
    });
  }
  template <class F>
  void each_token(const Strings& strings, F&& f) const {
    for (uint32_t k = strings.first; k < strings.last; ++k) f(tries_[strings.level]->string_at(k));
  }

  // Completes a fragment; returns whether it is worth its memory.
  bool finish(Fragment& fragment) {
    fragment.ambiguous = ambiguous_;
    fill_row(fragment);
    std::vector<uint32_t> order(suffixes_.size());
    std::iota(order.begin(), order.end(), 0);
    fragment.residuals = std::make_unique<Trie>(suffixes_, std::move(order));
    fragment.tokens = std::move(entry_tokens_);
    fragment.completed = std::move(completed_);
    if (!split_.counted &&
        automaton_.expressions().with_arena([&](const Arena& arena) { return ends_after_loop(arena, split_.fragment); })) {
      for (const Inside& inside : inside_) {
        if (inside.state == end_) each_token(inside.strings, [&](uint32_t token) { fragment.closing.push_back(token); });
      }
    }
    const auto places = find_representatives(fragment);
    if (split_.widened != kUnbounded) fragment.completion = longest_completion(places);
    return !split_.counted || nest(fragment);
  }
  void fill_row(Fragment& fragment) {
    auto total = [](size_t sum, const Strings& strings) { return sum + strings.size(); };
    const size_t dropped = std::accumulate(outside_.begin(), outside_.end(), size_t{0}, total);
    const bool few_outside = top_ == 0 && dropped < vocabulary_.size() / 2;
    std::vector<uint32_t> row = few_outside ? vocabulary_.text_row() : std::vector<uint32_t>((vocabulary_.size() + 31) / 32, 0);
    if (few_outside) {
      for (const Strings& strings : outside_) each_token(strings, [&](uint32_t token) { row[token >> 5] &= ~(1u << (token & 31)); });
    } else {
      for (const Inside& inside : inside_) allow(row.data(), inside.strings);
    }
    fragment.row = TokenRow(std::move(row));
    if (fragment.row.count > MaskPool::kMaxFlips) return;
    fragment.few.reserve(fragment.row.count);
    for (uint32_t k = 0; k < fragment.row.words.size(); ++k) {
      for (uint32_t word = fragment.row.words[k]; word; word &= word - 1)
        fragment.few.push_back(k * 32 + static_cast<uint32_t>(std::countr_zero(word)));
    }
  }
  void allow(uint32_t* row, const Strings& strings) const {
    each_token(strings, [&](uint32_t token) { row[token >> 5] |= 1u << (token & 31); });
  }
  using Places = std::set<std::pair<State, uint16_t>>;
  // Chooses one token for each place that tokens lead to; returns these places.
  Places find_representatives(Fragment& fragment) const {
    Places met;
    std::array<std::pair<State, uint16_t>, 256> recent{};  // most tokens lead to a recent place
    for (const Inside& inside : inside_) {
      const std::pair<State, uint16_t> place{inside.state, inside.iterations};
      auto& before = recent[(place.first * 31 + place.second) % recent.size()];
      if (place == std::exchange(before, place) || !met.insert(place).second) continue;
      fragment.representatives.push_back(tries_[inside.strings.level]->string_at(inside.strings.first));
      fragment.representative_iterations.push_back(place.second);
    }
    return met;
  }
  // Lists the tokens with most iterations, and makes a row for each lower bound: what more iterations add to the row
  // before. Returns false if there would be very many.
  bool nest(Fragment& fragment) {
    std::ranges::stable_sort(inside_, std::greater(), &Inside::iterations);
    size_t exceptions = 0, tokens = 0;  // how many ranges of those, and how many tokens
    for (size_t k = 0; k < inside_.size();) {
      size_t end = k;
      for (; end < inside_.size() && inside_[end].iterations == inside_[k].iterations; ++end) tokens += inside_[end].strings.size();
      if (tokens > MaskPool::kMaxFlips) break;
      exceptions = k = end;
    }
    for (size_t k = 0; k < exceptions; ++k) {
      each_token(inside_[k].strings, [&](uint32_t token) {
        fragment.longest.push_back(token);
        fragment.iterations.push_back(inside_[k].iterations);
      });
    }
    std::vector<uint32_t> row((vocabulary_.size() + 31) / 32, 0);
    size_t last = inside_.size();
    const uint16_t most = exceptions < inside_.size() ? inside_[exceptions].iterations : 0;
    if (most > kMaxNested) return false;
    for (uint16_t bound = 0; bound < most; ++bound) {
      for (; last > exceptions && inside_[last - 1].iterations <= bound; --last) allow(row.data(), inside_[last - 1].strings);
      fragment.nested.emplace_back(row);
    }
    return true;
  }

  // The greatest length in bytes of a shortest completion from one of these places; UINT32_MAX if that takes a long
  // search.
  uint32_t longest_completion(const Places& places) {
    constexpr size_t kMostStates = 1'000;
    uint32_t longest = 0;
    std::vector<std::pair<State, uint32_t>> queue;
    std::set<State> seen;
    TimeLimit time_limit(automaton_.budget().seconds, "the shortest ways out of a fragment");
    for (auto& [place, iterations] : places) {
      queue.assign(1, {place, 0});
      seen = {kDead, place};
      size_t at = 0;
      for (; at < queue.size() && !automaton_.accepting(queue[at].first); ++at) {
        if (queue.size() > kMostStates) return UINT32_MAX;
        time_limit.step(automaton_.num_classes());
        const auto [state, length] = queue[at];
        for (uint32_t c = 0; c < automaton_.num_classes(); ++c) {
          const State next = automaton_.row(state)[c];
          if (seen.insert(next).second) queue.emplace_back(next, length + 1);
        }
      }
      if (at == queue.size()) return UINT32_MAX;
      longest = std::max(longest, queue[at].second);
    }
    return longest;
  }

  // Checks that the terminator cannot begin an iteration. Together with the checks during the walk, that every state is
  // `the rest of an iteration`·loop, each text can then be divided into iterations in only one way.
  bool counts_are_unique() {
    const State* from_loop = automaton_.row(loop_);
    for (uint32_t c = 0; c < automaton_.num_classes(); ++c) {
      State next = from_loop[c];
      if (next != kDead && next != loop_ && next != end_ && !inside_iteration(next)) return false;
    }
    return start_ == loop_ || inside_iteration(start_);
  }
  bool inside_iteration(State state) {
    if (state >= checked_.size()) checked_.resize(state + 64, 0);
    if (!checked_[state]) {
      checked_[state] = automaton_.expressions().with_arena([&](const Arena& arena) -> uint8_t {
        NodeId id = automaton_.expressions().node(state);
        while (arena[id].kind == Kind::Concat && id != split_.loop) {
          if (arena[arena[id].a].nullable && arena[id].b == split_.loop) return 1;
          id = arena[id].b;
        }
        return id == split_.loop ? 2 : 1;
      });
    }
    return checked_[state] == 2;
  }

  ByteAutomaton& automaton_;
  SelfLoops& loops_;
  const Vocabulary& vocabulary_;
  std::array<const Trie*, kFinest + 1> tries_;  // the coarsest first
  std::array<const std::vector<ByteGroups>*, kFinest + 1> groups_;
  std::array<GroupRows, kFinest> rows_;
  Split split_;
  const uint32_t top_;
  State start_ = kDead, loop_ = kDead, end_ = kDead;
  ByteGroups one_each_ = 0;
  // For each depth of the current path: states and their rows, the byte before, iterations begun, and the number of exits.
  std::vector<State> path_;
  std::vector<const State*> step_;
  std::vector<uint8_t> bytes_;
  std::vector<uint16_t> counts_;
  std::vector<uint8_t> exits_;
  ReusedVector<Inside> inside_;
  ReusedVector<Strings> outside_;
  std::vector<std::string_view> suffixes_;
  std::vector<uint32_t> entry_tokens_;
  std::vector<uint16_t> completed_;
  std::vector<uint8_t> checked_;
  bool ambiguous_ = false, overflow_ = false, broken_ = false;
};

}  // namespace tokenfst
