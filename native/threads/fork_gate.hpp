// Locks that stay consistent after a fork.
//
// A forked process has one thread, the one that called fork, and a copy of all memory at that moment. A lock that
// another thread held stays locked in the copy, and data that it was changing stays half changed. So there is no fork
// while the core changes anything: before a fork the gate is closed; threads that hold a lock continue until they hold
// none, and others wait at the gate until the fork is done. Then all locks are free in parent and child, and the data
// that they protect is consistent.
//
// A thread that acquired the interpreter's lock (GIL) while holding one of these locks would wait for the forking
// thread, and that thread for it. No code here does so. Still, no fork waits forever: after kLongest seconds it
// proceeds, and acquiring in the child a lock that was held then raises an Error.
//
// Cost: for the first lock that a thread holds, one exchange in its own memory; for nested locks, one read and one write. Rejected: a
// list of all locks that are acquired one by one before a fork, which needs one order for all of them; new locks in the
// child, which would leave half-changed data behind.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "calls/budget.hpp"
#include "threads/lock_waits.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif

namespace tokenfst {

class ForkGate {
 public:
  // A thread that has held a lock of the core, until it ends.
  struct Thread {
    explicit Thread(uint32_t own) : number(own) {}
    const uint32_t number;          // from 1; no other thread of the process ever has the same number
    std::atomic<uint32_t> held{0};  // how many locks it holds
  };

  static ForkGate& instance() {
    static ForkGate& made = *new ForkGate;  // never destroyed: threads may outlive everything that runs at the end of a process
    return made;
  }
  // 1, plus one for each fork that led to this process.
  static uint32_t generation() { return generation_.load(std::memory_order_relaxed); }

  // The record of this thread.
  static Thread& this_thread() { return this_thread_ ? *this_thread_ : register_thread(); }

  // Counts one more lock that this thread holds; the first one waits until no fork is in progress. Give the result to leave().
  Thread& enter() {
    Thread& thread = this_thread();
    const uint32_t held = thread.held.load(std::memory_order_relaxed);
    if (held > 0) {
      thread.held.store(held + 1, std::memory_order_relaxed);
      return thread;
    }
    thread.held.exchange(1, std::memory_order_seq_cst);  // must be visible before `shut_` is read
    while (shut_.load(std::memory_order_seq_cst)) {
      thread.held.store(0, std::memory_order_seq_cst);
      while (shut_.load(std::memory_order_acquire)) std::this_thread::sleep_for(kPause);
      thread.held.exchange(1, std::memory_order_seq_cst);
    }
    return thread;
  }
  // Counts one lock less.
  static void leave(Thread& thread) { thread.held.store(thread.held.load(std::memory_order_relaxed) - 1, std::memory_order_release); }

 private:
  static constexpr std::chrono::microseconds kPause{50};
  static constexpr std::chrono::seconds kLongest{10};

  [[gnu::noinline]] static Thread& register_thread() {
    struct Registered {
      Registered() {
        ForkGate& gate = instance();
        const std::lock_guard lock(gate.threads_mutex_);
        auto thread = std::make_unique<Thread>(++gate.last_number_);
        gate.threads_.push_back(thread.get());
        this_thread_ = thread.release();
      }
      ~Registered() {
        ForkGate& gate = instance();
        const std::lock_guard lock(gate.threads_mutex_);
        std::erase(gate.threads_, this_thread_);
        delete std::exchange(this_thread_, nullptr);
      }
    };
    static thread_local const Registered registered;
    return *this_thread_;
  }

  ForkGate() {
#ifndef _WIN32
    pthread_atfork([] { instance().shut(); }, [] { instance().open(); }, [] { instance().open_in_child(); });
#endif
  }
  void shut() {
    threads_mutex_.lock();  // held until the fork is done, so that no thread is registered or removed
    shut_.store(true, std::memory_order_seq_cst);
    const auto end = std::chrono::steady_clock::now() + kLongest;
    for (const Thread* thread : threads_) {
      while (thread->held.load(std::memory_order_seq_cst) > 0 && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(kPause);
    }
  }
  void open() {
    shut_.store(false, std::memory_order_seq_cst);
    threads_mutex_.unlock();
  }
  void open_in_child() {
    generation_.fetch_add(1, std::memory_order_relaxed);
    std::erase_if(threads_, [](const Thread* thread) { return thread != this_thread_; });
    open();
  }

  static inline std::atomic<uint32_t> generation_{1};
  static inline constinit thread_local Thread* this_thread_ = nullptr;
  std::atomic<bool> shut_{false};
  std::mutex threads_mutex_;
  std::vector<Thread*> threads_;
  uint32_t last_number_ = 0;
};

// A mutex that a thread holds only inside the gate. Most are held for less time than a thread needs to fall asleep and
// wake up, which takes some tens of microseconds. So a thread that finds one held tries again for as long before it sleeps. It is
// not recursive.
class Mutex {
 public:
  // Acquires the mutex. Raises an Error if another thread held it when the process was forked.
  void lock() {
    ForkGate::Thread& thread = enter();
    if (!mutex_.try_lock()) {
      const LockWaits::Wait wait;
      if (!wait_until_free(kLooksBeforeSleep)) mutex_.lock();
    }
    keep(thread);
  }
  bool try_lock() {
    ForkGate::Thread& thread = enter();
    if (!mutex_.try_lock()) return ForkGate::leave(thread), false;
    return keep(thread), true;
  }
  // As try_lock, but tries for some microseconds.
  bool try_lock_soon() {
    ForkGate::Thread& thread = enter();
    if (!mutex_.try_lock()) {
      const LockWaits::Wait wait;
      if (!wait_until_free(kLooks)) return ForkGate::leave(thread), false;
    }
    return keep(thread), true;
  }
  void unlock() {
    ForkGate::Thread& thread = *holder_;
    held_in_.store(0, std::memory_order_relaxed);
    mutex_.unlock();
    ForkGate::leave(thread);
  }

 private:
  ForkGate::Thread& enter() const {
    ForkGate::Thread& thread = ForkGate::instance().enter();
    const uint32_t held_in = held_in_.load(std::memory_order_relaxed);
    if (held_in == 0 || held_in == ForkGate::generation()) return thread;
    ForkGate::leave(thread);
    throw Error(Fault::Constraint,
                "another thread was changing this when the process was forked, and took too long for the fork to wait: create it again in "
                "this process");
  }
  // Waits until the mutex is free; returns false if it is not after so many looks.
  bool wait_until_free(int looks) {
    for (int look = 0; look < looks; ++look) {
      if (held_in_.load(std::memory_order_relaxed) == 0 && mutex_.try_lock()) return true;
      pause();
    }
    return false;
  }
  static void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) && !defined(_MSC_VER)
    asm volatile("isb" ::: "memory");
#else
    std::this_thread::yield();
#endif
  }
  void keep(ForkGate::Thread& thread) {
    held_in_.store(ForkGate::generation(), std::memory_order_relaxed);
    holder_ = &thread;
  }

  static constexpr int kLooks = 100, kLooksBeforeSleep = 1'000;  // some microseconds, some tens of them

  std::mutex mutex_;
  std::atomic<uint32_t> held_in_{0};  // the generation of the process that holds it; 0: free
  ForkGate::Thread* holder_ = nullptr;
};

}  // namespace tokenfst
