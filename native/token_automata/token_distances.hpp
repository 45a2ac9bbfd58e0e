// Distances to acceptance in tokens, and bounds on them: for limits of new tokens, and for the order of searches for a
// completion.
//
// distance(c) is the least number of tokens, without the end token, that spell some completion. It is computed on a
// graph whose vertices may also be members of unions and rests of fragments, since the distance of a union is the least
// of its members'. With stacks it is an upper bound: the sum of the distances of the top and of each frame below, each
// by itself. The bound is sound, since a text may always be completed frame by frame with tokens that end where frames
// end. Ambiguous grammars, large selections of words and high counts have very many states. Then a search for distances
// visits some of the states and the tokens of shortest texts (shortest_texts.hpp), and takes least lengths in bytes as the
// distances of the states after these. The results are still upper bounds, and from each configuration some token leads to
// one with a smaller bound.
//
// Threads. Functions that compute something are called under the mutex of TokenAutomaton; those that only read cached
// values take no lock. Searches raise BudgetExceeded.
#pragma once

#include "walks/decision_tree.hpp"
#include "masks/composition.hpp"
#include "byte_automata/lengths.hpp"
#include "threads/in_progress.hpp"
#include "token_automata/reserves.hpp"
#include "token_automata/shortest_texts.hpp"

namespace tokenfst {

class TokenDistances {
 protected:
  TokenDistances(std::shared_ptr<ByteAutomaton> bytes, std::shared_ptr<const Vocabulary> vocabulary, uint32_t narrow)
      : bytes_(std::move(bytes)), vocabulary_(std::move(vocabulary)), composition_(*bytes_, *vocabulary_, narrow),
        complete_(composition_.tokens_lead_on()), lengths_(*bytes_), reserves_(*bytes_, *vocabulary_, lengths_) {}

  // Where distances are bounds: the most states that one search explores, its greatest effort (counted as below), and the most states
  // on paths of shortest texts.
  static constexpr size_t kMaxExplored = 64, kMaxEffort = 3'200, kMostOnPaths = 4'096;
  // The greatest effort of an exact search: a state counts one, and one more for each kTokensOfState tokens if it takes a walk of the
  // vocabulary. If a search needs more, or if its first kSample states suggest that, the automaton has bounds from then on.
  static constexpr size_t kManyStates = 100'000, kTokensOfState = 2'500, kSample = 32;

  // What is known about a state. For a state with stacks, `mask` and `worst` are roots of decision trees.
  struct Info {
    std::atomic<MaskId> mask{0};
    std::atomic<uint32_t> distance{kUnknown};
    std::atomic<uint32_t> reserve{kUnknown};  // for the state alone, see most_after()
    uint32_t worst = 0;  // without stacks the bound; with stacks the root of a tree
    std::atomic<Life> life{Life::Unknown};
    InProgress making;  // the computation of its first mask
  };

  // The configuration before any text.
  Config start() const { return {bytes_->start()}; }
  bool accepting(Config config) const { return bytes_->accepting(config.state); }

  // Calls f with an object that runs configurations. `asked`, if given, records the stack nodes that are inspected.
  template <class F>
  auto with_walk(Stacks& stacks, InspectedNodes* asked, F&& f) const {
    if (bytes_->is_pushdown()) {
      Walker walk(*bytes_, stacks, asked);
      return f(walk);
    }
    PlainWalk walk(*bytes_);
    return f(walk);
  }
  // The facts about a state, in a table that grows as needed. Any thread may call this.
  Info& info(State state) {
    if (state >= infos_.size()) {
      infos_.prepare();  // so that nobody waits for the pages of a new chunk
      std::lock_guard lock(grow_mutex_);
      while (state >= infos_.size()) infos_.grow();
    }
    return infos_[state];
  }

  // Whether some distances are bounds, because there are too many states to compute all of them.
  bool bounds_distances() const {
    return bytes_->is_pushdown() || ((bytes_->expressions().has_too_many_states() || too_many_) && complete_);
  }

