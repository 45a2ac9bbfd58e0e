// Runs configurations: the step function of push-down automata. Without stacks a step is a look-up in a row.
//
// A step reads a byte by the row of the state, applies the effect of the target to the stacks, and inspects stacks
// until it may rest. Amortized O(1) if the grammar is deterministic; else proportional to the number of stacks at that
// time.
#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "byte_automata/byte_automaton.hpp"

namespace tokenfst {

// Records which nodes of a configuration's stacks are inspected, in order; not those that are pushed meanwhile.
struct InspectedNodes {
  std::vector<StackId> known, nodes;  // nodes that can be inspected, and nodes that were

  InspectedNodes(Config config, uint32_t count, const Stacks& stacks) {
    for (uint32_t k = 0; k < count; ++k) known.push_back(stacks.member(config.stack, k));
  }
  // Records a node if it is one of the configuration's own; returns whether it is. Such a node is inspected with one
  // edge for each frame, so that the answer depends only on frames, of which there are finitely many.
  bool note(StackId node, Stacks& stacks) {
    if (std::ranges::find(known, node) == known.end()) return false;
    if (std::ranges::find(nodes, node) != nodes.end()) return true;
    nodes.push_back(node);
    for (const Edge& edge : stacks.edges(stacks.grouped(node))) {
      stacks.spend(1 + known.size() / 16);
      if (edge.below != kBottom && std::ranges::find(known, edge.below) == known.end()) known.push_back(edge.below);
    }
    return true;
  }
};

// Records the effects of a walker's steps, in order; used when all steps are explored (levels.hpp).
class StepLog {
 public:
  void begin() { last_ = nullptr; }
  void note(const Effect& effect, bool apart) {
    Noted& noted = noted_[&effect];
    noted.apart |= apart;
    if (last_) pairs_ += noted.before.insert(last_).second;
    else noted.first = true;
    last_ = &effect;
  }
  size_t memory() const { return noted_.size() * (sizeof(Noted) + 32) + pairs_ * 48; }

  // Marks an effect as apart if it makes several stacks, or a stack with several tops, or if an effect that is apart
  // follows it in a step: then no single effect describes the outcome of the step.
  void close() {
    std::vector<const Effect*> pending;
    for (auto& [effect, noted] : noted_) {
      if (noted.apart) pending.push_back(effect);
    }
    while (!pending.empty()) {
      const Noted& noted = noted_.at(pending.back());
      pending.pop_back();
      for (const Effect* before : noted.before) {
        if (!std::exchange(noted_.at(before).apart, true)) pending.push_back(before);
      }
    }
  }
  bool is_apart(const Effect& effect) const {
    auto it = noted_.find(&effect);
    return it != noted_.end() && it->second.apart;
  }
  // Whether some step begins with the effect, or passes through it and is described by its single effects.
  bool is_needed(const Effect& effect) const {
    auto it = noted_.find(&effect);
    return it != noted_.end() && (it->second.first || !it->second.apart);
  }

 private:
  struct Noted {
    bool first = false, apart = false;
    std::set<const Effect*> before{};
  };
  std::unordered_map<const Effect*, Noted> noted_;
  const Effect* last_ = nullptr;  // of the current step
  size_t pairs_ = 0;
};

class Walker {
 public:
  // `asked`, if given, records the nodes that are inspected.
  Walker(ByteAutomaton& bytes, Stacks& stacks, InspectedNodes* asked = nullptr) : bytes_(bytes), stacks_(stacks), asked_(asked) {
    stacks.limit(bytes.budget());
  }

  // Never inspects anything below this node: a step that would have to rests in a shape that waits for it, or is
  // blocked. With `dead` it leads nowhere, and stuck() says that this happened.
  void stop_at(StackId node, bool dead = false) {
    stop_ = node;
    waiting_is_dead_ = dead;
  }
  bool stuck() const { return stuck_; }
  // Whether the last step led nowhere because it had to put a frame that may be left out on that node.
  bool blocked() const { return blocked_; }
  void keep_log(StepLog& log) { log_ = &log; }
  // Continues from a shape that waits, given its one stack.
  Config resume(Config waiting) {
    blocked_ = false;
    stacks_before_ = {waiting.stack};
    return rest(waiting.state, nullptr);
  }

  const uint8_t* classes() const { return bytes_.classes(); }
  Config start() const { return {bytes_.start(), kBottom}; }

  const State* entries(Config at) { return bytes_.entries(at.state); }
  State entry(Config at, const State* entries, uint32_t byte_class) { return bytes_.entry(at.state, entries, byte_class); }
  Config next(Config from, uint32_t byte_class) { return arrive(from, bytes_.next(from.state, byte_class)); }
  Config step(Config from, uint8_t byte) { return next(from, bytes_.classes()[byte]); }
  Config run(Config config, std::string_view bytes) {
    for (unsigned char byte : bytes) {
      if (is_dead(config = step(config, byte))) break;
    }
    return config;
  }

