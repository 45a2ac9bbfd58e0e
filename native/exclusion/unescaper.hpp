// Decodes the characters between the quotation marks of a JSON string to the bytes of its value, in UTF-8 (RFC 8259,
// section 7).
#pragma once

#include <compare>
#include <cstdint>

namespace tokenfst {

struct Unescaper {
  enum Phase : uint8_t { kPlain, kBackslash, kHex };  // from kHex on, 4 - (phase - kHex) digits are missing
  uint16_t unit = 0;  // the value of the digits so far
  uint16_t high = 0;  // the first half of a surrogate pair
  uint8_t phase = kPlain;
  auto operator<=>(const Unescaper&) const = default;

  // Reads a byte of a valid string, and calls emit(byte) for each byte of the value that it completes.
  template <class Emit>
  void feed(uint8_t byte, Emit&& emit) {
    if (phase == kPlain) {
      if (byte == '\\') phase = kBackslash;
      else emit(byte);
    } else if (phase == kBackslash) {
      phase = byte == 'u' ? kHex : kPlain;
      unit = 0;
      if (byte != 'u') emit(meaning(byte));
    } else {
      unit = static_cast<uint16_t>(unit << 4 | (byte <= '9' ? byte - '0' : (byte | 0x20) - 'a' + 10));
      if (++phase < kHex + 4) return;
      phase = kPlain;
      if (unit >= 0xd800 && unit < 0xdc00) high = unit;
      else encode(high ? 0x10000 + ((high - 0xd800u) << 10) + (unit - 0xdc00u) : unit, emit);
    }
  }

 private:
  static uint8_t meaning(uint8_t escape) {
    switch (escape) {
      case 'b': return '\b';
      case 'f': return '\f';
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      default: return escape;
    }
  }
  template <class Emit>
  void encode(uint32_t code, Emit&& emit) {
    high = 0;
    if (code < 0x80) return emit(static_cast<uint8_t>(code));
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    emit(static_cast<uint8_t>((0xff00 >> (more + 1) & 0xff) | code >> 6 * more));
    for (int k = more; k-- > 0;) emit(static_cast<uint8_t>(0x80 | (code >> 6 * k & 0x3f)));
  }
};

}  // namespace tokenfst
