// Stable sorting by up to three numbers. The sort itself is compiled once, in sorting.cpp, for all types of items: a
// stable sort of the standard library is 5 KB of code for each type and each order, and the semirings have many.
//
// A key consists of the numbers by which an item is sorted, and of the item's place, which breaks ties. Many items: their
// keys are sorted, and the items are moved once. Few items: insertion sort. O(n log n); O(n) if they are sorted already.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "fst/machine.hpp"

namespace tokenfst::fst {

class SortKey {
 public:
  explicit SortKey(uint64_t number) : first_(number), second_(0) {}
  SortKey(Id a, Id b, Id c = 0) : first_(ordered(a) << 32 | ordered(b)), second_(ordered(c) << 32) {}

  void put_place(size_t place) { second_ |= place; }
  size_t place() const { return second_ & UINT32_MAX; }
  auto operator<=>(const SortKey&) const = default;

 private:
  // Maps signed to unsigned numbers such that their order stays.
  static uint64_t ordered(Id id) { return static_cast<uint32_t>(id) ^ 0x80000000u; }
  uint64_t first_, second_;
};

// Sorts keys that are all different, by their places at least.
void sort_keys(std::vector<SortKey>& keys);

// Sorts stably by `key(item)`, a SortKey. There are at most 2^32 items.
template <class T, class Key>
void sort_stably(std::span<T> items, Key&& key) {
  constexpr size_t kFew = 24;
  size_t sorted = 1;
  while (sorted < items.size() && key(items[sorted - 1]) <= key(items[sorted])) ++sorted;
  if (sorted >= items.size()) return;
  if (items.size() <= kFew) {
    for (; sorted < items.size(); ++sorted) {
      const T item = items[sorted];
      const SortKey own = key(item);
      size_t at = sorted;
      for (; at > 0 && own < key(items[at - 1]); --at) items[at] = items[at - 1];
      items[at] = item;
    }
    return;
  }
  std::vector<SortKey> keys;
  keys.reserve(items.size());
  for (const T& item : items) {
    keys.push_back(key(item));
    keys.back().put_place(keys.size() - 1);
  }
  sort_keys(keys);
  const std::vector<T> before(items.begin(), items.end());
  for (size_t at = 0; at < keys.size(); ++at) items[at] = before[keys[at].place()];
}

// Sorts the arcs of a state by one label, and then by the other.
template <class W>
void sort_arcs(std::span<Arc<W>> arcs, bool by_output) {
  sort_stably(arcs,
              [by_output](const Arc<W>& arc) { return by_output ? SortKey(arc.olabel, arc.ilabel) : SortKey(arc.ilabel, arc.olabel); });
}

// Sorts arcs by input, output and next state.
template <class W>
void sort_arcs_fully(std::span<Arc<W>> arcs) {
  sort_stably(arcs, [](const Arc<W>& arc) { return SortKey(arc.ilabel, arc.olabel, arc.nextstate); });
}

}  // namespace tokenfst::fst
