// An optional value on the heap, so that objects without one stay small. Copying a box copies the value.
#pragma once

#include <memory>

namespace tokenfst {

template <class T>
class Boxed {
 public:
  Boxed() = default;  // without a value
  Boxed(const Boxed& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Boxed(Boxed&&) = default;
  Boxed& operator=(Boxed&&) = default;

  // Makes a new value in place of the old one.
  void emplace() { value_ = std::make_unique<T>(); }
  // Whether there is a value; only then may it be accessed.
  explicit operator bool() const { return value_ != nullptr; }
  T& operator*() const { return *value_; }
  T* operator->() const { return value_.get(); }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace tokenfst
