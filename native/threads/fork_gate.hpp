// Locks that a fork leaves whole.
//
// A process that is forked has one thread, the one that forked, and a copy of all memory as it was at that moment. What another
// thread held locked stays locked in the copy, and what it was changing stays half changed. So nobody forks while the core
// changes anything: before a fork the gate is shut, threads that hold a lock go on until they hold none, and others wait in front
// of it until the fork is done. Then all locks are free in parent and child, and what they protect is whole.
//
// Who asks for the interpreter's lock (GIL) while it holds one of these would wait for the thread that forks, and that one for it.
// No code here does. Still no fork waits for ever: after kLongest seconds it goes on, and whoever asks in the child for a lock that
// was held then gets an error.
//
// Cost: of the first lock that a thread holds one exchange in memory of its own; of locks within nothing but a look.
// Rejected: a list of all locks, taken one by one before a fork, which needs one order for all of them; new locks in the child,
// which leave half changed what they protect.
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
  struct Thread {
    explicit Thread(uint32_t own) : number(own) {}
    const uint32_t number;          // no other thread of the process has it, now or later; from 1
    std::atomic<uint32_t> held{0};  // locks
  };

  static ForkGate& instance() {
    static ForkGate& made = *new ForkGate;  // never destroyed: threads may outlive whatever runs at the end of a process
    return made;
  }
  // 1, and one more for each fork that led to this process.
  static uint32_t generation() { return generation_.load(std::memory_order_relaxed); }

  static Thread& this_thread() { return this_thread_ ? *this_thread_ : register_thread(); }

  Thread& enter() {
    Thread& thread = this_thread();
    const uint32_t held = thread.held.load(std::memory_order_relaxed);
    if (held > 0) {
      thread.held.store(held + 1, std::memory_order_relaxed);
      return thread;
    }
    thread.held.exchange(1, std::memory_order_seq_cst);  // is seen before `shut_` is looked at
    while (shut_.load(std::memory_order_seq_cst)) {
      thread.held.store(0, std::memory_order_seq_cst);
      while (shut_.load(std::memory_order_acquire)) std::this_thread::sleep_for(kPause);
      thread.held.exchange(1, std::memory_order_seq_cst);
    }
    return thread;
  }
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
    threads_mutex_.lock();  // until the fork is done: no thread comes or goes
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

// A mutex behind that gate. Most are held for less time than a thread takes to fall asleep and wake up: whoever finds one held looks
// again for a while before that.
class Mutex {
 public:
  void lock() {
    ForkGate::Thread& thread = enter();
    if (!mutex_.try_lock()) {
      const LockWaits::Wait wait;
      if (!comes_free()) mutex_.lock();
    }
    keep(thread);
  }
  bool try_lock() {
    ForkGate::Thread& thread = enter();
    if (!mutex_.try_lock()) return ForkGate::leave(thread), false;
    return keep(thread), true;
  }
  // The same, with that while.
  bool try_lock_soon() {
    ForkGate::Thread& thread = enter();
    if (!mutex_.try_lock()) {
      const LockWaits::Wait wait;
      if (!comes_free()) return ForkGate::leave(thread), false;
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
                "another thread was changing this when the process was forked, and took too long for the fork to wait: make it again in "
                "this process");
  }
  // Takes it as soon as it is free; false: not within some microseconds.
  bool comes_free() {
    for (int look = 0; look < kLooks; ++look) {
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

  static constexpr int kLooks = 100;

  std::mutex mutex_;
  std::atomic<uint32_t> held_in_{0};  // the generation of the process; 0: free
  ForkGate::Thread* holder_ = nullptr;
};

}  // namespace tokenfst
