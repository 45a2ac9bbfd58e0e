// Reads the program of tokenfst.automata.expression.linearize into an arena.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "derivatives.hpp"
#include "expr.hpp"

namespace tokenfst {

// Mirrors tokenfst.automata.expression.Op.
enum class Op : int32_t { Empty, Epsilon, Bytes, Literal, Concat, Union, Intersect, Complement, Repeat, Machine, Variable, Behind, Scope };

struct Program {
  std::span<const int32_t> code;
  std::span<const uint8_t> sets;  // 32 bytes a row
  std::string_view blob;
  std::vector<Machine> machines;
  std::vector<uint32_t> machine_starts;
  std::vector<std::pair<uint32_t, std::string>> labels;  // instruction number, text
};

// Cuts the states that reach no acceptance out of a table: they become state 0.
inline void trim(Machine& machine) {
  const uint32_t states = static_cast<uint32_t>(machine.accepting.size()), width = machine.num_classes;
  std::vector<std::vector<uint32_t>> sources(states);
  for (uint32_t q = 1; q < states; ++q) {
    for (uint32_t c = 0; c < width; ++c) sources[machine.table[q * width + c]].push_back(q);
  }
  std::vector<uint8_t> live(states);
  std::vector<uint32_t> stack;
  for (uint32_t q = 1; q < states; ++q) {
    if (machine.accepting[q]) live[q] = 1, stack.push_back(q);
  }
  while (!stack.empty()) {
    uint32_t q = stack.back();
    stack.pop_back();
    for (uint32_t source : sources[q]) {
      if (!live[source]) live[source] = 1, stack.push_back(source);
    }
  }
  for (uint32_t& next : machine.table) next = live[next] ? next : 0;
  for (uint32_t q = 0; q < states; ++q) machine.accepting[q] &= live[q];
}

// The expression a program stands for, and the labels its author gave to nodes (a label on a counted repetition names
// its body, since the counts change as it is walked).
struct Loaded {
  NodeId root = kEmpty;
  std::vector<std::pair<NodeId, std::string>> labels;
};

class ProgramReader {
 public:
  ProgramReader(Arena& arena, Derivatives& derivatives) : arena_(arena), derivatives_(derivatives) {}

  Loaded read(Program program) {
    std::vector<uint32_t> machines;
    for (Machine& machine : program.machines) {
      trim(machine);
      machines.push_back(arena_.add_machine(std::move(machine)));
    }
    std::vector<NodeId> nodes = reserve_variables(program);
    size_t number = 0;
    for (size_t at = 0; at < program.code.size(); at += 2 + program.code[at + 1], ++number) {
      auto operands = program.code.subspan(at + 2, program.code[at + 1]);
      auto node = [&](size_t k) { return nodes.at(operands[k]); };
      auto all = [&] {
        std::vector<NodeId> parts;
        for (int32_t operand : operands) parts.push_back(nodes.at(operand));
        return parts;
      };
      NodeId& made = nodes[number];
      switch (static_cast<Op>(program.code[at])) {
        case Op::Empty: made = kEmpty; break;
        case Op::Epsilon: made = kEpsilon; break;
        case Op::Bytes: made = arena_.bytes(ByteSet::from_bytes(program.sets.data() + 32 * operands[0])); break;
        case Op::Literal: {
          std::string_view text = program.blob.substr(operands[0], operands[1]);
          made = kEpsilon;
          for (size_t k = text.size(); k-- > 0;) made = arena_.concat(arena_.bytes(ByteSet::single(static_cast<uint8_t>(text[k]))), made);
          break;
        }
        case Op::Concat: {
          auto parts = all();
          made = kEpsilon;
          for (size_t k = parts.size(); k-- > 0;) made = arena_.concat(parts[k], made);
          break;
        }
        case Op::Union: made = arena_.any_of(all()); break;
        case Op::Intersect: made = arena_.all_of(all()); break;
        case Op::Complement: made = arena_.negate(node(0)); break;
        case Op::Repeat: made = arena_.repeat(node(0), operands[1], operands[2] < 0 ? kUnbounded : operands[2]); break;
        case Op::Machine: made = arena_.state_of(machines.at(operands[0]), program.machine_starts.at(operands[0])); break;
        case Op::Variable: arena_.define(made, node(0)); break;
        case Op::Behind: {
          NodeId past = node(0);
          made = arena_.behind(arena_[past].has_behind ? derivatives_.scope(past) : past);
          break;
        }
        case Op::Scope: made = derivatives_.scope(node(0)); break;
      }
    }
    Loaded loaded{nodes.empty() ? kEmpty : nodes.back(), {}};
    for (auto& [k, text] : program.labels) {
      const Node& labelled = arena_[nodes.at(k)];
      loaded.labels.emplace_back(labelled.kind == Kind::Repeat ? labelled.a : nodes[k], text);
    }
    return loaded;
  }

 private:
  // Checks the instruction stream and gives every variable its number, for bodies name it before it is defined.
  std::vector<NodeId> reserve_variables(const Program& program) {
    std::vector<NodeId> nodes;
    const auto& code = program.code;
    for (size_t at = 0; at < code.size(); at += 2 + code[at + 1]) {
      if (at + 1 >= code.size() || code[at + 1] < 0 || at + 2 + code[at + 1] > code.size()) {
        throw Error(Fault::Constraint, "the expression program is cut off");
      }
      nodes.push_back(static_cast<Op>(code[at]) == Op::Variable ? arena_.new_variable() : kEmpty);
    }
    return nodes;
  }

  Arena& arena_;
  Derivatives& derivatives_;
};

}  // namespace tokenfst
