// Bytes of which each token of a vocabulary has only a few: quotation marks, opening brackets, separators.
//
// The number of these bytes in one token bounds how deep the token can enter a nested structure that needs one of them for
// each level. The bytes are chosen once for each vocabulary: candidates are tried in order, and a candidate is taken if no
// token then contains more than kMost chosen bytes in all. O(bytes of the tokens).
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "support/bytes.hpp"

namespace tokenfst {

struct RareBytes {
  static constexpr uint32_t kMost = 7;

  ByteSet set;
  uint32_t most = 0;  // the greatest number of these bytes in one token

  bool has(uint8_t byte) const { return set.has(byte); }

  // `each(f)` calls f with the bytes of each token.
  template <class Each>
  static RareBytes of(Each&& each) {
    constexpr std::string_view kCandidates = "\"{[(:,<;=";
    std::vector<std::string_view> tokens;  // the tokens that contain some candidate
    each([&](std::string_view token) {
      if (token.find_first_of(kCandidates) != token.npos) tokens.push_back(token);
    });
    RareBytes found;
    for (const char candidate : kCandidates) {
      RareBytes more = found;
      more.set.add(static_cast<uint8_t>(candidate));
      for (const std::string_view token : tokens) more.most = std::max(more.most, more.count(token));
      if (more.most <= kMost) found = more;
    }
    return found;
  }

 private:
  uint32_t count(std::string_view token) const {
    return static_cast<uint32_t>(std::ranges::count_if(token, [&](char byte) { return has(static_cast<uint8_t>(byte)); }));
  }
};

}  // namespace tokenfst