  // The configuration after a token boundary. What lies below may pass a boundary too, once it is inspected.
  Config boundary(Config at) {
    const uint32_t column = bytes_.boundary();
    if (column == kNone) return at;
    for (uint32_t looks = 0; looks < kMaxLooks; ++looks) {
      looked_ = false;
      const Config begun = next(at, column);
      if (!looked_ || begun == at) return begun;
      at = begun;
    }
    throw Error(Fault::Corrupt, "a step inspects stacks without end");
  }

  // Where an expression about the stacks of `from` leads: a derivative of its shape, or a part of it. Marks of
  // exclusion (exclusion.hpp) are passed as if nothing were excluded.
  Config arrive(Config from, State raw) {
    blocked_ = false;
    if (raw == kDead) return {};
    if (bytes_.stacks().rests(from.state, raw)) return {raw, from.stack};
    if (bytes_.marks().is_marked(raw) && (raw = bytes_.marks().passed(raw, true)) == kDead) return {};
    return bytes_.stacks().keeps(from.state, raw) ? Config{raw, from.stack} : settle(from, raw);
  }

 private:
  Config settle(Config from, State raw) {
    stacks_before_.clear();
    const uint32_t count = bytes_.stacks().count(from.state);
    for (uint32_t k = 0; k < count; ++k) stacks_before_.push_back(stacks_.member(from.stack, k));
    return rest(raw, bytes_.stacks().effect(raw));
  }

  // Applies `effect`, and inspects stacks until a shape can rest.
  Config rest(State state, const Effect* effect) {
    if (log_) log_->begin();
    for (uint32_t looks = 0;; ++looks) {
      stacks_.spend(1);
      if (effect) {
        apply(*effect);
        if (log_) log_->note(*effect, comes_apart());
        stuck_ |= blocked_;
        if (blocked_) return {};
        state = effect->state;
      }
      uint32_t hole = bytes_.stacks().to_reveal(state);
      if (hole == kNone) break;
      if (before(hole) == stop_) {
        stuck_ = true;
        if (waiting_is_dead_) return {};
        break;
      }
      if (looks == kMaxLooks) throw Error(Fault::Corrupt, "a step inspects stacks without end");
      looked_ = true;
      const StackId node = shown(stacks_before_[hole]);
      stuck_ |= blocked_;
      if (blocked_) return {};
      for (const Edge& edge : stacks_.edges(node)) {
        if (edge.below != kBottom) stacks_before_.push_back(edge.below);
      }
      effect = &bytes_.stacks().revealed(state, stacks_.edges(node));
    }
    return {state, stacks_.tuple(stacks_before_)};
  }

  // Computes the stacks of the next shape from registers.
  void apply(const Effect& effect) {
    made_.clear();
    auto value = [&](uint32_t reg) { return reg == kNothing ? kBottom : reg >= kFirstOp ? made_[reg - kFirstOp] : before(reg); };
    for (const StackOp& op : effect.ops) {
      if (op.joined.empty()) {
        made_.push_back(push(op.frame, value(op.below)));
        continue;
      }
      edges_.clear();
      for (uint32_t reg : op.joined) {
        stacks_.append(edges_, look(value(reg)));
        blocked_ |= value(reg) == stop_;
      }
      made_.push_back(blocked_ ? kBottom : united());
    }
    next_.clear();
    for (uint32_t reg : effect.holes) next_.push_back(value(reg));
    std::swap(stacks_before_, next_);
  }

  // Whether the last effect made several stacks, or one that shows several frames.
  bool comes_apart() const {
    return stacks_before_.size() > 1 || std::ranges::any_of(made_, [&](StackId node) { return stacks_.edges(node).size() > 1; });
  }

  // Only a modified artifact can name a stack that does not exist.
  StackId before(uint32_t reg) const {
    if (reg >= stacks_before_.size()) throw Error(Fault::Corrupt, "a step needs a stack that does not exist");
    return stacks_before_[reg];
  }
  // The edges of a node, whose inspection is recorded.
  std::span<const Edge> look(StackId node) {
    if (asked_ && asked_->note(node, stacks_)) node = stacks_.grouped(node);
    return stacks_.edges(node);
  }
  // The same stacks with one edge for each frame (see Stacks::grouped); inspected nodes are recorded.
  StackId shown(StackId node) {
    const bool own = asked_ ? asked_->note(node, stacks_) : stop_ == kNowhere;
    if (own || PushDown::is_single(stacks_.edges(node))) return stacks_.grouped(node);
    edges_.assign(stacks_.edges(node).begin(), stacks_.edges(node).end());
    std::vector<Edge> after, below;
    Stacks::group(edges_, after, [&](std::span<const Edge> same) {
      below.clear();
      for (const Edge& edge : same) {
        blocked_ |= edge.below == stop_;
        stacks_.append(below, look(edge.below));
      }
      return stacks_.node(below);
    });
    return stacks_.node(after);
  }
  StackId push(uint32_t id, StackId below) {
    const Settler::Frame& frame = bytes_.stacks().frame(id);
    if (!frame.nullable || below == kBottom) return stacks_.push(id, below);
    if (below == stop_) {
      blocked_ = true;
      return below;
    }
    auto edges = look(below);
    if (edges.size() == 1) {
      if (uint32_t chain = bytes_.stacks().chain(id, edges[0].frame); chain != kNone) return stacks_.push(chain, edges[0].below);
    }
    edges_.assign(edges.begin(), edges.end());
    auto same = std::ranges::find(edges_, id, &Edge::frame);
    if (!frame.absorbing || same == edges_.end()) {
      edges_.push_back({id, below});
      return united();
    }
    // frame·(frame·x | y) = frame·x | frame·y, and the first member exists already.
    std::erase_if(edges_, [&](const Edge& edge) { return edge.frame == id; });
    const bool others = !edges_.empty();
    const StackId rest = others ? united() : kBottom;
    edges = look(below);
    edges_.assign(edges.begin(), edges.end());
    if (others) edges_.push_back({id, rest});
    return united();
  }
  // The node with the edges in edges_. Frames are united only if a single edge is left, since there may be as many
  // unions as subsets of frames.
  StackId united() {
    if (std::ranges::all_of(edges_, [&](const Edge& edge) { return edge.below == edges_[0].below; })) {
      std::ranges::sort(edges_);
      for (const Edge& edge : edges_) edges_[0].frame = bytes_.stacks().unite(edges_[0].frame, edge.frame);
      edges_.resize(1);
    }
    return stacks_.node(edges_);
  }

