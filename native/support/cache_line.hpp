// The size of a cache line: what one thread writes often lies on other lines than what other threads read.
#pragma once

#include <cstddef>

namespace tokenfst {

// std::hardware_destructive_interference_size may differ between the files of one program, so it is a number here.
constexpr std::size_t kCacheLine = 64;

}  // namespace tokenfst
