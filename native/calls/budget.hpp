// Budgets (docs/project/conventions.md, convention 8) and the errors of the core. bindings/module.cpp maps each fault to
// its class in tokenfst.errors.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "calls/call.hpp"

#ifdef __linux__
#include <pthread.h>
#endif

namespace tokenfst {

// A construction has reached a bound of its budget: which resource ran out, its limit, and the construction or the part of
// the constraint that used it up (empty: not known).
struct BudgetExceeded : std::runtime_error {
  BudgetExceeded(std::string what_ran_out, double limit_, std::string where_)
      : std::runtime_error(what_ran_out), resource(std::move(what_ran_out)), limit(limit_), where(std::move(where_)) {}
  std::string resource;
  double limit;
  std::string where;
};

// The class of tokenfst.errors that an Error becomes.
enum class Fault {
  Constraint,
  TokenId,
  Terminated,
  Rollback,
  TokenLimit,
  MaskBuffer,
  EmptyLanguage,
  Nondeterministic,
  Corrupt,
  Vocabulary,
  Logits,
  FstOp,
  FstIndex,
  FstIO,
  FstWeight
};

// Any other error that the core reports to its caller. The message says what was wrong, where, and what to do.
struct Error : std::runtime_error {
  Error(Fault fault_, const std::string& message) : std::runtime_error(message), fault(fault_) {}
  Fault fault;
};

// The upper bounds of one construction: states, bytes of memory, and seconds of each call.
struct Budget {
  uint64_t states = 1'000'000;
  uint64_t bytes = 1ull << 30;
  double seconds = 30;
};

// Counts the steps of a loop that may be long, and reads the clock once for kEach steps. When the time is over, step()
// raises BudgetExceeded; `what` names the loop in the error. An object that outlives a call may keep a TimeLimit: each
// call has the whole time.
class TimeLimit {
 public:
  TimeLimit(double seconds, const char* what) : seconds_(seconds), what_(what) {}
  // Counts one step, or several if it is a step of more `effort`.
  void step(uint32_t effort = 1) {
    if ((steps_ += effort) >= kEach) look();
  }

 private:
  static constexpr uint32_t kEach = 4096;
  [[gnu::noinline]] void look() {
    steps_ = 0;
    if (!deadline_ || deadline_->is_of_an_earlier_call()) deadline_.emplace(seconds_);
    if (deadline_->expired()) throw BudgetExceeded("seconds", seconds_, what_);
  }

  const double seconds_;
  const char* const what_;
  uint32_t steps_ = 0;
  std::optional<Deadline> deadline_;
};

// The bounds of this thread's stack. Recursion here follows the nesting of expressions, and threads have stacks of any
// size. So a recursive function first calls check_stack(), which raises an Error while there is still space to unwind.
// O(1) after a thread's first call. The bounds are known on Linux and in WebAssembly; elsewhere nothing is checked.
class StackSpace {
 public:
  static const StackSpace& of_thread() {
    static thread_local const StackSpace space;
    return space;
  }
  void check() const {
    if (static_cast<const char*>(__builtin_frame_address(0)) < lowest_) {
      throw Error(Fault::Constraint, "the constraint nests too deeply for this thread's stack of " + std::to_string(size_) +
                                         " bytes: nest less, or compile in a thread with a larger one (threading.stack_size)");
    }
  }

 private:
  static constexpr size_t kReserve = 64 << 10;
  StackSpace() {
#if defined(__linux__) || defined(__wasm__)
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* base = nullptr;
    pthread_attr_getstack(&attributes, &base, &size_);
    pthread_attr_destroy(&attributes);
    lowest_ = static_cast<const char*>(base) + kReserve;
#endif
  }

  const char* lowest_ = nullptr;
  size_t size_ = 0;
};

// Raises an Error if little of this thread's stack is left.
inline void check_stack() { StackSpace::of_thread().check(); }

}  // namespace tokenfst
