// The program of tokenfst.automata.expressions.program.linearize: decoded and checked once, then read into any number
// of arenas.
//
// Invariant: the content of a `Program` is checked: operands and side tables exist, and recursion is in tail position.
// What only an arena can determine (look-behinds without a scope, tokens where they have no exact meaning) is refused by
// ProgramReader. Both raise an Error. A program owns its arrays, so they cannot change. Cost: checking is linear in the
// instructions; reading makes the nodes of each of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "derivatives/derivatives.hpp"
#include "expressions/arena.hpp"
#include "programs/instructions.hpp"
#include "programs/sequences.hpp"
#include "support/counted.hpp"

namespace tokenfst {

[[noreturn]] inline void refuse_program(const std::string& reason) {
  throw Error(Fault::Constraint, "the expression program is invalid: " + reason);
}
[[noreturn]] inline void refuse_instruction(size_t number, const char* reason) {
  refuse_program("instruction " + std::to_string(number) + ": " + reason);
}

class Program {
 public:
  explicit Program(ProgramParts parts) : parts_(std::move(parts)) {
    decode();
    check();
    check_tables();
    for (auto& [set, lexicon] : parts_.classes) symbols_ |= set;
    is_token_level_ = std::ranges::any_of(instructions_, [&](const Instruction& each) {
      return each.op == Op::OneToken || each.op == Op::FewTokens || (each.op == Op::Tokens && parts_.classes[each.operands[0]].second >= 0);
    });
  }
  Program(const Program&) = delete;  // instructions point into `parts_`
  Program& operator=(const Program&) = delete;

  // The arrays of the program.
  const ProgramParts* operator->() const { return &parts_; }
  const std::vector<Instruction>& instructions() const { return instructions_; }
  uint64_t symbols() const { return symbols_; }                  // as a bit set
  bool is_token_level() const { return is_token_level_; }  // whether token boundaries matter

 private:
  void decode() {
    for (std::span<const int32_t> code = parts_.code; !code.empty();) {
      if (code.size() < 2 || code[1] < 0 || code.size() - 2 < static_cast<size_t>(code[1]))
        refuse_instruction(instructions_.size(), "it is cut off");
      instructions_.push_back({static_cast<Op>(code[0]), code.subspan(2, code[1])});
      code = code.subspan(2 + code[1]);
    }
  }

