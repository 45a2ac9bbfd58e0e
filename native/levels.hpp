// Which configurations of a push-down automaton can be reached at all: by levels, since there are infinitely many.
//
// A level begins where a step pushes frames. Below that it is blind: its stack ends in one OPAQUE node. What is tabulated
// are places, a state inside a level, reached without looking below. Where a step must look below, every caller of the
// level goes on from there. This is reachability by summaries (Reps, Horwitz, Sagiv, "Precise interprocedural dataflow
// analysis via graph reachability", 1995): exact, and finite because shapes and frames are.
//
// Places are gone through in the order of the shortest text since their level was entered (a generalized Dijkstra), so
// that a shortest text to every place is known. A *conflict* is a step after which one stack is not enough; with one,
// only texts that are shorter are gone through. O(levels x states x byte classes), times callers where levels end; within the automaton's budget.
#pragma once

#include <queue>

#include "walker.hpp"

namespace tokenfst {

class Levels {
 public:
  // Who entered a level: the text since its own level was entered, and the frames that are left there, top first.
  struct Caller {
    uint32_t level;
    std::string text;
    std::vector<uint32_t> frames;
  };
  struct Level {
    State entry;
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
    // Readable bytes stand for their classes.
    for (auto [first, last] : {std::pair{0, 255}, {33, 126}, {'A', 'Z'}, {'a', 'z'}}) {
      for (int byte = last; byte >= first; --byte) byte_of_[bytes.classes()[byte]] = static_cast<uint8_t>(byte);
    }
    if (bytes.start() == kDead || !bytes.is_pushdown()) return;
    levels_.push_back({bytes.start(), {}});
    returns_.emplace_back();
    reach(0, "", bytes.start());
    reach(0, "", bytes.inner_start());
    for (size_t reached = 0; !queue_.empty();) {
      auto [length, index] = queue_.top();
      queue_.pop();
      // What follows is at least as long as this text: with a conflict that is shorter, the rest does not matter.
      if (!conflicts_.empty() && std::exchange(reached, length) < length && conflict()->size() <= length) break;
      if (!std::exchange(places_[index].done, true)) visit(index);
    }
  }

  const std::vector<Level>& levels() const { return levels_; }
  const std::vector<Place>& places() const { return places_; }
  // The stacks that levels are blind below: nothing, for the first.
  StackId below(uint32_t level) const { return level == 0 ? kBottom : opaque_; }
  StackId opaque() const { return opaque_; }
  Stacks& stacks() { return stacks_; }

  // A shortest text that leads into a conflict; none where one stack is always enough.
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
  static constexpr uint32_t kOpaque = (1u << 30) - 1;  // no frame has this number

  // A step that ends a level: it rests in `state` only when the stack below is looked into; or, with a target, it is
  // to be taken again from `state` with what lies below. `frames` are known to lie between, top first.
  struct Return {
    std::string text;
    State state;
    State again = kDead;
    std::vector<uint32_t> frames{};
  };

  void visit(uint32_t index) {
    const Place place = places_[index];
    for (auto [byte_class, byte] : byte_of_) {
      const std::string text = place.text + static_cast<char>(byte);
      for (State raw : after_marks(bytes_, bytes_.row(place.state)[byte_class])) {
        Config to = walker_.arrive({place.state, bytes_.num_stacks(place.state) ? below(place.level) : kBottom}, raw);
        if (walker_.blocked()) end(place.level, {text, place.state, raw});
        else arrive(place.level, text, to);
      }
    }
  }

  // What `text`, since `level` was entered, leads to.
  void arrive(uint32_t level, const std::string& text, Config to) {
    check();
    if (is_dead(to)) return;
    std::vector<uint32_t> frames;
    StackId node = to.stack;
    bool single = bytes_.num_stacks(to.state) <= 1;
    for (; single && node != below(level); node = stacks_.edges(node)[0].below) {
      single = stacks_.edges(node).size() == 1;
      frames.push_back(stacks_.edges(node)[0].frame);
    }
    if (!single) {
      conflicts_.emplace_back(level, text);
    } else if (bytes_.to_reveal(to.state) != kNone) {
      end(level, {text, to.state});
    } else if (frames.empty()) {
      reach(level, text, to.state);
    } else {
      enter(to.state, {level, text, std::move(frames)});
    }
  }

  void enter(State entry, Caller caller) {
    auto [known, fresh] = level_of_.try_emplace(entry, static_cast<uint32_t>(levels_.size()));
    const uint32_t inner = known->second;
    if (fresh) {
      levels_.push_back({entry, {}});
      returns_.emplace_back();
    }
    auto& callers = levels_[inner].callers;
    auto same = std::ranges::find_if(callers, [&](const Caller& each) { return each.level == caller.level && each.frames == caller.frames; });
    if (same != callers.end()) {
      if (caller.text.size() < same->text.size()) same->text = caller.text;
      return;
    }
    callers.push_back(caller);
    if (fresh) reach(inner, "", entry);
    for (size_t k = 0; k < returns_[inner].size(); ++k) go_on(caller, returns_[inner][k]);
  }
  void end(uint32_t level, const Return& found) {
    for (const Return& each : returns_[level]) {
      if (each.state == found.state && each.again == found.again && each.frames == found.frames) return;
    }
    returns_[level].push_back(found);
    for (size_t k = 0; k < levels_[level].callers.size(); ++k) go_on(levels_[level].callers[k], found);
  }
  // Goes on in the level of a caller. Copies: what they are from may grow meanwhile.
  void go_on(Caller caller, Return found) {
    found.frames.insert(found.frames.end(), caller.frames.begin(), caller.frames.end());
    StackId node = below(caller.level);
    for (size_t i = found.frames.size(); i-- > 0;) node = stacks_.push(found.frames[i], node);
    found.text = caller.text + found.text;
    Config to = found.again == kDead ? walker_.resume({found.state, node}) : walker_.arrive({found.state, node}, found.again);
    check();
    if (walker_.blocked()) end(caller.level, found);
    else arrive(caller.level, found.text, to);
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
    queue_.emplace(text.size(), it->second);
  }

  // The shortest text to each level's entry.
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
    for (auto& text : least) found.push_back(text.value_or(""));
    return found;
  }

  void check() {
    if (++steps_ % 256 != 0) return;
    if (deadline_.expired()) throw BudgetExceeded("seconds", bytes_.budget().seconds, "the configurations that can be reached");
    if (places_.size() > bytes_.budget().states) throw BudgetExceeded("states", static_cast<double>(bytes_.budget().states), "the configurations that can be reached");
  }

  ByteAutomaton& bytes_;
  Stacks stacks_;
  Walker walker_;
  Deadline deadline_;
  StackId opaque_;
  std::map<uint32_t, uint8_t> byte_of_;  // of each byte class
  std::vector<Level> levels_;
  std::vector<Place> places_;
  std::vector<std::vector<Return>> returns_;  // of each level
  std::map<State, uint32_t> level_of_;
  std::map<std::pair<uint32_t, State>, uint32_t> place_of_;
  using Item = std::pair<size_t, uint32_t>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> queue_;
  std::vector<std::pair<uint32_t, std::string>> conflicts_;
  size_t steps_ = 0;
};

}  // namespace tokenfst
