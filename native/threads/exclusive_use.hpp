// What one thread at a time may use: others wait. A thread that uses it already may go on to.
//
// For objects that belong to one sequence, which nobody needs to share, but a list of them may name one twice. So it costs one
// exchange where nobody waits, and whoever does sleeps a little and looks again. Nobody forks a process in order to use an object
// that another thread was changing: in the child that is an error.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "threads/fork_gate.hpp"

namespace tokenfst {

class InUse {
 public:
  InUse() = default;
  InUse(const InUse&) {}  // a copy is another object
  InUse& operator=(const InUse&) = delete;

  // Has it in its scope.
  class Scope {
   public:
    explicit Scope(InUse& object) : object_(object), outer_(object.take()) {}
    ~Scope() {
      if (!outer_) object_.by_.store(0, std::memory_order_release);
    }
    Scope(const Scope&) = delete;

   private:
    InUse& object_;
    const bool outer_;
  };

 private:
  // Whether the thread has it already; else takes it.
  bool take() {
    const uint64_t own = uint64_t{ForkGate::generation()} << 32 | ForkGate::this_thread().number;
    if (by_.load(std::memory_order_relaxed) == own) return true;
    for (uint64_t other = 0; !by_.compare_exchange_strong(other, own, std::memory_order_acquire); other = 0) {
      if (other >> 32 != ForkGate::generation()) {
        throw Error(Fault::Constraint, "another thread was using this matcher when the process was forked: make one in this process");
      }
      Call::work();  // the other one may take its time
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return false;
  }

  std::atomic<uint64_t> by_{0};  // the generation of the process, and the thread; 0: nobody
};

}  // namespace tokenfst
