// The instructions of a program, one after another, and their side tables.
//
// Equal instructions are written once, whether or not their nodes are one object. So a program depends on the expressions,
// and not on which of their nodes the caches of the process shared (docs/decisions/042-canonical-programs.md).
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "containers/hash_index.hpp"
#include "programs/program.hpp"
#include "python/expression_node.hpp"
#include "python/numpy_arrays.hpp"
#include "support/bytes.hpp"

namespace tokenfst {

namespace nb = nanobind;

class InstructionCode {
 public:
  nb::list labels;   // pairs (instruction, text)
  nb::dict sets;     // from bits to number
  nb::dict token_names;  // from names to number
  nb::list machines, lexicons;

  size_t length() const { return sizes_.size(); }
  bool is_token_level() const { return is_token_level_; }
  nb::bytes blob() const { return nb::bytes(blob_.data(), blob_.size()); }
  nb::bytes rows() const { return nb::bytes(rows_.data(), rows_.size()); }
  auto code() const { return to_numpy(std::vector<int32_t>(code_), {code_.size()}); }
  int64_t size_of(size_t number) const { return sizes_.at(number); }

  // Adds an instruction, unless there is an equal one, and returns its number. `operands`: the operands that are nodes or
  // rules; the node's other fields follow them.
  int32_t add(nb::handle node, std::vector<int32_t> operands, int64_t size) {
    const Op op = op_of(node);
    const nb::object value = nb::borrow(node_of(node).value);
    const size_t words = blob_.size();
    if (!value.is_none()) own_operands(op, value, operands);
    const uint32_t hash = hash_of(op, operands);
    const uint32_t found = equal_.find(hash, [&](uint32_t each) { return equals(each, op, operands); });
    int32_t number = static_cast<int32_t>(found);
    if (found == HashIndex::kNothing) {
      number = append(op, operands, size, hash);
    } else {
      blob_.resize(words);
    }
    label(node, number);
    return number;
  }
  // Makes an instruction the last one of the program, which is its root.
  void end_with(int32_t root) {
    if (static_cast<size_t>(root) + 1 == length()) return;
    const std::vector<int32_t> only = {root};
    append(Op::Union, only, sizes_.at(static_cast<size_t>(root)), hash_of(Op::Union, only));
  }

 protected:
  void copy_to(InstructionCode& other) const {
    other.labels.extend(labels);
    other.sets.update(sets);
    other.token_names.update(token_names);
    other.machines.extend(machines);
    other.lexicons.extend(lexicons);
    other.code_ = code_;
    other.sizes_ = sizes_;
    other.blob_ = blob_;
    other.rows_ = rows_;
    other.tables_ = tables_;
    other.starts_ = starts_;
    for (size_t number = 0; number < length(); ++number) {
      const int32_t* const at = code_.data() + starts_[number];
      other.equal_.add(hash_of(static_cast<Op>(at[0]), {at + 2, at + 2 + at[1]}), static_cast<uint32_t>(number));
    }
    other.is_token_level_ = is_token_level_;
    other.shapes_.update(shapes_);
    other.lexicon_numbers_.update(lexicon_numbers_);
    for (nb::handle label : labelled_) other.labelled_.add(label);
  }

  static PyObject* item(const nb::dict& dict, nb::handle key) {
    PyObject* const found = PyDict_GetItemWithError(dict.ptr(), key.ptr());
    if (!found && PyErr_Occurred()) throw nb::python_error();
    return found;
  }
  static int64_t integer(nb::handle value) {
    const int64_t found = PyLong_AsLongLong(value.ptr());
    if (found == -1 && PyErr_Occurred()) throw nb::python_error();
    return found;
  }
  // A number of a node as an operand, which has 32 bits: a greater one would become another number.
  static int32_t operand(nb::handle value) {
    const int64_t found = integer(value);
    if (found < INT32_MIN || found > INT32_MAX) {
      throw Error(Fault::Constraint, "an expression counts to " + std::to_string(found) + "; the greatest bound is 2147483647");
    }
    return static_cast<int32_t>(found);
  }
  static Op op_of(nb::handle node) { return static_cast<Op>(node_of(node).code); }