  // Refuses operands that do not exist, and recursion outside of tail position. A node is open while it uses a variable
  // that a later instruction defines.
  void check() const {
    const auto& instructions = instructions_;
    std::vector<size_t> closed_at(instructions.size(), 0);  // for each node, the last variable that it uses
    for (size_t number = 0; number < instructions.size(); ++number) {
      const auto& [op, operands] = instructions[number];
      auto count = [&](size_t wanted) {
        if (operands.size() != wanted) refuse_instruction(number, "it has the wrong number of operands");
      };
      auto part = [&](size_t k, bool tail) {
        size_t operand = static_cast<size_t>(operands[k]);
        if (operands[k] < 0 || operand >= instructions.size()) refuse_instruction(number, "an operand does not exist");
        bool forward = operand >= number;
        if (forward && instructions[operand].op != Op::Variable) refuse_instruction(number, "an operand comes after its user");
        size_t closed = forward ? operand : closed_at[operand];
        if (!tail && closed > number) {
          throw Error(Fault::Constraint,
                      "a recursion is not in tail position: it may only come last in a concatenation, and never under a complement, a "
                      "repetition, a look-behind or a scope");
        }
        closed_at[number] = std::max(closed_at[number], closed);
      };
      auto parts = [&](bool any_place) {
        for (size_t k = 0; k < operands.size(); ++k) part(k, any_place || k + 1 == operands.size());
      };
      switch (op) {
        case Op::Empty:
        case Op::Epsilon: count(0); break;
        case Op::Bytes:
          count(1);
          if (operands[0] < 0 || static_cast<size_t>(operands[0]) >= parts_.sets.size() / 32)
            refuse_instruction(number, "a byte set does not exist");
          break;
        case Op::Literal:
          count(2);
          if (operands[0] < 0 || operands[1] < 0 || int64_t{operands[0]} + operands[1] > static_cast<int64_t>(parts_.blob.size()))
            refuse_instruction(number, "a literal does not exist");
          break;
        case Op::Concat: parts(false); break;
        case Op::Union:
        case Op::Intersect: parts(true); break;
        case Op::Repeat:
          count(3);
          part(0, false);
          if (operands[1] < 0 || operands[2] < -1 || (operands[2] >= 0 && operands[2] < operands[1]))
            refuse_instruction(number, "the bounds of a repetition are not a range");
          break;
        case Op::FewTokens:
          count(2);
          part(0, false);
          if (operands[1] < 1) refuse_instruction(number, "a limit of tokens is less than 1");
          break;
        case Op::Machine:
          count(1);
          if (operands[0] < 0 || static_cast<size_t>(operands[0]) >= parts_.machines.size())
            refuse_instruction(number, "a machine does not exist");
          break;
        case Op::Variable:
          count(1);
          part(0, true);
          break;
        case Op::Words:
          count(1);
          if (operands[0] < 0 || static_cast<size_t>(operands[0]) >= parts_.lexicons.size())
            refuse_instruction(number, "a set of words does not exist");
          break;
        case Op::Selection:
          count(4);
          part(0, false);
          part(1, false);
          if (instructions[operands[0]].op != Op::Words) refuse_instruction(number, "a selection is not made of a set of words");
          if (operands[2] < 1 || operands[3] < -1 || (operands[3] >= 0 && operands[3] < operands[2]))
            refuse_instruction(number, "the bounds of a selection are not a range");
          break;
        case Op::Call:
          count(1);
          if (operands[0] < 0 || static_cast<size_t>(operands[0]) >= parts_.rules.size())
            refuse_instruction(number, "a rule does not exist");
          break;
        case Op::Unordered: {
          // The separator, the options (the required ones first), and the repeatable member; then the bounds, the
          // number of required options, and whether there is a repeatable member: 1, or 2 if it does not count towards
          // the lower bound.
          if (operands.size() < 5) refuse_instruction(number, "it has the wrong number of operands");
          const size_t nodes = operands.size() - 4;
          for (size_t k = 0; k < nodes; ++k) part(k, false);
          auto bounds = operands.subspan(nodes);
          if (bounds[0] < 0 || bounds[1] < -1 || (bounds[1] >= 0 && bounds[1] < bounds[0]))
            refuse_instruction(number, "the bounds of unordered members are not a range");
          if (bounds[3] < 0 || bounds[3] > 2 || bounds[2] < 0 || bounds[2] + (bounds[3] > 0) + size_t{1} > nodes)
            refuse_instruction(number, "unordered members do not exist");
          break;
        }
        case Op::Fresh:  // followed by its facts, see marks.hpp
          count(6);
          part(0, false);
          for (int32_t bound : operands.subspan(2)) {
            if (bound < 0) refuse_instruction(number, "a number about strings that must differ is negative");
          }
          break;
        case Op::Tokens:
          count(1);
          if (operands[0] < 0 || static_cast<size_t>(operands[0]) >= parts_.classes.size())
            refuse_instruction(number, "a class of tokens does not exist");
          if (parts_.classes[operands[0]].second >= static_cast<int32_t>(parts_.lexicons.size()))
            refuse_instruction(number, "a set of words does not exist");
          break;
        case Op::Complement:
        case Op::Behind:
        case Op::Scope:
        case Op::Opened:
        case Op::OneToken:
          count(1);
          part(0, false);
          break;
        default: refuse_instruction(number, "its opcode is unknown");
      }
    }
  }

