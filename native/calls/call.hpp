// One public call of the core: the clock that all its work is measured by, and the place where a call proves to be long.
//
// A Call stands on the stack of the thread that makes one. The clock starts at the first Deadline, and all those made below the
// same call share it, whichever object makes them. Time that is spent waiting before that, for another thread's work on
// the same automaton, is not counted. Where work begins that may be long, a Deadline is made or another thread has a lock: `on_work`
// tells whoever calls, who may let others go on (calls.hpp).
//
// Rejected: a deadline passed to every function (it would stand in each signature between a mask and an expression); a
// clock of each object (a call over 100,000 states then has 100,000 clocks).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "calls/interrupts.hpp"

namespace tokenfst {

class Call {
 public:
  using Clock = std::chrono::steady_clock;

  Call() : outer_(current_) { current_ = this; }
  // Of a thread that helps with a call of another one: its clock goes on.
  explicit Call(Clock::time_point begun) : Call() { begun_ = begun; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { current_ = outer_; }

  // When the clock of this thread's call started, which it does now if it has not.
  static Clock::time_point begun() {
    work();
    if (!current_) return Clock::now();
    if (current_->begun_ == Clock::time_point{}) current_->begun_ = Clock::now();
    return current_->begun_;
  }
  static bool is_under_way() { return current_ != nullptr; }
  // Here work begins that may be long.
  static void work() {
    if (!current_ && on_work) on_work();
  }
  static inline void (*on_work)() = nullptr;  // may make the thread's Call

 private:
  static inline thread_local constinit Call* current_ = nullptr;

  Call* const outer_;
  Clock::time_point begun_{};
};

// When the time of this thread's call is up. Ask per state, not per arc: it reads the clock.
class Deadline {
 public:
  explicit Deadline(double seconds)
      : begun_(Call::begun()),
        end_(begun_ + std::chrono::duration_cast<Call::Clock::duration>(std::chrono::duration<double>(std::min(seconds, kLongest)))) {}
  // Whether the call that it was made for has ended, and another one is under way.
  bool is_of_an_earlier_call() const {
    Call::work();
    return Call::is_under_way() && Call::begun() != begun_;
  }
  bool expired() const {
    Interrupts::check();
    return Call::Clock::now() > end_;
  }

 private:
  static constexpr double kLongest = 1e9;  // seconds; an infinite budget does not fit the clock
  Call::Clock::time_point begun_, end_;
};

// Takes a lock; where another thread has it, others may go on while this one waits.
template <class Mutex>
std::unique_lock<Mutex> locked(Mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (lock) return lock;
  if (mutex.try_lock_soon()) return {mutex, std::adopt_lock};
  Call::work();
  lock.lock();
  return lock;
}

}  // namespace tokenfst
