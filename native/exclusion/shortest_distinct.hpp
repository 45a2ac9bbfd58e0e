// A short word of a language in which strings must differ from each other (exclusion.hpp).
//
// Best-first search by the length so far plus the least missing length (byte_automata/lengths.hpp), as if nothing were
// excluded. Each configuration and reading is visited once, so a word may be a little longer than the shortest.
#pragma once

#include <optional>
#include <queue>

#include "byte_automata/lengths.hpp"
#include "exclusion/exclusion_path.hpp"

namespace tokenfst {

// A search from the start of an automaton, which must outlive it.
class ShortestDistinct {
 public:
  explicit ShortestDistinct(ByteAutomaton& bytes) : bytes_(bytes), lengths_(bytes), walker_(bytes, stacks_) {}

  // A short word that begins with `prefix`; none if there is none. Raises BudgetExceeded.
  std::optional<std::string> find(const std::string& prefix) {
    if (is_dead(walker_.start())) return std::nullopt;
    const Exclusion::PinnedNumbers hold(exclusion_);
    TimeLimit time_limit(bytes_.budget().seconds, "the search for a short word");
    const Config begin = exclusion_.run(bytes_, walker_, walker_.start(), prefix);
    if (is_dead(begin)) return std::nullopt;
    std::vector<SearchedPlace> places{{0, 0, begin, 0}};
    ExclusionPath way(places, exclusion_);
    const auto read = [&](Config from, char byte) { return exclusion_.run(bytes_, walker_, from, {&byte, 1}); };
    // The least total length first, then the longest text, then the least one.
    const auto later = [&](const Next& one, const Next& other) {
      const uint32_t length = places[one.place].length, others = places[other.place].length;
      if (one.length != other.length) return one.length > other.length;
      return length != others ? length < others : is_less(places, other.place, one.place);
    };
    std::priority_queue<Next, std::vector<Next>, decltype(later)> queue(later);
    std::set<std::pair<Config, Reading>> seen;
    for (queue.push({0, 0}); !queue.empty();) {
      time_limit.step(256);
      const uint32_t place = queue.top().place;
      queue.pop();
      way.go_to(place, read);
      const auto [before, length, from, last] = places[place];
      if (bytes_.accepting(from.state)) return prefix + text_to(places, place);
      for (int byte = 0; byte < 256; ++byte) {
        const char next = static_cast<char>(byte);
        const Config to = read(from, next);
        if (!is_dead(to) && exclusion_.can_differ(bytes_, walker_, stacks_, to, exclusion_.reading()) &&
            seen.insert({to, exclusion_.place()}).second) {
          check_bytes(places.size());
          places.push_back({place, length + 1, to, next});
          queue.push({size_t{length} + 1 + lengths_.of(to, stacks_), static_cast<uint32_t>(places.size() - 1)});
        }
        exclusion_.restore(way.here());
      }
    }
    return std::nullopt;
  }

 private:
  // A place to be visited, and the length of its text with what is missing.
  struct Next {
    size_t length;
    uint32_t place;
  };

  void check_bytes(size_t places) const {
    constexpr size_t kEach = sizeof(SearchedPlace) + sizeof(Next) + sizeof(std::pair<Config, Reading>) + 48;  // with a node of the set
    const size_t most = bytes_.budget().bytes;
    if (places * kEach > most) throw BudgetExceeded("bytes", static_cast<double>(most), "the search for a short word");
  }

  ByteAutomaton& bytes_;
  Lengths lengths_;
  Stacks stacks_;
  Walker walker_;
  Exclusion exclusion_;
};

}  // namespace tokenfst
