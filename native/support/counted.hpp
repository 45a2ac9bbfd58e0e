// Numbers for messages: with nouns ("1 token", "2 tokens", "0 words"), and weights ("0.25", "1e-09").
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace tokenfst {

inline std::string counted(uint64_t number, const char* noun) { return std::to_string(number) + " " + noun + (number == 1 ? "" : "s"); }

// Nine significant digits, which tell all numbers of single precision apart.
inline std::string decimal(double number) {
  char text[32];
  const int length = std::snprintf(text, sizeof text, "%.9g", number);
  return {text, static_cast<size_t>(length)};
}

}  // namespace tokenfst
