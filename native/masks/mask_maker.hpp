// Interns what was gathered of a mask: a fragment's row with a short list of exceptions where that will do, else a dense row.
#pragma once

#include <bit>

#include "masks/composition.hpp"
#include "vocabulary/masks.hpp"

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
    if (tokens.size() <= 2 * MaskPool::kMaxFlips) sort_unique(tokens);
    if (gathered.rows.size() <= 1 && gathered.neighbours.empty() && tokens.size() <= MaskPool::kMaxFlips) {
      if (gathered.rows.empty()) return pool_.add(0, tokens);
      const auto& [row, removed] = gathered.rows[0];
      auto base = bases_.find(row);
      if (base == bases_.end()) base = bases_.emplace(row, pool_.add_row(*row)).first;
      std::vector<uint32_t> flips;
      auto in_row = [&](uint32_t token) { return (row->words[token >> 5] >> (token & 31) & 1) != 0; };
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
      row_scratch_.assign(row.tokens->words.begin(), row.tokens->words.end());
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
  static constexpr size_t kFew = 24;  // tokens that are sorted by comparing them

  // In ascending order, each once. Many go through a bitmap of the vocabulary, and one of its words: a look at each of those that
  // have a token, where comparing them would be a step for each token and bit of their number.
  void sort_unique(std::vector<uint32_t>& tokens) {
    if (tokens.size() <= kFew) {
      std::ranges::sort(tokens);
      tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
      return;
    }
    if (present_.empty()) {
      present_.resize((pool_.vocab_size() + 63) / 64);
      touched_.resize((present_.size() + 63) / 64);
    }
    for (uint32_t token : tokens) {
      present_[token / 64] |= 1ull << (token % 64);
      touched_[token / 4096] |= 1ull << (token / 64 % 64);
    }
    tokens.clear();
    for (size_t k = 0; k < touched_.size(); ++k) {
      for (uint64_t& words = touched_[k]; words; words &= words - 1) {
        const size_t word = k * 64 + std::countr_zero(words);
        for (uint64_t& bits = present_[word]; bits; bits &= bits - 1)
          tokens.push_back(static_cast<uint32_t>(word * 64 + std::countr_zero(bits)));
      }
    }
  }

  MaskPool& pool_;
  std::unordered_map<const TokenRow*, uint32_t> bases_;  // pool rows of fragments' rows
  ReusedVector<uint32_t> scratch_, row_scratch_;
  ReusedVector<uint64_t> present_, touched_;  // of tokens that are being sorted, else 0
};

}  // namespace tokenfst
