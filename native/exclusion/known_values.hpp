// The known items, of any kind, of arrays whose items must differ: which of them may the item being read still become equal
// to?
//
// Two JSON values are equal if they have the same type and: numbers have the same value (1, 1.0 and 1e0), strings the
// same letters, arrays equal items in order, objects equal members in any order. Known items are kept as trees: digits
// without zeros at either end, letters unescaped, members sorted by name.
//
// The idea: an item is compared while it is read. A *group* is a place in a value (which containers are open, which of
// their members and items are finished, the prefix of a scalar), together with the known values that agree with
// everything read so far. The groups at one place of the text are a *watch*; it is 0 if no known value agrees. A value
// that has left a watch never returns, since no way to end the item makes it equal. So whether the item is a known one is
// decided at its end without comparing anything twice; and at every byte, `watch != 0` tells whether it may become one.
//
// Events come from the reader of the text (exclusion.hpp), which knows what each byte begins and ends. Cost: an event
// visits each known value of the watch once, so an item costs as much as the known items that begin like it. Watches
// are numbered, equal ones only once, because a search asks whether a watch was seen before. Values and watches are
// appended, and removed from the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calls/budget.hpp"
#include "support/bytes.hpp"
#include "exclusion/known_numbers.hpp"
#include "exclusion/unescaper.hpp"

namespace tokenfst {

// A value in a tree; each child is in its parent's `parts`.
struct KnownValue {
  enum Kind : uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };
  Kind kind = kNull;
  uint32_t parent = 0;
  std::string name;  // of a member
  std::string text;  // of a string
  KnownNumber number;
  std::vector<uint32_t> parts;  // items, or members sorted by name
};

// The known items of one sequence, and its watches.
class KnownValues {
 public:
  using Watch = uint32_t;
  struct Checkpoint {
    uint32_t values = 0, known = 0, watches = 1;
  };

  Checkpoint checkpoint() const;
  // Removes everything after the checkpoint; set_last(container, known) restores the last known item of a container.
  template <class F>
  void restore(const Checkpoint& before, F&& set_last) {
    for (; known_.size() > before.known; known_.pop_back()) set_last(known_.back().container, known_.back().before);
    if (held_) return;
    values_.resize(before.values);
    for (; watches_.size() + 1 > before.watches; watches_.pop_back()) {
      auto [at, end] = numbers_.equal_range(watches_.back().hash);
      while (at != end && at->second != watches_.size()) ++at;
      numbers_.erase(at);
    }
  }
  // While numbers are pinned, no values and watches are removed.
  void pin_numbers(bool begins) { held_ += begins ? 1 : -1; }
  // A hash of the known items of a container, in any order; `last` is the last of them.
  uint64_t hash_of_known(uint32_t last) const { return last ? known_[last - 1].sum : 0; }
  size_t memory() const;

  // Adds an item, given as its text, to those of a container, of which `last` is the last. Returns its number.
  uint32_t add(uint32_t container, uint32_t last, std::string_view text);

  // Events. Each takes a watch and returns the watch after the event.
  //
  // due(): an item of a container begins next, so its known items join the watch; `last`: the last of them, 0 if there is
  // none.
  Watch due(Watch watch, uint32_t container, uint32_t last);
  // A value begins, with this byte.
  Watch begin(Watch watch, uint8_t byte);
  Watch begin_name(Watch watch);
  // A letter of a name or a string.
  Watch letter(Watch watch, uint8_t byte);
  Watch end_name(Watch watch);
  Watch end_string(Watch watch);
  // A byte of a number that continues.
  Watch digit(Watch watch, uint8_t byte);
  Watch end_number(Watch watch);
  Watch end_word(Watch watch);
  Watch end_container(Watch watch);
  // A hash that is equal for watches with equal continuations, while numbers are pinned. Zeros after a decimal point
  // are capped at 24, since they never end a number and more of them make no difference.
  uint64_t hash_of(Watch watch) const { return watch ? hash(watches_[watch - 1].groups, -24) : 0; }
  // Whether the item that ends here, or the number that may end here, is a known one of its container.
  bool is_known(Watch watch, uint32_t container) const;
  // The watch without the items that have ended.
  Watch without_ended(Watch watch);

