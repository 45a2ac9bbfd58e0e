// Replacements for what the core uses of its platform and WebAssembly lacks: threads, forks, signals. Included before
// everything else when the core is compiled for a page (`-include`, tools/explorer_page/core.py), and nowhere else.
//
// The target's standard library is built without threads: it has the classes that hold locks, but neither mutexes nor
// threads. Here a mutex is always free, creating a thread always fails (so `in_parallel` does all parts on the calling
// thread), a pause returns at once, and there are no forks. The core needs no special case.
//
// Rejected: a switch in each file of the core that uses threads; it would be a second code path through all of them.
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

// No other thread could make the condition true, so it is true already.
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

// The bounds of Pyodide's own stack, which recursive functions check (calls/budget.hpp).
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

// Instead of Ctrl-C, the page has a Stop button, which ends the worker.
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
