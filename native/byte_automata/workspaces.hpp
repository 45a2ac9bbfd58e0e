// Workspaces, in which several threads derive expressions of one byte automaton at the same time.
//
// A workspace is an arena over the automaton's nodes (expressions/node_store.hpp) with the caches of derivatives and the memory of the rows
// that are made in it. It belongs to one thread at a time. Nodes and rows are computed in it, and entries to states that are known already.
// New states are created from these nodes under the automaton's mutex, which is held for that alone. Workspaces are created once threads
// have met at that mutex several times, so an automaton that one thread walks has none. There are at most as many as the computer has cores
// (at least 2, at most 16). A thread returns to the workspace that it used last, since that has cached what the thread derived.
//
// Numbers of nodes and states depend on which thread comes first, as they depend on the order of walks. Nothing else does.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "byte_automata/rows.hpp"
#include "byte_automata/text_steps.hpp"
#include "calls/call.hpp"
#include "derivatives/byte_derivatives.hpp"
#include "support/cache_line.hpp"
#include "threads/fork_gate.hpp"

namespace tokenfst {

struct Workspace {
  Workspace(Arena& nodes, const Derivatives& shared)
      : arena(nodes, nullptr), derivatives(arena, shared), byte_derivatives(arena, derivatives) {}

  size_t memory() const { return arena.memory_beside_store() + derivatives.memory() + byte_derivatives.memory() + rows.memory(); }

  Arena arena;
  Derivatives derivatives;
  ByteDerivatives byte_derivatives;
  TextDerivatives text_derivatives{arena, byte_derivatives};
  Rows rows;
  std::optional<Deadline> deadline;  // of the thread that uses it
  Mutex mutex;
  std::atomic<size_t> bytes{0};  // its memory at the last count
};

class Workspaces {
 public:
  // A workspace with its lock: the one that this thread used last, else a new one by `make()`, else any that is free; if none is
  // free, it waits.
  template <class Make>
  std::pair<Workspace&, std::unique_lock<Mutex>> take(Make&& make) {
    const uint32_t thread = ForkGate::this_thread().number;
    const uint32_t count = count_.load(std::memory_order_acquire);
    for (uint32_t k = 0; k < count; ++k) {
      if (users_[k].load(std::memory_order_relaxed) != thread) continue;
      if (std::unique_lock lock(made_[k]->mutex, std::try_to_lock); lock) return begin(k, std::move(lock));
    }
    if (count < most()) {
      const auto making = locked(making_);
      const uint32_t number = count_.load(std::memory_order_relaxed);
      if (number < most()) {
        made_[number] = make();
        std::unique_lock lock(made_[number]->mutex);
        count_.store(number + 1, std::memory_order_release);
        return begin(number, std::move(lock));
      }
    }
    const uint32_t all = count_.load(std::memory_order_acquire);
    for (uint32_t k = 0; k < all; ++k) {
      const uint32_t free = (thread + k) % all;
      if (std::unique_lock lock(made_[free]->mutex, std::try_to_lock); lock) return begin(free, std::move(lock));
    }
    const uint32_t own = thread % all;
    return begin(own, locked(made_[own]->mutex));
  }
  // The bytes of all workspaces, each at its last count.
  size_t memory() const {
    size_t bytes = 0;
    for (uint32_t k = 0; k < count_.load(std::memory_order_acquire); ++k)
      bytes += sizeof(Workspace) + made_[k]->bytes.load(std::memory_order_relaxed);
    return bytes;
  }

 private:
  static constexpr uint32_t kMost = 16;
  static uint32_t most() {
    static const uint32_t cores = std::clamp(std::thread::hardware_concurrency(), 2u, kMost);
    return cores;
  }
  std::pair<Workspace&, std::unique_lock<Mutex>> begin(uint32_t number, std::unique_lock<Mutex> lock) {
    const uint32_t thread = ForkGate::this_thread().number;
    if (users_[number].load(std::memory_order_relaxed) != thread) users_[number].store(thread, std::memory_order_relaxed);
    Workspace& space = *made_[number];
    space.arena.renew();
    space.deadline.reset();
    return {space, std::move(lock)};
  }

  // Nothing of this changes often, so each thread keeps its own copy of these cache lines.
  std::array<std::unique_ptr<Workspace>, kMost> made_;  // written once each, before it is counted
  std::atomic<uint32_t> count_{0};  // how many can be used
  std::array<std::atomic<uint32_t>, kMost> users_{};  // the thread that used each last; a hint, so no order is needed
  alignas(kCacheLine) Mutex making_;
};

}  // namespace tokenfst
