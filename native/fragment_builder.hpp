// Builds a fragment: one walk of the vocabulary's trie from the fragment's own state.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "masks.hpp"
#include "vocabulary.hpp"

namespace tokenfst {

class FragmentBuilder {
 public:
  // Beyond these a fragment is a bad bargain: plain walks are used instead.
  static constexpr size_t kMaxEntries = 200'000;  // residuals
  static constexpr size_t kMaxNested = 256;       // rows for counts

  // `top`: the node of the vocabulary's trie behind which the fragment begins.
  FragmentBuilder(ByteAutomaton& automaton, const Vocabulary& vocabulary, const Split& split, uint32_t top)
      : automaton_(automaton), vocabulary_(vocabulary), trie_(vocabulary.trie()), split_(split), top_(top) {}

  std::shared_ptr<const Fragment> build() {
    auto fragment = std::make_shared<Fragment>();
    start_ = automaton_.intern(split_.fragment);
    loop_ = automaton_.intern(split_.loop);
    end_ = automaton_.intern(kEpsilon);
    if (start_ == kDead || (split_.counted && !counts_are_unique())) return fragment;
    fragment->row.assign((vocabulary_.size() + 31) / 32, 0);
    walk(*fragment);
    if (overflow_ || broken_ || !finish(*fragment)) return std::make_shared<Fragment>();
    fragment->usable = true;
    return fragment;
  }

 private:
  struct Inside {
    uint32_t token;
    State state;
    uint16_t iterations;
  };

  void walk(Fragment& fragment) {
    std::vector<State> path;
    std::vector<uint16_t> counts(trie_.max_depth() + 1, 0);
    std::vector<uint8_t> exits(trie_.max_depth() + 1, 0);  // exits[d]: how many places to leave at depth 1..d
    const bool closes = !split_.counted && automaton_.with_arena([&](const Arena& arena) { return ends_behind_loop(arena, split_.fragment); });
    auto enter = [&](uint32_t index, State state) {
      const TrieNode& node = trie_.node(index);
      State from = path[node.depth - 1];
      if (split_.counted && !broken_) {
        counts[node.depth] = static_cast<uint16_t>(counts[node.depth - 1] + (from == loop_ && state != end_));
        if (state != end_ && state != loop_ && !inside_iteration(state)) broken_ = true;
      }
      exits[node.depth] = static_cast<uint8_t>(std::min(255, exits[node.depth - 1] + automaton_.accepting(state)));
      uint32_t last = trie_.node(index + 1).first;
      if (node.first == last) return;
      if (split_.counted && state == end_) {
        for (uint32_t k = node.first; k < last; ++k) add_entry(trie_.string_at(k), node.depth, counts[node.depth]);
        return;
      }
      if (exits[node.depth - 1]) fragment.ambiguous = true;
      if (closes && state == end_) {
        for (uint32_t k = node.first; k < last; ++k) fragment.closing.push_back(trie_.string_at(k));
      }
      if (!split_.counted) return stay(fragment, node.first, last, state);
      for (uint32_t k = node.first; k < last; ++k) inside_.push_back({trie_.string_at(k), state, counts[node.depth]});
    };
    auto leave = [&](uint32_t index) {
      const TrieNode& node = trie_.node(index);
      if (exits[node.depth - 1] == 0 || overflow_) return;
      for (uint32_t depth = trie_.node(top_).depth + 1; depth < node.depth; ++depth) {
        if (!automaton_.accepting(path[depth])) continue;
        for (uint32_t k = node.first; k < trie_.node(node.end).first; ++k) add_entry(trie_.string_at(k), depth, counts[depth]);
      }
    };
    SelfLoops loops(automaton_);
    // Where characters are counted only at the loop, one each: then they are as many iterations.
    const ByteGroups one_each = split_.counted ? loops.once(loop_) : 0;
    auto stays = [&](uint32_t index, State state) {
      if (split_.counted) return state == loop_ && (vocabulary_.groups()[index] & ~one_each) == 0;
      return (vocabulary_.groups()[index] & ~loops.of(state)) == 0;
    };
    auto whole = [&](uint32_t index, State state) {
      if (split_.counted) return count_whole(index, counts[trie_.node(index).depth]);
      if (exits[trie_.node(index).depth]) fragment.ambiguous = true;
      stay(fragment, trie_.node(index + 1).first, trie_.node(trie_.node(index).end).first, state);
    };
    trie_.walk(automaton_, start_, path, enter, leave, top_, stays, whole);
  }

