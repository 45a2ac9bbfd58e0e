// Writes the nodes of expressions (tokenfst.automata.expressions.expression.Expr) as the instructions of a program.
//
// A schema has hundreds to tens of thousands of nodes, and each is visited once, so this is done in the core. Recursive rules,
// large rules and parts without a word are left to the caller, which is `advance`'s result. `advance` goes depth first over a
// stack of nodes. The stack has borrowed references: who pushes a node keeps it alive. After `follow`, a rule is written at its
// first call.
//
// An instruction is *assured* if it is known to have a word, and in *doubt* if the caller has said that it may have none.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bindings/values/instruction_code.hpp"
#include "containers/stable_map.hpp"
#include "python/expression_node.hpp"

namespace tokenfst {

namespace nb = nanobind;

class ProgramCode : public InstructionCode {
 public:
  static constexpr int64_t kMostPositions = ExprNode::kMostPositions;
  static constexpr int32_t kNoWord = -1;

  nb::list assured;  // the assured instructions
  nb::dict calls;     // by rule that is called, its CALL
  nb::dict finished;  // by rule that is written, the instruction of its body, or kNoWord
  nb::set begun;  // the rules that were entered
  nb::list open;  // the rules that were entered and are not finished, innermost last

  // Sets the rules that calls refer to. `bodies`: their expressions, by name. `states`: the rules that may have the empty word;
  // they are inlined and never called. Other rules of at most `large` positions are inlined too. A rule of more than `most`
  // positions is left to the caller. `composed`: the operators for which the root of a rule's body is labelled with the rule.
  void follow(nb::dict bodies, nb::object states, int64_t large, int64_t most, const std::vector<int32_t>& composed) {
    bodies_ = bodies, states_ = states, large_ = large, most_ = most;
    for (int32_t op : composed) composed_ |= uint64_t{1} << op;
  }
  // Opens a rule, and pushes its body, and below it a None that marks its end.
  void enter(nb::handle name) {
    begun.add(name);
    open.append(name);
    push(nb::none());
    push(bodies_[name]);
  }

  std::unique_ptr<ProgramCode> copy() const {
    auto made = std::make_unique<ProgramCode>();
    copy_to(*made);
    made->assured.extend(assured);
    made->doubted_ = doubted_;
    made->calls.update(calls);
    made->finished.update(finished);
    for (nb::handle name : begun) made->begun.add(name);
    made->is_assured_ = is_assured_;
    made->recursions_ = recursions_;
    numbers_.for_each([&](uint64_t node, uint32_t value) { made->numbers_.insert(node, value); });
    return made;
  }

  // Writes all nodes, which are given operands first; a variable follows its body. `rules`: the numbers of rules by name;
  // `assured_ids`: the ids of nodes that are known to have a word, in addition to plain ones. Returns the instructions of both,
  // each once. Raises KeyError for a rule without a number, and ValueError for a variable outside of its body.
  nb::list add_nodes(nb::list nodes, nb::dict rules, nb::handle assured_ids) {
    std::vector<nb::handle> waiting;  // nodes that refer to a variable whose body is not complete
    std::unordered_set<PyObject*> awaited, complete;  // such variables; the variables among `waiting` whose body is complete
    for (nb::handle node : nodes) {
      const Op op = op_of(node);
      std::vector<int32_t> operands;
      bool waits = op == Op::Variable;
      PyObject* const args = node_of(node).args;
      for (Py_ssize_t k = 0, count = PyTuple_Size(args); k < count; ++k) {
        const nb::handle arg = PyTuple_GetItem(args, k);
        const std::optional<int32_t> number = number_of(arg);
        operands.push_back(number.value_or(kNoWord));
        waits |= !number;
        if (!number && op_of(arg) == Op::Variable && !complete.contains(arg.ptr())) awaited.insert(arg.ptr());
      }
      if (waits) {
        waiting.push_back(node);
        if (op == Op::Variable) awaited.erase(node.ptr()), complete.insert(node.ptr());
        if (!awaited.empty()) continue;
        add_recursive(waiting);
        waiting.clear(), complete.clear();
        continue;
      }
      if (op == Op::Call) operands.push_back(static_cast<int32_t>(integer(rules[nb::handle(node_of(node).value)])));
      give(node, add(node, std::move(operands), std::max<int64_t>(1, node_of(node).size)));
    }
    if (!waiting.empty()) throw nb::value_error("a variable is outside of its body");
    nb::list found;
    std::vector<bool> is_found(length());
    for (nb::handle node : nodes) {
      if (node_of(node).size == 0 && !holds(assured_ids, nb::steal(PyLong_FromVoidPtr(node.ptr())))) continue;
      const int32_t number = instruction(node);
      if (!is_found[static_cast<size_t>(number)]) found.append(number);
      is_found[static_cast<size_t>(number)] = true;
    }
    return found;
  }

