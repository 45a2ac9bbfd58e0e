// Random sequences of matcher calls in several threads over one automaton, for `make sanitize`. Compiled only with
// -DTOKENFST_STRESS. The threads are not Python's, because Python's lock would serialize the calls and hide races.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <random>
#include <thread>

#include "matching/matcher.hpp"
#include "python/calls.hpp"

namespace tokenfst {

// The calls of one thread, which depend on the seed and on the masks. The result is one number for all answers; it must
// not depend on other threads. 0: the automaton's budget was exhausted.
class StressThread {
 public:
  StressThread(std::shared_ptr<TokenAutomaton> automaton, uint64_t seed) : automaton_(std::move(automaton)), random_(seed) {}

  uint64_t run(size_t steps) try {
    auto matcher = std::make_unique<Matcher>(made());
    for (size_t step = 0; step < steps; ++step) {
      const size_t kind = below(16);
      if (kind == 0) matcher = std::make_unique<Matcher>(made());
      else if (kind == 1) matcher = std::make_unique<Matcher>(matcher->fork());
      else call(*matcher, kind);
    }
    return seen_ | 1;
  } catch (const BudgetExceeded&) { return 0; }

 private:
  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }
  void see(uint64_t value) { seen_ = mix(seen_, value); }

  Matcher made() {
    try {
      if (below(4) == 0) return Matcher(automaton_, static_cast<uint32_t>(1 + below(30)));
    } catch (const Error& e) {
      if (e.fault != Fault::TokenLimit) throw;
    }
    return Matcher(automaton_, std::nullopt);
  }

  void call(Matcher& matcher, size_t kind) {
    switch (kind) {
      case 2: matcher.rollback(below(matcher.num_tokens() + 1)); break;
      case 3: see(matcher.distance()); break;
      case 4: see(hash_of(matcher.forced_bytes())); break;
      case 5: see(matcher.validate_tokens({static_cast<uint32_t>(below(automaton_->vocabulary().size()))})); break;
      case 6: see(matcher.memory() > 0 && automaton_->memory() > 0); break;
      default: go_on(matcher);
    }
  }
  static uint64_t hash_of(const std::string& text) {
    uint64_t hash = text.size();
    for (unsigned char byte : text) hash = mix(hash, byte);
    return hash;
  }

  void go_on(Matcher& matcher) {
    if (matcher.is_terminated()) return matcher.reset();
    std::vector<uint32_t> row(automaton_->masks().words());
    matcher.fill(row.data());
    see(hash_of_row(row));
    std::vector<uint32_t> allowed;
    for (uint32_t token = 0; token < automaton_->vocabulary().size(); ++token) {
      if (row[token >> 5] >> (token & 31) & 1) allowed.push_back(token);
    }
    if (allowed.empty()) return matcher.reset();
    see(matcher.accept_token(allowed[below(allowed.size())]));
  }

  std::shared_ptr<TokenAutomaton> automaton_;
  std::mt19937_64 random_;
  uint64_t seen_ = 1;
};

// The results of the threads. Threads 2k and 2k + 1 make the same calls, so their results must be equal. Raises what a thread
// raised. With an odd seed, the automaton is set at the beginning to let several threads derive at the same time; with an even
// one, it begins to when threads wait for each other.
inline std::vector<uint64_t> stress(std::shared_ptr<TokenAutomaton> automaton, size_t threads, size_t steps, uint64_t seed) {
  if (threads > 1 && seed % 2 == 1) automaton->bytes().share();
  std::vector<uint64_t> seen(threads);
  std::vector<std::exception_ptr> raised(threads);
  std::vector<std::thread> pool;
  for (size_t k = 0; k < threads; ++k) {
    pool.emplace_back([&, k] {
      try {
        seen[k] = StressThread(automaton, seed + k / 2).run(steps);
      } catch (...) { raised[k] = std::current_exception(); }
    });
  }
  for (std::thread& thread : pool) thread.join();
  for (const std::exception_ptr& each : raised) {
    if (each) std::rethrow_exception(each);
  }
  return seen;
}

inline void bind_stress(nanobind::module_& m) {
  using namespace nanobind::literals;
  m.def("stress", &stress, "automaton"_a, "threads"_a, "steps"_a, "seed"_a, nanobind::call_guard<LongCall>());
}

}  // namespace tokenfst