  // The strings below a node, whose characters are an iteration each.
  void count_whole(uint32_t index, uint16_t before) {
    const uint32_t depth = trie_.node(index).depth;
    for (uint32_t k = trie_.node(index + 1).first; k < trie_.node(trie_.node(index).end).first; ++k) {
      const uint32_t token = trie_.string_at(k);
      const std::string_view rest = vocabulary_.tokens()[token].substr(depth);
      const auto characters = std::ranges::count_if(rest, [](char byte) { return (byte & 0xc0) != 0x80; });
      inside_.push_back({token, loop_, static_cast<uint16_t>(before + characters)});
    }
  }
  // The strings of the trie from `first` to `last`, which all lead to a state inside.
  void stay(Fragment& fragment, uint32_t first, uint32_t last, State state) {
    for (uint32_t k = first; k < last; ++k) allow(fragment, trie_.string_at(k));
    represent(fragment, trie_.string_at(first), {state, uint16_t{0}});
  }
  static void allow(Fragment& fragment, uint32_t token) { fragment.row[token >> 5] |= 1u << (token & 31); }
  void represent(Fragment& fragment, uint32_t token, std::pair<State, uint16_t> place) {
    auto& recent = recent_[(place.first * 31 + place.second) % recent_.size()];
    if (place == std::exchange(recent, place) || !met_.insert(place).second) return;
    fragment.representatives.push_back(token);
    fragment.representative_iterations.push_back(place.second);
  }

  void add_entry(uint32_t token, uint32_t depth, uint16_t completed) {
    if (suffixes_.size() >= kMaxEntries) {
      overflow_ = true;
      return;
    }
    suffixes_.push_back(vocabulary_.tokens()[token].substr(depth));
    entry_tokens_.push_back(token);
    if (split_.counted) completed_.push_back(completed);
  }

  // Whether the fragment is worth its memory.
  bool finish(Fragment& fragment) {
    for (const Inside& inside : inside_) allow(fragment, inside.token);
    std::vector<uint32_t> order(suffixes_.size());
    std::iota(order.begin(), order.end(), 0);
    fragment.residuals = std::make_unique<Trie>(suffixes_, std::move(order));
    fragment.tokens = std::move(entry_tokens_);
    fragment.completed = std::move(completed_);
    for (const Inside& inside : inside_) represent(fragment, inside.token, {inside.state, inside.iterations});
    if (split_.widened != kUnbounded) fragment.completion = longest_completion(met_);
    if (!split_.counted) return true;
    sort_by_iterations();
    size_t exceptions = std::min(inside_.size(), MaskPool::kMaxFlips);
    while (exceptions > 0 && exceptions < inside_.size() && inside_[exceptions - 1].iterations == inside_[exceptions].iterations) --exceptions;
    for (size_t i = 0; i < exceptions; ++i) {
      fragment.longest.push_back(inside_[i].token);
      fragment.iterations.push_back(inside_[i].iterations);
    }
    // Below the exceptions, a row for each bound: what more iterations add to the row before.
    std::vector<uint32_t> row((vocabulary_.size() + 31) / 32, 0);
    size_t last = inside_.size();
    const uint16_t most = exceptions < inside_.size() ? inside_[exceptions].iterations : 0;
    if (most > kMaxNested) return false;
    for (uint16_t bound = 0; bound < most; ++bound) {
      for (; last > exceptions && inside_[last - 1].iterations <= bound; --last) row[inside_[last - 1].token >> 5] |= 1u << (inside_[last - 1].token & 31);
      fragment.nested.push_back(row);
    }
    return true;
  }

  // The most bytes that a shortest way from one of these places to acceptance has; UINT32_MAX if that takes a long search.
  uint32_t longest_completion(const std::set<std::pair<State, uint16_t>>& places) {
    constexpr size_t kMostStates = 1'000;
    uint32_t longest = 0;
    std::vector<std::pair<State, uint32_t>> queue;
    std::set<State> seen;
    for (auto& [place, iterations] : places) {
      queue.assign(1, {place, 0});
      seen = {kDead, place};
      size_t at = 0;
      for (; at < queue.size() && !automaton_.accepting(queue[at].first); ++at) {
        if (queue.size() > kMostStates) return UINT32_MAX;
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

  // Most iterations first, and as before among equals: a counting sort.
  void sort_by_iterations() {
    std::vector<uint32_t> begins(size_t{UINT16_MAX} + 2, 0);  // by how many fewer than the most possible
    for (const Inside& inside : inside_) ++begins[UINT16_MAX - inside.iterations + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<Inside> sorted(inside_.size());
    for (const Inside& inside : inside_) sorted[begins[UINT16_MAX - inside.iterations]++] = inside;
    inside_ = std::move(sorted);
  }

  // The terminator cannot begin an iteration. That each text is cut into iterations in one way only is checked state
  // by state: every state must be `some of an iteration`·loop.
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
      checked_[state] = automaton_.with_arena([&](const Arena& arena) {
        NodeId id = automaton_.node(state);
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
  const Vocabulary& vocabulary_;
  const Trie& trie_;
  Split split_;
  const uint32_t top_;
  State start_ = kDead, loop_ = kDead, end_ = kDead;
  std::vector<Inside> inside_;  // counted: tokens of the row
  std::set<std::pair<State, uint16_t>> met_;
  std::array<std::pair<State, uint16_t>, 256> recent_{};  // most tokens lead to a place that another one led to before
  std::vector<std::string_view> suffixes_;
  std::vector<uint32_t> entry_tokens_;
  std::vector<uint16_t> completed_;
  std::vector<uint8_t> checked_;
  bool overflow_ = false, broken_ = false;
};

}  // namespace tokenfst
