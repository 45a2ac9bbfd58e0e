// What the core takes from its platform, and WebAssembly's has not: threads, forks, signals. Included before everything else where
// the core is compiled for a page (`-include`, tools/explorer_page/core.py), and nowhere else.
//
// The standard library of the target is built without threads: it has the classes that hold locks, and neither mutexes nor threads
// to wait for. Here a mutex is always free, a thread is never to be had (so that `in_parallel` does all parts in its own), a pause
// is none, and nobody forks. The core itself needs no case for it.
//
// Rejected: a switch in each of the core's files that names a thread; it would be a second path through all of them.
#pragma once
#ifdef __cplusplus

#include <signal.h>
#include <stdio.h>

#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>

namespace std {
inline namespace _LIBCPP_ABI_NAMESPACE {

class mutex {
 public:
  constexpr mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  void lock() noexcept {}
  bool try_lock() noexcept { return true; }
  void unlock() noexcept {}
};

class thread {
 public:
  thread() noexcept = default;
  template <class F, class... Arguments>
  explicit thread(F&&, Arguments&&...) {
    throw system_error(make_error_code(errc::resource_unavailable_try_again));
  }
  static unsigned hardware_concurrency() noexcept { return 1; }
  void join() {}
};

class jthread : public thread {
 public:
  using thread::thread;
};

// Nobody else could make true what is waited for: it is true.
class condition_variable {
 public:
  void wait(unique_lock<mutex>&) noexcept {}
  template <class Predicate>
  void wait(unique_lock<mutex>&, Predicate) noexcept {}
  void notify_one() noexcept {}
  void notify_all() noexcept {}
};

namespace this_thread {
template <class Duration>
void sleep_for(const Duration&) {}
inline void yield() noexcept {}
}  // namespace this_thread

}  // namespace _LIBCPP_ABI_NAMESPACE
}  // namespace std

#define SIG_SETMASK 2
template <class Signals>
int sigfillset(Signals*) {
  return 0;
}
template <class Signals>
int pthread_sigmask(int, const Signals*, void*) {
  return 0;
}
inline int pthread_atfork(void (*)(), void (*)(), void (*)()) { return 0; }

// The bounds of the stack that Pyodide gave itself: what recurses looks at them (calls/budget.hpp).
extern "C" size_t emscripten_stack_get_base();
extern "C" size_t emscripten_stack_get_end();
struct pthread_attr_t {};
inline int pthread_self() { return 0; }
inline int pthread_getattr_np(int, pthread_attr_t*) { return 0; }
inline int pthread_attr_getstack(const pthread_attr_t*, void** lowest, size_t* size) {
  *lowest = reinterpret_cast<void*>(emscripten_stack_get_end());
  *size = emscripten_stack_get_base() - emscripten_stack_get_end();
  return 0;
}
inline int pthread_attr_destroy(pthread_attr_t*) { return 0; }

// A program's Ctrl-C is the page's Stop button: the worker is ended.
#define SA_SIGINFO 4
struct sigaction {
  void (*sa_handler)(int);
  int sa_flags;
};
inline int sigaction(int, const struct sigaction*, struct sigaction* old) {
  if (old != nullptr) *old = {SIG_DFL, 0};
  return 0;
}

#endif
