// Push-down automata over derivatives: how an expression with calls splits into a state and its stacks.
//
// Calls of rules are unfolded by derivatives, and a border (Return) stays behind each rule's body. So the expression
// that is left of a text is a union of lists  top Return frame Return frame ... Hole : what is being read, then what
// waits. Settling cuts such lists behind their tops: the frames are pushed onto stacks, and in the expression a Hole
// with the number of the stack takes their place. What is left is a *shape*: a union of members T·Hole or, with
// nothing below, T. There are finitely many tops and frames, so finitely many shapes, however deep texts nest, and the
// byte automaton's states are shapes; what is done to stacks is a short program beside the state (Settled).
//
// A member's forms:
//   T·Hole                 T is not nullable: its stack need not be looked into. If T is nullable, it must be
//                          (`reveal`), and the shape is passed through at once;
//   T·Return·k·Hole        T is nullable and k the frame below it, looked into already; k is not nullable;
//   T·Return·k·Open        the same, and k is nullable: other members begin with what lies below k;
//   T, T·Return·k          nothing lies below.
// The border stays, so that k goes back to the stack when T reads on: tops do not grow. A nullable frame that comes to
// lie on another frame is chained to it, k·Return·k', and the two are one frame; long chains, which only ambiguous
// grammars make, are given up for several edges (stacks.hpp).
// Members with equal tops are one member, on the union of their stacks, and members on equal stacks are one, with the
// union of their tops: so one stack is enough where only what is read is ambiguous; and ambiguity, however exponential, stays within
// one graph-structured stack (Tomita 1985; nullable parts as in Scott and Johnstone, "GLL parsing", 2010).
// What a list's rest is, is one register, however many heads it stands behind: the node that generalized parsers have for
// each symbol and start.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "expressions/arena.hpp"
#include "support/stable_vector.hpp"

namespace tokenfst {

struct Member {
  NodeId top;
  uint32_t hole = kNone;  // the number of its stack; none: nothing lies below
  bool open = false;
};

// Registers hold stacks: those there were before from 0 on, the result of each op from kFirstOp on.
constexpr uint32_t kFirstOp = 1 << 30;
constexpr uint32_t kNothing = UINT32_MAX;  // the register of the empty stack

struct StackOp {
  uint32_t frame;                  // to push, or
  uint32_t below;                  // (of a push) the register it lies on
  std::vector<uint32_t> joined{};  // the registers whose stacks are united
};

struct Settled {
  NodeId shape = kEmpty;
  std::vector<Member> members;
  std::vector<StackOp> ops;
  std::vector<uint32_t> holes;  // the register of each of the shape's stacks

  // Whether the stacks stay what they are, where there were as many before.
  bool keeps_stacks() const {
    for (uint32_t k = 0; k < holes.size(); ++k) {
      if (holes[k] != k) return false;
    }
    return true;
  }
};

class Settler {
 public:
  static constexpr uint8_t kMaxChain = 4;

  explicit Settler(Arena& arena) : arena_(arena) {}

  struct Frame {
    NodeId body;
    bool nullable;
    bool absorbing;  // frame·frame = frame
    uint8_t chained;
  };
  // Any thread may ask for a frame that it has seen on a stack.
  const Frame& frame(uint32_t id) const { return frames_[id]; }
  size_t num_frames() const { return frames_.size(); }
  size_t memory() const { return frames_.size() * (sizeof(Frame) + 48) + cuts_.capacity() * sizeof(Segment); }

  // Of a finished automaton, whose frames have no expressions.
  void adopt_frame(bool nullable) { frames_[frames_.grow()] = {kEmpty, nullable, false, 1}; }

  // Splits an expression in which Hole (or Open) k stands for register k.
  Settled settle(NodeId id) {
    if (std::optional<Settled> found = settle_one(id)) return std::move(*found);
    begin();
    place(kEpsilon, id);
    return finish();
  }

  // Looks into stack `hole` of a shape: its top edges carry `edges`, each a frame and whether something lies below.
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

  // The frame that is `upper` on `lower`, for a nullable one; none if the chain would be too long.
  std::optional<uint32_t> chain(uint32_t upper, uint32_t lower) {
    const Frame above = frames_[upper], below = frames_[lower];
    if (above.absorbing && (upper == lower || head_of(below.body).first == above.body)) return lower;
    if (above.chained + below.chained > kMaxChain) return std::nullopt;
    return frame_of(arena_.concat(above.body, arena_.concat(arena_.returning(), below.body)),
                    static_cast<uint8_t>(above.chained + below.chained));
  }

