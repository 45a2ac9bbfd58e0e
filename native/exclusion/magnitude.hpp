// The exponent of a decimal number as JSON writes it: an integer of any size.
//
// Nearly all exponents fit into a machine word. Of the others the digits are kept: only their sign, their digits, and their
// difference with a word are needed. Invariant: `near` is the value if its absolute value is less than 10^18,
// and else its sign, with the digits in `far`; so equal values are equal objects. O(digits).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tokenfst {

struct Magnitude {
  int64_t near = 0;
  std::string far;  // the digits of an absolute value of 10^18 and more, without leading zeros
  bool operator==(const Magnitude&) const = default;

  // The value ±digits + more, with |more| < 2^40.
  static Magnitude of(bool negative, std::string_view digits, int64_t more) {
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    if (digits.size() > kDigits) return sum(negative, std::string(digits), more);
    int64_t value = 0;
    for (const char digit : digits) value = value * 10 + (digit - '0');
    value = (negative ? -value : value) + more;
    if (std::abs(value) < kFar) return {value, {}};
    return {value < 0 ? -1 : 1, std::to_string(std::abs(value))};
  }
  // The difference with a number whose absolute value is less than 2^40.
  Magnitude less(int64_t other) const { return far.empty() ? of(near < 0, digits(), -other) : sum(near < 0, far, -other); }

  bool is_zero() const { return near == 0; }
  bool is_negative() const { return near < 0; }
  // The digits of the absolute value; none for zero.
  std::string digits() const { return !far.empty() ? far : near == 0 ? "" : std::to_string(std::abs(near)); }

 private:
  static constexpr size_t kDigits = 18;
  static constexpr int64_t kFar = 1'000'000'000'000'000'000;

  // The value ±digits + more, for digits that do not fit into a word.
  static Magnitude sum(bool negative, std::string digits, int64_t more) {
    int64_t carry = negative ? -more : more;  // added to the absolute value, from the last digit on
    for (size_t k = digits.size(); k-- > 0 && carry != 0;) {
      const int64_t at = digits[k] - '0' + carry;
      const int64_t digit = (at % 10 + 10) % 10;
      digits[k] = static_cast<char>('0' + digit);
      carry = (at - digit) / 10;
    }
    if (carry > 0) digits.insert(0, std::to_string(carry));
    digits.erase(0, digits.find_first_not_of('0'));
    if (digits.size() <= kDigits) return of(negative, digits, 0);
    return {negative ? -1 : 1, std::move(digits)};
  }
};

}  // namespace tokenfst