  // A hash of an instruction. For a literal, whose operands are a place in `blob_` and a length, it is that of the text.
  uint32_t hash_of(Op op, const std::vector<int32_t>& operands) const {
    uint64_t hash = mix(static_cast<uint64_t>(op), operands.size());
    if (op == Op::Literal) {
      hash = mix(hash, std::hash<std::string_view>{}(text_of(operands.data())));
    } else {
      for (int32_t operand : operands) hash = mix(hash, static_cast<uint32_t>(operand));
    }
    return static_cast<uint32_t>(hash ^ hash >> 32);
  }
  bool equals(uint32_t number, Op op, const std::vector<int32_t>& operands) const {
    const int32_t* const at = code_.data() + starts_[number];
    if (static_cast<Op>(at[0]) != op || static_cast<size_t>(at[1]) != operands.size()) return false;
    if (op == Op::Literal) return text_of(at + 2) == text_of(operands.data());
    return std::equal(operands.begin(), operands.end(), at + 2);
  }
  std::string_view text_of(const int32_t* operands) const {
    return std::string_view(blob_).substr(static_cast<size_t>(operands[0]), static_cast<size_t>(operands[1]));
  }
  int32_t append(Op op, const std::vector<int32_t>& operands, int64_t size, uint32_t hash) {
    const int32_t number = static_cast<int32_t>(length());
    is_token_level_ |= op == Op::OneToken || op == Op::Tokens || op == Op::FewTokens;
    starts_.push_back(code_.size());
    code_.push_back(static_cast<int32_t>(op));
    code_.push_back(static_cast<int32_t>(operands.size()));
    code_.insert(code_.end(), operands.begin(), operands.end());
    sizes_.push_back(size);
    equal_.add(hash, static_cast<uint32_t>(number));
    return number;
  }
  void label(nb::handle node, int32_t number) {
    const nb::object source = nb::borrow(node_of(node).source);
    if (source.is_none()) return;
    const nb::tuple made = nb::make_tuple(number, source);
    if (labelled_.contains(made)) return;
    labelled_.add(made);
    labels.append(made);
  }

  // Appends the operands that are no nodes, and what they refer to.
  void own_operands(Op op, const nb::object& value, std::vector<int32_t>& operands) {
    switch (op) {
      case Op::Literal: {
        const nb::bytes text = nb::cast<nb::bytes>(value);
        operands.push_back(static_cast<int32_t>(blob_.size()));
        operands.push_back(static_cast<int32_t>(text.size()));
        blob_.append(text.c_str(), text.size());
        return;
      }
      case Op::Bytes: {
        const size_t known = sets.size();
        numbered(value, sets, operands);
        if (sets.size() != known) rows_ += row_of(value);
        return;
      }
      case Op::Tokens: return numbered(value, token_names, operands);
      case Op::Machine:
      case Op::Words: return table(op, value, operands);
      case Op::Call: return;
      case Op::Unordered: return fields(value, {"low", "high", "required", "repeats"}, operands);
      case Op::Fresh: return fields(value, {"few_endings", "fewest", "few_bytes", "many_bytes", "values"}, operands);
      default:
        for (nb::handle each : value) operands.push_back(operand(each));
    }
  }

 private:
  static void fields(const nb::object& value, std::initializer_list<const char*> names, std::vector<int32_t>& operands) {
    for (const char* name : names) operands.push_back(operand(value.attr(name)));
  }
  void numbered(const nb::object& value, nb::dict& known, std::vector<int32_t>& operands) {
    const nb::object index =
        nb::steal(PyObject_CallMethod(known.ptr(), "setdefault", "On", value.ptr(), static_cast<Py_ssize_t>(known.size())));
    if (!index.is_valid()) throw nb::python_error();
    operands.push_back(static_cast<int32_t>(integer(index)));
  }
  // The bits of a set as 32 bytes.
  static std::string row_of(const nb::object& bits) {
    const auto row = nb::cast<nb::bytes>(bits.attr("to_bytes")(32, "little"));
    return {row.c_str(), row.size()};
  }
  // Appends the number of a machine or a lexicon in its side table; equal ones have one number.
  void table(Op op, const nb::object& value, std::vector<int32_t>& operands) {
    auto at = tables_.find(value.ptr());
    if (at == tables_.end()) at = tables_.emplace(value.ptr(), op == Op::Machine ? machine(value) : lexicon(value)).first;
    operands.push_back(at->second);
  }
  int32_t machine(const nb::object& value) {
    const nb::object shape = value.attr("shape");
    PyObject* const alike = item(shapes_, shape);  // a tuple of places
    nb::object places = alike ? nb::borrow(alike) : nb::steal(PyTuple_New(0));
    for (nb::handle place : nb::borrow<nb::tuple>(places)) {
      if (nb::cast<bool>(value.attr("equals")(machines[static_cast<size_t>(integer(place))]))) return static_cast<int32_t>(integer(place));
    }
    const auto number = static_cast<int32_t>(machines.size());
    shapes_[shape] = places + nb::make_tuple(number);
    machines.append(value);
    return number;
  }
  int32_t lexicon(const nb::object& value) {
    std::vector<int32_t> number;
    numbered(nb::tuple(value.attr("words")()), lexicon_numbers_, number);
    if (lexicon_numbers_.size() != lexicons.size()) lexicons.append(value);
    return number.front();
  }

  std::vector<int32_t> code_;
  std::vector<size_t> starts_;  // for each instruction, its place in `code_`
  std::vector<int64_t> sizes_;  // for each instruction, its positions with counted repetitions expanded
  std::string blob_, rows_;     // words; sets, 32 bytes each
  bool is_token_level_ = false;
  HashIndex equal_;                                // the instructions by `hash_of`
  std::unordered_map<PyObject*, int32_t> tables_;  // the places of machines and sets of words
  nb::dict shapes_, lexicon_numbers_;              // the places of machines by their shapes; of sets by their words
  nb::set labelled_;                               // the items of `labels`
};

}  // namespace tokenfst
