// The memory of nodes, of their lists of operands and of their sets of bytes: for one arena, or for several arenas that add
// to it at the same time.
//
// While one arena uses it, nothing here is locked. Once it is shared, every addition is made under one spin lock, which is held for a
// look-up and an append. What is there already is found by its hash without the lock. Readers of known nodes take no lock: what was written never changes, and when an
// array moves to larger memory, its old memory stays in place as long as the store lives, since others may read there. A thread that
// holds the spin lock also holds a lock of the byte automaton, so a fork waits until it is free (threads/fork_gate.hpp).
//
// An array that is full grows in two steps: the thread that finds it full lets go of the spin lock, allocates the larger array and
// copies the elements; then it takes the lock again, copies what was added meanwhile, and exchanges the arrays. So others wait for
// the exchange, and not for the large copy. The index moves its slots little by little (containers/hash_index.hpp).
//
// Memory. The old blocks that stay in place are together at most as large as those in use. A store that is not shared has none.
#pragma once

#include <algorithm>
#include <atomic>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "containers/hash_index.hpp"
#include "containers/reused_memory.hpp"
#include "expressions/node.hpp"
#include "support/bytes.hpp"
#include "support/cache_line.hpp"
#include "threads/fork_gate.hpp"

namespace tokenfst {

// An array that one thread, with exclusive use, appends to, while others read the elements that were there before.
template <class T>
class GrowingArray {
 public:
  // The elements that were published to a thread before this call lie here, whatever is appended later.
  T* data() const { return data_.load(std::memory_order_acquire); }
  // The number of elements, with those that other threads have added; a later data() has all of them.
  size_t size() const { return size_.load(std::memory_order_acquire); }
  std::span<const T> all() const { return now_; }
  size_t memory() const { return (now_.capacity() + outgrown_) * sizeof(T); }
  // The bytes that `more` further elements allocate: 0 while there is room.
  size_t growth(size_t more) const { return tokenfst::growth(now_, more); }
  // The capacity to make for `more` further elements; 0 while there is room.
  size_t wanted(size_t more) const {
    const size_t size = now_.size() + more;
    return size <= now_.capacity() ? 0 : std::max({size, kFirst, trimmed_ ? now_.size() + now_.size() / 2 : 2 * now_.size()});
  }

  // From now on others may read while one thread appends.
  void share() { shared_ = true, trimmed_ = false; }
  void reserve(size_t count) {
    if (count <= now_.capacity()) return;
    if (shared_) return adopt(larger(count));
    move_to_larger(now_, count);
    data_.store(now_.data(), std::memory_order_release);
  }
  // A larger array with all elements so far. Without exclusive use, it has those that were there when the function was called.
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
  // Frees the room that is not used, and grows by less from now on. Called while nobody else reads.
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

  // Where the elements lie, stored when all of them are there. What follows changes with each element, on a cache line apart.
  std::atomic<T*> data_{nullptr};
  alignas(kCacheLine) std::atomic<size_t> size_{0};  // stored after the element; `data_` is stored before it
  ReusedVector<T> now_;
  std::vector<ReusedVector<T>> before_;  // old blocks, which others may still read
  size_t outgrown_ = 0;  // their capacity in elements
  bool shared_ = false, trimmed_ = false;
};

// The store. Functions that change it need exclusive use of it: a store that is not shared, or the lock Exclusive.
struct NodeStore {
  GrowingArray<Node> nodes;
  GrowingArray<uint32_t> lists;
  GrowingArray<ByteSet> sets;
  HashIndex nodes_by_hash;
  HashIndex sets_by_hash;

  size_t memory() const { return shared_ ? memory_.load(std::memory_order_relaxed) : measured(); }
  bool is_shared() const { return shared_; }
  // From now on several arenas may use it. Called while nobody else does.
  void share() {
    nodes.share(), lists.share(), sets.share();
    nodes_by_hash.share(), sets_by_hash.share();
    measure();
    shared_ = true;
  }
  // Frees the room that is not used after a program has been read. Called while nobody else uses it.
  void trim() { nodes.trim(), lists.trim(), sets.trim(); }

  // The tables that must grow for the next addition: their new sizes, or 0.
  struct Wanted {
    size_t nodes = 0, lists = 0, slots = 0;
    bool any() const { return nodes + lists + slots != 0; }
  };
  Wanted wanted(size_t list) const {
    return {nodes.wanted(1), list == 0 ? 0 : lists.wanted(list), nodes_by_hash.is_full() ? 2 * nodes_by_hash.slots() : 0};
  }
  // The larger tables: allocated and filled without exclusive use, then adopted with it.
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
  // Counts the memory again, after a table has grown.
  void measure() { memory_.store(measured(), std::memory_order_relaxed); }

  // The number of a set, which is added if it is new.
  uint32_t add_set(const ByteSet& set) {
    const uint32_t hash = hash_of(set);
    if (const uint32_t known = sets_by_hash.find(hash, IsSet{*this, set}); known != HashIndex::kNothing) return known;
    const auto number = static_cast<uint32_t>(sets.size());
    sets.push_back(set);
    sets_by_hash.add(hash, number);
    return number;
  }
  // The number of a set in a shared store, without exclusive use; HashIndex::kNothing: not found.
  uint32_t known_set(const ByteSet& set) const { return sets_by_hash.find_known(hash_of(set), IsSet{*this, set}); }
  void clear_sets() {
    sets.clear();
    sets_by_hash = HashIndex();
  }

  // The spin lock of a shared store, held until the end of its scope. If the process was forked while another thread held it, it
  // raises an Error in the child.
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
                    "another thread was changing this when the process was forked, and took too long for the fork to wait: create it again "
                    "in this process");
      }
      std::this_thread::yield();  // the thread that holds it is not running
    }
    std::atomic<uint32_t>& holder_;
  };

 private:
  static uint32_t hash_of(const ByteSet& set) {
    uint64_t hash = 0;
    for (const uint64_t word : set.words) hash = mix(hash, word);
    return static_cast<uint32_t>(hash);
  }
  struct IsSet {
    const NodeStore& store;
    const ByteSet& set;
    bool operator()(uint32_t number) const { return store.sets.data()[number] == set; }
  };
  size_t measured() const { return nodes.memory() + lists.memory() + sets.memory() + nodes_by_hash.memory() + sets_by_hash.memory(); }

  bool shared_ = false;
  std::atomic<size_t> memory_{0};
  // The generation of the process whose thread holds the lock; 0: it is free. On a cache line apart from what others read meanwhile.
  alignas(kCacheLine) std::atomic<uint32_t> holder_{0};
};

}  // namespace tokenfst
