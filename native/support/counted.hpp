// Numbers with nouns for messages: "1 token", "2 tokens", "0 words".
#pragma once

#include <cstdint>
#include <string>

namespace tokenfst {

inline std::string counted(uint64_t number, const char* noun) { return std::to_string(number) + " " + noun + (number == 1 ? "" : "s"); }

}  // namespace tokenfst
