// One public call of the core: the clock that measures all of its work, and the notice that a call may be long.
//
// A Call is an object on the stack of the calling thread. The clock starts at the first Deadline, and all Deadlines of
// one call share it, whichever object creates them. Time spent waiting before that, for another thread's work on the
// same automaton, is not counted. When work begins that may be long (a Deadline is created, or another thread holds a
// lock), `on_work` is called, and the caller can let other threads run (python/calls.hpp).
//
// Rejected: passing a deadline to every function (it would be in every signature between a mask and an expression); a
// clock in each object (a call over 100,000 states would have 100,000 clocks).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "calls/interrupts.hpp"

namespace tokenfst {

// A call that may take more steps than this over known states, which read no clock, announces itself (Call::work).
constexpr size_t kManySteps = 1000;

class Call {
 public:
  using Clock = std::chrono::steady_clock;

  Call() : outer_(current_) { current_ = this; }
  // The call of a thread that helps with another thread's call: it continues with that clock.
  explicit Call(Clock::time_point begun) : Call() { begun_ = begun; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { current_ = outer_; }

  // When the clock of this thread's call started; it starts now if it has not.
  static Clock::time_point begun() {
    work();
    if (!current_) return Clock::now();
    if (current_->begun_ == Clock::time_point{}) current_->begun_ = Clock::now();
    return current_->begun_;
  }
  // Whether this thread is inside a call.
  static bool is_under_way() { return current_ != nullptr; }
  // Announces work that may be long. Does nothing inside a call.
  static void work() {
    if (!current_ && on_work) on_work();
  }
  static inline void (*on_work)() = nullptr;  // set once; may release Python's lock and begin a Call

 private:
  static inline thread_local constinit Call* current_ = nullptr;

  Call* const outer_;
  Clock::time_point begun_{};
};

// The end of the time of this thread's call. Check it once for each state, not for each arc: it reads the clock.
class Deadline {
 public:
  explicit Deadline(double seconds)
      : begun_(Call::begun()),
        end_(begun_ + std::chrono::duration_cast<Call::Clock::duration>(std::chrono::duration<double>(std::min(seconds, kLongest)))) {}
  // Whether the call that it was created for has ended and another one has begun.
  bool is_of_an_earlier_call() const {
    Call::work();
    return Call::is_under_way() && Call::begun() != begun_;
  }
  // Whether the time is over. Raises Interrupted after Ctrl-C.
  bool expired() const {
    Interrupts::check();
    return Call::Clock::now() > end_;
  }

 private:
  static constexpr double kLongest = 1e9;  // seconds; the clock cannot represent an infinite budget
  Call::Clock::time_point begun_, end_;
};

// Takes a lock; if another thread holds it, announces that this one waits, so that others can run.
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
