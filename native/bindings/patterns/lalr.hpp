// The parser of notations: a loop over tables that lark makes (tokenfst.automata.notations.parsing.lalr).
//
// Tokens are matched by the patterns of `re` that the notation's lexer uses; the loop, its stacks and the choice of children are here.
// Nodes and tokens are Python's, so the trees are those of lark's parser. A text with an error is left to lark, which knows what it expected.
//
// Cost: linear in the text.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tokenfst {

namespace nb = nanobind;

class LalrTables {
 public:
  // `matches(character)`: the method `match` of the pattern of tokens that begin with a character. `ignored` and `kept`: the types of tokens
  // that are no symbols, and those that trees hold. `actions`: by state and type, the next state, or the number of a production.
  // `productions`: the number of parts, what is made, the parts that are kept, each with whether it stands for its own children, the label
  // of the node (None: the children belong to the node above), and whether a single child takes the place of the node. `gotos`: by state,
  // the state after what a production makes.
  LalrTables(nb::object matches, nb::object ignored, nb::object kept, nb::dict actions, nb::list productions, nb::dict gotos, int64_t start,
             int64_t end, nb::object node, nb::object token)
      : matches_(std::move(matches)), node_(std::move(node)), token_(std::move(token)), start_(0), end_(0) {
    std::unordered_map<int64_t, int32_t> states;
    for (auto [state, row] : actions) states.emplace(nb::cast<int64_t>(state), static_cast<int32_t>(states.size()));
    start_ = states.at(start), end_ = states.at(end);
    for (nb::handle name : ignored) types_.at(type_of(name)).is_ignored = true;
    for (nb::handle name : kept) types_.at(type_of(name)).is_kept = true;
    finish_ = type_of(nb::str("$END"));
    for (auto [state, row] : actions) {
      for (auto [name, action] : nb::cast<nb::dict>(row)) type_of(name);
    }
    for (nb::handle each : productions) {
      const auto parts = nb::cast<nb::tuple>(each);
      Production made;
      made.size = nb::cast<size_t>(parts[0]);
      made.name = symbol_of(parts[1]);
      for (nb::handle part : nb::cast<nb::tuple>(parts[2])) made.parts.emplace_back(nb::cast<size_t>(part[0]), nb::cast<bool>(part[1]));
      if (!parts[3].is_none()) made.label = nb::object(parts[3]);
      made.is_single = nb::cast<bool>(parts[4]);
      productions_.push_back(std::move(made));
    }
    actions_.assign(states.size() * types_.size(), kNone);
    gotos_.assign(states.size() * symbols_.size(), -1);
    for (auto [state, row] : actions) {
      int32_t* const own = actions_.data() + static_cast<size_t>(states.at(nb::cast<int64_t>(state))) * types_.size();
      for (auto [name, action] : nb::cast<nb::dict>(row)) {
        const auto [is_shift, number] = nb::cast<std::pair<bool, int64_t>>(action);
        own[type_of(name)] = is_shift ? states.at(number) : static_cast<int32_t>(-1 - number);
      }
    }
    for (auto [state, row] : gotos) {
      const size_t own = static_cast<size_t>(states.at(nb::cast<int64_t>(state))) * symbols_.size();
      for (auto [name, next] : nb::cast<nb::dict>(row)) gotos_[own + symbol_of(name)] = states.at(nb::cast<int64_t>(next));
    }
  }

  // The tree of a text; None where it has an error. `tick()` is called after each 64 tokens.
  nb::object tree(nb::str text, nb::handle tick) const {
    std::vector<int32_t> states{start_};
    std::vector<Value> values;
    const Py_ssize_t length = PyUnicode_GetLength(text.ptr());
    size_t count = 0;
    for (Py_ssize_t at = 0; at < length;) {
      const Py_ssize_t begin = at;
      const nb::object match = match_of(text, at)(text, at);
      at = nb::cast<Py_ssize_t>(match.attr(names_.end)());
      PyObject* const number = PyDict_GetItemWithError(numbers_.ptr(), nb::object(match.attr(names_.last_group)).ptr());
      if (!number && PyErr_Occurred()) throw nb::python_error();
      if (!number || at == begin) return nb::none();
      const auto type = nb::cast<size_t>(nb::handle(number));
      if (types_[type].is_ignored) continue;
      if (++count % kTicked == 0) tick();
      int32_t action;
      while ((action = action_of(states, type)) < 0) {
        if (action == kNone) return nb::none();
        reduce(productions_[static_cast<size_t>(-1 - action)], states, values);
      }
      states.push_back(action);
      Value value;
      if (types_[type].is_kept) value.one = token(text, begin, at, types_[type].name);
      values.push_back(std::move(value));
    }
    while (states.back() != end_) {
      const int32_t action = action_of(states, finish_);
      if (action >= 0 || action == kNone) return nb::none();
      reduce(productions_[static_cast<size_t>(-1 - action)], states, values);
    }
    return values.back().one;
  }

