// Runs configurations: the step function of push-down automata. Without stacks a step is a look-up in a row.
//
// A step reads a byte by the row of the state, applies the effect of the target to the stacks, and inspects stacks until
// a shape needs no further inspection: the walk rests there. Amortized O(1) if the grammar is deterministic; else
// proportional to the edges of the stacks that it visits, which may grow with the square of the text's length.
#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "byte_automata/byte_automaton.hpp"

namespace tokenfst {

// Records which nodes of a configuration's stacks are inspected, in order, without the nodes that the walk itself pushes.
struct InspectedNodes {
  std::vector<StackId> known, nodes;  // the nodes that can be inspected, and those that have been

  // `count`: how many stacks the configuration has.
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
  // Begins a step; note() records its effects one after the other. `apart`: see close().
  void begin() { last_ = nullptr; }
  void note(const Effect& effect, bool apart) {
    Noted& noted = noted_[&effect];
    noted.apart |= apart;
    if (last_) pairs_ += noted.before.insert(last_).second;
    else noted.first = true;
    last_ = &effect;
  }
  size_t memory() const { return noted_.size() * (sizeof(Noted) + 32) + pairs_ * 48; }

  // Call this after all steps. Marks an effect as *apart* if it makes several stacks or a stack with several top frames, or
  // if an effect that is apart follows it in a step: then no single effect describes the outcome of the step.
  void close();
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

// Walks of one sequence. One thread at a time. Raises BudgetExceeded, and an Error (ArtifactCorruptError) for a damaged artifact.
class Walker {
 public:
  // `asked`, if given, records the nodes that are inspected.
  Walker(ByteAutomaton& bytes, Stacks& stacks, InspectedNodes* asked = nullptr) : bytes_(bytes), stacks_(stacks), asked_(asked) {
    stacks.limit(bytes.budget());
  }

  // From now on the walk inspects neither this node nor anything below it. A step that needs the node rests in a shape that
  // waits for it, or is blocked (see blocked()). With `dead`, a step that would wait leads nowhere instead.
  void stop_at(StackId node, bool dead = false) {
    stop_ = node;
    waiting_is_dead_ = dead;
  }
  // Whether some step so far needed that node.
  bool stuck() const { return stuck_; }
  // Whether the last step led nowhere because it had to push a nullable frame on that node, or to unite it with another one.
  bool blocked() const { return blocked_; }
  // Records all further effects in a log.
  void keep_log(StepLog& log) { log_ = &log; }
  // Continues from a shape that waits, with its only stack.
  Config resume(Config waiting) {
    blocked_ = false;
    stacks_before_ = {waiting.stack};
    return rest(waiting.state, nullptr);
  }

  // The class (column) of each byte.
  const uint8_t* classes() const { return bytes_.classes(); }
  // The configuration before any text.
  Config start() const { return {bytes_.start(), kBottom}; }

  // The row of a configuration's state, with pending entries; and the target in it by a column, before its effect (see arrive()).
  const State* entries(Config at) { return bytes_.entries(at.state); }
  State entry(Config at, const State* entries, uint32_t byte_class) { return bytes_.entry(at.state, entries, byte_class); }
  // The configuration after a column, a byte, a text; a dead one if there is none.
  Config next(Config from, uint32_t byte_class) { return arrive(from, bytes_.next(from.state, byte_class)); }
  Config step(Config from, uint8_t byte) { return next(from, bytes_.classes()[byte]); }
  Config run(Config config, std::string_view bytes) {
    for (unsigned char byte : bytes) {
      if (is_dead(config = step(config, byte))) break;
    }
    return config;
  }

  // The configuration after a token boundary. A frame that is inspected meanwhile passes the boundary too.
  Config boundary(Config at) {
    const uint32_t column = bytes_.boundary();
    if (column == kNone) return at;
    for (uint32_t looks = 0; looks < kMaxLooks; ++looks) {
      looked_ = false;
      const Config begun = next(at, column);
      if (!looked_ || begun == at) return begun;
      at = begun;
    }
    throw Error(Fault::Corrupt, "the artifact is damaged: a step inspects stacks without end; write the artifact again");
  }

  // The configuration that a state `raw` over the stacks of `from` settles to. `raw` is the target of a step from `from`,
  // or the state of a part of its expression. Marks of exclusion (exclusion.hpp) are passed as if nothing were excluded.
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
  Config rest(State state, const Effect* effect);

  // Computes the stacks of the next shape from registers.
  void apply(const Effect& effect);

  // Whether the last effect made several stacks, or one that shows several frames.
  bool comes_apart() const {
    return stacks_before_.size() > 1 || std::ranges::any_of(made_, [&](StackId node) { return stacks_.edges(node).size() > 1; });
  }

  // Only a modified artifact can name a stack that does not exist.
  StackId before(uint32_t reg) const {
    if (reg >= stacks_before_.size())
      throw Error(Fault::Corrupt, "the artifact is damaged: a step needs a stack that does not exist; write the artifact again");
    return stacks_before_[reg];
  }
  // The edges of a node, whose inspection is recorded.
  std::span<const Edge> look(StackId node) {
    if (asked_ && asked_->note(node, stacks_)) node = stacks_.grouped(node);
    return stacks_.edges(node);
  }
  // The same stacks with one edge for each frame (see Stacks::grouped); inspected nodes are recorded.
  StackId shown(StackId node);
  StackId push(uint32_t id, StackId below);
  // The node with the edges in edges_. Frames are united only if a single edge is left, since there may be as many
  // unions as subsets of frames.
  StackId united();

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

// The labels (numbers of rules) in an expression, in order: one result for each way through its unions, at most `limit`.
std::vector<std::vector<uint32_t>> labels_in(const Arena& arena, NodeId list, size_t limit);

// The numbers of the rules that contain the place where a text leaves the language, innermost first; for labelled
// programs. One list for each reading of the text that differs at its end, up to 64; of the paths down a stack, only the
// complete one is followed.
std::vector<std::vector<uint32_t>> rules_around(ByteAutomaton& bytes, std::string_view text);

}  // namespace tokenfst