  void check_tables() const {
    for (int32_t k : parts_.assured) {
      if (k < 0 || static_cast<size_t>(k) >= instructions_.size())
        refuse_program("`assured` names instruction " + std::to_string(k) + ", which does not exist");
    }
    for (size_t rule = 0; rule < parts_.rules.size(); ++rule) {
      if (parts_.rules[rule].first >= instructions_.size()) refuse_program("rule " + std::to_string(rule) + " has no body");
    }
    for (auto& [k, text] : parts_.labels) {
      if (k >= instructions_.size()) refuse_program("a label names instruction " + std::to_string(k) + ", which does not exist");
    }
  }

  ProgramParts parts_;
  std::vector<Instruction> instructions_;
  uint64_t symbols_ = 0;
  bool is_token_level_ = false;
};

// The expression of a program, and the labels of its nodes. (A label on a counted repetition is attached to its body,
// because the counts change while it is read; one on unordered members is attached to their options.)
struct Loaded {
  NodeId root = kEmpty;
  std::vector<std::pair<NodeId, std::string>> labels;
  uint32_t symbols = 0;           // the number of symbols beside bytes
  bool is_token_level = false;  // whether token boundaries matter
  bool tokens_intersected = false;  // whether tokens are in an intersection, or limited in a language without a stack
  bool has_marks = false;  // see marks.hpp
  DistinctFacts facts;
};

// Reads a program into an arena that is new.
class ProgramReader {
 public:
  ProgramReader(Arena& arena, Derivatives& derivatives) : arena_(arena), derivatives_(derivatives), selections_(derivatives.selections()) {}

