// A tree of texts that a search reads byte by byte, and the way from one of them to another.
//
// Each place of the tree is a text: that of the place before, followed by one byte. The exclusion (exclusion.hpp) follows one path
// of the tree. To move to another place, it is restored to the last common place and reads on from there. Most searches visit
// a place right after the one before it, so that a text costs a few steps for each of its bytes, however long it is.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "exclusion/exclusion.hpp"

namespace tokenfst {

struct SearchedPlace {
  uint32_t before;
  uint32_t length;  // of its text
  Config config;
  char byte;
};

// The text of a place.
inline std::string text_to(const std::vector<SearchedPlace>& places, uint32_t place) {
  std::string text;
  for (; places[place].length > 0; place = places[place].before) text += places[place].byte;
  std::ranges::reverse(text);
  return text;
}

// Whether the text of `one` comes before that of `other`, which is as long. O(bytes from where they part).
inline bool is_less(const std::vector<SearchedPlace>& places, uint32_t one, uint32_t other) {
  char first = 0, second = 0;
  for (; one != other; one = places[one].before, other = places[other].before) first = places[one].byte, second = places[other].byte;
  return static_cast<uint8_t>(first) < static_cast<uint8_t>(second);
}

// The path to the place where the exclusion is, with a checkpoint for each place on it. Begins at place 0.
class ExclusionPath {
 public:
  ExclusionPath(const std::vector<SearchedPlace>& places, Exclusion& exclusion) : places_(places), exclusion_(exclusion) {
    taken_.emplace_back(0, exclusion.checkpoint());
  }
  // Moves the exclusion to another place. O(the part of the two paths that is not common).
  template <class Read>
  void go_to(uint32_t place, Read&& read) {
    std::vector<uint32_t>& ahead = ahead_;
    for (ahead.clear(); !is_on(place); place = places_[place].before) ahead.push_back(place);
    taken_.erase(taken_.begin() + places_[place].length + 1, taken_.end());
    exclusion_.restore(taken_.back().second);
    for (; !ahead.empty(); ahead.pop_back()) {
      const SearchedPlace& next = places_[ahead.back()];
      read(places_[next.before].config, next.byte);
      taken_.emplace_back(ahead.back(), exclusion_.checkpoint());
    }
  }
  const Exclusion::Checkpoint& here() const { return taken_.back().second; }

 private:
  bool is_on(uint32_t place) const {
    const uint32_t length = places_[place].length;
    return length < taken_.size() && taken_[length].first == place;
  }
  const std::vector<SearchedPlace>& places_;
  Exclusion& exclusion_;
  std::vector<std::pair<uint32_t, Exclusion::Checkpoint>> taken_;
  std::vector<uint32_t> ahead_;
};

}  // namespace tokenfst
