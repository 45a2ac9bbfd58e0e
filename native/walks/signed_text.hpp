// Texts of a language with signs in them, read piece by piece.
//
// A sign is a string of bytes from 0xF8 on, which no UTF-8 text has; its last byte is from 0xFC on, the others are below. Whoever
// makes the language puts signs where a reader wants to know what begins or ends, so that a sign is never a matter of choice between
// it and a byte of text that leads as far. Texts come without signs: they are read as far as some word goes on with
// text, and signs are taken when they are asked for.
//
// Invariant: some word begins with what was read and taken. Cost: that of TextWalk.
#pragma once

#include <string>
#include <string_view>

#include "walks/text_walk.hpp"

namespace tokenfst {

class SignedText {
 public:
  explicit SignedText(ByteAutomaton& bytes) : walk_(bytes) {}

  bool alive() const { return !is_dead(walk_.config()); }
  bool accepting() const { return walk_.accepting(); }

  // How much of a text some word goes on with; it is read.
  size_t read(std::string_view text) {
    size_t length = 0;
    while (length < text.size() && static_cast<uint8_t>(text[length]) < kSigns && walk_.try_step(static_cast<uint8_t>(text[length]))) ++length;
    return length;
  }

  // The sign that can stand here, of several the least; it is taken. Empty: none can.
  std::string sign() {
    std::string found;
    do {
      uint8_t byte = kSigns;
      while (!walk_.try_step(byte)) {
        if (byte++ == 0xFF) return {};
      }
      found += static_cast<char>(byte);
    } while (static_cast<uint8_t>(found.back()) < kLast);
    return found;
  }

  // The bytes of text that can follow here behind `way`, and whether the text can end there.
  std::pair<std::string, bool> next_bytes(std::string_view way) { return walk_.next_bytes(way, kSigns); }

 private:
  static constexpr uint8_t kSigns = 0xF8, kLast = 0xFC;

  TextWalk walk_;
};

}  // namespace tokenfst
