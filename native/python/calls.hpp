// Calls from Python: when other threads of Python may go on.
//
// A LongCall gives up Python's lock (the GIL) at once. A QuickCall keeps it until its work proves to be long (call.hpp): giving it
// up and taking it back costs as much as a step over known states. Until then it is no Call, and costs two stores: whoever
// holds Python's lock made `latest_`. Both take the lock back when they end, so what makes Python objects stands behind their
// scope. Nobody takes Python's lock while it holds a lock of the core.
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
  // Once, before the first call.
  static void set_up() {
    Call::on_work = [] {
      if (latest_ && holds_lock()) latest_->lengthen();
    };
  }

 private:
  // Whether this thread holds Python's lock. PyGILState_Check is not in the stable ABI. What is there, the dictionary of the
  // current thread state, is null without one; before Python 3.12 it would be that of any thread.
  static bool holds_lock() {
#ifdef Py_LIMITED_API
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

  static inline QuickCall* latest_ = nullptr;  // under Python's lock

  bool is_long_ = false;
  union {
    LongCall long_;
  };
};

}  // namespace tokenfst
