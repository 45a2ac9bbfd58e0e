// Workspaces, in which several threads derive expressions of one byte automaton at the same time.
//
// A workspace is an arena over the automaton's nodes (expressions/node_store.hpp) with the caches of derivatives, and belongs to one
// thread at a time. Only nodes are computed in it. States, rows and entries are created from these nodes under the automaton's mutex,
// which is held for that alone. Workspaces are created once threads have met at that mutex several times, so an automaton that one
// thread walks has none. There are at most as many as the computer has cores (at least 2, at most 16). A thread returns to the
// workspace that it used last, since that has cached what the thread derived.
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

#include "calls/call.hpp"
#include "derivatives/byte_derivatives.hpp"
#include "threads/fork_gate.hpp"

namespace tokenfst {

struct Workspace {
  Workspace(Arena& nodes, const Derivatives& shared)
      : arena(nodes, nullptr), derivatives(arena, shared), byte_derivatives(arena, derivatives) {}

  size_t memory() const { return arena.memory_beside_store() + derivatives.memory() + byte_derivatives.memory(); }

  Arena arena;
  Derivatives derivatives;
  ByteDerivatives byte_derivatives;
  std::optional<Deadline> deadline;  // of the thread that uses it
  Mutex mutex;
  std::atomic<uint32_t> user{0};  // the thread that used it last
  std::atomic<size_t> bytes{0};   // its memory at the last count
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
      if (made_[k]->user.load(std::memory_order_relaxed) != thread) continue;
      if (std::unique_lock lock(made_[k]->mutex, std::try_to_lock); lock) return begin(*made_[k], std::move(lock));
    }
    if (count < most()) {
      const auto making = locked(making_);
      const uint32_t number = count_.load(std::memory_order_relaxed);
      if (number < most()) {
        made_[number] = make();
        made_[number]->user.store(thread, std::memory_order_relaxed);
        std::unique_lock lock(made_[number]->mutex);
        count_.store(number + 1, std::memory_order_release);
        return begin(*made_[number], std::move(lock));
      }
    }
    const uint32_t all = count_.load(std::memory_order_acquire);
    for (uint32_t k = 0; k < all; ++k) {
      Workspace& free = *made_[(thread + k) % all];
      if (std::unique_lock lock(free.mutex, std::try_to_lock); lock) return begin(free, std::move(lock));
    }
    Workspace& own = *made_[thread % all];
    return begin(own, locked(own.mutex));
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
  static std::pair<Workspace&, std::unique_lock<Mutex>> begin(Workspace& space, std::unique_lock<Mutex> lock) {
    space.user.store(ForkGate::this_thread().number, std::memory_order_relaxed);
    space.arena.renew();
    space.deadline.reset();
    return {space, std::move(lock)};
  }

  std::array<std::unique_ptr<Workspace>, kMost> made_;  // written once each, before it is counted
  std::atomic<uint32_t> count_{0};
  Mutex making_;
};

}  // namespace tokenfst
