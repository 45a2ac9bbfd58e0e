// Push-down automata over derivatives: how an expression with calls of rules splits into a state and its stacks.
//
// Derivatives unfold calls of rules, and leave a border (Return) after the body of each rule. So the expression that
// remains after a text is a union of lists top·Return·frame·Return·frame·...·Hole: the part that is being read, followed
// by the parts that wait. Settling cuts such lists after their tops: the frames are pushed onto stacks, and in the expression a Hole
// with the number of the stack replaces them. The result is a *shape*: a union of members T·Hole or, with nothing
// below, T. There are finitely many tops and frames, so there are finitely many shapes, however deep texts nest, and
// the states of the byte automaton are shapes. How a step changes the stacks is a short list of operations beside the
// state (Settled).
//
// The forms of a member:
//   T·Hole                 T is not nullable, so its stack need not be inspected. If T is nullable, the stack must be
//                          inspected (`reveal`), and the shape is passed through at once;
//   T·Return·k·Hole        T is nullable, k is the frame below it, already inspected, and k is not nullable;
//   T·Return·k·Open        the same with a nullable k: other members begin with the content below k;
//   T, T·Return·k          nothing lies below.
// The border stays, so that k is pushed again when T reads on: tops do not grow.
//
// A nullable frame that is pushed on another frame is chained to it, k·Return·k', and the two become one frame. Chains
// of more than kMaxChain frames, which only ambiguous grammars make, are replaced by several edges (stacks.hpp). Members
// with equal tops become one member, on the union of their stacks, and members on equal stacks become one, with the union
// of their tops. So one stack is enough if only the part that is being read is ambiguous; and ambiguity, even if
// exponential, stays within one graph-structured stack (Tomita 1985; nullable parts as in Scott and Johnstone, "GLL
// parsing", 2010). The rest of a list is one register, however many heads it follows, as generalized parsers have one
// node for each symbol and start.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "containers/stable_vector.hpp"
#include "expressions/arena.hpp"

namespace tokenfst {

// A member of a shape.
struct Member {
  NodeId top;
  uint32_t hole = kNone;  // the number of its stack; kNone: nothing lies below
  bool open = false;  // the form T·Return·k·Open
};

// Registers hold stacks: first the old ones, from 0 on; then the result of each op, from kFirstOp on.
constexpr uint32_t kFirstOp = 1 << 30;
constexpr uint32_t kNothing = UINT32_MAX;  // the register of the empty stack

// One operation on stacks: pushes a frame onto a stack, or unites stacks. Its result is the next register.
struct StackOp {
  uint32_t frame;                  // for a push: the frame
  uint32_t below;                  // for a push: the register that it is pushed onto
  std::vector<uint32_t> joined{};  // for a union: the registers whose stacks are united; empty for a push
};

// A settled expression: the shape, as an expression and as members, and the operations that make its stacks.
struct Settled {
  NodeId shape = kEmpty;
  std::vector<Member> members;
  std::vector<StackOp> ops;
  std::vector<uint32_t> holes;  // the register of each of the shape's stacks

  // Whether the stacks stay the same, provided that there were as many before.
  bool keeps_stacks() const {
    for (uint32_t k = 0; k < holes.size(); ++k) {
      if (holes[k] != k) return false;
    }
    return true;
  }
};

// Settles expressions, and numbers the frames. One thread at a time, except frame().
class Settler {
 public:
  static constexpr uint8_t kMaxChain = 4;

  explicit Settler(Arena& arena) : arena_(arena) {}

  // The continuation of a calling rule.
  struct Frame {
    NodeId body;
    bool nullable;
    bool absorbing;  // frame·frame = frame
    uint8_t chained;  // how many frames are chained in this one
  };
  // Any thread may call this for a frame that it has seen on a stack.
  const Frame& frame(uint32_t id) const { return frames_[id]; }
  size_t num_frames() const { return frames_.size(); }
  size_t memory() const { return frames_.size() * (sizeof(Frame) + 48) + cuts_.capacity() * sizeof(Segment); }

