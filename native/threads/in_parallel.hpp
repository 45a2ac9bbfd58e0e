// Parts of one piece of work on threads of their own, for as long as it takes.
#pragma once

#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tokenfst {

// Calls part(0), ..., part(parts - 1), each once, part(0) in this thread. Where no more threads are to be had, this one does what is
// left. What a part raises is raised when all have ended.
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