  Loaded read(const Program& program) {
    std::vector<uint32_t> machines;
    for (auto& [machine, start] : program->machines) machines.push_back(arena_.add_machine(machine));
    std::vector<uint32_t> lexicons;
    for (auto& lexicon : program->lexicons) lexicons.push_back(selections_.add_lexicon(lexicon));
    const std::vector<Instruction>& instructions = program.instructions();
    const uint64_t symbols = program.symbols();
    bool tokens_intersected = false;
    arena_.widen(static_cast<uint32_t>(std::bit_width(symbols)), program.is_token_level());
    arena_.expect(arena_.size() + instructions.size() + program->blob.size() / 2);
    for (auto& [body, nullable] : program->rules) arena_.declare_rule(nullable);
    Loaded loaded;
    std::vector<NodeId> nodes;
    nodes.reserve(instructions.size());
    std::unordered_map<size_t, NodeId> options;  // the union of options of unordered members
    for (const Instruction& each : instructions) nodes.push_back(each.op == Op::Variable ? arena_.new_variable() : kEmpty);
    Sequences sequences(instructions, *program.operator->());
    std::vector<bool> assured(instructions.size());
    for (int32_t k : program->assured) {
      assured[k] = true;
      if (instructions[k].op == Op::Variable) arena_.assure(nodes[k]);
    }
    for (size_t number = 0; number < nodes.size(); ++number) {
      const auto& [op, operands] = instructions[number];
      auto node = [&](size_t k) { return nodes[operands[k]]; };
      auto all = [&] {
        std::vector<NodeId> parts;
        for (int32_t operand : operands) parts.push_back(nodes[operand]);
        return parts;
      };
      NodeId& made = nodes[number];
      switch (op) {
        case Op::Empty: made = kEmpty; break;
        case Op::Epsilon: made = kEpsilon; break;
        case Op::Bytes: made = arena_.bytes(ByteSet::from_bytes(program->sets.data() + ptrdiff_t{32} * operands[0])); break;
        case Op::Literal:
        case Op::Concat:
          if (!sequences.has_node(number)) break;
          made = kEpsilon;
          sequences.backwards(
              number, [&](size_t part) { made = arena_.concat(nodes[part], made); },
              [&](uint8_t byte) { made = arena_.concat(arena_.letter(byte), made); });
          break;
        case Op::Union: made = arena_.any_of(all()); break;
        case Op::Intersect: {
          // x & ~y is x without y: words of x may contain special tokens, and ~y alone, over bytes, would exclude them.
          auto parts = all();
          const auto is_complement = [&](int32_t operand) { return instructions[operand].op == Op::Complement; };
          if (symbols != 0 && !std::ranges::all_of(operands, is_complement)) {
            for (size_t k = 0; k < parts.size(); ++k) {
              if (is_complement(operands[k])) parts[k] = arena_.negate(nodes[instructions[operands[k]].operands[0]]);
            }
          }
          made = arena_.all_of(parts);
          tokens_intersected |= arena_[made].has(kHasToken);
          if (!program->rules.empty()) refuse_tokens(made, "an intersection inside of a grammar that needs a stack");
          break;
        }
        case Op::Complement:
          refuse_marks(node(0), "a complement");
          refuse_tokens(node(0), "a complement, a difference or a negative look-ahead");
          made = arena_.negate(node(0));
          if (symbols != 0) {
            const NodeId parts[] = {made, arena_.repeat(arena_.bytes(ByteSet::all()), 0, kUnbounded)};
            made = arena_.all_of(parts);
          }
          break;
        case Op::OneToken:
          refuse_tokens(node(0), "one_token()");
          if (arena_[node(0)].has(kHasBehind | kHasVar | kHasCall))
            refuse_instruction(number, "the text of one_token() depends on its context (a look-behind, a recursion or a call)");
          made = arena_.token(node(0));
          break;
        case Op::FewTokens:
          refuse_tokens(node(0), "a text with a limit of tokens");
          refuse_marks(node(0), "a text with a limit of tokens");
          if (arena_[node(0)].has(kHasBehind | kHasVar | kHasCall))
            refuse_instruction(number, "a text with a limit of tokens depends on its context (a look-behind, a recursion or a call)");
          if (!program->rules.empty() && !derivatives_.has_word_within(node(0), static_cast<uint32_t>(operands[1])))
            throw Error(Fault::Constraint, "a text with a limit of " + counted(static_cast<uint64_t>(operands[1]), "token") +
                                               " has more bytes than that, and is in a grammar that needs a stack: there each "
                                               "byte must be allowed a token of its own; allow more tokens, or truncate the grammar");
          tokens_intersected |= program->rules.empty();
          made = arena_.few_tokens(node(0), static_cast<uint32_t>(operands[1]));
          break;
        case Op::Tokens: {
          auto [symbols_of_class, words] = program->classes[operands[0]];
          ByteSet set;
          set.words.back() = symbols_of_class;
          made = arena_.bytes(set);
          if (words >= 0)
            made = arena_.either(made, arena_.token(selections_.words(lexicons[words], selections_.lexicon(lexicons[words]).root())));
          break;
        }
        case Op::Repeat: made = arena_.repeat(node(0), operands[1], operands[2] < 0 ? kUnbounded : operands[2]); break;
        case Op::Machine: made = arena_.state_of(machines[operands[0]], program->machines[operands[0]].start); break;
        case Op::Variable: arena_.define(made, node(0)); break;
        case Op::Behind: {
          NodeId past = node(0);
          refuse_marks(past, "a look-behind");
          refuse_tokens(past, "a look-behind");
          made = arena_.behind(arena_[past].has(kHasBehind) ? derivatives_.scope(past) : past);
          break;
        }
        case Op::Scope:
          refuse_marks(node(0), "the scope of a look-behind");
          refuse_tokens(node(0), "a pattern with look-behind");
          made = derivatives_.scope(node(0));
          break;
        case Op::Opened:
        case Op::Fresh: {
          const Node& part = arena_[node(0)];
          if (part.nullable || part.has(kHasBehind | kHasVar | kHasCall))
            refuse_instruction(number, "a string that must differ has the empty word, or depends on its context");
          made = arena_.concat(node(0), mark(arena_, op == Op::Opened ? MarkKind::Opened : MarkKind::Fresh));
          loaded.has_marks = true;
          if (op == Op::Fresh) loaded.facts.add(operands[1] != 0, operands[5] != 0, operands[2], operands[3], operands[4]);
          break;
        }
        case Op::Call: made = arena_.call(operands[0]); break;
        case Op::Unordered:
          made = unordered(operands, nodes);
          if (made != kEmpty) options.emplace(number, derivatives_.unordered().latest());
          break;
        case Op::Words: {
          uint32_t lexicon = lexicons[operands[0]];
          made = selections_.words(lexicon, selections_.lexicon(lexicon).root());
          break;
        }
        case Op::Selection: {
          refuse_tokens(node(1), "the separator of different labels");
          const Node separator = arena_[node(1)];
          if (separator.nullable || !separator.certain || separator.traits)
            refuse_instruction(number, "a selection's separator has the empty word, or depends on its context");
          made = selections_.select(lexicons[instructions[operands[0]].operands[0]], operands[2],
                                    operands[3] < 0 ? kUnbounded : operands[3], node(1));
          break;
        }
      }
      if (assured[number] && made != kEmpty) arena_.assure(made);
    }
    for (uint32_t k = 0; k < program->rules.size(); ++k) {
      auto& [body, nullable] = program->rules[k];
      if (arena_[nodes[body]].nullable != nullable)
        refuse_program("rule " + std::to_string(k) + ": its body differs from what was declared about the empty word");
      arena_.define_rule(k, program->labelled ? arena_.concat(nodes[body], arena_.label(k)) : nodes[body]);
    }
    loaded.root = nodes.empty() ? kEmpty : nodes.back();
    loaded.symbols = static_cast<uint32_t>(std::bit_width(symbols));
    loaded.is_token_level = program.is_token_level();
    loaded.tokens_intersected = tokens_intersected;
    if (arena_[loaded.root].has(kHasBehind)) refuse_program("a look-behind is in no scope");
    for (auto& [k, text] : program->labels) {
      const Node& labelled = arena_[nodes[k]];
      auto unordered = options.find(k);
      NodeId named = unordered != options.end() ? unordered->second : labelled.kind == Kind::Repeat ? labelled.a : nodes[k];
      loaded.labels.emplace_back(named, text);
    }
    arena_.trim();
    return loaded;
  }

