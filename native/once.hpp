// What is made when it is first asked for, by whichever thread that is; afterwards a look at one word. std::call_once alone
// looks up what is the thread's own each time.
#pragma once

#include <atomic>
#include <mutex>

#include "call.hpp"

namespace tokenfst {

class Once {
 public:
  template <class F>
  void operator()(F&& make) {
    if (done_.load(std::memory_order_acquire)) return;
    Call::work();
    std::call_once(flag_, std::forward<F>(make));
    done_.store(true, std::memory_order_release);
  }

 private:
  std::once_flag flag_;
  std::atomic<bool> done_{false};
};

}  // namespace tokenfst
