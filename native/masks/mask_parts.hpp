// What the computation of a mask collects.
#pragma once

#include <span>
#include <vector>

#include "stacks/stacks.hpp"
#include "vocabulary/masks.hpp"

namespace tokenfst {

// The parts of a mask: rows of fragments with exceptions, and single tokens.
struct MaskParts {
  struct Row {
    const TokenRow* tokens;  // owned by a fragment that the composition keeps alive
    std::vector<uint32_t> removed;
  };
  std::vector<Row> rows;
  std::vector<uint32_t> tokens;
  std::vector<std::span<const uint32_t>> neighbours;  // more tokens, as adjacent entries of the vocabulary's trie

  void clear() { rows.clear(), tokens.clear(), neighbours.clear(); }
};

}  // namespace tokenfst