  // Whether lengths in bytes bound the distances after tokens: for automata of expressions, if every byte is a token. Not
  // at the start of the text if it absorbs tokens there, since tokens have other forms there, and not every byte has to be
  // one of these.
  bool counts_bytes(State state) const {
    return complete_ && bytes_->is_lazy() && !(vocabulary_->start_absorbs() && state == bytes_->start());
  }
  // The cached bound of the distance after any one token: kUnknown if there is none. Takes no lock.
  uint32_t known_most_after(Config config, const Stacks& stacks) {
    const uint32_t top = info(config.state).reserve.load(std::memory_order_acquire);
    if (top >= kUnknown) return top;
    uint32_t below = 0, beneath = 0;
    for (uint32_t k = 0; k < bytes_->stacks().count(config.state); ++k) {
      const StackId node = stacks.member(config.stack, k);
      const uint32_t least = stacks.known_sum(node, Stacks::Sum::Needed), most = stacks.known_sum(node, Stacks::Sum::Reserve);
      if (least == Stacks::kUnsummed || most == Stacks::kUnsummed) return kUnknown;
      below = std::max(below, least);
      beneath = std::max(beneath, most);
    }
    return std::max(plus(top, below), beneath);
  }
  // The same bound, computed if it is not cached: the greater one of the bound of the top plus the length below it, and the
  // bound of the frames below. If the form of a state without stacks gives no bound, the ends of its tokens do: they are far
  // fewer than the states that a search for distances visits.
  uint32_t most_after(Config config, Stacks& stacks) {
    if (const uint32_t known = known_most_after(config, stacks); known != kUnknown) return known;
    std::atomic<uint32_t>& kept = info(config.state).reserve;
    const uint32_t count = bytes_->stacks().count(config.state);
    if (kept.load() == kUnknown) {
      uint32_t top = 0;
      if (!counts_bytes(config.state)) {
        top = kUnreachable;
      } else if (count == 0) {
        top = reserves_.of(bytes_->expressions().node(config.state));
        if (top == kUnreachable) top = longest_rest(config, stacks);
      } else {
        for (const Member& member : bytes_->stacks().shape(config.state).members) top = std::max(top, reserves_.of(member.top));
      }
      kept.store(top, std::memory_order_release);
    }
    if (kept.load() == kUnreachable) return kUnreachable;
    for (uint32_t k = 0; k < count; ++k) {
      stacks.reserve(
          stacks.member(config.stack, k), [&](uint32_t frame) { return reserves_.needed(bytes_->stacks().frame(frame).body); },
          [&](uint32_t frame) { return reserves_.of(bytes_->stacks().frame(frame).body); });
    }
    return known_most_after(config, stacks);
  }

  // The distance of a state without stacks; the distances of unknown states below it are computed with it.
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
    const bool bounds = bytes_->is_lazy() && bounds_distances();
    size_t explored = 0, visited = 0, effort = 0;
    TextPaths paths;
    if (bytes_->is_lazy() && (bounds || complete_)) {
      distances.give_up_unless(
          [&](State q) {
            if (effort >= (bounds ? kMaxEffort : kManyStates)) return false;
            if (!bounds && visited >= kSample && effort * explored >= kManyStates * visited) return false;
            return paths.targets.contains(q) ? paths.targets.size() < kMostOnPaths : explored++ < (bounds ? kMaxExplored : kManyStates);
          },
          bounds ? [&](State q) { return lengths_.of(bytes_->expressions().node(q)); } : std::function<uint32_t(State)>());
    }
    const auto next = [&](State q) {
      ++visited;
      if (!bounds) return successors(q, true, effort);
      const bool on_path = paths.targets.contains(q);
      Successors out;
      if (!on_path) out = successors(q, false, effort);
      if (!on_path && !out.some && q != state) return out;
      if (!paths.successors.contains(q)) follow_text(q, paths);
      const auto along = paths.successors.find(q);
      if (along == paths.successors.end()) return on_path || out.some ? successors(q, true, effort) : out;
      if (on_path) return along->second;
      out.next.insert(out.next.end(), along->second.next.begin(), along->second.next.end());
      out.sums.insert(out.sums.end(), along->second.sums.begin(), along->second.sums.end());
      return out;
    };
    const auto found = distances.solve(state, known, next, [&](State q) { return bytes_->accepting(q); });
    if (distances.gave_up()) {
      too_many_ = true;
      if (!bounds) return solve(state);
    }
    for (const auto& [q, distance, worst] : found) {
      info(q).worst = worst;
      info(q).distance.store(distance, std::memory_order_release);
    }
    return found[0].distance;
  }