  // Adds a frame of a finished automaton, whose frames have no expressions.
  void adopt_frame(bool nullable) { frames_[frames_.grow()] = {kEmpty, nullable, false, 1}; }

  // Settles an expression in which Hole (or Open) k stands for register k.
  Settled settle(NodeId id) {
    if (std::optional<Settled> found = settle_one(id)) return std::move(*found);
    begin();
    place(kEpsilon, id);
    return finish();
  }

  // Inspects stack `hole` of a shape: its top edges are `edges`, each a frame and whether something lies below.
  // Registers are those of the shape's `stacks` stacks, then one for each edge with something below, in order.
  Settled reveal(const std::vector<Member>& members, uint32_t stacks, uint32_t hole, std::span<const std::pair<uint32_t, bool>> edges) {
    begin();
    for (const Member& member : members) {
      if (member.hole != hole) {
        add(member.top, member.hole == kNone ? kNothing : member.hole, member.open);
        continue;
      }
      uint32_t below = stacks;
      for (auto& [frame, more] : edges) {
        const Frame& pushed = frames_[frame];
        NodeId top = member.top == kEpsilon ? pushed.body : arena_.concat(member.top, arena_.concat(arena_.returning(), pushed.body));
        add(top, more ? below++ : kNothing, more && pushed.nullable);
      }
    }
    return finish();
  }

  // The frame that is `upper` (nullable) on `lower`; none if the chain would be too long.
  std::optional<uint32_t> chain(uint32_t upper, uint32_t lower) {
    const Frame above = frames_[upper], below = frames_[lower];
    if (above.absorbing && (upper == lower || head_of(below.body).first == above.body)) return lower;
    if (above.chained + below.chained > kMaxChain) return std::nullopt;
    return frame_of(arena_.concat(above.body, arena_.concat(arena_.returning(), below.body)),
                    static_cast<uint8_t>(above.chained + below.chained));
  }

  // The frame of the union of two frames.
  uint32_t unite(uint32_t a, uint32_t b) {
    return frame_of(arena_.either(frames_[a].body, frames_[b].body), std::max(frames_[a].chained, frames_[b].chained));
  }

  // The stack that a shape must inspect before the step is complete; none if it need not inspect any.
  std::optional<uint32_t> to_reveal(const std::vector<Member>& members) const {
    for (const Member& member : members) {
      if (member.hole != kNone && !member.open && arena_[member.top].nullable) return member.hole;
    }
    return std::nullopt;
  }

 private:
  enum Form : int { kClosed, kHole, kOpen };

  // settle() for the most frequent forms: one list with nothing below it, or with its stack after its top or after
  // frames that are pushed; or a union of lists with one stack after their tops.
  std::optional<Settled> settle_one(NodeId id) {
    if (id == kEmpty) return std::nullopt;
    if (!marked(id)) return Settled{id, {{id}}, {}, {}};
    NodeId border = kEmpty, top;
    if (arena_[id].kind == Kind::Or) {
      tops_.clear();
      for (uint32_t k = 0; k < arena_[id].b; ++k) {
        const Segment here = cut(arena_.list(id)[k]);
        if (arena_[here.rest].kind != Kind::Hole || (k > 0 && here.rest != border)) return std::nullopt;
        border = here.rest;
        tops_.push_back(here.body);
      }
      top = arena_.any_of(tops_);
    } else {
      const Segment here = cut(id);
      top = here.body, border = here.rest;
      if (arena_[border].kind != Kind::Hole) return settle_pushed(top, border);
    }
    return Settled{arena_.concat(top, arena_.hole(0)), {{top, 0}}, {}, {arena_[border].a}};
  }
  // A list top Return frame ... Return frame that has a stack after it, or nothing, and whose top is not nullable.
  std::optional<Settled> settle_pushed(NodeId top, NodeId border) {
    if (arena_[top].nullable) return std::nullopt;
    for (tops_.clear(); border != kEpsilon && arena_[head_of(border).first].kind == Kind::Return;) {
      const Segment frame = cut(head_of(border).second);
      tops_.push_back(frame.body);
      border = frame.rest;
    }
    if (border != kEpsilon && arena_[border].kind != Kind::Hole) return std::nullopt;
    uint32_t stack = border == kEpsilon ? kNothing : arena_[border].a;
    std::vector<StackOp> ops;
    for (; !tops_.empty(); tops_.pop_back()) {
      if (tops_.back() == kEpsilon) continue;
      ops.push_back({frame_of(tops_.back(), 1), stack});
      stack = kFirstOp + static_cast<uint32_t>(ops.size() - 1);
    }
    if (stack == kNothing) return std::nullopt;
    return Settled{arena_.concat(top, arena_.hole(0)), {{top, 0}}, std::move(ops), {stack}};
  }

