// Computes which configurations of a push-down automaton can be reached. There are infinitely many, so they are
// summarized by levels.
//
// A level begins when a step pushes frames, and is considered without the frames below: its stack ends in one OPAQUE
// node. The tabulated places are pairs of a level and a state that can be reached without inspecting anything below the
// level. If a step must inspect the stack below, every caller of the level continues there. This is reachability by
// summaries (Reps, Horwitz, Sagiv, "Precise interprocedural dataflow analysis via graph reachability", 1995): exact,
// and finite because there are finitely many shapes and frames.
//
// Places are visited in the order of the shortest text since their level was entered (a generalized Dijkstra), so a
// shortest text to every place is known. If a level ends, each caller continues as an event of the same queue, so
// nothing recurses. A *conflict* is a step after which one stack is not enough; after one was found, only shorter texts
// are explored. O(levels x states x byte classes), times the number of callers where levels end. A level may end in
// infinitely many ways if nullable frames are pushed on each other without end, so the budget counts the ways together
// with the places.
#pragma once

#include <queue>
#include <set>

#include "walks/walker.hpp"

namespace tokenfst {

class Levels {
 public:
  // A caller of a level: the text since the caller's own level was entered, and the frame that it pushed.
  struct Caller {
    uint32_t level;
    std::string text;
    uint32_t frame;
  };
  // A level: all its callers.
  struct Level {
    std::vector<Caller> callers;
  };
  // A state that is reached in a level, with a shortest text since the level was entered. `done`: it has been visited.
  struct Place {
    uint32_t level;
    State state;
    std::string text;
    bool done = false;
  };

  // Computes everything. For automata without stacks there are no levels. Raises BudgetExceeded.
  explicit Levels(ByteAutomaton& bytes);

  const std::vector<Level>& levels() const { return levels_; }
  const std::vector<Place>& places() const { return places_; }
  // The stack below a level: empty for level 0, OPAQUE for others.
  StackId below(uint32_t level) const { return level == 0 ? kBottom : opaque_; }
  StackId opaque() const { return opaque_; }
  // The outcome of a step: frames that are pushed onto the old stack, or onto nothing.
  struct Chain {
    State state;
    bool keeps;
    std::vector<uint32_t> frames;  // the lowest first
    auto operator<=>(const Chain&) const = default;
  };
  // The outcome of each step to a target, or to a state that waits for the stack below it, by the top of the stack
  // (PushDown::single_signature); kNone: the top was not inspected.
  const std::map<std::pair<State, uint32_t>, Chain>& outcomes() const { return outcomes_; }
  // The same pairs for steps that inspected more than the top; these have no outcome.
  const std::set<std::pair<State, uint32_t>>& deeper() const { return deeper_; }
  // The effects of all steps.
  const StepLog& log() const { return log_; }
  Stacks& stacks() { return stacks_; }

  // A shortest text that leads into a conflict; none if one stack is always enough.
  std::optional<std::string> conflict() const;

 private:
  static constexpr uint32_t kOpaque = (1u << 30) - 1;  // a number that no frame has

  // A step that ends a level: `state` waits until the stack below has been inspected; or, if `again` is a target, the
  // step to it has to be repeated from `state` with the stack below. `frames` are the known frames in between, top first.
  struct Return {
    std::string text;
    State state;
    State again = kDead;
    std::vector<uint32_t> frames{};
  };
  // The ways in which one level ends, with the index of each; and its callers.
  struct Ends {
    std::vector<Return> found;
    std::map<std::tuple<State, State, std::vector<uint32_t>>, uint32_t> known;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> callers;
  };
  // An event: a place is visited, or a caller of the level `place` continues after one of its ends. Among texts of
  // equal length, ends come first, because a visit reads one more byte.
  struct Event {
    size_t length;
    uint32_t place, caller = kNone, end = kNone;
    bool operator>(const Event& other) const {
      return std::tuple(length, caller == kNone, place, caller, end) >
             std::tuple(other.length, other.caller == kNone, other.place, other.caller, other.end);
    }
  };

  void visit(uint32_t index);

  // Processes a step that `text`, since `level` was entered, leads to.
  void arrive(uint32_t level, const std::string& text, Config to);

  // A step into `entry` that pushes frames, top first. Each frame lies between two levels, so a level inspects one frame
  // of its caller at a time, and the frames further below belong to that caller's level.
  void enter(State entry, uint32_t level, std::string text, const std::vector<uint32_t>& frames);
  void call(uint32_t inner, Caller caller);
  void end(uint32_t level, Return found);
  void meet(uint32_t level, uint32_t caller, uint32_t end);
  // Continues in the level of a caller. The arguments are copies, since their containers may grow meanwhile.
  void go_on(Caller caller, Return found);
  void keep_outcome(State target, uint32_t shown, uint32_t level, Config to);

  void reach(uint32_t level, const std::string& text, State state);

  // The shortest text to the entry of each level.
  std::vector<std::string> texts_to_levels() const;

  // Counts the memory of a caller or an end, which is stored twice.
  void count(const std::string& text, size_t frames);
  void check();

  ByteAutomaton& bytes_;
  Stacks stacks_;
  Walker walker_;
  StepLog log_;
  Deadline deadline_;
  StackId opaque_;
  std::map<uint32_t, uint8_t> byte_of_;  // one byte of each class
  std::vector<Level> levels_;
  std::vector<Place> places_;
  std::map<std::pair<State, uint32_t>, Chain> outcomes_;
  std::set<std::pair<State, uint32_t>> deeper_;
  std::vector<Ends> ends_;  // for each level
  std::map<std::vector<uint32_t>, uint32_t> level_of_;  // by the state at its first entry, and the frames above it there
  std::map<std::pair<uint32_t, State>, uint32_t> place_of_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::vector<std::pair<uint32_t, std::string>> conflicts_;
  size_t steps_ = 0;
  size_t kept_ = 0, held_ = 0;  // the number of callers and ends, and their bytes
};

}  // namespace tokenfst
