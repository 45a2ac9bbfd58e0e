// The configurations after each token of a sequence. The last 16 to 32 are kept, and every sixteenth one before them.
// The others are computed again by advancing from a kept one, so going back costs at most 32 advances, however far it
// goes.
#pragma once

#include <cstddef>
#include <vector>

namespace tokenfst {

template <class Place>
class History {
 public:
  size_t memory() const { return (recent_.capacity() + marks_.capacity()) * sizeof(Place); }
  Place last(Place start) const { return recent_.empty() ? start : recent_.back(); }
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