  void begin() {
    ops_.clear();
    known_.clear();
    segments_.clear();
    groups_.clear();
    placed_.clear();
    pushed_.clear();
    joined_.clear();
  }

  void add(NodeId top, uint32_t stack, bool open) {
    if (top == kEmpty) return;
    auto& stacks = groups_[{top, stack == kNothing ? kClosed : open ? kOpen : kHole}];
    if (std::ranges::find(stacks, stack) == stacks.end()) stacks.push_back(stack);
  }

  Settled finish() {
    Settled out;
    if (groups_.contains({kUniverse, kClosed})) groups_ = {{{kUniverse, kClosed}, {}}};
    // Members with equal tops were merged above; now those on equal stacks are.
    std::map<std::pair<int, std::vector<uint32_t>>, std::vector<NodeId>> tops_on;
    for (auto& [key, stacks] : groups_) {
      reduce(stacks);
      tops_on[{key.second, stacks}].push_back(key.first);
    }
    std::vector<NodeId> parts;
    for (auto& [key, tops] : tops_on) {
      auto& [form, stacks] = key;
      NodeId top = arena_.any_of(tops);
      if (form == kClosed) {
        out.members.push_back({top});
        parts.push_back(top);
        continue;
      }
      uint32_t hole = static_cast<uint32_t>(out.holes.size());
      out.members.push_back({top, hole, form == kOpen});
      out.holes.push_back(joined(stacks));
      parts.push_back(arena_.concat(top, arena_.hole(hole, form == kOpen)));
    }
    out.shape = arena_.any_of(parts);
    out.ops = std::move(ops_);
    return out;
  }

  bool marked(NodeId id) const { return arena_[id].has(kHasMark); }

  // The body before a border, and the list that begins with the border (a Hole, an Open or a Return), or the empty word.
  struct Segment {
    NodeId body, rest;
    bool operator==(const Segment&) const = default;
  };
  // Cuts a list before its first border. Cached for each tail, because long lists differ only at their beginnings.
  Segment cut(NodeId list) {
    if (cuts_.size() < arena_.size()) cuts_.resize(arena_.size() + arena_.size() / 2, {kNone, kNone});
    size_t base = spine_.size();
    NodeId rest = list;
    for (; cuts_[rest].body == kNone && arena_[rest].kind == Kind::Concat && !marked(arena_[rest].a); rest = arena_[rest].b)
      spine_.push_back(rest);
    Segment found = cuts_[rest];
    if (found.body == kNone) {
      const NodeId first = arena_[rest].kind == Kind::Concat ? arena_[rest].a : rest;
      found = cuts_[rest] = marked(first) ? Segment{kEpsilon, rest} : Segment{rest, kEpsilon};
    }
    for (; spine_.size() > base; spine_.pop_back()) {
      found.body = arena_.concat(arena_[spine_.back()].a, found.body);
      cuts_[spine_.back()] = found;
    }
    return found;
  }

