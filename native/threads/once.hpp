// One-time initialization by whichever thread needs a value first; after that, a check of one word. If `make` raises,
// the next caller starts again, so `make` must store its result only when it is complete.
#pragma once

#include <atomic>
#include <mutex>

#include "calls/call.hpp"
#include "threads/fork_gate.hpp"

namespace tokenfst {

class Once {
 public:
  // Calls make() unless it has been called; other threads wait meanwhile.
  template <class F>
  void operator()(F&& make) {
    if (done_.load(std::memory_order_acquire)) return;
    const auto lock = locked(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    Call::work();
    make();
    done_.store(true, std::memory_order_release);
  }
  bool is_done() const { return done_.load(std::memory_order_acquire); }

 private:
  Mutex mutex_;
  std::atomic<bool> done_{false};
};

}  // namespace tokenfst
