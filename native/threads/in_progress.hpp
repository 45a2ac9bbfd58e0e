// Marks a value that one thread is computing, so that other threads wait for it instead of computing it too. Threads
// that compute different values do not wait for each other.
//
// The object is stored beside the value. A thread that finds no value creates a Scope, checks again, and computes the
// value; if it raises, the value stays missing, and the next thread starts again. As with a lock, no fork happens
// meanwhile: otherwise the child would wait for a thread that it does not have. (After a fork that could not wait, a Scope
// in the child raises an Error.) Cost: one exchange if nobody computes the value; a waiting thread sleeps briefly and
// checks again. A thread must not create a second Scope of the same object.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "calls/call.hpp"
#include "threads/fork_gate.hpp"

namespace tokenfst {

class InProgress {
 public:
  // Marks the value as being computed until the end of its scope; waits while another thread computes it.
  class Scope {
   public:
    explicit Scope(InProgress& what) : what_(what), thread_(what.take()) {}
    ~Scope() {
      what_.by_.store(0, std::memory_order_release);
      ForkGate::leave(thread_);
    }
    Scope(const Scope&) = delete;

   private:
    InProgress& what_;
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
        throw Error(
            Fault::Constraint,
            "another thread was computing this when the process was forked, and took too long for the fork to wait: create it again in "
            "this process");
      }
      Call::work();  // the other thread may take long
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  // The generation of the process in one byte, since each state has such an object: it distinguishes a process from its
  // parents.
  static uint8_t own() { return static_cast<uint8_t>(1 + ForkGate::generation() % 255); }

  std::atomic<uint8_t> by_{0};  // 0: nobody
};

}  // namespace tokenfst
