// A number that identifies an object: no other object of the process ever has the same one, unlike its address.
#pragma once

#include <atomic>
#include <cstdint>

namespace tokenfst {

class UniqueNumber {
 public:
  uint64_t value() const { return value_; }  // never 0

 private:
  static inline std::atomic<uint64_t> last_{0};
  const uint64_t value_ = last_.fetch_add(1, std::memory_order_relaxed) + 1;
};

}  // namespace tokenfst
