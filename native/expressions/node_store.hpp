// Where nodes, their lists of operands and their sets of bytes lie: for one arena, or for several that add to them at the same time.
//
// As long as one arena has it, nothing here is locked. Once it is shared, every addition and every look-up is made under one spin
// lock, which is held for a look-up and an append; nothing else is done meanwhile, and nothing that can raise. Readers take no lock:
// what was written never changes, and an array that has outgrown its memory leaves the old memory in place until the store goes,
// since others may read there. Whoever holds the spin lock also holds a lock of the byte automaton, so no fork meets it held.
//
// An array that is full grows in two steps: the thread that finds it full lets go of the spin lock, allocates the larger array and
// copies what there is; then it takes the lock again, copies what was added meanwhile, and exchanges the arrays. So others wait for
// the exchange, and not for the copy. The index moves its slots little by little (support/hash_index.hpp).
//
// Memory. Blocks that are left in place are together at most as large as those in use. An arena that nobody shares has none.
#pragma once

#include <algorithm>
#include <atomic>
#include <span>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "expressions/node.hpp"
#include "support/bytes.hpp"
#include "support/hash_index.hpp"
#include "support/reused_memory.hpp"
#include "threads/fork_gate.hpp"

namespace tokenfst {

// An array that grows at its end, by whoever has exclusive use of it, while others read what was there before.
template <class T>
class GrowingArray {
 public:
  // Elements that were published to a thread before it asks for this lie here, whatever is appended later.
  T* data() const { return data_.load(std::memory_order_acquire); }
  // As many elements lie there for whoever asks for data() afterwards, also those that other threads have added.
  size_t size() const { return size_.load(std::memory_order_acquire); }
  std::span<const T> all() const { return now_; }
  size_t memory() const { return (now_.capacity() + outgrown_) * sizeof(T); }
  // Bytes that so many elements more take: none while there is room.
  size_t growth(size_t more) const { return tokenfst::growth(now_, more); }
  // The room to make for so many elements more; 0 while there is room.
  size_t wanted(size_t more) const {
    const size_t size = now_.size() + more;
    return size <= now_.capacity() ? 0 : std::max({size, kFirst, trimmed_ ? now_.size() + now_.size() / 2 : 2 * now_.size()});
  }

  // Whether others may read at the same time.
  void share() { shared_ = true, trimmed_ = false; }
  void reserve(size_t count) {
    if (count <= now_.capacity()) return;
    if (shared_) return adopt(larger(count));
    now_.reserve(count);
    data_.store(now_.data(), std::memory_order_release);
  }
  // A larger array with all elements so far; whoever has no exclusive use gets those that were there when it was called.
  ReusedVector<T> larger(size_t count) const {
    ReusedVector<T> made;
    made.reserve(count);
    const size_t size = size_.load(std::memory_order_acquire);  // first, since the newer of two blocks has as many
    const T* const data = data_.load(std::memory_order_acquire);
    made.assign(data, data + size);
    return made;
  }
  // Continues in an array of larger(), unless it is not larger any more.
  void adopt(ReusedVector<T> larger) {
    if (larger.capacity() <= now_.capacity()) return;
    larger.insert(larger.end(), now_.begin() + static_cast<ptrdiff_t>(larger.size()), now_.end());
    before_.reserve(before_.size() + 1);  // nothing may fail between here and the end: others read the block that is outgrown
    std::swap(larger, now_);
    outgrown_ += larger.capacity();
    before_.push_back(std::move(larger));
    data_.store(now_.data(), std::memory_order_release);
  }
  // Gives back what is not used, and grows by less from now on. Called while nobody else reads.
  void trim() {
    now_.shrink_to_fit();
    data_.store(now_.data(), std::memory_order_release);
    trimmed_ = !shared_;
  }
  void push_back(const T& element) {
    if (now_.size() == now_.capacity()) reserve(wanted(1));
    now_.push_back(element);
    size_.store(now_.size(), std::memory_order_release);
  }
  void append(std::span<const T> elements) {
    if (now_.size() + elements.size() > now_.capacity()) reserve(wanted(elements.size()));
    now_.insert(now_.end(), elements.begin(), elements.end());
    size_.store(now_.size(), std::memory_order_release);
  }
  void clear() {
    now_.clear();
    size_.store(0, std::memory_order_release);
  }

 private:
  static constexpr size_t kFirst = 4;

