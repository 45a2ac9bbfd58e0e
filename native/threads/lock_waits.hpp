// Counts how often threads of the process waited for each other at locks of the core, and how long: for benchmarks and
// diagnosis.
//
// Only a thread that has to wait counts, so a free lock costs nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace tokenfst {

class LockWaits {
 public:
  struct Counts {
    uint64_t number;
    double seconds, longest;  // of all waits, and of one
  };

  // Measures one wait, until its scope ends.
  class Wait {
   public:
    ~Wait() {
      const auto waited = static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begun_).count());
      number_.fetch_add(1, std::memory_order_relaxed);
      nanoseconds_.fetch_add(waited, std::memory_order_relaxed);
      uint64_t longest = longest_.load(std::memory_order_relaxed);
      while (longest < waited && !longest_.compare_exchange_weak(longest, waited, std::memory_order_relaxed)) {}
    }

   private:
    const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  };

  // Returns the counts since the last call.
  static Counts take() {
    return {number_.exchange(0), static_cast<double>(nanoseconds_.exchange(0)) / 1e9, static_cast<double>(longest_.exchange(0)) / 1e9};
  }

 private:
  static inline std::atomic<uint64_t> number_{0}, nanoseconds_{0}, longest_{0};
};

}  // namespace tokenfst
