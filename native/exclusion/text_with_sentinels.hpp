// Reads texts of a language with signs in them, piece by piece.
//
// A sign is a byte string that cannot occur in UTF-8: all bytes are from 0xF8 on, the last one from 0xFC on and the
// others below that. Whoever builds the language inserts signs where a reader has to know what begins or ends. There
// must never be a choice between a sign and a byte of text that both lead on. Texts come without signs: text is read as
// far as some word continues with it, and signs are taken when they are requested, or when nothing else can follow.
//
// Invariant: some word begins with what was read and taken. Cost: that of TextWalk.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exclusion/text_walk.hpp"

namespace tokenfst {

class SignedText {
 public:
  // Signs with their places in a text, and the length that was read.
  struct Read {
    std::vector<std::pair<size_t, std::string>> signs;
    size_t length = 0;
  };
  // Signs that may come next, and after how many bytes of text. `fixed`: each sign comes after the same number of bytes
  // on all paths; `only`: nothing else may come, neither the end nor more signs than were requested.
  struct NextSigns {
    std::vector<std::pair<std::string, size_t>> signs;
    bool fixed = true, only = true;
  };

  explicit SignedText(ByteAutomaton& bytes) : walk_(bytes), kinds_(walk_.kinds_of_bytes(kSigns)) {}

  bool alive() const { return !is_dead(walk_.config()); }
  bool accepting() const { return walk_.accepting(); }

  // Reads as much of a text as some word continues with; returns its length.
  size_t read(std::string_view text) {
    size_t length = 0;
    while (length < text.size() && static_cast<uint8_t>(text[length]) < kSigns && walk_.try_step(static_cast<uint8_t>(text[length])))
      ++length;
    return length;
  }

  // The same, with signs: a sign is taken if the text cannot continue, or if the text ends and nothing but a sign can
  // follow.
  Read read_on(std::string_view text) {
    Read found;
    while (alive()) {
      found.length += read(text.substr(found.length));
      if (found.length == text.size() && !only_signs_follow()) break;
      std::string code = sign();
      if (code.empty()) break;
      found.signs.emplace_back(found.length, std::move(code));
    }
    return found;
  }

  // Takes the sign that can come here (the least of several) and returns it. Empty: there is none.
  std::string sign() {
    std::string found;
    do {
      uint8_t byte = kSigns;
      while (!walk_.try_step(byte)) {
        if (byte++ == 0xFF) return {};
      }
      found += static_cast<char>(byte);
    } while (static_cast<uint8_t>(found.back()) < kLast);
    return found;
  }

  // Returns the sign that can come after the text `way` (the least of several); empty: there is none. Does not move.
  std::string sign_after(std::string_view way) {
    return walk_.trial([&] { return read(way) == way.size() ? sign() : std::string(); });
  }

  // The signs that text leads to from here, if there are at most `most`.
  NextSigns ahead(size_t most) {
    return walk_.trial([&] {
      NextSigns found;
      std::vector<std::pair<Config, size_t>> known;
      search(found, known, most, 0);
      return found;
    });
  }
  // A number that is equal only where `ahead` has equal results, or -1.
  int64_t state() const { return walk_.state(); }

  // The bytes of text that can follow after the text `way`, and whether the text can end there.
  std::pair<std::string, bool> next_bytes(std::string_view way) { return walk_.next_bytes(way, kSigns); }

 private:
  static constexpr uint8_t kSigns = 0xF8, kLast = 0xFC;
  static constexpr size_t kLooked = 1024;  // places that `ahead` visits, which bounds its depth

  // Whether nothing but a sign can follow.
  bool only_signs_follow() {
    bool can = false;
    for (int byte = kSigns; byte <= 0xFF && !can; ++byte) can = walk_.can_step(static_cast<uint8_t>(byte));
    return can && !walk_.accepting() && std::ranges::none_of(kinds_, [&](uint8_t byte) { return walk_.can_step(byte); });
  }

  // Adds the signs that may come next, `depth` bytes after the beginning of the search, to `found`.
  void search(NextSigns& found, std::vector<std::pair<Config, size_t>>& known, size_t most, size_t depth) {
    const auto before = std::ranges::find(known, walk_.config(), &std::pair<Config, size_t>::first);
    if (before != known.end()) {
      found.fixed &= before->second == depth;
      return;
    }
    known.emplace_back(walk_.config(), depth);
    if (walk_.accepting() || known.size() > kLooked) found.only = false;
    std::string code;
    search_signs(found, code, most, depth);
    for (const uint8_t byte : kinds_) {
      if (!found.only) return;
      walk_.branch([&] {
        if (walk_.step(byte)) search(found, known, most, depth + 1);
      });
    }
  }

  // Adds the signs that can come here and begin with `code`.
  void search_signs(NextSigns& found, std::string& code, size_t most, size_t depth) {
    for (int byte = kSigns; byte <= 0xFF && found.only; ++byte) {
      walk_.branch([&] {
        if (!walk_.step(static_cast<uint8_t>(byte))) return;
        code += static_cast<char>(byte);
        if (byte < kLast) {
          search_signs(found, code, most, depth);
        } else {
          const auto same = std::ranges::find(found.signs, code, &std::pair<std::string, size_t>::first);
          if (same == found.signs.end()) found.signs.emplace_back(code, depth);
          else found.fixed &= same->second == depth;
          found.only &= found.signs.size() <= most;
        }
        code.pop_back();
      });
    }
  }

  TextWalk walk_;
  const std::vector<uint8_t> kinds_;  // one byte of text for each class of bytes
};

}  // namespace tokenfst
