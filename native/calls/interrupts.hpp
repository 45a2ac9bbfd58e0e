// Ctrl-C inside of native loops. The program `tokenfst` asks for it once (watch); a library is not to touch signals, and does not.
//
// The signal's handler sets a flag, and goes on to the handler that was there; where the signal is ignored, it stays so. Whatever looks at a deadline looks at the flag too, and
// throws: the same places where a budget may run out, so what unwinds there unwinds here.
#pragma once

#include <atomic>
#include <csignal>
#include <exception>

namespace tokenfst {

struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

class Interrupts {
 public:
  static void check() {
    if (seen_.load(std::memory_order_relaxed)) [[unlikely]]
      throw Interrupted();
  }
  static void watch() {
    if (watching_.exchange(true)) return;
#ifndef _WIN32
    struct sigaction action;
    sigaction(SIGINT, nullptr, &action);
    if ((action.sa_flags & SA_SIGINFO) || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return;
    previous_ = action.sa_handler;
    action.sa_handler = &hear;
    sigaction(SIGINT, &action, nullptr);
#else
    previous_ = std::signal(SIGINT, &hear);
    if (previous_ == SIG_DFL || previous_ == SIG_IGN || previous_ == SIG_ERR) {
      std::signal(SIGINT, previous_ == SIG_ERR ? SIG_DFL : previous_);
      previous_ = nullptr;
    }
#endif
  }

 private:
  static void hear(int number) {
    seen_.store(true, std::memory_order_relaxed);
    if (previous_ != nullptr) previous_(number);
  }

  static_assert(std::atomic<bool>::is_always_lock_free);
  inline static std::atomic<bool> seen_ = false, watching_ = false;
  inline static void (*previous_)(int) = nullptr;
};

}  // namespace tokenfst
