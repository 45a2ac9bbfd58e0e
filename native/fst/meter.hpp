// The budget of a construction over transducers (convention 8): states, bytes and seconds, and the construction's name
// for errors. Every construction reports what it has made and done; the functions raise BudgetExceeded with the resource that
// is exhausted.
#pragma once

#include <algorithm>
#include <cstdint>

#include "calls/budget.hpp"

namespace tokenfst::fst {

class Meter {
 public:
  // `what` must be a string literal, since errors keep the pointer.
  Meter(const Budget& budget, const char* what) : budget_(budget), what_(what), time_limit_(budget.seconds, what) {}
  const char* what() const { return what_; }

  // Counts steps, and looks at the clock from time to time.
  void step(uint64_t effort = 1) { time_limit_.step(static_cast<uint32_t>(std::min<uint64_t>(effort, 1 << 20))); }
  // Checks a number of states, or of bytes, against the budget.
  void states(uint64_t count) const {
    if (count > budget_.states) throw BudgetExceeded("states", static_cast<double>(budget_.states), what_);
  }
  void bytes(uint64_t count) const {
    if (count > budget_.bytes) throw BudgetExceeded("bytes", static_cast<double>(budget_.bytes), what_);
  }
  // Checks the size of a machine that is being built, with `beside` bytes of other tables.
  template <class Machine>
  void made(const Machine& machine, uint64_t beside = 0) const {
    states(static_cast<uint64_t>(machine.num_states()));
    bytes(machine.memory() + beside);
  }

 private:
  const Budget budget_;
  const char* const what_;
  TimeLimit time_limit_;
};

}  // namespace tokenfst::fst
