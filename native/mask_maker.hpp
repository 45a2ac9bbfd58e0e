// Interns what was gathered of a mask: a fragment's row with a short list of exceptions where that will do, else a dense row.
#pragma once

#include "composition.hpp"
#include "masks.hpp"

namespace tokenfst {

class MaskMaker {
 public:
  explicit MaskMaker(MaskPool& pool) : pool_(pool) {}

  MaskId make(Gathered& gathered) {
    auto& tokens = gathered.tokens;
    size_t more = 0;
    for (auto& neighbours : gathered.neighbours) more += neighbours.size();
    if (tokens.size() + more <= 2 * MaskPool::kMaxFlips) {
      for (auto& neighbours : gathered.neighbours) tokens.insert(tokens.end(), neighbours.begin(), neighbours.end());
      gathered.neighbours.clear();
    }
    if (tokens.size() <= 2 * MaskPool::kMaxFlips) {
      std::ranges::sort(tokens);
      tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    }
    if (gathered.rows.size() <= 1 && gathered.neighbours.empty() && tokens.size() <= MaskPool::kMaxFlips) {
      if (gathered.rows.empty()) return pool_.add(0, tokens);
      const auto& [words, removed] = gathered.rows[0];
      auto [base, fresh] = bases_.try_emplace(words, 0);
      if (fresh) base->second = pool_.add_row(words->data());
      std::vector<uint32_t> flips;
      auto in_row = [&](uint32_t token) { return ((*words)[token >> 5] >> (token & 31) & 1) != 0; };
      for (uint32_t token : tokens) {
        if (!in_row(token)) flips.push_back(token);
      }
      for (uint32_t token : removed) {
        if (in_row(token) && !std::ranges::binary_search(tokens, token)) flips.push_back(token);
      }
      std::ranges::sort(flips);
      if (flips.size() <= MaskPool::kMaxFlips) return pool_.add(base->second, flips);
    }
    scratch_.assign(pool_.words(), 0);
    for (const auto& row : gathered.rows) {
      row_scratch_ = *row.words;
      for (uint32_t token : row.removed) row_scratch_[token >> 5] &= ~(1u << (token & 31));
      for (size_t i = 0; i < scratch_.size(); ++i) scratch_[i] |= row_scratch_[i];
    }
    for (uint32_t token : tokens) scratch_[token >> 5] |= 1u << (token & 31);
    for (auto& neighbours : gathered.neighbours) {
      for (uint32_t token : neighbours) scratch_[token >> 5] |= 1u << (token & 31);
    }
    return pool_.add_dense(scratch_.data());
  }

 private:
  MaskPool& pool_;
  std::unordered_map<const std::vector<uint32_t>*, uint32_t> bases_;  // pool rows of fragments' rows
  std::vector<uint32_t> scratch_, row_scratch_;
};

}  // namespace tokenfst
