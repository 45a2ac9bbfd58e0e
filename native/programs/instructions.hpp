// What the program of an expression is made of (program.hpp): opcodes, instructions, and the arrays of an author.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "expressions/machine.hpp"

namespace tokenfst {

class Lexicon;

// Mirrors tokenfst.automata.expressions.expression.Op.
enum class Op : int32_t {
  Empty,
  Epsilon,
  Bytes,
  Literal,
  Concat,
  Union,
  Intersect,
  Complement,
  Repeat,
  Machine,
  Variable,
  Behind,
  Scope,
  Call,
  Words,
  Selection,
  Unordered,
  OneToken,
  Tokens,
  Opened,
  Fresh,
  FewTokens
};

// The arrays as an author hands them over, unchecked.
struct ProgramParts {
  std::vector<int32_t> code;   // opcode, number of operands, operands; repeated
  std::vector<uint8_t> sets;   // 32 bytes each
  std::string blob;
  std::vector<SharedMachine> machines;
  std::vector<std::shared_ptr<const Lexicon>> lexicons;
  std::vector<std::pair<uint32_t, std::string>> labels;  // instruction number, text
  std::vector<std::pair<uint32_t, bool>> rules;          // instruction of the body, whether the rule has the empty word
  std::vector<int32_t> assured;                          // instructions whose nodes are known to have a word
  std::vector<std::pair<uint64_t, int32_t>> classes;     // token classes: their symbols, and the lexicon of their words or -1
  bool labelled = false;                                 // whether the rest of a rule shows which rule it belongs to
};

struct Instruction {
  Op op;
  std::span<const int32_t> operands;
};

}  // namespace tokenfst
