// What one thread makes and others may want meanwhile: they wait until it is there. Threads that make different things do not meet.
//
// It stands beside the place where the thing will be kept. Whoever finds nothing there makes a Scope, looks again, and makes it; what
// raises half way leaves the place empty, and the next one begins anew. Nobody forks meanwhile, as with a lock: else the child would
// wait for a thread that it has not got. Cost: one exchange where nobody waits; whoever does sleeps a little and looks again.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "calls/call.hpp"
#include "threads/fork_gate.hpp"

namespace tokenfst {

class Making {
 public:
  class Scope {
   public:
    explicit Scope(Making& what) : what_(what), thread_(what.take()) {}
    ~Scope() {
      what_.by_.store(0, std::memory_order_release);
      ForkGate::leave(thread_);
    }
    Scope(const Scope&) = delete;

   private:
    Making& what_;
    ForkGate::Thread& thread_;
  };

 private:
  ForkGate::Thread& take() {
    for (;;) {
      ForkGate::Thread& thread = ForkGate::instance().enter();
      uint8_t other = 0;
      if (by_.compare_exchange_strong(other, own(), std::memory_order_acquire)) return thread;
      ForkGate::leave(thread);
      if (other != own()) {
        throw Error(Fault::Constraint,
                    "another thread was making this when the process was forked, and took too long for the fork to wait: make it again in "
                    "this process");
      }
      Call::work();  // the other one may take its time
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  // The generation of the process, in a byte, since states have one each: it tells a process from those that it was forked from.
  static uint8_t own() { return static_cast<uint8_t>(1 + ForkGate::generation() % 255); }

  std::atomic<uint8_t> by_{0};  // 0: nobody
};

}  // namespace tokenfst