 private:
  static constexpr int32_t kNone = INT32_MIN;
  static constexpr size_t kTicked = 64;  // tokens between two looks at the time

  struct Type {
    nb::object name;
    bool is_ignored = false, is_kept = false;
  };
  struct Production {
    size_t size = 0, name = 0;
    std::vector<std::pair<size_t, bool>> parts;
    nb::object label;
    bool is_single = false;
  };
  // A token or node; or children of the node above.
  struct Value {
    nb::object one;
    std::vector<nb::object> several;
    bool is_list = false;
  };

  size_t type_of(nb::handle name) {
    if (PyObject* const known = PyDict_GetItem(numbers_.ptr(), name.ptr())) return nb::cast<size_t>(nb::handle(known));
    numbers_[name] = types_.size();
    types_.push_back(Type{.name = nb::borrow(name)});
    return types_.size() - 1;
  }
  size_t symbol_of(nb::handle name) { return symbols_.try_emplace(nb::cast<std::string>(name), symbols_.size()).first->second; }

  nb::object match_of(const nb::str& text, Py_ssize_t at) const { return matches_[nb::steal(PyUnicode_Substring(text.ptr(), at, at + 1))]; }

  int32_t action_of(const std::vector<int32_t>& states, size_t type) const {
    return actions_[static_cast<size_t>(states.back()) * types_.size() + type];
  }

  nb::object token(const nb::str& text, Py_ssize_t begin, Py_ssize_t end, const nb::object& type) const {
    nb::object made = token_(nb::steal(PyUnicode_Substring(text.ptr(), begin, end)));
    made.attr(names_.type) = type;
    made.attr(names_.start) = begin;
    return made;
  }

  // Replaces the parts of a production by what it makes.
  void reduce(const Production& own, std::vector<int32_t>& states, std::vector<Value>& values) const {
    if (!own.label.is_valid() && own.size == 1 && !own.parts.empty()) {
      states.pop_back();  // the only part takes the place
    } else {
      Value made;
      const size_t start = values.size() - own.size;
      std::vector<nb::object> children;
      for (const auto& [k, is_inlined] : own.parts) {
        Value& value = values[start + k];
        if (!is_inlined || !value.is_list) {
          children.push_back(std::move(value.one));
        } else if (children.empty()) {
          children = std::move(value.several);
        } else {
          for (nb::object& each : value.several) children.push_back(std::move(each));
        }
      }
      values.resize(start);
      states.resize(states.size() - own.size);
      if (!own.label.is_valid()) {
        made.is_list = true;
        made.several = std::move(children);
      } else if (own.is_single && children.size() == 1) {
        made.one = std::move(children[0]);
      } else {
        nb::list list;
        for (nb::object& each : children) list.append(std::move(each));
        made.one = node_(own.label, list);
      }
      values.push_back(std::move(made));
    }
    states.push_back(gotos_[static_cast<size_t>(states.back()) * symbols_.size() + own.name]);
  }

  // Names of attributes, as strings that Python compares by identity.
  struct Names {
    nb::object end = nb::steal(PyUnicode_InternFromString("end")), last_group = nb::steal(PyUnicode_InternFromString("lastgroup"));
    nb::object type = nb::steal(PyUnicode_InternFromString("type")), start = nb::steal(PyUnicode_InternFromString("start_pos"));
  };

  Names names_;
  nb::object matches_, node_, token_;
  int32_t start_, end_;
  size_t finish_ = 0;  // the type of the end of the text
  nb::dict numbers_;  // of types, by name
  std::vector<Type> types_;
  std::unordered_map<std::string, size_t> symbols_;
  std::vector<Production> productions_;
  std::vector<int32_t> actions_, gotos_;
};

inline void bind_lalr(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<LalrTables>(m, "LalrTables")
      .def(nb::init<nb::object, nb::object, nb::object, nb::dict, nb::list, nb::dict, int64_t, int64_t, nb::object, nb::object>(),
           "matches"_a, "ignored"_a, "kept"_a, "actions"_a, "productions"_a, "gotos"_a, "start"_a, "end"_a, "node"_a, "token"_a)
      .def("tree", &LalrTables::tree, "text"_a, "tick"_a);
}

}  // namespace tokenfst
