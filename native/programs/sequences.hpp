// Which instructions of a program need a node of their own.
//
// In the arena a concatenation is nested to the right: the word "ab" before x is a·(b·x). So a concatenation in which something
// follows the word cannot use the node a·b of the word alone. The same holds for a concatenation within another one. Such
// instructions get no node. They are expanded where they are used, letter by letter and part by part.
//
// Invariant: an instruction without a node is a word or a concatenation, and is only used by concatenations in which something follows
// it, directly or within others of this kind. A concatenation without a node has at most kMost parts when all such parts are expanded,
// so expanding it at each use costs no more than nesting its nodes again would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "programs/instructions.hpp"

namespace tokenfst {

class Sequences {
 public:
  Sequences(std::span<const Instruction> instructions, const ProgramParts& program)
      : instructions_(instructions), text_(program.blob.data()), own_(instructions.size(), 0) {
    if (instructions.empty()) return;
    std::vector<uint32_t> parts(instructions.size(), 1);
    for (size_t k = 0; k < instructions.size(); ++k) {
      const auto& [op, operands] = instructions[k];
      if (op == Op::Concat) {
        uint32_t sum = 0;
        for (const int32_t part : operands) sum += parts[part];
        parts[k] = sum <= kMost ? sum : 1;
        own_[k] = sum > kMost;
      } else {
        own_[k] = op != Op::Literal;
      }
    }
    own_.back() = 1;
    for (auto& [body, nullable] : program.rules) own_[body] = 1;
    for (auto& [k, text] : program.labels) own_[k] = 1;
    // Instructions come after their operands, so going backwards it is known whether an instruction has a node before its operands are
    // visited. (Only variables may come after their users, and they have nodes.)
    for (size_t k = instructions.size(); k-- > 0;) {
      const auto& [op, operands] = instructions[k];
      if (op == Op::Concat) {
        if (own_[k] && !operands.empty()) own_[operands.back()] = 1;
      } else {
        for (const int32_t part : nodes_of(op, operands)) own_[part] = 1;
      }
    }
  }

  // Whether an instruction gets a node.
  bool has_node(size_t instruction) const { return own_[instruction] != 0; }

  // Calls `node(instruction)` and `letter(byte)` for the parts of a word or concatenation, the last one first.
  template <class OfNode, class OfLetter>
  void backwards(size_t instruction, OfNode&& node, OfLetter&& letter) {
    open_.assign(1, instruction);
    bool first = true;
    while (!open_.empty()) {
      const size_t k = open_.back();
      open_.pop_back();
      const auto& [op, operands] = instructions_[k];
      if (own_[k] && !first) {
        node(k);
      } else if (op == Op::Literal) {
        const char* const text = text_ + operands[0];
        for (int32_t at = operands[1]; at-- > 0;) letter(static_cast<uint8_t>(text[at]));
      } else {
        open_.insert(open_.end(), operands.begin(), operands.end());
      }
      first = false;
    }
  }

 private:
  static constexpr uint32_t kMost = 64;

  // The operands that are instructions.
  static std::span<const int32_t> nodes_of(Op op, std::span<const int32_t> operands) {
    switch (op) {
      case Op::Empty:
      case Op::Epsilon:
      case Op::Bytes:
      case Op::Literal:
      case Op::Machine:
      case Op::Words:
      case Op::Call:
      case Op::Tokens: return {};
      case Op::Concat:
      case Op::Union:
      case Op::Intersect: return operands;
      case Op::Unordered: return operands.first(operands.size() - 4);
      case Op::Selection: return operands.first(2);
      case Op::Complement:
      case Op::Repeat:
      case Op::Variable:
      case Op::Behind:
      case Op::Scope:
      case Op::OneToken:
      case Op::Opened:
      case Op::Fresh:
      case Op::FewTokens: return operands.first(1);
    }
    return {};
  }

  std::span<const Instruction> instructions_;
  const char* text_;
  std::vector<uint8_t> own_;
  std::vector<size_t> open_;
};

}  // namespace tokenfst