  ByteAutomaton& bytes_;
  Stacks& stacks_;
  InspectedNodes* asked_;
  StepLog* log_ = nullptr;
  static constexpr StackId kNowhere = UINT32_MAX;
  StackId stop_ = kNowhere;
  static constexpr uint32_t kMaxLooks = 1 << 20;
  bool blocked_ = false, waiting_is_dead_ = false, stuck_ = false, looked_ = false;
  std::vector<StackId> stacks_before_, next_, made_;
  std::vector<Edge> edges_;
};

// The labels in a list, in order: one result for each way through its unions, at most `limit`.
inline std::vector<std::vector<uint32_t>> labels_in(const Arena& arena, NodeId list, size_t limit) {
  std::vector<std::vector<uint32_t>> found;
  using Way = std::pair<std::vector<NodeId>, std::vector<uint32_t>>;
  std::vector<Way> ways{{{list}, {}}};
  std::set<std::pair<NodeId, Way>> branches;  // only one of several branches with equal labels and equal rests is followed
  while (!ways.empty() && found.size() < limit) {
    auto [pending, labels] = std::move(ways.back());
    ways.pop_back();
    bool branched = false;
    while (!pending.empty() && !branched) {
      NodeId id = pending.back();
      pending.pop_back();
      const Node& node = arena[id];
      if (node.kind == Kind::Label && (labels.empty() || labels.back() != node.a)) labels.push_back(node.a);
      if (node.kind == Kind::Concat) pending.insert(pending.end(), {node.b, node.a});
      if (node.kind != Kind::Or) continue;
      branched = true;
      if (!branches.insert({id, {pending, labels}}).second) continue;
      for (NodeId branch : arena.list(id)) {
        ways.emplace_back(pending, labels);
        ways.back().first.push_back(branch);
      }
    }
    if (!branched && std::ranges::find(found, labels) == found.end()) found.push_back(std::move(labels));
  }
  return found;
}

// The labels of the rules that contain the place where a text leaves the language, innermost first; for labelled
// programs. One list for each reading of the text that differs at its end, up to 64; of the paths down a stack only
// one.
inline std::vector<std::vector<uint32_t>> rules_around(ByteAutomaton& bytes, std::string_view text) {
  Stacks stacks;
  Walker walker(bytes, stacks);
  Config at = walker.start();
  for (unsigned char byte : text) {
    Config next = walker.step(at, byte);
    if (is_dead(next)) break;
    at = next;
  }
  if (is_dead(at)) return {};
  constexpr size_t kMaxWays = 64;
  std::vector<std::vector<uint32_t>> ways;
  auto labels = [&](NodeId node, size_t limit) {
    return bytes.expressions().with_arena([&](const Arena& arena) { return labels_in(arena, node, limit); });
  };
  std::vector<Member> members{{bytes.expressions().node(at.state)}};
  if (bytes.stacks().count(at.state) > 0) members = bytes.stacks().shape(at.state).members;
  for (size_t k = members.size(); k-- > 0 && ways.size() < kMaxWays;) {
    std::vector<uint32_t> below;
    for (StackId node = members[k].hole == kNone ? kBottom : stacks.member(at.stack, members[k].hole); node != kBottom;) {
      // Frames that may be left out make shorter paths beside the complete one, which was created last.
      const Edge whole = *std::ranges::max_element(stacks.edges(node), {}, &Edge::below);
      for (auto& way : labels(bytes.stacks().frame(whole.frame).body, 1)) below.insert(below.end(), way.begin(), way.end());
      node = whole.below;
    }
    for (auto& way : labels(members[k].top, kMaxWays - ways.size())) {
      way.insert(way.end(), below.begin(), below.end());
      ways.push_back(std::move(way));
    }
  }
  return ways;
}

}  // namespace tokenfst