  // The instruction of a node, kNoWord if it has no word; none if it has not been written.
  std::optional<int32_t> number_of(nb::handle node) const {
    const uint32_t value = numbers_.find(key(node));
    if (value == 0) return std::nullopt;
    return static_cast<int32_t>(value) - 2;
  }
  // The same for a node that has been written; raises KeyError otherwise.
  int32_t instruction(nb::handle node) const {
    const uint32_t value = numbers_.find(key(node));
    if (value == 0) throw nb::key_error("the node has no instruction");
    return static_cast<int32_t>(value) - 2;
  }
  // Sets the instruction of a node that has none yet; kNoWord: the node has no word.
  void give(nb::handle node, int32_t number) { numbers_.insert(key(node), static_cast<uint32_t>(number + 2)); }

  // Records that an instruction is known to have a word.
  void assure(int32_t number) {
    if (is_assured_.size() < length()) is_assured_.resize(length());
    if (!is_assured_.at(static_cast<size_t>(number))) assured.append(number);
    is_assured_[static_cast<size_t>(number)] = true;
  }
  // Sets whether it is uncertain that an instruction has a word.
  void doubt(size_t number, bool doubted) {
    if (number >= doubted_.size()) doubted_.resize(number + 1);
    doubted_[number] = doubted;
  }

  // The stack of nodes to be written; pending(): whether it has any.
  void push(nb::handle node) { stack_.push_back(node); }
  void pop() { stack_.pop_back(); }
  bool pending() const { return !stack_.empty(); }

  // Writes the nodes on the stack, and all below them, until one is left to the caller; returns that node, which stays on the
  // stack. It is a call that is not followed, a variable, the empty language, or a node with an operand that has no word or is
  // in doubt. Returns None if the stack is empty, or if the body of the innermost open rule is written and the caller has to
  // finish that rule. Nodes that are known to have a word become assured.
  nb::handle advance() {
    while (!stack_.empty()) {
      const nb::handle node = stack_.back();
      if (node.is_none()) {
        stack_.pop_back();
        if (finishes()) continue;
        return node;
      }
      if (numbers_.find(key(node)) != 0) {
        stack_.pop_back();
        continue;
      }
      const Op op = op_of(node);
      if (op == Op::Call && follows(node)) continue;
      if (op == Op::Call || op == Op::Variable || op == Op::Empty) return node;
      if (!gather(node)) continue;
      int64_t size = node_of(node).size;
      if (size == 0) {
        if (std::ranges::any_of(operands_, [&](int32_t operand) { return operand == kNoWord || in_doubt(operand); })) return node;
        size = total(node, op);
      }
      stack_.pop_back();
      const int32_t number = add(node, operands_, size);
      give(node, number);
      if (node_of(node).known == ExprNode::kHasWord) assure(number);
    }
    return nb::none();
  }
  // The instructions of a node's operands; none if some are not written yet, which are then pushed.
  std::optional<std::vector<int32_t>> operands(nb::handle node) {
    if (!gather(node)) return std::nullopt;
    return operands_;
  }

 private:
  static constexpr Py_ssize_t kLabel = 200;  // longer names are shortened by the caller

  static bool holds(nb::handle container, nb::handle key) {
    const int found = PySequence_Contains(container.ptr(), key.ptr());
    if (found < 0) throw nb::python_error();
    return found != 0;
  }

