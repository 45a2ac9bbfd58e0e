// Persistent helper threads, for tasks of some microseconds: waking a thread costs less than starting one, and its
// buffers are kept.
//
// A task is a function that takes parts of the work until none is left. share() posts it for a number of helpers,
// begins to work at once, and finishes it when no part is left: then it waits only for the helpers that have begun. So
// a helper that wakes up late costs nothing except waking it. Helpers are started when more are requested than exist,
// at most one less than the machine has cores.
//
// Invariants. The task given to `share` has ended before it returns. A helper holds no lock while it works, and never
// Python's. Helpers do not handle exceptions: the task must catch all of its own. Signals go to other threads.
//
// Fork. A child process has no helpers, and starts its own when it needs them. Idle helpers are ended before a fork, and
// started again when they are needed. So a process that forks while no task runs has only the threads that it created
// itself.
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
  // Calls work() here, and meanwhile in up to `helpers` other threads. Returns when all of them have ended.
  static void share(size_t helpers, const std::function<void()>& work) {
    if (helpers == 0) return work();
    Helpers& all = instance();
    Task task{work, helpers, 0, {}};
    all.post(task);
    work();
    all.finish(task);
  }

 private:
  struct Task {
    const std::function<void()>& work;
    size_t wanted, inside;  // helpers that may still join, and helpers that are working
    std::condition_variable ended;
  };
  struct Helper {
    std::thread thread;
    bool busy = false, ending = false;
  };

  // The helpers of this process. Never destroyed, since helpers sleep on it while the process ends.
  static Helpers& instance() {
    static std::atomic<Helpers*> made{nullptr};
    Helpers* known = made.load(std::memory_order_acquire);
    while (!known || known->generation_ != ForkGate::generation()) {
      ForkGate::instance();  // registers its fork handlers first, so that they run after the helpers have ended
      auto* const own = new Helpers;
      if (made.compare_exchange_strong(known, own, std::memory_order_acq_rel)) {
#ifndef _WIN32
        static const int registered = pthread_atfork([] { made.load(std::memory_order_acquire)->end_idle(); }, nullptr, nullptr);
        (void)registered;
#endif
        return *own;
      }
      delete own;
    }
    return *known;
  }

  void post(Task& task) {
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
  // To be called under the mutex. False: no more threads can be created, and the existing ones share the work.
  bool begin_one() {
    Helper& helper = helpers_.emplace_back();
#ifndef _WIN32
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the new thread inherits this signal mask
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
  void finish(Task& task) {
    std::unique_lock lock(mutex_);
    std::erase(tasks_, &task);
    task.ended.wait(lock, [&] { return task.inside == 0; });
  }

  void help(Helper& self) {
    std::unique_lock lock(mutex_);
    while (!self.ending) {
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

  // Ends the idle helpers.
  void end_idle() {
    if (generation_ != ForkGate::generation()) return;  // belongs to a parent process
    std::list<Helper> gone;
    {
      const std::lock_guard lock(mutex_);
      for (auto each = helpers_.begin(); each != helpers_.end();) {
        const auto next = std::next(each);
        if (!each->busy) each->ending = true, gone.splice(gone.end(), helpers_, each);
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
  std::list<Helper> helpers_;  // a list, since elements must not move
};

}  // namespace tokenfst
