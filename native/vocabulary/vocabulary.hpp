// A vocabulary in the core: the bytes of every token, in up to two contexts, and the tries over them.
//
// Special tokens have no bytes and are in no trie (convention 4). If the first token of a text is spelled differently
// (without a leading space, without a separator), `initial` holds those forms. Invariant: immutable, except that tries
// and lists are computed on first use, once, and then published.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calls/budget.hpp"
#include "vocabulary/coarse_trie.hpp"
#include "vocabulary/fragments.hpp"
#include "vocabulary/rare_bytes.hpp"
#include "threads/once.hpp"

namespace tokenfst {

class TokenBytes {
 public:
  TokenBytes(std::string data, std::vector<uint32_t> offsets) : data_(std::move(data)), offsets_(std::move(offsets)) {
    if (offsets_.empty() || offsets_[0] != 0 || offsets_.back() != data_.size())
      throw Error(Fault::Vocabulary, "token offsets do not cover the token bytes");
    for (size_t i = 1; i < offsets_.size(); ++i) {
      if (offsets_[i] < offsets_[i - 1]) throw Error(Fault::Vocabulary, "token offsets descend");
      if (offsets_[i] - offsets_[i - 1] > UINT16_MAX)
        throw Error(Fault::Vocabulary, "token " + std::to_string(i - 1) + " is longer than 65,535 bytes");
    }
  }
  size_t size() const { return offsets_.size() - 1; }
  std::string_view operator[](uint32_t token) const { return {data_.data() + offsets_[token], offsets_[token + 1] - offsets_[token]}; }
  size_t memory() const { return data_.size() + offsets_.size() * 4; }
  Trie make_trie() const {
    std::vector<uint32_t> order;
    for (uint32_t token = 0; token < size(); ++token) {
      if (!(*this)[token].empty()) order.push_back(token);
    }
    return Trie(*this, std::move(order));
  }

 private:
  std::string data_;
  std::vector<uint32_t> offsets_;
};

class Vocabulary {
 public:
  Vocabulary(TokenBytes tokens, std::unique_ptr<TokenBytes> initial, std::vector<uint32_t> eos, bool start_absorbs)
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

  uint32_t size() const { return static_cast<uint32_t>(tokens_.size()); }
  const std::vector<uint32_t>& eos() const { return eos_; }
  bool is_eos(uint32_t token) const { return std::find(eos_.begin(), eos_.end(), token) != eos_.end(); }
  bool has_initial() const { return initial_ != nullptr; }
  // Whether the next token is still the first one of a text after a token whose initial form is empty.
  bool start_absorbs() const { return start_absorbs_; }
  // Whether every byte is a token, so that every byte string can be spelled.
  bool complete() const { return complete_; }
  const TokenBytes& tokens() const { return tokens_; }
  const TokenBytes& initial() const { return initial_ ? *initial_ : tokens_; }
  const Trie& trie() const {
    built_([this] {
      trie_ = std::make_unique<Trie>(tokens_.make_trie());
      groups_ = find_groups(*trie_);
    });
    return *trie_;
  }
  // Uses a trie whose tables lie elsewhere and outlive this object, for example in a file that processes share;
  // `initial`: the trie of the initial forms. Returns false if the tables are not those of these tokens, or if there is
  // a trie already.
  bool adopt_trie(const Trie::Tables& tables, bool initial) const {
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
  // The groups of bytes below each node of trie().
  const std::vector<ByteGroups>& groups() const { return trie(), groups_; }
  // Quotients of trie() by groups of bytes, the coarsest first: each stands for nodes of the next one, and the last for
  // those of trie(). O(nodes) on the first call.
  static constexpr size_t kCoarseTries = 2;
  std::span<const CoarseTrie> coarse_tries() const {
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
  // The tokens that have bytes, one bit each.
  const std::vector<uint32_t>& text_row() const { return coarse_tries(), text_row_; }
  const Trie& initial_trie() const {
    if (!initial_) return trie();
    initial_built_([this] { initial_trie_ = std::make_unique<Trie>(initial_->make_trie()); });
    return *initial_trie_;
  }
  // The tokens with at least `least` (1 to 3) quotation marks.
  std::span<const uint32_t> quoting(size_t least) const { return quoting_up_to(least == 3 ? 0 : 4 - least); }
  // The tokens with at least two quotation marks, and a byte after which a name or an item begins.
  std::span<const uint32_t> quoting_items() const { return quoting_up_to(1); }
  // The tokens with a comma; if `quoting`, also those with a quotation mark.
  std::span<const uint32_t> separating(bool quoting) const {
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
  // Bytes that occur at most a few times in each token, in either form. O(bytes of the tokens) on the first call.
  const RareBytes& rare() const {
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
  // The greatest number of quotation marks in one token, in either form.
  size_t most_quotes() const { return quoting(1), most_quotes_; }
  // The tokens with more than `bytes` bytes, which must be at least kLong. O(tokens) on the first call.
  static constexpr size_t kLong = 32;
  std::span<const uint32_t> longer_than(size_t bytes) const {
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
  FragmentCache& fragments() const { return fragments_; }
  size_t memory() const {
    size_t tries = 0;  // other threads may be building them meanwhile
    if (built_.is_done()) tries += trie_->memory() + groups_.capacity() * sizeof(ByteGroups);
    if (initial_built_.is_done()) tries += initial_trie_->memory();
    return coarse_bytes_ + tokens_.memory() + (initial_ ? initial_->memory() : 0) + tries + fragments_.memory();
  }

 private:
  // The tokens with quotation marks, sorted into four groups; returns the first `group` + 1 groups: with three or more;
  // with two, and a comma or an opening bracket; with two; with one.
  std::span<const uint32_t> quoting_up_to(size_t group) const {
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

  TokenBytes tokens_;
  std::unique_ptr<TokenBytes> initial_;
  std::vector<uint32_t> eos_;
  bool start_absorbs_, complete_ = false;
  mutable Once built_, initial_built_, quoting_found_, separating_found_, long_found_, coarse_made_, rare_found_;
  mutable RareBytes rare_;
  mutable std::vector<uint32_t> quoting_, long_;
  mutable std::array<size_t, 4> quoting_ends_{};
  mutable std::vector<uint32_t> separating_;
  mutable size_t separating_quoting_ = 0, most_quotes_ = 0;
  mutable std::unique_ptr<Trie> trie_, initial_trie_;
  mutable std::vector<ByteGroups> groups_;
  mutable std::vector<CoarseTrie> coarse_;
  mutable std::atomic<size_t> coarse_bytes_ = 0;
  mutable std::vector<uint32_t> text_row_;
  mutable FragmentCache fragments_;
};

}  // namespace tokenfst
