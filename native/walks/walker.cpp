// Walker: how a step with stacks settles, and how a log records it.
#include "walks/walker.hpp"

namespace tokenfst {

void StepLog::close() {
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

Config Walker::rest(State state, const Effect* effect) {
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
    if (looks == kMaxLooks)
      throw Error(Fault::Corrupt, "the artifact is damaged: a step inspects stacks without end; write the artifact again");
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

void Walker::apply(const Effect& effect) {
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

StackId Walker::shown(StackId node) {
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

StackId Walker::push(uint32_t id, StackId below) {
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

StackId Walker::united() {
  if (std::ranges::all_of(edges_, [&](const Edge& edge) { return edge.below == edges_[0].below; })) {
    std::ranges::sort(edges_);
    for (const Edge& edge : edges_) edges_[0].frame = bytes_.stacks().unite(edges_[0].frame, edge.frame);
    edges_.resize(1);
  }
  return stacks_.node(edges_);
}

std::vector<std::vector<uint32_t>> labels_in(const Arena& arena, NodeId list, size_t limit) {
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

std::vector<std::vector<uint32_t>> rules_around(ByteAutomaton& bytes, std::string_view text) {
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
      // Nullable frames add shorter paths beside the complete one, which was created last.
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