  // The targets of tokens from a state. If that takes a walk of the whole vocabulary and `whole` is false, only `out.some` is set.
  // Adds the effort to `effort`.
  Successors successors(State state, bool whole, size_t& effort) {
    Stacks stacks;
    const TokenTargets onward = with_walk(stacks, nullptr, [&](auto& walk) { return composition_.onward(walk, {state}, whole); });
    effort += onward.whole && whole ? 1 + vocabulary_->size() / kTokensOfState : 1;
    Successors out;
    out.some = onward.whole && !whole;
    for (Config config : onward.next) add(config, 1, stacks, out.next, out.sums);
    for (Config config : onward.same) add(config, 0, stacks, out.same, out.sums);
    return out;
  }
  // Adds the states that complete a configuration, after `cost` tokens: to `alone` if it has no stacks, else one sum for each path.
  void add(Config config, uint32_t cost, Stacks& stacks, std::vector<State>& alone, std::vector<Successors::Sum>& sums) {
    if (bytes_->stacks().count(config.state) == 0) alone.push_back(config.state);
    else each_way(config, stacks, [&](std::vector<State> parts) { sums.push_back({cost, std::move(parts)}); });
  }

  // The tokens of shortest texts (shortest_texts.hpp), by which a search for bounds reaches acceptance in few steps.
  struct TextPaths {
    std::unordered_map<State, Successors> successors;  // for states on a path without a stack, where their next token leads
    std::unordered_set<State> targets;                 // all states that these tokens lead to
  };
  // Adds the path of a state's shortest text.
  void follow_text(State state, TextPaths& paths) {
    if (!counts_bytes(state) || composition_.is_first({state}) || bytes_->boundary() != kNone) return;
    Stacks stacks;
    const std::vector<Config> path =
        with_walk(stacks, nullptr, [&](auto& walk) { return ShortestTexts(*bytes_, *vocabulary_, lengths_).path(walk, state, stacks); });
    TimeLimit time_limit(bytes_->budget().seconds, "the search for a completion");
    Config from{state};
    for (const Config to : path) {
      time_limit.step(256);
      if (paths.targets.size() >= kMostOnPaths) return;
      Successors out;
      out.some = true;
      add(to, 1, stacks, out.next, out.sums);
      paths.targets.insert(out.next.begin(), out.next.end());
      for (const Successors::Sum& sum : out.sums) paths.targets.insert(sum.parts.begin(), sum.parts.end());
      if (bytes_->stacks().count(from.state) == 0 && !composition_.is_first(from)) paths.successors.emplace(from.state, std::move(out));
      from = to;
    }
  }

