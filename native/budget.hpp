// Budgets (convention 8) and the errors of the core. bindings.cpp maps each onto its class in tokenfst.errors.
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace tokenfst {

struct BudgetExceeded : std::runtime_error {
  BudgetExceeded(std::string what_ran_out, double limit_, std::string where_)
      : std::runtime_error(what_ran_out), resource(std::move(what_ran_out)), limit(limit_), where(std::move(where_)) {}
  std::string resource;
  double limit;
  std::string where;
};

// Which class of tokenfst.errors an Error becomes.
enum class Fault { Constraint, TokenId, Terminated, Rollback, TokenBudget, MaskBuffer, EmptyLanguage, Corrupt, Vocabulary, Logits };

struct Error : std::runtime_error {
  Error(Fault fault_, const std::string& message) : std::runtime_error(message), fault(fault_) {}
  Fault fault;
};

struct Budget {
  uint64_t states = 1'000'000;
  uint64_t bytes = 2ull << 30;
  double seconds = 120;
};

// The wall clock of one call. Reading the clock costs about 25 ns: call expired() per state, not per arc.
class Deadline {
 public:
  explicit Deadline(double seconds) : end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}
  bool expired() const { return Clock::now() > end_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
};

}  // namespace tokenfst
