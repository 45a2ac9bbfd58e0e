// What is made when it is first asked for, by whichever thread that is; afterwards a look at one word. What raises half way is
// begun anew by whoever asks next, so it keeps what it makes only when that is whole.
#pragma once

#include <atomic>
#include <mutex>

#include "calls/call.hpp"
#include "threads/fork_gate.hpp"

namespace tokenfst {

class Once {
 public:
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