  // The bound of a configuration: the least of its members'.
  uint32_t bound(Config config, Stacks& stacks) {
    if (bytes_->stacks().count(config.state) == 0) return solve(config.state);
    uint32_t least = kUnreachable;
    const std::vector<uint32_t> above = tops(config.state);
    const auto& members = bytes_->stacks().shape(config.state).members;
    for (size_t k = 0; k < members.size(); ++k) {
      uint32_t hole = members[k].hole;
      uint32_t below = hole == kNone ? 0 : stacks.least(stacks.member(config.stack, hole), Stacks::Sum::Tokens, [&](uint32_t frame) {
        return frame_distance(frame);
      });
      least = std::min(least, plus(above[k], below));
    }
    return least;
  }
  // The distances of the members of a shape, each by itself.
  const std::vector<uint32_t>& tops(State state) {
    auto known = tops_.find(state);
    if (known == tops_.end()) {
      std::vector<uint32_t> found;
      for (const Member& member : bytes_->stacks().shape(state).members) found.push_back(distance_alone(member.top));
      known = tops_.emplace(state, std::move(found)).first;
    }
    return known->second;
  }
  uint32_t frame_distance(uint32_t frame) {
    if (frame >= frame_distances_.size()) frame_distances_.resize(frame + 1, kUnknown);
    if (frame_distances_[frame] == kUnknown) {
      uint32_t found = distance_alone(bytes_->stacks().frame(frame).body);
      frame_distances_[frame] = found;
    }
    return frame_distances_[frame];
  }
  // The distance of a member's top, or of a frame, with nothing below it.
  uint32_t distance_alone(NodeId node) {
    check_stack();
    Stacks own;
    return bound(Walker(*bytes_, own).arrive(start(), bytes_->expressions().intern(bytes_->expressions().at_boundary(node))), own);
  }
  // Appends states that complete a node one after the other: its own state if it needs no stack; else those of some
  // completion.
  void append_alone(NodeId node, std::vector<State>& parts) {
    TimeLimit time_limit(bytes_->budget().seconds, "the ways to complete a text");
    for (std::vector<NodeId> pending{node}; !pending.empty();) {
      Stacks own;
      Config config = Walker(*bytes_, own).arrive(start(), bytes_->expressions().intern(bytes_->expressions().at_boundary(pending.back())));
      pending.pop_back();
      time_limit.step(64);
      if (bytes_->stacks().count(config.state) == 0) {
        parts.push_back(config.state);
        continue;
      }
      const Member member = bytes_->stacks().shape(config.state).members[0];
      const size_t others = pending.size();
      pending.push_back(member.top);
      for (StackId at = member.hole == kNone ? kBottom : own.member(config.stack, member.hole); at != kBottom;
           at = own.edges(at)[0].below) {
        pending.push_back(bytes_->stacks().frame(own.edges(at)[0].frame).body);
      }
      std::reverse(pending.begin() + static_cast<std::ptrdiff_t>(others), pending.end());
    }
  }
  // Calls f with the states that complete a configuration one after the other, for each path down its stacks. Paths
  // beyond kMaxWays are left out, which only makes bounds larger.
  template <class F>
  void each_way(Config config, Stacks& stacks, F&& f) {
    constexpr int kMaxWays = 64;
    int ways = 0;
    std::vector<std::pair<std::vector<State>, StackId>> pending;
    for (const Member& member : bytes_->stacks().shape(config.state).members) {
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
        append_alone(bytes_->stacks().frame(edge.frame).body, pending.back().first);
      }
    }
  }

  // The length in bytes of some completion: of a configuration, of a frame, of all frames from a node down.
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
  uint32_t bytes_of_frame(uint32_t frame) {
    return bytes_->is_lazy() ? lengths_.of(bytes_->stacks().frame(frame).body) : in_bytes(frame_distance(frame));
  }
  uint32_t bytes_below(StackId node, Stacks& stacks) {
    return stacks.least(node, Stacks::Sum::Bytes, [&](uint32_t frame) { return bytes_of_frame(frame); });
  }
  // The most bytes that complete a state without stacks after any allowed token. A walk of the vocabulary, once for each state.
  uint32_t longest_rest(Config config, Stacks& stacks) {
    auto known = worst_bytes_.find(config.state);
    if (known == worst_bytes_.end()) {
      uint32_t worst = 0;
      const StacksTrial trial(stacks);
      for (const Config end : ends_of_tokens(config, nullptr, stacks)) worst = std::max(worst, bytes_of(end, stacks));
      known = worst_bytes_.emplace(config.state, worst).first;
    }
    return known->second;
  }
  // The configurations after allowed tokens; some may occur more than once. `asked`, if given, records the inspected nodes.
  std::vector<Config> ends_of_tokens(Config config, InspectedNodes* asked, Stacks& stacks) {
    std::vector<Config> pending{config}, next;
    std::set<Config> seen;
    TimeLimit time_limit(bytes_->budget().seconds, "where tokens lead");
    with_walk(stacks, asked, [&](auto& walk) {
      for (size_t i = 0; i < pending.size(); ++i) {
        time_limit.step(512);
        if (!seen.insert(pending[i]).second) continue;
        TokenTargets onward = composition_.onward(walk, pending[i]);
        pending.insert(pending.end(), onward.same.begin(), onward.same.end());
        next.insert(next.end(), onward.next.begin(), onward.next.end());
      }
    });
    return next;
  }

  // A bound of the distance after one token, above a node of the stack that remains; cached by the symbols that tokens inspect.
  struct BoundAbove {
    uint32_t address;  // of that node; kNone: nothing remains below
    uint32_t length;   // the tokens that complete everything above that node
    uint32_t bytes;    // the bytes that complete it
  };
  // These bounds for a configuration, one for each address. Also sets `stacks.known`.
  const std::vector<BoundAbove>& bounds_above(Config config, Stacks& stacks) {
    const uint32_t count = bytes_->stacks().count(config.state);
    Info& entry = info(config.state);
    uint32_t leaf = worst_tree_->find(entry.worst, config, count, stacks);
    if (!leaf) {
      InspectedNodes asked(config, count, stacks);
      std::map<uint32_t, BoundAbove> highest;
      DecisionTree::Place place;
      {
        StacksTrial trial(stacks);
        const std::vector<Config> next = ends_of_tokens(config, &asked, stacks);
        place = worst_tree_->make_place(entry.worst, config, count, stacks, asked);
        entry.worst = place.root;
        const std::vector<StackId> known = stacks.known;
        for (Config end : next) {
          const BoundAbove found = bound_above(end, stacks, known);
          if (found.length == kUnreachable) continue;
          auto [at, fresh] = highest.try_emplace(found.address, found);
          at->second.length = std::max(at->second.length, found.length);
          at->second.bytes = std::max(at->second.bytes, found.bytes);
        }
      }
      std::vector<BoundAbove> found;
      found.reserve(highest.size());
      for (auto& [address, bound] : highest) found.push_back(bound);
      // Stored only now, because the code before may raise.
      worsts_.push_back(std::move(found));
      leaf = static_cast<uint32_t>(worsts_.size());
      entry.worst = worst_tree_->keep(place, leaf);
      worst_tree_->find(entry.worst, config, count, stacks);  // sets `stacks.known` again
    }
    return worsts_[leaf - 1];
  }
  // The bound after one token from a state without stacks. A walk of the vocabulary, once for each state.
  uint32_t worst_after(Config config, Stacks& stacks) {
    const auto known = worst_tokens_.find(config.state);
    if (known != worst_tokens_.end()) return known->second;
    uint32_t worst = 0;
    const StacksTrial trial(stacks);
    for (const Config end : ends_of_tokens(config, nullptr, stacks)) {
      if (const uint32_t length = bound(end, stacks); length != kUnreachable) worst = std::max(worst, length);
    }
    worst_tokens_.emplace(config.state, worst);
    return worst;
  }
  uint32_t worst_with_stacks(Config config, Stacks& stacks) {
    uint32_t worst = 0;
    const std::vector<BoundAbove>& found = bounds_above(config, stacks);
    const std::vector<StackId> known = stacks.known;
    for (const BoundAbove& bound : found) {
      uint32_t below = bound.address == kNone
                           ? 0
                           : stacks.least(known[bound.address], Stacks::Sum::Tokens, [&](uint32_t frame) { return frame_distance(frame); });
      worst = std::max(worst, plus(bound.length, below));
    }
    return worst;
  }
  // For some completion of a configuration: the first known node on its path, and the bound above that node.
  BoundAbove bound_above(Config config, Stacks& stacks, const std::vector<StackId>& known) {
    if (bytes_->stacks().count(config.state) == 0) return {kNone, solve(config.state), bytes_of(config, stacks)};
    BoundAbove best{kNone, kUnreachable, kUnreachable};
    const std::vector<uint32_t> above = tops(config.state);
    const auto& members = bytes_->stacks().shape(config.state).members;
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
  const bool complete_;  // tokens lead on wherever bytes do
  std::atomic<bool> too_many_ = false;  // too many states to compute all distances
  Lengths lengths_;
  Reserves reserves_;
  StableVector<Info> infos_;
  const std::unique_ptr<DecisionTree> worst_tree_ = DecisionTree::of(*bytes_);
  std::vector<std::vector<BoundAbove>> worsts_;
  std::unordered_map<State, std::vector<uint32_t>> tops_;  // for each shape
  std::unordered_map<State, uint32_t> worst_bytes_, worst_tokens_;
  std::vector<uint32_t> frame_distances_, byte_lengths_;
  Mutex grow_mutex_;
};

}  // namespace tokenfst
