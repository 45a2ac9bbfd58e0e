// The configurations after each token of a sequence, with few of them stored: the last 16 to 32, and before them every
// sixteenth. The others are computed again from the nearest stored one. So going back by any number of tokens costs at
// most 32 advances, and a token takes the memory of 1/16 of a configuration.
#pragma once

#include <cstddef>
#include <vector>

namespace tokenfst {

template <class Place>
class History {
 public:
  size_t memory() const { return (recent_.capacity() + marks_.capacity()) * sizeof(Place); }
  // The place after all tokens; `start` if there is none.
  Place last(Place start) const { return recent_.empty() ? start : recent_.back(); }
  // Adds the place after one more token. O(1) amortized.
  void push(Place place) {
    if (recent_.size() == 2 * kStep) {
      marks_.push_back(recent_[kStep - 1]);
      recent_.erase(recent_.begin(), recent_.begin() + kStep);
    }
    recent_.push_back(place);
  }
  // Goes back to the place after `size` tokens; `advance(place, k)` returns where token k leads.
  template <class Advance>
  void resize(size_t size, Place start, Advance&& advance) {
    if (size <= marks_.size() * kStep) {
      marks_.resize(size / kStep - (size >= kStep));
      recent_.clear();
      Place at = marks_.empty() ? start : marks_.back();
      for (size_t k = marks_.size() * kStep; k < size; ++k) recent_.push_back(at = advance(at, k));
    } else {
      recent_.resize(size - marks_.size() * kStep);
    }
  }

 private:
  static constexpr size_t kStep = 16;
  std::vector<Place> marks_;   // after 16, 32, ... tokens
  std::vector<Place> recent_;  // after each token from there on
};

}  // namespace tokenfst