 private:
  struct Frame {  // an open array or object
    bool object;
    uint32_t next;               // the index of the next or current item, or the member
    std::vector<uint32_t> seen;  // finished members, sorted
    auto operator<=>(const Frame&) const = default;
  };
  struct Leaf {  // what is being read in the innermost container
    enum class Kind : uint8_t { kDue, kName, kString, kNumber, kWord, kEnded };
    Kind kind = Kind::kDue;
    uint32_t member = 0, read = 0;
    NumberReading number;
    auto operator<=>(const Leaf&) const = default;
  };
  struct Place {
    uint32_t container;
    std::vector<Frame> frames;
    Leaf leaf;
    auto operator<=>(const Place&) const = default;
  };
  using Ids = std::vector<uint32_t>;
  struct Group {
    Place place;
    std::shared_ptr<const Ids> ids;  // for each known value: the scalar that is being read, or the innermost open container
    bool operator==(const Group& other) const { return place == other.place && (ids == other.ids || *ids == *other.ids); }
  };
  using Groups = std::vector<Group>;
  struct Watched {
    uint64_t hash;
    Groups groups;
  };
  struct Known {
    uint32_t container, before, value;
    uint64_t sum;  // the sum of the hashes of the values up to here
  };

  const std::string& name(const KnownValue& object, uint32_t member) const { return values_[object.parts[member]].name; }
  Groups get(Watch watch) const { return watch ? watches_[watch - 1].groups : Groups(); }

  // Replaces a container by the part of it that begins.
  bool to_part(const Frame& frame, uint32_t& id) const;
  // Ends a value.
  static void end(Place& place);
  // Ends the scalars that are `complete`, and continues in their parents; the others leave the watch.
  template <class F>
  Watch end(Watch watch, F&& complete) {
    auto agrees = [&](const Place& place, Leaf& leaf, uint32_t& id) {
      if (!complete(place, id)) return false;
      leaf = {};
      if (!place.frames.empty()) id = values_[id].parent;
      return true;
    };
    return each(watch, agrees, [](Place& place) { end(place); });
  }

  // The watch of the known values for which agrees(place, leaf, id) holds; it may change the leaf and the id. shift(place)
  // then updates the place of each group.
  template <class F, class G>
  Watch each(Watch watch, F&& agrees, G&& shift) {
    if (watch == 0) return 0;
    Groups after;
    for (size_t k = 0; k < watches_[watch - 1].groups.size(); ++k) {
      const Group& group = watches_[watch - 1].groups[k];
      std::vector<std::pair<Leaf, Ids>> found;  // mostly one entry
      for (const uint32_t before : *group.ids) {
        Leaf leaf = group.place.leaf;
        uint32_t id = before;
        if (!agrees(group.place, leaf, id)) continue;
        size_t at = 0;
        while (at < found.size() && found[at].first != leaf) ++at;
        if (at == found.size()) found.push_back({leaf, {}}), found[at].second.reserve(group.ids->size());
        found[at].second.push_back(id);
      }
      for (auto& [leaf, ids] : found) {
        Group to{group.place, ids == *group.ids ? group.ids : std::make_shared<const Ids>(std::move(ids))};
        to.place.leaf = leaf;
        shift(to.place);
        after.push_back(std::move(to));
      }
    }
    return number(std::move(after));
  }

  Watch number(Groups groups);
  static uint64_t hash(const Groups& groups, int32_t least_point = INT32_MIN);

  // Adds the tree of a JSON text, and returns its root. Iterative, because texts may nest to any depth.
  uint32_t parse(std::string_view text);
  // The hash of a value with all its parts.
  uint64_t hash(uint32_t root) const;

  std::vector<KnownValue> values_;
  std::vector<Known> known_;
  int held_ = 0;
  std::vector<Watched> watches_;
  std::unordered_multimap<uint64_t, uint32_t> numbers_;  // numbers of watches, by hash
};

}  // namespace tokenfst
