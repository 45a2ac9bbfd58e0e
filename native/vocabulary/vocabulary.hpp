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

// The bytes of all tokens, one after another. Token t is data[offsets[t], offsets[t + 1]); a token may have no bytes.
class TokenBytes {
 public:
  // Raises Vocabulary if the offsets do not fit the data, or if a token has more than 65,535 bytes.
  TokenBytes(std::string data, std::vector<uint32_t> offsets);
  size_t size() const { return offsets_.size() - 1; }
  std::string_view operator[](uint32_t token) const { return {data_.data() + offsets_[token], offsets_[token + 1] - offsets_[token]}; }
  size_t memory() const { return data_.size() + offsets_.size() * 4; }
  // The trie of the tokens that have bytes. O(length of the tokens), plus the time for sorting them.
  Trie make_trie() const;

 private:
  std::string data_;
  std::vector<uint32_t> offsets_;
};

class Vocabulary {
 public:
  // `initial`: the forms of tokens at the start of a text, or null; `eos`: the end tokens. Raises Vocabulary if there is no
  // token, if there are not as many initial forms as tokens, or if an end token does not exist.
  Vocabulary(TokenBytes tokens, std::unique_ptr<TokenBytes> initial, std::vector<uint32_t> eos, bool start_absorbs);

  uint32_t size() const { return static_cast<uint32_t>(tokens_.size()); }
  const std::vector<uint32_t>& eos() const { return eos_; }
  bool is_eos(uint32_t token) const { return std::find(eos_.begin(), eos_.end(), token) != eos_.end(); }
  bool has_initial() const { return initial_ != nullptr; }
  // Whether the next token is still the first one of a text after a token whose initial form is empty.
  bool start_absorbs() const { return start_absorbs_; }
  // Whether every single byte is a token, so that every byte string can be spelled away from the start of a text.
  bool complete() const { return complete_; }
  const TokenBytes& tokens() const { return tokens_; }
  const TokenBytes& initial() const { return initial_ ? *initial_ : tokens_; }
  // The trie of tokens(); its strings are token ids. Made on the first call.
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
  bool adopt_trie(const Trie::Tables& tables, bool initial) const;
  // The groups of bytes below each node of trie().
  const std::vector<ByteGroups>& groups() const { return trie(), groups_; }
  // Quotients of trie() by groups of bytes, the coarsest first: each stands for nodes of the next one, and the last for
  // those of trie(). O(nodes) on the first call.
  static constexpr size_t kCoarseTries = 2;
  std::span<const CoarseTrie> coarse_tries() const;
  // The tokens that have bytes, one bit each.
  const std::vector<uint32_t>& text_row() const { return coarse_tries(), text_row_; }
  // The trie of initial(): trie() if there are no initial forms.
  const Trie& initial_trie() const {
    if (!initial_) return trie();
    initial_built_([this] { initial_trie_ = std::make_unique<Trie>(initial_->make_trie()); });
    return *initial_trie_;
  }
  // The tokens with at least `least` (1 to 3) quotation marks.
  std::span<const uint32_t> quoting(size_t least) const { return quoting_up_to(least == 3 ? 0 : 4 - least); }
  // The tokens with three or more quotation marks, and those with two and a comma or an opening bracket, after which a
  // name or an item may begin.
  std::span<const uint32_t> quoting_items() const { return quoting_up_to(1); }
  // The tokens with a comma; if `quoting`, only those that have a quotation mark, too.
  std::span<const uint32_t> separating(bool quoting) const;
  // Bytes of which each token, in either form, has only a few. O(bytes of the tokens) on the first call.
  const RareBytes& rare() const;
  // The greatest number of quotation marks in one token, in either form.
  size_t most_quotes() const { return quoting(1), most_quotes_; }
  // The tokens with more than `bytes` bytes, which must be at least kLong. O(tokens) on the first call.
  static constexpr size_t kLong = 32;
  std::span<const uint32_t> longer_than(size_t bytes) const;
  FragmentCache& fragments() const { return fragments_; }
  size_t memory() const;

 private:
  // The tokens with quotation marks, sorted into four groups; returns the first `group` + 1 groups: with three or more;
  // with two, and a comma or an opening bracket; with two; with one.
  std::span<const uint32_t> quoting_up_to(size_t group) const;

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
