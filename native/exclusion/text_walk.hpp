// A walk of one text through a byte automaton, byte by byte, including what the text excludes (exclusion.hpp).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exclusion/exclusion.hpp"

namespace tokenfst {

// The walk, and the configuration that it has reached. The automaton must outlive it. Not for several threads at once.
class TextWalk {
 public:
  explicit TextWalk(ByteAutomaton& bytes) : bytes_(bytes), walker_(bytes, stacks_), at_(walker_.start()) {}

  Config config() const { return at_; }
  bool accepting() const { return bytes_.accepting(at_.state); }
  // Reads a byte; returns false if no word continues so, and then the walk is over.
  bool step(uint8_t byte) {
    const char text[] = {static_cast<char>(byte)};
    at_ = bytes_.marks().any ? exclusion_.run(bytes_, walker_, at_, {text, 1}) : walker_.step(at_, byte);
    if (!is_dead(at_) && !exclusion_.can_differ(bytes_, walker_, stacks_, at_, exclusion_.reading())) at_ = {};
    return !is_dead(at_);
  }
  // The same, but if no word continues so, the walk stays where it was.
  bool try_step(uint8_t byte) {
    if (!bytes_.marks().any) {
      const Config to = walker_.step(at_, byte);
      if (is_dead(to)) return false;
      at_ = to;
      return true;
    }
    const Config before = at_;
    const Exclusion::Checkpoint reading = exclusion_.checkpoint();
    if (step(byte)) return true;
    exclusion_.restore(reading);
    at_ = before;
    return false;
  }
  // Returns f(), and then moves back to where the walk was.
  template <class F>
  auto trial(F&& f) {
    const StacksTrial trial(stacks_);
    const ExclusionTrial reading(exclusion_);
    const Config before = at_;
    auto found = f();
    at_ = before;
    return found;
  }
  // The same, but keeps the stacks that f() creates, so that configurations can be compared across calls.
  template <class F>
  void branch(F&& f) {
    const Config before = at_;
    const Exclusion::Checkpoint reading = exclusion_.checkpoint();
    f();
    exclusion_.restore(reading);
    at_ = before;
  }
  // The bytes below `limit` with which some word continues after the text `way`, read from here, and whether a word ends
  // there. Nothing, and false, if no word continues with `way`. Does not move.
  std::pair<std::string, bool> next_bytes(std::string_view way, int limit) {
    return trial([&] {
      std::pair<std::string, bool> found{{}, false};
      if (run(way) == way.size()) {
        for (int byte = 0; byte < limit; ++byte) {
          if (can_step(static_cast<uint8_t>(byte))) found.first += static_cast<char>(byte);
        }
        found.second = accepting();
      }
      return found;
    });
  }
  // Reads as much of a text as some word begins with; returns its length.
  size_t run(std::string_view text) {
    size_t length = 0;
    while (length < text.size() && step(static_cast<uint8_t>(text[length]))) ++length;
    return length;
  }
  // Whether some word continues with a byte. Does not move.
  bool can_step(uint8_t byte) {
    return trial([&] { return step(byte); });
  }
  // A number for the position: where it is equal, the same texts can follow. -1: there is a stack, or strings must differ.
  int64_t state() const { return at_.stack == kBottom && !bytes_.marks().any ? int64_t{at_.state} : -1; }
  // One byte below `limit` of each class of bytes that no word of the language distinguishes. All bytes below `limit` if
  // strings must differ, because a known string may distinguish them.
  std::vector<uint8_t> kinds_of_bytes(int limit) const {
    std::vector<uint8_t> found;
    std::array<bool, 256> known{};
    for (int byte = 0; byte < limit; ++byte) {
      bool& seen = known[bytes_.classes()[byte]];
      if (!seen || bytes_.marks().any) found.push_back(static_cast<uint8_t>(byte));
      seen = true;
    }
    return found;
  }

 private:
  ByteAutomaton& bytes_;
  Stacks stacks_;
  Walker walker_;
  Exclusion exclusion_;
  Config at_;
};

}  // namespace tokenfst
