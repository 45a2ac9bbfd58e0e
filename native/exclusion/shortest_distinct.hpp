// A short word of a language in which strings must differ from each other (exclusion.hpp).
//
// Best-first search by the length so far plus the least missing length (byte_automata/lengths.hpp), as if nothing were
// excluded. Each configuration and reading is visited once, so a word may be a little longer than the shortest. Each
// text is run anew from the start.
#pragma once

#include <optional>
#include <queue>

#include "exclusion/exclusion.hpp"
#include "byte_automata/lengths.hpp"

namespace tokenfst {

// A search from the start of an automaton, which must outlive it.
class ShortestDistinct {
 public:
  explicit ShortestDistinct(ByteAutomaton& bytes) : bytes_(bytes), lengths_(bytes), walker_(bytes, stacks_) {}

  // A short word that begins with `prefix`; none if there is none. Raises BudgetExceeded("seconds").
  std::optional<std::string> find(std::string prefix) {
    if (is_dead(walker_.start())) return std::nullopt;
    const Exclusion::Checkpoint before = exclusion_.checkpoint();
    const Exclusion::PinnedNumbers hold(exclusion_);
    Deadline deadline(bytes_.budget().seconds);
    std::priority_queue<Place> queue;
    std::set<std::pair<Config, Reading>> seen;
    queue.push({0, std::move(prefix)});
    while (!queue.empty()) {
      if (deadline.expired()) throw BudgetExceeded("seconds", bytes_.budget().seconds, "the search for a short word");
      std::string text = queue.top().text;
      queue.pop();
      exclusion_.restore(before);
      const Config from = exclusion_.run(bytes_, walker_, walker_.start(), text);
      if (is_dead(from)) return std::nullopt;  // the prefix itself leads nowhere
      if (bytes_.accepting(from.state)) return text;
      const Exclusion::Checkpoint here = exclusion_.checkpoint();
      for (int byte = 0; byte < 256; ++byte) {
        const char next[] = {static_cast<char>(byte)};
        const Config to = exclusion_.run(bytes_, walker_, from, {next, 1});
        if (!is_dead(to) && exclusion_.can_differ(bytes_, walker_, stacks_, to, exclusion_.reading())) {
          if (seen.insert({to, exclusion_.place()}).second)
            queue.push({size_t{text.size()} + 1 + lengths_.of(to, stacks_), text + next[0]});
        }
        exclusion_.restore(here);
      }
    }
    return std::nullopt;
  }

 private:
  struct Place {
    size_t length;
    std::string text;
    bool operator<(const Place& other) const {
      return std::tuple(other.length, text.size(), other.text) < std::tuple(length, other.text.size(), text);
    }
  };

  ByteAutomaton& bytes_;
  Lengths lengths_;
  Stacks stacks_;
  Walker walker_;
  Exclusion exclusion_;
};

}  // namespace tokenfst