  // Handles a call: enters a rule that is not begun; inlines a finished one; or uses the CALL that the rule has. Returns false
  // if the caller has to make the first CALL.
  bool follows(nb::handle node) {
    if (!bodies_.is_valid()) return false;
    const nb::handle name = node_of(node).value;
    PyObject* const number = item(finished, name);
    if (!number && !holds(begun, name)) {
      enter(name);
      return true;
    }
    const bool is_state = holds(states_, name);
    PyObject* found = number && is_state ? number : nullptr;
    if (!is_state) {
      PyObject* const call = item(calls, name);
      const int64_t at = number ? integer(number) : -1;
      const bool is_inlined = number && (at < 0 || (!call && size_of(static_cast<size_t>(at)) <= large_));
      found = is_inlined ? number : call;
    }
    if (!found) return false;
    stack_.pop_back();
    give(node, static_cast<int32_t>(integer(found)));
    return true;
  }
  // Finishes the innermost open rule. Returns false if the caller has to: the rule is recursive, is large, or has a long name.
  bool finishes() {
    if (!bodies_.is_valid() || open.size() == 0) return false;
    const nb::object name = open[open.size() - 1];
    const nb::object body = bodies_[name];
    const std::optional<int32_t> number = number_of(body);
    if (!number || item(calls, name)) return false;
    if (*number != kNoWord) {
      const ExprNode& node = node_of(body);
      if (size_of(static_cast<size_t>(*number)) > most_) return false;
      if (node.source == Py_None && composed_ >> node.code & 1) {
        if (PyUnicode_GetLength(name.ptr()) > kLabel) return false;
        const nb::object text = nb::steal(PyUnicode_FromFormat("the rule %R", name.ptr()));
        if (!text.is_valid()) throw nb::python_error();
        labels.append(nb::make_tuple(*number, text));
      }
    }
    finished[name] = *number;
    if (PyList_SetSlice(open.ptr(), static_cast<Py_ssize_t>(open.size()) - 1, static_cast<Py_ssize_t>(open.size()), nullptr) < 0)
      throw nb::python_error();
    return true;
  }

  // Writes nodes that refer to variables among them, each of which follows its body. If an equal list was written before, its
  // instructions are used again.
  void add_recursive(const std::vector<nb::handle>& nodes) {
    using Form = std::vector<int32_t>;  // the operator, the number of its variable or -1, and pairs (kind of operand, operand)
    enum : int32_t { kKnown, kOwn, kVariable };  // an instruction or a number; an index in `distinct`; the number of a variable
    std::unordered_map<PyObject*, int32_t> variables, places;
    std::vector<int32_t> of_variables;
    for (nb::handle node : nodes) {
      if (op_of(node) == Op::Variable) variables.emplace(node.ptr(), static_cast<int32_t>(variables.size()));
    }
    of_variables.resize(variables.size());
    std::map<Form, int32_t> known;
    std::vector<Form> distinct;
    for (nb::handle node : nodes) {
      const auto variable = variables.find(node.ptr());
      Form form = {node_of(node).code, variable == variables.end() ? -1 : variable->second};
      PyObject* const args = node_of(node).args;
      for (Py_ssize_t k = 0, count = PyTuple_Size(args); k < count; ++k) {
        const nb::handle arg = PyTuple_GetItem(args, k);
        if (const auto number = number_of(arg)) {
          form.insert(form.end(), {kKnown, *number});
        } else if (const auto at = variables.find(arg.ptr()); at != variables.end()) {
          form.insert(form.end(), {kVariable, at->second});
        } else {
          form.insert(form.end(), {kOwn, places.at(arg.ptr())});
        }
      }
      std::vector<int32_t> own;
      if (node_of(node).value != Py_None) own_operands(op_of(node), nb::borrow(node_of(node).value), own);
      for (int32_t number : own) form.insert(form.end(), {kKnown, number});
      const auto [at, fresh] = known.try_emplace(form, static_cast<int32_t>(distinct.size()));
      if (fresh) distinct.push_back(form);
      places.emplace(node.ptr(), at->second);
      if (variable != variables.end()) of_variables[static_cast<size_t>(variable->second)] = at->second;
    }
    const auto [first, fresh] = recursions_.try_emplace(distinct, static_cast<int32_t>(length()));
    for (size_t place = 0; fresh && place < distinct.size(); ++place) {
      const Form& form = distinct[place];
      const Op op = static_cast<Op>(form[0]);
      std::vector<int32_t> operands;
      for (size_t k = 2; k < form.size(); k += 2) {
        const int32_t number = form[k + 1];
        operands.push_back(form[k] == kKnown ? number
                           : form[k] == kOwn ? first->second + number
                                             : first->second + of_variables[static_cast<size_t>(number)]);
      }
      append(op, operands, 1, hash_of(op, operands));
    }
    for (nb::handle node : nodes) {
      const int32_t number = first->second + places.at(node.ptr());
      give(node, number);
      label(node, number);
    }
  }

  bool in_doubt(int32_t number) const { return static_cast<size_t>(number) < doubted_.size() && doubted_[number]; }
  static uint64_t key(nb::handle node) { return reinterpret_cast<uintptr_t>(node.ptr()); }

