// Distinct lists of 32-bit numbers, which are numbered in the order of their arrival and can be read without a lock.
//
// One writer adds lists, under the owner's mutex; nothing is removed or moved. Lists with equal hashes are chained.
// Cost of a look-up: the hash of the list, and one comparison for each list with the same hash.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "containers/stable_map.hpp"
#include "containers/stable_vector.hpp"

namespace tokenfst {

class StableLists {
 public:
  using List = std::span<const uint32_t>;

  uint32_t size() const { return static_cast<uint32_t>(lists_.size()); }
  const std::vector<uint32_t>& operator[](uint32_t number) const { return lists_[number].words; }
  size_t memory() const { return lists_.memory() + first_.memory() + words_.load(std::memory_order_relaxed) * 4; }

  // The number of a list; none if it has not been added.
  std::optional<uint32_t> find(List list) const { return find(list, hash_of(list)); }
  // Returns the number of a list, which is added if it is new.
  uint32_t add(List list) {
    const uint64_t hash = hash_of(list);
    if (const auto known = find(list, hash)) return *known;
    const auto number = static_cast<uint32_t>(lists_.grow());
    lists_[number].words.assign(list.begin(), list.end());
    words_.fetch_add(list.size(), std::memory_order_relaxed);
    uint32_t last = first_.find(hash);
    if (last == 0) {
      first_.insert(hash, number + 1);
    } else {
      while (const uint32_t next = lists_[last - 1].next.load(std::memory_order_relaxed)) last = next;
      lists_[last - 1].next.store(number + 1, std::memory_order_release);
    }
    return number;
  }

 private:
  struct Entry {
    std::vector<uint32_t> words;
    std::atomic<uint32_t> next{0};  // the number of the next list with the same hash, plus one
  };

  static uint64_t hash_of(List list) {
    uint64_t hash = list.size();
    for (uint32_t word : list) hash = mix(hash, word);
    return hash;
  }
  std::optional<uint32_t> find(List list, uint64_t hash) const {
    for (uint32_t at = first_.find(hash); at != 0; at = lists_[at - 1].next.load(std::memory_order_acquire)) {
      if (std::ranges::equal(lists_[at - 1].words, list)) return at - 1;
    }
    return std::nullopt;
  }

  StableVector<Entry> lists_;
  StableMap first_;  // for each hash, the number of the first list, plus one
  std::atomic<size_t> words_{0};
};

}  // namespace tokenfst
