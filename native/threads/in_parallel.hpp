// Runs the parts of one task on threads that exist only for this task.
#pragma once

#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tokenfst {

// Calls part(0), ..., part(parts - 1), each once, part(0) on this thread. If no more threads can be created, the
// existing ones do the rest. If parts raise, one of their exceptions is rethrown when all parts have ended.
template <class Part>
void in_parallel(size_t parts, Part&& part) {
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&](size_t p) {
    try {
      part(p);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    size_t begun = 1;
    std::vector<std::jthread> workers;
    try {
      for (; begun < parts; ++begun) workers.emplace_back(run, begun);
    } catch (const std::system_error&) {
      // those that were begun share the work
    }
    run(0);
    for (; begun < parts; ++begun) run(begun);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tokenfst