  // Calls f(body, border) for each segment that a list begins with. Unions that contain borders are expanded, each
  // once. All bodies before one border are united, except empty and nullable ones.
  template <class F>
  void each_segment(NodeId list, F&& f) {
    const Segment here = cut(list);
    if (here.rest == kEpsilon || arena_[head_of(here.rest).first].kind != Kind::Or) return f(here.body, here.rest);
    for (auto [body, border] : segments(list, here)) f(body, border);
  }
  const std::vector<Segment>& segments(NodeId list, const Segment& here) {
    check_stack();
    arena_.tick();
    if (auto known = segments_.find(list); known != segments_.end()) return known->second;
    const auto [first, after] = head_of(here.rest);
    std::map<std::pair<NodeId, int>, std::vector<NodeId>> bodies;
    auto take = [&](NodeId way) {
      each_segment(way,
                   [&](NodeId body, NodeId border) { bodies[{border, body == kEpsilon ? 2 : arena_[body].nullable}].push_back(body); });
    };
    std::vector<NodeId> plain;  // branches that contain no border
    for (NodeId branch : branches_of(first)) {
      if (marked(branch)) take(arena_.concat(branch, after));
      else plain.push_back(branch);
    }
    if (!plain.empty()) take(arena_.concat(arena_.any_of(plain), after));
    std::vector<Segment> out;
    out.reserve(bodies.size());
    for (auto& [key, parts] : bodies) out.push_back({arena_.concat(here.body, arena_.any_of(parts)), key.first});
    return segments_[list] = std::move(out);
  }

  // Adds the members of top·rest, for a `top` without borders.
  void place(NodeId top, NodeId rest) {
    check_stack();
    if (!placed_.insert({top, rest}).second) return;
    each_segment(rest, [&](NodeId read, NodeId border) {
      const NodeId body = arena_.concat(top, read);
      if (border == kEpsilon) {
        add(body, kNothing, false);
      } else if (arena_[head_of(border).first].kind != Kind::Return || !arena_[body].nullable) {
        for (uint32_t stack : stacks_at(border)) add(body, stack, false);
      } else if (body == kEpsilon) {
        place(kEpsilon, head_of(border).second);
      } else {
        place_over(body, head_of(border).second);
      }
    });
  }

  // Adds the members of top·Return·rest, for a nullable top.
  void place_over(NodeId top, NodeId rest) {
    check_stack();
    std::map<NodeId, std::vector<uint32_t>> below;  // registers, by frame
    each_segment(rest, [&](NodeId frame, NodeId border) {
      if (frame == kEpsilon && border != kEpsilon && arena_[head_of(border).first].kind == Kind::Return) {
        place_over(top, head_of(border).second);
      } else {
        append(below[frame], stacks_at(border));
      }
    });
    for (auto& [frame, stacks] : below) {
      NodeId both = frame == kEpsilon ? top : arena_.concat(top, arena_.concat(arena_.returning(), frame));
      for (uint32_t stack : together(std::move(stacks))) {
        bool chained = frame != kEpsilon && arena_[frame].nullable && stack != kNothing;
        if (chained) add(top, pushed(frame, stack), false);
        else add(both, stack, false);
      }
    }
  }

  // The registers of the stacks of a list that begins with a border, or is empty.
  std::vector<uint32_t> stacks_at(NodeId border) {
    if (border == kEpsilon) return {kNothing};
    auto [first, after] = head_of(border);
    return arena_[first].kind == Kind::Return ? stacks_of(after) : std::vector<uint32_t>{arena_[first].a};
  }
  // The registers of the stacks of `rest`: kNothing if it may be empty, and one register for all others. So there is
  // one node for all calls that return to the same place, as in generalized parsers, and frames on the same stack are
  // merged.
  std::vector<uint32_t> stacks_of(NodeId rest) {
    check_stack();
    if (auto it = known_.find(rest); it != known_.end()) return it->second;
    std::map<NodeId, std::vector<uint32_t>> below;
    each_segment(rest, [&](NodeId body, NodeId border) { append(below[body], stacks_at(border)); });
    std::map<uint32_t, std::vector<NodeId>> frames_on;
    for (auto& [body, stacks] : below) {
      for (uint32_t stack : together(std::move(stacks))) frames_on[stack].push_back(body);
    }
    std::vector<uint32_t> found;
    for (auto& [stack, bodies] : frames_on) {
      const NodeId body = arena_.any_of(bodies);
      if (body != kEmpty) found.push_back(body == kEpsilon ? stack : pushed(body, stack));
    }
    found = together(std::move(found));
    known_.emplace(rest, found);
    return found;
  }

