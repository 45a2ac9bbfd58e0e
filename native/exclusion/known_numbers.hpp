// Known JSON numbers, and whether a number that is being read may still become equal to one.
//
// Two numbers are equal if their values are, however they are written: 1, 1.0 and 1e0. A known number is its digits,
// without zeros at either end, and a power of ten. A number is compared digit by digit as it is read. What its exponent
// must be follows from the position of the point, so nothing is computed with large powers. Cost: O(1) for each byte;
// in an exponent, O(its number of digits).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "exclusion/magnitude.hpp"

namespace tokenfst {

// Whether numbers are written with this byte.
inline bool is_of_number(uint8_t byte) {
  return (byte >= '0' && byte <= '9') || byte == '-' || byte == '+' || byte == '.' || byte == 'e' || byte == 'E';
}

// The value of a number: 0.d1d2...dn * 10^magnitude, d1 and dn not zero; zero has no digits.
struct KnownNumber {
  std::string digits;
  Magnitude magnitude;
  bool negative = false;
};
struct NumberReading {
  enum Phase : uint8_t { kWhole, kFraction, kExponent };
  Phase phase = kWhole;
  bool negative = false;  // the sign of the number, or after an e of the exponent
  uint32_t read = 0;      // digits after leading zeros; in a fraction no more than the known number has
  int32_t point = 0;      // after the whole part: the magnitude according to the digits alone
  auto operator<=>(const NumberReading&) const = default;

  // Reads a byte; false if no number that continues so equals the known one.
  bool feed(const KnownNumber& known, uint8_t byte) {
    const bool zero = known.digits.empty();
    switch (byte) {
      case '+': return true;
      case '-': negative = true; return zero || (phase == kExponent ? missing(known).near <= 0 : known.negative);
      case '.':
        point = static_cast<int32_t>(read);
        read = std::min(read, static_cast<uint32_t>(known.digits.size()));
        phase = kFraction;
        return true;
      case 'e':
      case 'E': {
        if (phase == kWhole) point = static_cast<int32_t>(read);
        const bool all = read >= known.digits.size();
        phase = kExponent, negative = false, read = 0;
        return all;
      }
      default: return zero ? phase == kExponent || byte == '0' : phase == kExponent ? feed_exponent(known, byte) : feed_digit(known, byte);
    }
  }
  // Whether the number, if it ends here, equals the known one.
  bool equals(const KnownNumber& known) const {
    if (known.digits.empty()) return true;
    if (phase == kExponent) return read == missing(known).digits().size();
    return read >= known.digits.size() && known.magnitude == Magnitude{phase == kWhole ? int64_t{read} : int64_t{point}, {}};
  }

 private:
  // The exponent that the number must have.
  Magnitude missing(const KnownNumber& known) const { return known.magnitude.less(point); }
  bool feed_exponent(const KnownNumber& known, uint8_t byte) {
    const Magnitude missing = this->missing(known);
    if (!negative && missing.near < 0) return false;
    if (read == 0 && byte == '0') return true;
    const std::string digits = missing.digits();
    return read < digits.size() && digits[read++] == static_cast<char>(byte);
  }
  bool feed_digit(const KnownNumber& known, uint8_t byte) {
    if (negative != known.negative) return false;
    if (read == 0 && byte == '0') {
      if (phase == kFraction) --point;
      return true;
    }
    if (read >= known.digits.size()) {
      if (phase == kWhole) ++read;
      return byte == '0';
    }
    return known.digits[read++] == static_cast<char>(byte);
  }
};

// Reads the text of a number.
inline KnownNumber known_number(std::string_view text) {
  KnownNumber number;
  number.negative = text.starts_with('-');
  const size_t e = std::min(text.find_first_of("eE"), text.size()), point = std::min(text.find('.'), e);
  int64_t whole = 0;
  for (size_t k = number.negative; k < e; ++k) {
    if (text[k] == '.') continue;
    whole += k < point;
    number.digits += text[k];
  }
  const size_t first = std::min(number.digits.find_first_not_of('0'), number.digits.size());
  number.digits.erase(0, first);
  number.digits.erase(number.digits.find_last_not_of('0') + 1);
  if (number.digits.empty()) return {};
  const int64_t shift = whole - static_cast<int64_t>(first);
  const std::string_view exponent = text.substr(std::min(text.size(), e + 1));
  const bool is_signed = exponent.starts_with('-') || exponent.starts_with('+');
  number.magnitude = Magnitude::of(exponent.starts_with('-'), exponent.substr(is_signed), shift);
  return number;
}

}  // namespace tokenfst