  // The frame that is either of two.
  uint32_t unite(uint32_t a, uint32_t b) {
    return frame_of(arena_.either(frames_[a].body, frames_[b].body), std::max(frames_[a].chained, frames_[b].chained));
  }

  // The stack that a shape must look into before it can rest.
  std::optional<uint32_t> to_reveal(const std::vector<Member>& members) const {
    for (const Member& member : members) {
      if (member.hole != kNone && !member.open && arena_[member.top].nullable) return member.hole;
    }
    return std::nullopt;
  }

 private:
  enum Form : int { kClosed, kHole, kOpen };

  // The same for what most expressions are: one list, with nothing below it, or with its stack behind what it reads; or a
  // union of such lists on one stack.
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
      if (arena_[border].kind != Kind::Hole) return std::nullopt;
    }
    return Settled{arena_.concat(top, arena_.hole(0)), {{top, 0}}, {}, {arena_[border].a}};
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
    // Equal tops were brought together; now tops on equal stacks are.
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

  // What there is to read before a border, and the list that begins with it: a Hole, an Open, a Return, or nothing.
  struct Segment {
    NodeId body, rest;
    bool operator==(const Segment&) const = default;
  };
  // A list cut before its first border. Kept for each of its ends: long lists differ in their beginnings.
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

  // Calls f(body, border) for the segments that a list begins with: unions that hold borders are gone through, each once. What
  // stands before one border is one body, but for what is empty or may be.
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
    std::vector<NodeId> plain;  // branches without borders
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

  // Adds the members of top·rest, where `top` holds no border.
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
    std::map<NodeId, std::vector<uint32_t>> below;  // of frames
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

  // The registers of the stacks that a list is which begins with a border, or is nothing.
  std::vector<uint32_t> stacks_at(NodeId border) {
    if (border == kEpsilon) return {kNothing};
    auto [first, after] = head_of(border);
    return arena_[first].kind == Kind::Return ? stacks_of(after) : std::vector<uint32_t>{arena_[first].a};
  }
  // The registers of the stacks that `rest` is: kNothing if it may be nothing, and one for all others. So what a call returns to
  // is one node for all who call it here, as generalized parsers have it; and frames on the same stack are one.
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

  // Of some stacks the same, as kNothing, if that is one, and one register for all others.
  std::vector<uint32_t> together(std::vector<uint32_t> stacks) {
    std::vector<uint32_t> found;
    if (std::erase(stacks, kNothing)) found.push_back(kNothing);
    reduce(stacks);
    if (!stacks.empty()) found.push_back(joined(stacks));
    return found;
  }
  static void append(std::vector<uint32_t>& to, const std::vector<uint32_t>& from) { to.insert(to.end(), from.begin(), from.end()); }

  // The first element of a list, and what follows it.
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
  // Sorts registers whose stacks are to be united, and leaves out what others hold: a frame that may be left out makes a stack
  // that holds the one below.
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
  // The register of the union of stacks, which are reduced.
  uint32_t joined(const std::vector<uint32_t>& stacks) {
    if (stacks.size() == 1) return stacks[0];
    auto [known, fresh] = joined_.try_emplace(stacks, kFirstOp + static_cast<uint32_t>(ops_.size()));
    if (fresh) ops_.push_back({0, 0, stacks});
    return known->second;
  }

  Arena& arena_;
  StableVector<Frame> frames_;
  std::unordered_map<NodeId, uint32_t> frame_index_;
  ReusedVector<Segment> cuts_;  // by list; body kNone: not cut yet
  std::vector<NodeId> spine_, tops_;
  // Of one call:
  std::vector<StackOp> ops_;
  std::map<NodeId, std::vector<uint32_t>> known_;
  std::map<NodeId, std::vector<Segment>> segments_;
  std::map<std::pair<NodeId, int>, std::vector<uint32_t>> groups_;
  std::set<std::pair<NodeId, NodeId>> placed_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> pushed_;
  std::map<std::vector<uint32_t>, uint32_t> joined_;
};

}  // namespace tokenfst