  // Replaces several stacks by kNothing, if it is one of them, and one register for all others.
  std::vector<uint32_t> together(std::vector<uint32_t> stacks) {
    std::vector<uint32_t> found;
    if (std::erase(stacks, kNothing)) found.push_back(kNothing);
    reduce(stacks);
    if (!stacks.empty()) found.push_back(joined(stacks));
    return found;
  }
  static void append(std::vector<uint32_t>& to, const std::vector<uint32_t>& from) { to.insert(to.end(), from.begin(), from.end()); }

  // The first element of a list, and the rest.
  std::pair<NodeId, NodeId> head_of(NodeId list) const {
    const Node& node = arena_[list];
    return node.kind == Kind::Concat ? std::pair{node.a, node.b} : std::pair{list, kEpsilon};
  }
  std::vector<NodeId> branches_of(NodeId id) const { return {arena_.list(id).begin(), arena_.list(id).end()}; }

  uint32_t pushed(NodeId body, uint32_t below) {
    const uint32_t frame = frame_of(body, 1);
    auto [known, fresh] = pushed_.try_emplace({frame, below}, kFirstOp + static_cast<uint32_t>(ops_.size()));
    if (fresh) ops_.push_back({frame, below});
    return known->second;
  }
  uint32_t frame_of(NodeId body, uint8_t chained) {
    auto [it, fresh] = frame_index_.try_emplace(body, static_cast<uint32_t>(frames_.size()));
    if (fresh) {
      const Node& node = arena_[body];
      bool absorbing = node.kind == Kind::Label || (node.kind == Kind::Repeat && node.low == 0 && node.high == kUnbounded);
      frames_[frames_.grow()] = {body, node.nullable, absorbing, chained};
    }
    return it->second;
  }
  // Sorts the registers of stacks to be united, and removes those that another one contains: a frame that may be left
  // out makes a stack that contains the one below it.
  void reduce(std::vector<uint32_t>& stacks) const {
    std::ranges::sort(stacks);
    stacks.erase(std::unique(stacks.begin(), stacks.end()), stacks.end());
    for (size_t k = 0; stacks.size() > 1 && k < stacks.size(); ++k) {
      for (uint32_t at = stacks[k]; at != kNothing && at >= kFirstOp;) {
        const StackOp& op = ops_[at - kFirstOp];
        if (!op.joined.empty() || !frames_[op.frame].nullable) break;
        at = op.below;
        auto held = std::ranges::find(stacks, at);
        if (at == kNothing || held == stacks.end()) continue;
        if (static_cast<size_t>(held - stacks.begin()) < k) --k;
        stacks.erase(held);
      }
    }
  }
  // The register of the union of reduced stacks.
  uint32_t joined(const std::vector<uint32_t>& stacks) {
    if (stacks.size() == 1) return stacks[0];
    auto [known, fresh] = joined_.try_emplace(stacks, kFirstOp + static_cast<uint32_t>(ops_.size()));
    if (fresh) ops_.push_back({0, 0, stacks});
    return known->second;
  }

  Arena& arena_;
  StableVector<Frame> frames_;
  std::unordered_map<NodeId, uint32_t> frame_index_;
  ReusedVector<Segment> cuts_;  // by list; body kNone: not computed yet
  std::vector<NodeId> spine_, tops_;
  // The state of one call:
  std::vector<StackOp> ops_;
  std::map<NodeId, std::vector<uint32_t>> known_;
  std::map<NodeId, std::vector<Segment>> segments_;
  std::map<std::pair<NodeId, int>, std::vector<uint32_t>> groups_;
  std::set<std::pair<NodeId, NodeId>> placed_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> pushed_;
  std::map<std::vector<uint32_t>, uint32_t> joined_;
};

}  // namespace tokenfst
