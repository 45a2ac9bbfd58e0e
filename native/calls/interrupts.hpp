// Ctrl-C inside native loops. Only the program `tokenfst` installs this (watch); a library must not change signal
// handlers.
//
// The signal handler sets a flag and calls the handler that was installed before; if the signal was ignored, it stays
// ignored. Every place that checks a deadline also checks the flag and throws, so interruption unwinds exactly as an
// exhausted budget does. The flag is never cleared, since the program then ends.
#pragma once

#include <atomic>
#include <csignal>
#include <exception>

namespace tokenfst {

// Python sees it as KeyboardInterrupt.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

class Interrupts {
 public:
  // Raises Interrupted if Ctrl-C was pressed.
  static void check() {
    if (seen_.load(std::memory_order_relaxed)) [[unlikely]]
      throw Interrupted();
  }
  // Installs the signal handler, unless SIGINT has the default action or is ignored. Later calls do nothing.
  static void watch() {
    if (watching_.exchange(true)) return;
#ifndef _WIN32
    struct sigaction action;
    sigaction(SIGINT, nullptr, &action);
    if ((action.sa_flags & SA_SIGINFO) || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return;
    previous_ = action.sa_handler;
    action.sa_handler = &on_signal;
    sigaction(SIGINT, &action, nullptr);
#else
    previous_ = std::signal(SIGINT, &on_signal);
    if (previous_ == SIG_DFL || previous_ == SIG_IGN || previous_ == SIG_ERR) {
      std::signal(SIGINT, previous_ == SIG_ERR ? SIG_DFL : previous_);
      previous_ = nullptr;
    }
#endif
  }

 private:
  static void on_signal(int number) {
    seen_.store(true, std::memory_order_relaxed);
    if (previous_ != nullptr) previous_(number);
  }

  static_assert(std::atomic<bool>::is_always_lock_free);
  inline static std::atomic<bool> seen_ = false, watching_ = false;
  inline static void (*previous_)(int) = nullptr;
};

}  // namespace tokenfst
