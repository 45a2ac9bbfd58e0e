// Threads that stay, to share work that takes some microseconds: waking one costs less than starting one, and it has its room.
//
// A piece of work is a function that takes parts until none is left. Whoever has it puts it up for so many helpers, begins at once, and
// takes it down when nothing is left: then it waits for those helpers that have begun, and for no other. So a helper that wakes up late
// costs nothing but its waking. Helpers are started when more are wanted than there are, at most one less than the machine has cores.
//
// Invariants. Whatever `share` was given ends before it returns. A helper holds no lock while it works, and never Python's. What a helper
// raises is the work's own business: it catches all. Signals go to other threads.
//
// A fork. The child has no helpers, and makes its own when it wants some. Helpers that have nothing to do go home before a fork, and
// are started anew after it: a process that forks has no more threads than it began itself.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "threads/fork_gate.hpp"

#ifndef _WIN32
#include <csignal>
#include <pthread.h>
#endif

namespace tokenfst {

class Helpers {
 public:
  // Calls work() here, and in up to `helpers` other threads meanwhile. Returns when all have ended.
  static void share(size_t helpers, const std::function<void()>& work) {
    if (helpers == 0) return work();
    Helpers& all = instance();
    Task task{work, helpers, 0, {}};
    all.put_up(task);
    work();
    all.take_down(task);
  }

 private:
  struct Task {
    const std::function<void()>& work;
    size_t wanted, inside;  // helpers that may still come, and that are at it
    std::condition_variable ended;
  };
  struct Helper {
    std::thread thread;
    bool busy = false, goes = false;
  };

  // Of this process. Never destroyed: helpers sleep on it while the process ends.
  static Helpers& instance() {
    static std::atomic<Helpers*> made{nullptr};
    Helpers* known = made.load(std::memory_order_acquire);
    while (!known || known->generation_ != ForkGate::generation()) {
      ForkGate::instance();  // its way of forking begins after the helpers have gone
      auto* const own = new Helpers;
      if (made.compare_exchange_strong(known, own, std::memory_order_acq_rel)) {
#ifndef _WIN32
        static const int registered = pthread_atfork([] { made.load(std::memory_order_acquire)->send_home(); }, nullptr, nullptr);
        (void)registered;
#endif
        return *own;
      }
      delete own;
    }
    return *known;
  }

  void put_up(Task& task) {
    size_t others = 0;
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(&task);
      const auto idle = static_cast<size_t>(std::ranges::count_if(helpers_, [](const Helper& each) { return !each.busy; }));
      const size_t most = std::max(1u, std::thread::hardware_concurrency()) - 1;
      for (others = std::min(idle, task.wanted); others < task.wanted && helpers_.size() < most; ++others) {
        if (!begin_one()) break;
      }
    }
    for (; others > 0; --others) wake_.notify_one();
  }
  // Under the mutex. False: no more threads are to be had, and those there are share the work.
  bool begin_one() {
    Helper& helper = helpers_.emplace_back();
#ifndef _WIN32
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread begins with what is blocked here
#endif
    bool begun = true;
    try {
      helper.thread = std::thread([this, &helper] { help(helper); });
    } catch (const std::system_error&) {
      helpers_.pop_back();
      begun = false;
    }
#ifndef _WIN32
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
    return begun;
  }
  void take_down(Task& task) {
    std::unique_lock lock(mutex_);
    std::erase(tasks_, &task);
    task.ended.wait(lock, [&] { return task.inside == 0; });
  }

  void help(Helper& self) {
    std::unique_lock lock(mutex_);
    while (!self.goes) {
      const auto found = std::ranges::find_if(tasks_, [](const Task* task) { return task->wanted > 0; });
      if (found == tasks_.end()) {
        wake_.wait(lock);
        continue;
      }
      Task& task = **found;
      --task.wanted, ++task.inside;
      self.busy = true;
      lock.unlock();
      task.work();
      lock.lock();
      self.busy = false;
      if (--task.inside == 0) task.ended.notify_all();
    }
  }

  // Ends those that have nothing to do.
  void send_home() {
    if (generation_ != ForkGate::generation()) return;  // of a process before this one
    std::list<Helper> gone;
    {
      const std::lock_guard lock(mutex_);
      for (auto each = helpers_.begin(); each != helpers_.end();) {
        const auto next = std::next(each);
        if (!each->busy) each->goes = true, gone.splice(gone.end(), helpers_, each);
        each = next;
      }
    }
    if (!gone.empty()) wake_.notify_all();
    for (Helper& each : gone) each.thread.join();
  }

  const uint32_t generation_ = ForkGate::generation();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task*> tasks_;
  std::list<Helper> helpers_;  // which do not move
};

}  // namespace tokenfst
