// Exclusive use of an object by one thread at a time; other threads wait. The thread that uses it may acquire it again.
//
// It is for objects of one sequence. They need not be shared, but a caller may use them in several threads, or pass one
// twice in one list. Cost: one
// exchange if the object is free; a waiting thread sleeps briefly and tries again. If the process is forked while another
// thread uses the object, it is unusable in the child: acquiring it there raises an Error.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "threads/fork_gate.hpp"

namespace tokenfst {

class InUse {
 public:
  InUse() = default;
  InUse(const InUse&) {}  // a copy is a different object, in use by nobody
  InUse& operator=(const InUse&) = delete;

  // Holds the object during its scope.
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
  // Acquires the object, unless this thread holds it already; returns whether this thread held it before.
  bool take() {
    const uint64_t own = uint64_t{ForkGate::generation()} << 32 | ForkGate::this_thread().number;
    if (by_.load(std::memory_order_relaxed) == own) return true;
    for (uint64_t other = 0; !by_.compare_exchange_strong(other, own, std::memory_order_acquire); other = 0) {
      if (other >> 32 != ForkGate::generation()) {
        throw Error(Fault::Constraint,
                    "another thread was using this object when the process was forked: create a new one in this process");
      }
      Call::work();  // the other thread may take long
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return false;
  }

  std::atomic<uint64_t> by_{0};  // the generation of the process and the thread; 0: nobody
};

}  // namespace tokenfst
