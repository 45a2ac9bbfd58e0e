// Calls from Python, and when other Python threads may run during them.
//
// A LongCall releases Python's lock (the GIL) at once. A QuickCall keeps it until its work proves to be long
// (calls/call.hpp), because releasing and re-acquiring it costs as much as a step over known states. Until then there is
// no Call, and the cost is two stores to `latest_`, the QuickCall of the thread that holds Python's lock. Both re-acquire
// the lock when they end, so Python objects are created after their scope. Invariant: no thread acquires Python's lock while it
// holds a lock of the core.
//
// Free-threaded Python has no such lock: to release it means that this thread touches no Python object until the end of
// the call, so that the garbage collector does not wait for it. There `latest_` exists once for each thread. What Python's
// lock protects elsewhere, nanobind's guards of objects (`nb::lock_self`, `nb::ft_object_guard`, `nb::ft_mutex`) protect
// there; with the lock they do nothing.
#pragma once

#include <Python.h>

#include <new>

#include "calls/call.hpp"

namespace tokenfst {

class LongCall {
 private:
  struct Unlocked {
    Unlocked() : saved_(PyEval_SaveThread()) {}
    ~Unlocked() { PyEval_RestoreThread(saved_); }
    PyThreadState* const saved_;
  };
  const Unlocked unlocked_;
  const Call call_;
};

class QuickCall {
 public:
  QuickCall() { latest_ = this; }
  QuickCall(const QuickCall&) = delete;
  QuickCall& operator=(const QuickCall&) = delete;
  ~QuickCall() {
    if (is_long_) long_.~LongCall();
    else latest_ = nullptr;
  }
  // To be called once, before the first call.
  static void set_up() {
    Call::on_work = [] {
      if (latest_ && is_of_this_thread()) latest_->lengthen();
    };
  }

 private:
  // Whether `latest_` is of this thread: whether this thread holds Python's lock. PyGILState_Check is not in the stable ABI.
  // The dictionary of the current thread state is, and it is null without the lock; before Python 3.12 it would be the
  // dictionary of any thread.
  static bool is_of_this_thread() {
#if defined(Py_GIL_DISABLED)
    return true;
#elif defined(Py_LIMITED_API)
    static_assert(Py_LIMITED_API >= 0x030C0000);
    return PyThreadState_GetDict() != nullptr;
#else
    return PyGILState_Check();
#endif
  }

  void lengthen() {
    latest_ = nullptr;
    new (&long_) LongCall;
    is_long_ = true;
  }

#ifdef Py_GIL_DISABLED
  static inline thread_local constinit QuickCall* latest_ = nullptr;
#else
  static inline QuickCall* latest_ = nullptr;  // protected by Python's lock
#endif

  bool is_long_ = false;
  union {
    LongCall long_;
  };
};

}  // namespace tokenfst
