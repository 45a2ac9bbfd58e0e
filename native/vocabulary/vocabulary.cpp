// Vocabulary: its checks, and the lists that are computed on first use.
#include "vocabulary/vocabulary.hpp"

namespace tokenfst {

TokenBytes::TokenBytes(std::string data, std::vector<uint32_t> offsets) : data_(std::move(data)), offsets_(std::move(offsets)) {
  if (offsets_.empty() || offsets_[0] != 0 || offsets_.back() != data_.size())
    throw Error(Fault::Vocabulary, "token offsets do not cover the token bytes");
  for (size_t i = 1; i < offsets_.size(); ++i) {
    if (offsets_[i] < offsets_[i - 1]) throw Error(Fault::Vocabulary, "token offsets descend");
    if (offsets_[i] - offsets_[i - 1] > UINT16_MAX)
      throw Error(Fault::Vocabulary, "token " + std::to_string(i - 1) + " is longer than 65,535 bytes");
  }
}

Trie TokenBytes::make_trie() const {
  std::vector<uint32_t> order;
  for (uint32_t token = 0; token < size(); ++token) {
    if (!(*this)[token].empty()) order.push_back(token);
  }
  return Trie(*this, std::move(order));
}

Vocabulary::Vocabulary(TokenBytes tokens, std::unique_ptr<TokenBytes> initial, std::vector<uint32_t> eos, bool start_absorbs)
    : tokens_(std::move(tokens)), initial_(std::move(initial)), eos_(std::move(eos)), start_absorbs_(start_absorbs) {
  if (size() == 0) throw Error(Fault::Vocabulary, "a vocabulary has at least one token");
  if (initial_ && initial_->size() != tokens_.size()) throw Error(Fault::Vocabulary, "there are not as many initial forms as tokens");
  for (uint32_t token : eos_) {
    if (token >= size()) throw Error(Fault::Vocabulary, "end token " + std::to_string(token) + " lies outside the vocabulary");
  }
  std::vector<bool> single(256);
  for (uint32_t token = 0; token < size(); ++token) {
    if (tokens_[token].size() == 1) single[static_cast<uint8_t>(tokens_[token][0])] = true;
  }
  complete_ = std::find(single.begin(), single.end(), false) == single.end();
}

bool Vocabulary::adopt_trie(const Trie::Tables& tables, bool initial) const {
  if (initial && !initial_) return false;
  std::optional<Trie> found = Trie::over(tables, initial ? *initial_ : tokens_);
  if (!found) return false;
  bool taken = false;
  if (initial) {
    initial_built_([&] { initial_trie_ = std::make_unique<Trie>(std::move(*found)), taken = true; });
  } else {
    built_([&] {
      trie_ = std::make_unique<Trie>(std::move(*found));
      groups_ = find_groups(*trie_);
      taken = true;
    });
  }
  return taken;
}

std::span<const CoarseTrie> Vocabulary::coarse_tries() const {
  coarse_made_([this] {
    auto finer = std::make_unique<CoarseTrie>(trie(), groups(), kHexadecimal);
    coarse_.clear();
    coarse_.reserve(kCoarseTries);
    coarse_.emplace_back(finer->trie(), finer->groups(), kCoarse);
    coarse_.push_back(std::move(*finer));
    text_row_.assign((size() + 31) / 32, 0);
    for (uint32_t token = 0; token < size(); ++token) {
      if (!tokens_[token].empty()) text_row_[token >> 5] |= 1u << (token & 31);
    }
    coarse_bytes_ = coarse_[0].memory() + coarse_[1].memory() + text_row_.capacity() * 4;
  });
  return coarse_;
}

std::span<const uint32_t> Vocabulary::separating(bool quoting) const {
  separating_found_([this] {
    separating_.clear();
    for (const bool quotes : {true, false}) {
      for (uint32_t token = 0; token < size(); ++token) {
        const std::string_view text = tokens_[token];
        const bool quoted = text.find('"') != text.npos;
        if (quoted == quotes && text.find(',') != text.npos) separating_.push_back(token);
      }
      if (quotes) separating_quoting_ = separating_.size();
    }
  });
  return std::span(separating_).first(quoting ? separating_quoting_ : separating_.size());
}

const RareBytes& Vocabulary::rare() const {
  rare_found_([this] {
    rare_ = RareBytes::of([this](auto&& f) {
      for (uint32_t token = 0; token < size(); ++token) {
        f(tokens_[token]);
        if (initial_) f((*initial_)[token]);
      }
    });
  });
  return rare_;
}

std::span<const uint32_t> Vocabulary::longer_than(size_t bytes) const {
  long_found_([this] {
    long_.clear();
    for (uint32_t token = 0; token < size(); ++token) {
      if (tokens_[token].size() > kLong) long_.push_back(token);
    }
    std::ranges::stable_sort(long_, std::greater(), [this](uint32_t token) { return tokens_[token].size(); });
  });
  const auto end = std::ranges::partition_point(long_, [&](uint32_t token) { return tokens_[token].size() > bytes; });
  return {long_.begin(), end};
}

size_t Vocabulary::memory() const {
  size_t tries = 0;  // other threads may be building them meanwhile
  if (built_.is_done()) tries += trie_->memory() + groups_.capacity() * sizeof(ByteGroups);
  if (initial_built_.is_done()) tries += initial_trie_->memory();
  return coarse_bytes_ + tokens_.memory() + (initial_ ? initial_->memory() : 0) + tries + fragments_.memory();
}

std::span<const uint32_t> Vocabulary::quoting_up_to(size_t group) const {
  quoting_found_([this] {
    quoting_.clear();
    std::array<std::vector<uint32_t>, 4> groups;
    for (uint32_t token = 0; token < size(); ++token) {
      const std::string_view text = tokens_[token];
      const size_t count = static_cast<size_t>(std::count(text.begin(), text.end(), '"'));
      most_quotes_ = std::max(most_quotes_, count);
      if (initial_) most_quotes_ = std::max(most_quotes_, static_cast<size_t>(std::ranges::count((*initial_)[token], '"')));
      if (count) groups[count > 2 ? 0 : count == 1 ? 3 : text.find_first_of(",[{") != text.npos ? 1 : 2].push_back(token);
    }
    for (size_t k = 0; k < groups.size(); ++k) {
      quoting_.insert(quoting_.end(), groups[k].begin(), groups[k].end());
      quoting_ends_[k] = quoting_.size();
    }
  });
  return std::span(quoting_).first(quoting_ends_[group]);
}

}  // namespace tokenfst