  ReusedVector<T> now_;
  std::vector<ReusedVector<T>> before_;  // what was outgrown while others could read it
  size_t outgrown_ = 0;                  // elements that these have room for
  bool shared_ = false, trimmed_ = false;
  std::atomic<T*> data_{nullptr};
  std::atomic<size_t> size_{0};
};

struct NodeStore {
  GrowingArray<Node> nodes;
  GrowingArray<uint32_t> lists;
  GrowingArray<ByteSet> sets;
  HashIndex nodes_by_hash;
  std::unordered_map<uint64_t, uint32_t> sets_by_hash;

  size_t memory() const { return shared_ ? memory_.load(std::memory_order_relaxed) : measured(); }
  bool is_shared() const { return shared_; }
  // From now on several arenas may use it. Called while nobody else does.
  void share() {
    nodes.share(), lists.share(), sets.share();
    measure();
    shared_ = true;
  }
  // Gives back the room that reading a program left over. Called while nobody else uses it.
  void trim() { nodes.trim(), lists.trim(), sets.trim(); }

  // What the next addition outgrows: how large each is to become, or 0.
  struct Wanted {
    size_t nodes = 0, lists = 0, slots = 0;
    bool any() const { return nodes + lists + slots != 0; }
  };
  Wanted wanted(size_t list) const {
    return {nodes.wanted(1), list == 0 ? 0 : lists.wanted(list), nodes_by_hash.is_full() ? 2 * nodes_by_hash.slots() : 0};
  }
  // The same, allocated and filled by a thread that has no exclusive use; then adopted by one that has.
  struct Larger {
    ReusedVector<Node> nodes;
    ReusedVector<uint32_t> lists;
    HashIndex::Slots slots;
  };
  Larger larger(const Wanted& wanted) const {
    Larger made;
    if (wanted.nodes != 0) made.nodes = nodes.larger(wanted.nodes);
    if (wanted.lists != 0) made.lists = lists.larger(wanted.lists);
    if (wanted.slots != 0) made.slots = HashIndex::Slots(wanted.slots);
    return made;
  }
  void adopt(Larger made) {
    nodes.adopt(std::move(made.nodes));
    lists.adopt(std::move(made.lists));
    if (made.slots.size() > nodes_by_hash.slots()) nodes_by_hash.grow_into(std::move(made.slots));
  }
  // After a table has grown.
  void measure() { memory_.store(measured(), std::memory_order_relaxed); }

  // The number of a set, which is added if it is new. Where the store is shared, the caller has exclusive use of it.
  uint32_t add_set(const ByteSet& set) {
    uint64_t hash = 0;
    for (uint64_t word : set.words) hash = mix(hash, word);
    const auto number = static_cast<uint32_t>(sets.size());
    auto [it, fresh] = sets_by_hash.try_emplace(hash, number);
    while (!fresh && !(sets.data()[it->second] == set)) std::tie(it, fresh) = sets_by_hash.try_emplace(++hash, number);
    if (fresh) sets.push_back(set);
    return it->second;
  }
  void clear_sets() {
    sets.clear();
    sets_by_hash.clear();
  }

  // Exclusive use, for the moments that an addition takes.
  class Exclusive {
   public:
    explicit Exclusive(NodeStore& store) : holder_(store.holder_) {
      const uint32_t own = ForkGate::generation();
      uint32_t other = 0;
      while (!holder_.compare_exchange_weak(other, own, std::memory_order_acquire)) {
        int looks = 0;
        while ((other = holder_.load(std::memory_order_relaxed)) != 0 && ++looks < kLooks) {}
        if (other != 0) wait(other, own);
        other = 0;
      }
    }
    ~Exclusive() { holder_.store(0, std::memory_order_release); }
    Exclusive(const Exclusive&) = delete;

   private:
    static constexpr int kLooks = 200;
    static void wait(uint32_t other, uint32_t own) {
      if (other != own) {
        throw Error(Fault::Constraint,
                    "another thread was changing this when the process was forked, and took too long for the fork to wait: make it again "
                    "in this process");
      }
      std::this_thread::yield();  // whoever has it was put aside by the system
    }
    std::atomic<uint32_t>& holder_;
  };

 private:
  size_t measured() const { return nodes.memory() + lists.memory() + sets.memory() + nodes_by_hash.memory(); }

  bool shared_ = false;
  std::atomic<uint32_t> holder_{0};  // the generation of the process whose thread has it; 0: nobody
  std::atomic<size_t> memory_{0};
};

}  // namespace tokenfst
