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
// The position in a number that is being read, beside a known number that it may still become equal to.
struct NumberReading {
  enum Phase : uint8_t { kWhole, kFraction, kExponent };
  Phase phase = kWhole;
  bool negative = false;  // the sign of the number; after an e, that of the exponent
  uint32_t read = 0;      // how many digits were read after leading zeros; in a fraction no more than the known number has
  int32_t point = 0;      // after the whole part: the magnitude according to the digits alone
  auto operator<=>(const NumberReading&) const = default;

  // Reads a byte; false if no number that continues so equals the known one.
  bool feed(const KnownNumber& known, uint8_t byte);
  // Whether the number, if it ends here, equals the known one.
  bool equals(const KnownNumber& known) const;

 private:
  // The exponent that the number must have.
  Magnitude missing(const KnownNumber& known) const { return known.magnitude.less(point); }
  bool feed_exponent(const KnownNumber& known, uint8_t byte);
  bool feed_digit(const KnownNumber& known, uint8_t byte);
};

// The value of a number, given as its JSON text.
KnownNumber known_number(std::string_view text);

}  // namespace tokenfst
