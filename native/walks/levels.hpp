// Computes which configurations of a push-down automaton can be reached. There are infinitely many, so they are
// summarized by levels.
//
// A level begins when a step pushes frames, and is considered without the frames below: its stack ends in one OPAQUE
// node. The tabulated places are pairs of a level and a state that can be reached without inspecting anything below the
// level. If a step must inspect what lies below, every caller of the level continues there. This is reachability by
// summaries (Reps, Horwitz, Sagiv, "Precise interprocedural dataflow analysis via graph reachability", 1995): exact,
// and finite because there are finitely many shapes and frames.
//
// Places are visited in the order of the shortest text since their level was entered (a generalized Dijkstra), so a
// shortest text to every place is known. If a level ends, each caller continues as an event of the same queue, so
// nothing recurses. A *conflict* is a step after which one stack is not enough; after one was found, only shorter texts
// are explored. O(levels x states x byte classes), times the number of callers where levels end. A level may end in
// infinitely many ways if frames that may be left out are put on each other without end: the automaton's budget counts
// them together with the places.
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
  struct Level {
    std::vector<Caller> callers;
  };
  struct Place {
    uint32_t level;
    State state;
    std::string text;
    bool done = false;
  };

  explicit Levels(ByteAutomaton& bytes) : bytes_(bytes), walker_(bytes, stacks_), deadline_(bytes.budget().seconds) {
    opaque_ = stacks_.push(kOpaque, kBottom);
    walker_.stop_at(opaque_);
    walker_.keep_log(log_);
    // Printable bytes represent their classes.
    for (auto [first, last] : {std::pair{0, 255}, {33, 126}, {'A', 'Z'}, {'a', 'z'}}) {
      for (int byte = last; byte >= first; --byte) byte_of_[bytes.classes()[byte]] = static_cast<uint8_t>(byte);
    }
    if (bytes.start() == kDead || !bytes.is_pushdown()) return;
    levels_.emplace_back();
    ends_.emplace_back();
    reach(0, "", bytes.start());
    reach(0, "", bytes.inner_start());
    for (size_t reached = 0; !queue_.empty();) {
      const Event event = queue_.top();
      queue_.pop();
      // All later texts are at least as long as this one: if there is a shorter conflict, they do not matter.
      if (!conflicts_.empty() && std::exchange(reached, event.length) < event.length && conflict()->size() <= event.length) break;
      if (event.caller != kNone) go_on(levels_[event.place].callers[event.caller], ends_[event.place].found[event.end]);
      else if (!std::exchange(places_[event.place].done, true)) visit(event.place);
    }
    log_.close();
  }

  const std::vector<Level>& levels() const { return levels_; }
  const std::vector<Place>& places() const { return places_; }
  // The stack below a level: empty for the first, OPAQUE for others.
  StackId below(uint32_t level) const { return level == 0 ? kBottom : opaque_; }
  StackId opaque() const { return opaque_; }
  // The outcome of a step: frames that are pushed onto the old stack, or onto nothing.
  struct Chain {
    State state;
    bool keeps;
    std::vector<uint32_t> frames;  // the lowest first
    auto operator<=>(const Chain&) const = default;
  };
  // The outcome of each step to a target, or to a state that waits for what lies below, by what the stack showed on top
  // (PushDown::single_signature); kNone: the top was not inspected.
  const std::map<std::pair<State, uint32_t>, Chain>& outcomes() const { return outcomes_; }
  // The same pairs for steps that inspected more than the top; these have no outcome.
  const std::set<std::pair<State, uint32_t>>& deeper() const { return deeper_; }
  const StepLog& log() const { return log_; }
  Stacks& stacks() { return stacks_; }

  // A shortest text that leads into a conflict; none if one stack is always enough.
  std::optional<std::string> conflict() const {
    if (conflicts_.empty()) return std::nullopt;
    const std::vector<std::string> entered = texts_to_levels();
    std::optional<std::string> least;
    for (auto& [level, text] : conflicts_) {
      std::string whole = entered[level] + text;
      if (!least || std::pair(whole.size(), whole) < std::pair(least->size(), *least)) least = whole;
    }
    return least;
  }

 private:
  static constexpr uint32_t kOpaque = (1u << 30) - 1;  // a number that no frame has

  // A step that ends a level: it rests in `state` only after the stack below has been inspected; or, with a target, the
  // step has to be repeated from `state` with what lies below. `frames` are the known frames in between, top first.
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

  void visit(uint32_t index) {
    const Place place = places_[index];
    for (auto [byte_class, byte] : byte_of_) {
      const std::string text = place.text + static_cast<char>(byte);
      for (State raw : after_marks(bytes_, bytes_.row(place.state)[byte_class])) {
        Config to = walker_.arrive({place.state, bytes_.stacks().count(place.state) ? below(place.level) : kBottom}, raw);
        if (walker_.blocked()) {
          end(place.level, {text, place.state, raw});
        } else {
          if (bytes_.stacks().effect(raw)) keep_outcome(raw, kNone, place.level, to);
          arrive(place.level, text, to);
        }
      }
    }
  }

  // Processes a step that `text`, since `level` was entered, leads to.
  void arrive(uint32_t level, const std::string& text, Config to) {
    check();
    if (is_dead(to)) return;
    std::vector<uint32_t> frames;
    StackId node = to.stack;
    bool single = bytes_.stacks().count(to.state) <= 1;
    for (; single && node != below(level); node = stacks_.edges(node)[0].below) {
      single = stacks_.edges(node).size() == 1;
      frames.push_back(stacks_.edges(node)[0].frame);
    }
    if (!single) {
      conflicts_.emplace_back(level, text);
    } else if (bytes_.stacks().to_reveal(to.state) != kNone) {
      end(level, {text, to.state});
    } else if (frames.empty()) {
      reach(level, text, to.state);
    } else {
      enter(to.state, level, text, frames);
    }
  }

  // A step into `entry` that pushes frames, top first. Each frame is between two levels: so a level inspects one frame
  // of its caller, and what lies further below stays the same however often it does.
  void enter(State entry, uint32_t level, std::string text, const std::vector<uint32_t>& frames) {
    std::vector<uint32_t> above{entry};
    above.insert(above.end(), frames.begin(), frames.end());
    for (size_t k = frames.size(); k-- > 0; text.clear()) {
      above.pop_back();
      auto [known, fresh] = level_of_.try_emplace(above, static_cast<uint32_t>(levels_.size()));
      if (fresh) {
        levels_.emplace_back();
        ends_.emplace_back();
      }
      const uint32_t inner = known->second;
      call(inner, {level, text, frames[k]});
      if (fresh && k == 0) reach(inner, "", entry);
      level = inner;
    }
  }
  void call(uint32_t inner, Caller caller) {
    auto& callers = levels_[inner].callers;
    auto [same, fresh] = ends_[inner].callers.try_emplace({caller.level, caller.frame}, static_cast<uint32_t>(callers.size()));
    if (!fresh) {
      if (caller.text.size() < callers[same->second].text.size()) callers[same->second].text = caller.text;
      return;
    }
    count(caller.text, 1);
    callers.push_back(std::move(caller));
    for (uint32_t k = 0; k < ends_[inner].found.size(); ++k) meet(inner, same->second, k);
  }
  void end(uint32_t level, Return found) {
    auto& ends = ends_[level].found;
    auto [same, fresh] = ends_[level].known.try_emplace({found.state, found.again, found.frames}, static_cast<uint32_t>(ends.size()));
    if (!fresh) {
      if (found.text.size() < ends[same->second].text.size()) ends[same->second].text = found.text;
      return;
    }
    count(found.text, found.frames.size());
    ends.push_back(std::move(found));
    for (uint32_t k = 0; k < levels_[level].callers.size(); ++k) meet(level, k, same->second);
  }
  void meet(uint32_t level, uint32_t caller, uint32_t end) {
    check();
    queue_.push({levels_[level].callers[caller].text.size() + ends_[level].found[end].text.size(), level, caller, end});
  }
  // Continues in the level of a caller. The arguments are copies, since their containers may grow meanwhile.
  void go_on(Caller caller, Return found) {  // NOLINT(performance-unnecessary-value-param)
    found.frames.push_back(caller.frame);
    StackId node = below(caller.level);
    for (size_t i = found.frames.size(); i-- > 0;) node = stacks_.push(found.frames[i], node);
    found.text = caller.text + found.text;
    const State looking = found.again == kDead ? found.state : found.again;
    if (found.frames.size() > 1) deeper_.insert({looking, PushDown::single_signature({found.frames[0], opaque_})});
    const uint32_t shown = PushDown::single_signature(stacks_.edges(node)[0]);
    Config to = found.again == kDead ? walker_.resume({found.state, node}) : walker_.arrive({found.state, node}, found.again);
    check();
    if (walker_.blocked()) return end(caller.level, std::move(found));
    if (found.frames.size() == 1) keep_outcome(looking, shown, caller.level, to);
    arrive(caller.level, found.text, to);
  }
  void keep_outcome(State target, uint32_t shown, uint32_t level, Config to) {
    if (is_dead(to) || bytes_.stacks().count(to.state) > 1) return;
    Chain chain{to.state, false, {}};
    if (bytes_.stacks().count(to.state) == 1) {
      for (StackId node = to.stack; node != below(level); node = stacks_.edges(node)[0].below) {
        if (stacks_.edges(node).size() != 1) return;
        chain.frames.push_back(stacks_.edges(node)[0].frame);
      }
      std::ranges::reverse(chain.frames);
      chain.keeps = level != 0;
    }
    outcomes_.try_emplace({target, shown}, std::move(chain));
  }

  void reach(uint32_t level, const std::string& text, State state) {
    auto [it, fresh] = place_of_.try_emplace({level, state}, static_cast<uint32_t>(places_.size()));
    if (fresh) {
      places_.push_back({level, state, text});
    } else if (Place& known = places_[it->second]; !known.done && text.size() < known.text.size()) {
      known.text = text;
    } else {
      return;
    }
    queue_.push({text.size(), it->second});
  }

  // The shortest text to the entry of each level.
  std::vector<std::string> texts_to_levels() const {
    std::vector<std::optional<std::string>> least(levels_.size());
    least[0] = "";
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t level = 1; level < levels_.size(); ++level) {
        for (const Caller& caller : levels_[level].callers) {
          if (!least[caller.level] || (least[level] && least[level]->size() <= least[caller.level]->size() + caller.text.size())) continue;
          least[level] = *least[caller.level] + caller.text;
          changed = true;
        }
      }
    }
    std::vector<std::string> found;
    found.reserve(least.size());
    for (auto& text : least) found.push_back(text.value_or(""));
    return found;
  }

  // Counts the memory of a caller or an end, which is stored twice.
  void count(const std::string& text, size_t frames) {
    ++kept_;
    held_ += text.size() + 8 * frames + sizeof(Return) + sizeof(Caller);
  }
  void check() {
    if (++steps_ % 64 != 0) return;
    const Budget& budget = bytes_.budget();
    const char* const where = "the configurations that can be reached";
    if (deadline_.expired()) throw BudgetExceeded("seconds", budget.seconds, where);
    if (places_.size() + kept_ > budget.states) throw BudgetExceeded("states", static_cast<double>(budget.states), where);
    if (held_ + queue_.size() * sizeof(Event) + stacks_.memory() + log_.memory() > budget.bytes)
      throw BudgetExceeded("bytes", static_cast<double>(budget.bytes), where);
  }

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
