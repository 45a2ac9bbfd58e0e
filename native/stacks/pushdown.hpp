// The shapes and effects of a byte automaton whose expression calls rules, beside its rows.
//
// The entries of a row are derivatives. The effect of such a state says which shape it settles to, and how the step
// changes the stacks; most states have no effect. A shape that must inspect a stack has a successor for each set of
// frames that the stack may have on top. Each of these is computed once, under the automaton's mutex, and read without a
// lock.
#pragma once

#include "stacks/settle.hpp"
#include "containers/stable_lists.hpp"
#include "containers/stable_map.hpp"
#include "containers/stable_vector.hpp"
#include "stacks/stacks.hpp"

namespace tokenfst {

// The effect of a step to the shape `state`: the operations on stacks, and for each stack of the shape its register (see
// StackOp).
struct Effect {
  uint32_t state = 0;
  std::vector<StackOp> ops;
  std::vector<uint32_t> holes;
};

// A state with stacks, as members (settle.hpp).
struct Shape {
  std::vector<Member> members;
  uint32_t stacks = 0;
  uint32_t reveal = kNone;  // the stack to inspect before resting here
};

class PushDown {
 public:
  // Instead of a number of stacks: the target of a step has an effect; or it has not been computed whether it has.
  static constexpr uint32_t kPasses = UINT32_MAX, kUnknown = UINT32_MAX - 1;

  explicit PushDown(Arena& arena) : settler_(arena) {
    effects_.grow();
    shapes_.grow();
  }

  Settler& settler() { return settler_; }
  const Settler& settler() const { return settler_; }
  // An effect and a shape by number.
  const Effect& effect(uint32_t index) const { return effects_[index]; }
  const Shape& shape(uint32_t index) const { return shapes_[index]; }
  size_t memory() const {
    return settler_.memory() + revealed_.memory() + chains_.memory() + unions_.memory() + made_bytes_ + effects_.size() * sizeof(Effect) +
           shapes_.size() * sizeof(Shape);
  }

  // Stores an effect and returns its number.
  uint32_t add_effect(uint32_t state, Settled& settled) {
    uint32_t index = static_cast<uint32_t>(effects_.grow());
    made_bytes_ += settled.ops.size() * sizeof(StackOp) + settled.holes.size() * 4;
    effects_[index].ops = std::move(settled.ops);
    effects_[index].holes = std::move(settled.holes);
    effects_[index].state = state;
    return index;
  }
  // Stores the shape of a settled expression and returns its number. `reveal`: the stack that it must inspect, or kNone.
  uint32_t add_shape(const Settled& settled) { return add_shape(settled, settler_.to_reveal(settled.members).value_or(kNone)); }
  uint32_t add_shape(const Settled& settled, uint32_t reveal) {
    uint32_t index = static_cast<uint32_t>(shapes_.grow());
    Shape& shape = shapes_[index];
    shape.members = settled.members;
    shape.stacks = static_cast<uint32_t>(settled.holes.size());
    shape.reveal = reveal;
    made_bytes_ += shape.members.size() * sizeof(Member);
    return index;
  }

  // The effect of a shape's state if the stack that it inspects shows frames of this signature; 0: not computed yet.
  uint32_t revealed(uint32_t state, uint32_t signature) const { return revealed_.find(uint64_t{state} << 32 | signature); }
  void keep_revealed(uint32_t state, uint32_t signature, uint32_t effect) { revealed_.insert(uint64_t{state} << 32 | signature, effect); }

  // Finds the frame that stands for a nullable frame on top of another one. Returns false if it has not been computed yet;
  // sets `frame`, to kNone if the two are not chained.
  bool chained(uint32_t upper, uint32_t lower, uint32_t& frame) const {
    uint32_t known = chains_.find(uint64_t{upper} << 32 | lower);
    frame = known == kNoChain ? kNone : known - 1;
    return known != 0;
  }
  // The same, computed if it is not known. Under the automaton's mutex, like the other functions that make something.
  uint32_t make_chain(uint32_t upper, uint32_t lower) {
    uint32_t frame;
    if (chained(upper, lower, frame)) return frame;
    frame = settler_.chain(upper, lower).value_or(kNone);
    chains_.insert(uint64_t{upper} << 32 | lower, frame == kNone ? kNoChain : frame + 1);
    return frame;
  }

  // Call f(upper, lower, frame) for each chain, and f(state, signature, effect) for each known effect of an inspection.
  template <class F>
  void for_each_chain(F&& f) const {
    chains_.for_each([&](uint64_t key, uint32_t value) {
      if (value != kNoChain) f(static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key), value - 1);
    });
  }
  template <class F>
  void for_each_revealed(F&& f) const {
    revealed_.for_each(
        [&](uint64_t key, uint32_t value) { f(static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key), effects_[value]); });
  }
  void adopt_chain(uint32_t upper, uint32_t lower, uint32_t frame) { chains_.insert(uint64_t{upper} << 32 | lower, frame + 1); }

  // The frame of the union of two frames, plus one; 0: not known.
  uint32_t united(uint32_t a, uint32_t b) const { return unions_.find(uint64_t{a} << 32 | b); }
  uint32_t make_union(uint32_t a, uint32_t b) {
    if (uint32_t known = united(a, b)) return known;
    uint32_t made = settler_.unite(a, b) + 1;
    unions_.insert(uint64_t{a} << 32 | b, made);
    return made;
  }

  // The signature of a stack's top edges, as a number: their frames, and for each whether something lies below it.
  static bool is_single(std::span<const Edge> edges) { return edges.size() == 1; }
  static bool is_single(uint32_t signature) { return signature < kMany; }
  static uint32_t single_signature(const Edge& edge) { return edge.frame << 1 | (edge.below != kBottom); }
  uint32_t signature(std::span<const Edge> edges) { return kMany + signatures_.add(signatures_of(edges)); }
  // The signature of edges; none if no such edges were shown yet.
  std::optional<uint32_t> known_signature(std::span<const Edge> edges) const {
    if (is_single(edges)) return single_signature(edges[0]);
    const auto known = signatures_.find(signatures_of(edges));
    return known ? std::optional(kMany + *known) : std::nullopt;
  }

 private:
  static constexpr uint32_t kMany = 1u << 31, kNoChain = UINT32_MAX;

  static std::vector<uint32_t> signatures_of(std::span<const Edge> edges) {
    std::vector<uint32_t> found;
    for (const Edge& edge : edges) found.push_back(single_signature(edge));
    return found;
  }

  Settler settler_;
  StableVector<Effect> effects_;  // 0: none
  StableVector<Shape> shapes_;    // 0: no stacks
  StableMap revealed_, chains_, unions_;
  StableLists signatures_;
  size_t made_bytes_ = 0;
};

}  // namespace tokenfst