 private:
  void refuse_marks(NodeId id, const char* where) const {
    if (!arena_[id].has(kHasFresh)) return;
    throw Error(Fault::Constraint,
                "strings that must differ from each other (names of a JSON object, unique items) are under " + std::string(where) +
                    ", which needs all texts in a finite automaton: make the schema with repeated_names=\"allow\", or intersect it last");
  }
  // Under an operation that is not monotone, the words that a token boundary adds could be too many.
  void refuse_tokens(NodeId id, const char* where) const {
    if (!arena_[id].has(kHasToken)) return;
    throw Error(Fault::Constraint, std::string("token-level parts (TEXT_TOKEN, one_token(), special tokens and limits of tokens) are in ") +
                                       where + ", where they have no exact meaning: write what may come there without it");
  }

  NodeId unordered(std::span<const int32_t> operands, const std::vector<NodeId>& nodes) {
    const auto bounds = operands.last(4);
    std::vector<NodeId> parts;
    for (int32_t operand : operands.first(operands.size() - 4)) {
      parts.push_back(nodes[operand]);
      refuse_tokens(parts.back(), "members that may come in any order");
      if (arena_[parts.back()].has(kHasBehind)) refuse_program("a look-behind in unordered members is in no scope");
      if (parts.size() > 1 && arena_[parts.back()].nullable) {
        throw Error(Fault::Constraint,
                    "a member that may come in any order has the empty word: leave the empty word out, the member is optional anyway");
      }
    }
    NodeId other = kEmpty;
    if (bounds[3]) {
      other = parts.back();
      parts.pop_back();
    }
    const NodeId separator = parts[0];
    parts.erase(parts.begin());
    return derivatives_.unordered().make(separator, std::move(parts), bounds[2], other, bounds[3] < 2, bounds[0],
                                         bounds[1] < 0 ? kUnbounded : bounds[1]);
  }

  Arena& arena_;
  Derivatives& derivatives_;
  Selections& selections_;
};

}  // namespace tokenfst
