// Texts of a language with signs in them, read piece by piece.
//
// A sign is a string of bytes from 0xF8 on, which no UTF-8 text has; its last byte is from 0xFC on, the others are below. Whoever
// makes the language puts signs where a reader wants to know what begins or ends, so that a sign is never a matter of choice between
// it and a byte of text that leads as far. Texts come without signs: they are read as far as some word goes on with
// text, and signs are taken when they are asked for, or when nothing else can follow.
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
  // Signs at their places in a text, and how much of it was read.
  struct Read {
    std::vector<std::pair<size_t, std::string>> signs;
    size_t length = 0;
  };
  // What may come next: signs, and behind how many bytes of text. `fixed`: each behind the same number on all ways; `only`: nothing
  // else may come, neither the end nor more signs than were asked for.
  struct Ahead {
    std::vector<std::pair<std::string, size_t>> signs;
    bool fixed = true, only = true;
  };

  explicit SignedText(ByteAutomaton& bytes) : walk_(bytes), kinds_(walk_.kinds_of_bytes(kSigns)) {}

  bool alive() const { return !is_dead(walk_.config()); }
  bool accepting() const { return walk_.accepting(); }

  // How much of a text some word goes on with; it is read.
  size_t read(std::string_view text) {
    size_t length = 0;
    while (length < text.size() && static_cast<uint8_t>(text[length]) < kSigns && walk_.try_step(static_cast<uint8_t>(text[length])))
      ++length;
    return length;
  }

  // The same, through signs: they are taken where the text cannot go on, and behind it where nothing else can follow.
  Read read_on(std::string_view text) {
    Read found;
    while (alive()) {
      found.length += read(text.substr(found.length));
      if (found.length == text.size() && !must_sign()) break;
      std::string code = sign();
      if (code.empty()) break;
      found.signs.emplace_back(found.length, std::move(code));
    }
    return found;
  }

  // The sign that can stand here, of several the least; it is taken. Empty: none can.
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

  // The sign that can stand behind `way`, of several the least; empty: none can. The walk stays where it is.
  std::string sign_behind(std::string_view way) {
    return walk_.trial([&] { return read(way) == way.size() ? sign() : std::string(); });
  }

  // The signs that text leads to from here, if these are at most `most`.
  Ahead ahead(size_t most) {
    return walk_.trial([&] {
      Ahead found;
      std::vector<std::pair<Config, size_t>> known;
      look(found, known, most, 0);
      return found;
    });
  }
  // A number for all that `ahead` depends on, or -1.
  int64_t state() const { return walk_.state(); }

  // The bytes of text that can follow here behind `way`, and whether the text can end there.
  std::pair<std::string, bool> next_bytes(std::string_view way) { return walk_.next_bytes(way, kSigns); }

 private:
  static constexpr uint8_t kSigns = 0xF8, kLast = 0xFC;
  static constexpr size_t kLooked = 1024;  // places that `ahead` looks at, which bounds how deep it goes

  // Whether nothing but a sign can follow.
  bool must_sign() {
    bool can = false;
    for (int byte = kSigns; byte <= 0xFF && !can; ++byte) can = walk_.can_step(static_cast<uint8_t>(byte));
    return can && !walk_.accepting() && std::ranges::none_of(kinds_, [&](uint8_t byte) { return walk_.can_step(byte); });
  }

  // Adds what may come next, `depth` bytes behind where the search began, to `found`.
  void look(Ahead& found, std::vector<std::pair<Config, size_t>>& known, size_t most, size_t depth) {
    const auto before = std::ranges::find(known, walk_.config(), &std::pair<Config, size_t>::first);
    if (before != known.end()) {
      found.fixed &= before->second == depth;
      return;
    }
    known.emplace_back(walk_.config(), depth);
    if (walk_.accepting() || known.size() > kLooked) found.only = false;
    std::string code;
    look_at_signs(found, code, most, depth);
    for (const uint8_t byte : kinds_) {
      if (!found.only) return;
      walk_.branch([&] {
        if (walk_.step(byte)) look(found, known, most, depth + 1);
      });
    }
  }

  // Adds the signs that can stand here and begin with `code`.
  void look_at_signs(Ahead& found, std::string& code, size_t most, size_t depth) {
    for (int byte = kSigns; byte <= 0xFF && found.only; ++byte) {
      walk_.branch([&] {
        if (!walk_.step(static_cast<uint8_t>(byte))) return;
        code += static_cast<char>(byte);
        if (byte < kLast) {
          look_at_signs(found, code, most, depth);
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
  const std::vector<uint8_t> kinds_;  // bytes of text, one of each kind
};

}  // namespace tokenfst
