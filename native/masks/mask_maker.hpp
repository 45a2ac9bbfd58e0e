// Interns the collected parts of a mask: as a fragment's row with a short list of exceptions if possible, else as a
// dense row.
//
// Most of the work is done in `finish`, before the pool is accessed, without a lock and in the thread's own buffers;
// `keep` then looks the mask up, under the owner's mutex.
#pragma once

#include <bit>

#include "masks/composition.hpp"
#include "vocabulary/masks.hpp"

namespace tokenfst {

class MaskMaker {
 public:
  explicit MaskMaker(MaskPool& pool) : pool_(pool) {}

  // A finished mask. It lies in buffers of this thread until the thread finishes another one.
  struct Finished {
    const TokenRow* row = nullptr;     // a fragment's row; null: none
    std::span<const uint32_t> flips;   // the tokens that differ from the row
    const uint32_t* dense = nullptr;   // used instead if those are too many
  };

  // Finishes collected parts. Without a lock.
  Finished finish(MaskParts& gathered) const {
    Buffers& buffers = MaskMaker::buffers();
    auto& tokens = gathered.tokens;
    size_t more = 0;
    for (auto& neighbours : gathered.neighbours) more += neighbours.size();
    if (tokens.size() + more <= 2 * MaskPool::kMaxFlips) {
      for (auto& neighbours : gathered.neighbours) tokens.insert(tokens.end(), neighbours.begin(), neighbours.end());
      gathered.neighbours.clear();
    }
    if (tokens.size() <= 2 * MaskPool::kMaxFlips) sort_unique(tokens, buffers);
    Finished finished;
    if (gathered.rows.size() <= 1 && gathered.neighbours.empty() && tokens.size() <= MaskPool::kMaxFlips) {
      if (gathered.rows.empty()) return {nullptr, tokens};
      const auto& [row, removed] = gathered.rows[0];
      finished.row = row;
      buffers.flips.clear();
      auto in_row = [&](uint32_t token) { return (row->words[token >> 5] >> (token & 31) & 1) != 0; };
      for (uint32_t token : tokens) {
        if (!in_row(token)) buffers.flips.push_back(token);
      }
      for (uint32_t token : removed) {
        if (in_row(token) && !std::ranges::binary_search(tokens, token)) buffers.flips.push_back(token);
      }
      std::ranges::sort(buffers.flips);
      finished.flips = buffers.flips;
      if (buffers.flips.size() <= MaskPool::kMaxFlips) return finished;
    }
    buffers.dense.assign(pool_.words(), 0);
    for (const auto& row : gathered.rows) {
      const uint32_t* words = row.tokens->words.data();
      if (!row.removed.empty()) {
        buffers.row.assign(row.tokens->words.begin(), row.tokens->words.end());
        for (uint32_t token : row.removed) buffers.row[token >> 5] &= ~(1u << (token & 31));
        words = buffers.row.data();
      }
      for (size_t i = 0; i < buffers.dense.size(); ++i) buffers.dense[i] |= words[i];
    }
    for (uint32_t token : tokens) buffers.dense[token >> 5] |= 1u << (token & 31);
    for (auto& neighbours : gathered.neighbours) {
      for (uint32_t token : neighbours) buffers.dense[token >> 5] |= 1u << (token & 31);
    }
    finished.dense = buffers.dense.data();
    return finished;
  }

  // The number of a finished mask, which is added to the pool if it is new. Under the owner's mutex.
  MaskId keep(const Finished& finished) {
    uint32_t base = 0;
    if (finished.row) {
      auto known = bases_.find(finished.row);
      if (known == bases_.end()) known = bases_.emplace(finished.row, pool_.add_row(*finished.row)).first;
      base = known->second;
    }
    return finished.dense ? pool_.add_dense(finished.dense) : pool_.add(base, finished.flips);
  }

 private:
  static constexpr size_t kFew = 24;  // up to this many tokens are sorted by comparison

  // The buffers of one thread, for masks of all automata.
  struct Buffers {
    std::vector<uint32_t> flips, dense, row;
    std::vector<uint64_t> present, touched;  // bits of the tokens that are being sorted, else 0
  };
  static Buffers& buffers() {
    static thread_local Buffers made;
    return made;
  }

  // Sorts tokens and removes duplicates. Many tokens are sorted by a bitmap of the vocabulary and a second bitmap of the
  // words that are not 0, so that only those words are visited. Sorting by comparison would take a logarithm for each token.
  void sort_unique(std::vector<uint32_t>& tokens, Buffers& buffers) const {
    if (tokens.size() <= kFew) {
      std::ranges::sort(tokens);
      tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
      return;
    }
    auto &present = buffers.present, &touched = buffers.touched;
    if (const size_t words = (pool_.vocab_size() + 63) / 64; present.size() < words) {
      present.resize(words);
      touched.resize((words + 63) / 64);
    }
    for (uint32_t token : tokens) {
      present[token / 64] |= 1ull << (token % 64);
      touched[token / 4096] |= 1ull << (token / 64 % 64);
    }
    tokens.clear();
    for (size_t k = 0; k < touched.size(); ++k) {
      for (uint64_t& words = touched[k]; words; words &= words - 1) {
        const size_t word = k * 64 + std::countr_zero(words);
        for (uint64_t& bits = present[word]; bits; bits &= bits - 1)
          tokens.push_back(static_cast<uint32_t>(word * 64 + std::countr_zero(bits)));
      }
    }
  }

  MaskPool& pool_;
  std::unordered_map<const TokenRow*, uint32_t> bases_;  // for fragments' rows, their rows in the pool
};

}  // namespace tokenfst
