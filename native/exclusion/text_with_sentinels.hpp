// Reads texts of a language with sentinels in them, piece by piece.
//
// A sentinel is a byte string that cannot occur in UTF-8: its last byte is 0xFC or more, the bytes before it are 0xF8 to
// 0xFB. Sentinels are inserted into a language where a reader has to know what begins or ends. The texts that are
// read have no sentinels: text is read as far as some word continues with it, and a sentinel is taken when it is requested,
// or when nothing else can follow. If a byte of text can follow both with and without a sentinel before it, it is read
// without one; a language should leave no such choice.
//
// Invariant: some word begins with what was read and taken. One thread at a time uses it, others wait. Cost: that of TextWalk.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calls/call.hpp"
#include "exclusion/text_walk.hpp"
#include "threads/exclusive_use.hpp"

namespace tokenfst {

// A text that is read piece by piece, and the position that it has led to. The automaton must outlive it.
class TextWithSentinels {
 public:
  // Sentinels with their places in a text, and the length that was read.
  struct Read {
    std::vector<std::pair<size_t, std::string>> sentinels;
    size_t length = 0;
  };
  // Sentinels that may come next, and after how many bytes of text. `fixed`: each sentinel comes after the same number of bytes
  // on all paths; `only`: nothing else may come, neither the end nor more sentinels than were requested.
  struct NextSentinels {
    std::vector<std::pair<std::string, size_t>> sentinels;
    bool fixed = true, only = true;
  };

  explicit TextWithSentinels(ByteAutomaton& bytes) : walk_(bytes), kinds_(walk_.kinds_of_bytes(kFirstByte)) {}

  // Whether the language has a word.
  bool alive() const {
    const InUse::Scope use(in_use_);
    return !is_dead(walk_.config());
  }
  // Whether what was read and taken is a word.
  bool accepting() const {
    const InUse::Scope use(in_use_);
    return walk_.accepting();
  }

  // Reads as much of a text as some word continues with; returns its length.
  size_t read(std::string_view text) {
    const InUse::Scope use(in_use_);
    if (text.size() > kManySteps) Call::work();
    size_t length = 0;
    while (length < text.size() && static_cast<uint8_t>(text[length]) < kFirstByte && walk_.try_step(static_cast<uint8_t>(text[length])))
      ++length;
    return length;
  }

  // The same, with sentinels: a sentinel is taken if the text cannot continue, or if the text ends and nothing but a sentinel can
  // follow.
  Read read_on(std::string_view text) {
    const InUse::Scope use(in_use_);
    Read found;
    while (alive()) {
      found.length += read(text.substr(found.length));
      if (found.length == text.size() && !only_sentinels_follow()) break;
      std::string code = take_sentinel();
      if (code.empty()) break;
      found.sentinels.emplace_back(found.length, std::move(code));
    }
    return found;
  }

  // Takes the sentinel that can come here (the least of several) and returns it. Empty: there is none.
  std::string take_sentinel() {
    const InUse::Scope use(in_use_);
    std::string found;
    do {
      uint8_t byte = kFirstByte;
      while (!walk_.try_step(byte)) {
        if (byte++ == 0xFF) return {};
      }
      found += static_cast<char>(byte);
    } while (static_cast<uint8_t>(found.back()) < kFirstLastByte);
    return found;
  }

  // Returns the sentinel that can come after the text `way` (the least of several); empty: there is none. Does not move.
  std::string sentinel_after(std::string_view way) {
    const InUse::Scope use(in_use_);
    return walk_.trial([&] { return read(way) == way.size() ? take_sentinel() : std::string(); });
  }

  // The sentinels that text leads to from here, if there are at most `most`.
  NextSentinels ahead(size_t most) {
    const InUse::Scope use(in_use_);
    return walk_.trial([&] {
      NextSentinels found;
      std::vector<std::pair<Config, size_t>> known;
      search(found, known, most, 0);
      return found;
    });
  }
  // A number for the position: where it is equal, `ahead` has equal results. -1: the position has no such number.
  int64_t state() const {
    const InUse::Scope use(in_use_);
    return walk_.state();
  }

  // The bytes of text that can follow after the text `way`, and whether a word ends there. Sentinels are not taken. Does not
  // move.
  std::pair<std::string, bool> next_bytes(std::string_view way) {
    const InUse::Scope use(in_use_);
    return walk_.next_bytes(way, kFirstByte);
  }

 private:
  static constexpr uint8_t kFirstByte = 0xF8, kFirstLastByte = 0xFC;
  static constexpr size_t kLooked = 1024;  // places that `ahead` visits, which bounds its depth

  // Whether nothing but a sentinel can follow.
  bool only_sentinels_follow() {
    bool can = false;
    for (int byte = kFirstByte; byte <= 0xFF && !can; ++byte) can = walk_.can_step(static_cast<uint8_t>(byte));
    return can && !walk_.accepting() && std::ranges::none_of(kinds_, [&](uint8_t byte) { return walk_.can_step(byte); });
  }

  // Adds the sentinels that may come next, `depth` bytes after the beginning of the search, to `found`.
  void search(NextSentinels& found, std::vector<std::pair<Config, size_t>>& known, size_t most, size_t depth) {
    const auto before = std::ranges::find(known, walk_.config(), &std::pair<Config, size_t>::first);
    if (before != known.end()) {
      found.fixed &= before->second == depth;
      return;
    }
    known.emplace_back(walk_.config(), depth);
    if (walk_.accepting() || known.size() > kLooked) found.only = false;
    std::string code;
    search_sentinels(found, code, most, depth);
    for (const uint8_t byte : kinds_) {
      if (!found.only) return;
      walk_.branch([&] {
        if (walk_.step(byte)) search(found, known, most, depth + 1);
      });
    }
  }

  // Adds the sentinels that can come here and begin with `code`.
  void search_sentinels(NextSentinels& found, std::string& code, size_t most, size_t depth) {
    for (int byte = kFirstByte; byte <= 0xFF && found.only; ++byte) {
      walk_.branch([&] {
        if (!walk_.step(static_cast<uint8_t>(byte))) return;
        code += static_cast<char>(byte);
        if (byte < kFirstLastByte) {
          search_sentinels(found, code, most, depth);
        } else {
          const auto same = std::ranges::find(found.sentinels, code, &std::pair<std::string, size_t>::first);
          if (same == found.sentinels.end()) found.sentinels.emplace_back(code, depth);
          else found.fixed &= same->second == depth;
          found.only &= found.sentinels.size() <= most;
        }
        code.pop_back();
      });
    }
  }

  TextWalk walk_;
  const std::vector<uint8_t> kinds_;  // one byte of text for each class of bytes
  mutable InUse in_use_;
};

}  // namespace tokenfst
