// The parts of a program (program.hpp): opcodes, instructions, and the arrays that Python hands over.
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

// The arrays as Python hands them over, unchecked.
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
  bool labelled = false;                                 // whether each rule ends with a Label, so that stacks can be printed
};

// An instruction makes one node. Operands are numbers of instructions, indices of tables, or numbers, as Program::check() lists
// them for each opcode.
struct Instruction {
  Op op;
  std::span<const int32_t> operands;
};

}  // namespace tokenfst
