// One text of a byte automaton, what it excludes and all, byte by byte.
#pragma once

#include <string_view>

#include "walks/exclusion.hpp"

namespace tokenfst {

class TextWalk {
 public:
  explicit TextWalk(ByteAutomaton& bytes) : bytes_(bytes), walker_(bytes, stacks_), at_(walker_.start()) {}

  Config config() const { return at_; }
  bool accepting() const { return bytes_.accepting(at_.state); }
  // Reads on; false, and the walk is over, where no word goes on so.
  bool step(uint8_t byte) {
    const char text[] = {static_cast<char>(byte)};
    at_ = bytes_.marks().any ? exclusion_.run(bytes_, walker_, at_, {text, 1}) : walker_.step(at_, byte);
    if (!is_dead(at_) && !exclusion_.escapes(bytes_, walker_, stacks_, at_, exclusion_.reading())) at_ = {};
    return !is_dead(at_);
  }
  // How much of a text some word begins with.
  size_t run(std::string_view text) {
    size_t length = 0;
    while (length < text.size() && step(static_cast<uint8_t>(text[length]))) ++length;
    return length;
  }
  // Whether some word goes on with a byte. The walk stays where it is.
  bool can_step(uint8_t byte) {
    const StacksTrial trial(stacks_);
    const ExclusionTrial reading(exclusion_);
    const Config before = at_;
    const bool found = step(byte);
    at_ = before;
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