  // Collects the instructions of a node's operands; returns false if some are not written yet, which are then pushed.
  bool gather(nb::handle node) {
    PyObject* const args = node_of(node).args;
    operands_.clear();
    bool missing = false;
    for (Py_ssize_t k = 0, count = PyTuple_Size(args); k < count; ++k) {
      const nb::handle arg = PyTuple_GetItem(args, k);
      uint32_t value = numbers_.find(key(arg));
      if (value == 0) value = written_leaf(arg);
      if (value == 0) {
        missing = true;
        stack_.push_back(arg);
      } else if (!missing) {
        operands_.push_back(static_cast<int32_t>(value) - 2);
      }
    }
    return !missing;
  }

  // Writes a plain node without operands; 0 if it is not such a node.
  uint32_t written_leaf(nb::handle node) {
    if (PyTuple_Size(node_of(node).args) != 0) return 0;
    const int64_t size = node_of(node).size;
    if (size == 0) return 0;
    const int32_t number = add(node, {}, size);
    give(node, number);
    return static_cast<uint32_t>(number + 2);
  }

  // The size of the node whose operands were collected, with counted repetitions expanded, at most kMostPositions.
  int64_t total(nb::handle node, Op op) const {
    if (operands_.empty()) return 1;
    int64_t copies = 1, sum = 0;
    if (op == Op::Repeat) {
      PyObject* const bounds = node_of(node).value;
      const int64_t low = integer(PyTuple_GetItem(bounds, 0)), high = integer(PyTuple_GetItem(bounds, 1));
      copies = high < 0 ? std::max<int64_t>(low, 1) : high;
    }
    for (int32_t operand : operands_) sum = std::min(sum + size_of(static_cast<size_t>(operand)), kMostPositions);
    return copies != 0 && sum > kMostPositions / copies ? kMostPositions : sum * copies;
  }

  std::vector<int32_t> operands_;  // of the node that is written
  std::map<std::vector<std::vector<int32_t>>, int32_t> recursions_;  // by their forms, the first instruction
  std::vector<bool> doubted_, is_assured_;
  StableMap numbers_;  // for each node, its instruction plus two
  std::vector<nb::handle> stack_;
  nb::dict bodies_ = nb::steal<nb::dict>(nullptr);  // not valid: calls are not followed
  nb::object states_;
  int64_t large_ = 0, most_ = 0;
  uint64_t composed_ = 0;
};

inline void bind_program_code(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<ProgramCode>(m, "ProgramCode", "The instructions of a program, one after another, and their side tables.")
      .def(nb::init<>())
      .def("copy", &ProgramCode::copy)
      .def("follow", &ProgramCode::follow, "bodies"_a, "states"_a, "large"_a, "most"_a, "composed"_a)
      .def("enter", &ProgramCode::enter, "name"_a)
      .def_ro("calls", &ProgramCode::calls)
      .def_ro("finished", &ProgramCode::finished)
      .def_ro("begun", &ProgramCode::begun)
      .def_ro("open", &ProgramCode::open)
      .def("add", &ProgramCode::add, "node"_a, "operands"_a, "size"_a = 1)
      .def("end_with", &ProgramCode::end_with, "root"_a)
      .def("assure", &ProgramCode::assure, "number"_a)
      .def("add_nodes", &ProgramCode::add_nodes, "nodes"_a, "rules"_a, "assured_ids"_a)
      .def("number_of", &ProgramCode::number_of, "node"_a)
      .def("instruction", &ProgramCode::instruction, "node"_a)
      .def("give", &ProgramCode::give, "node"_a, "number"_a)
      .def("push", &ProgramCode::push, "node"_a.none())
      .def("pop", &ProgramCode::pop)
      .def("doubt", &ProgramCode::doubt, "number"_a, "doubted"_a)
      .def("advance", &ProgramCode::advance)
      .def("operands", &ProgramCode::operands, "node"_a)
      .def("size_of", &ProgramCode::size_of, "number"_a)
      .def_prop_ro("pending", &ProgramCode::pending)
      .def_prop_ro("length", &ProgramCode::length)
      .def_prop_ro("code", &ProgramCode::code, nb::rv_policy::automatic)
      .def_prop_ro("blob", &ProgramCode::blob)
      .def_prop_ro("rows", &ProgramCode::rows, "The sets, 32 bytes each.")
      .def_ro("labels", &ProgramCode::labels)
      .def_ro("assured", &ProgramCode::assured)
      .def_prop_ro("is_token_level", &ProgramCode::is_token_level)
      .def_ro("sets", &ProgramCode::sets)
      .def_ro("token_names", &ProgramCode::token_names)
      .def_ro("machines", &ProgramCode::machines)
      .def_ro("lexicons", &ProgramCode::lexicons);
}

}  // namespace tokenfst
