// The parser of notations: a loop over tables that lark makes (tokenfst.automata.notations.parsing.lalr).
//
// Tokens are matched by the patterns of `re` that the notation's lexer uses, or by automata if the patterns are plain
// (`first_match.hpp`). The loop, its stacks and the choice of children are here. The trees are those of lark's parser. A text
// with an error is left to lark, whose message says what it expected.
//
// Cost: linear in the text.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/patterns/first_match.hpp"
#include "bindings/patterns/python_pattern.hpp"
#include "bindings/patterns/syntax_trees.hpp"

namespace tokenfst {

namespace nb = nanobind;

class LalrTables {
 public:
  //   matches      for each character, the method `match` of the pattern of all tokens that may begin with it
  //   ignored      the types of tokens that the parser does not see, such as white space
  //   kept         the types of tokens that are leaves of trees
  //   actions      by state and type: (True, next state), or (False, number of a production)
  //   productions  tuples: the number of parts; the symbol that is made; the parts that are kept, as pairs (index, whether it is
  //                replaced by its children); the kind of the node (None: the children become children of the node above); whether
  //                a single child replaces the node
  //   gotos        by state and symbol: the state after the symbol was made
  //   start, end   the first state, and the state after a whole text
  //   classes      of nodes, of nodes of the kind `late`, and of tokens
  //   late         a kind of nodes (SyntaxNodes::Names), or None
  //   patterns     by type: its PlainPattern, if it is plain
  //   firsts       for each ASCII character, the types of tokens that may begin with it, in the order in which they are tried
  LalrTables(nb::object matches, nb::object ignored, nb::object kept, nb::dict actions, nb::list productions, nb::dict gotos, int64_t start,
             int64_t end, nb::tuple classes, nb::object late, nb::dict patterns, nb::list firsts)
      : matches_(std::move(matches)), start_(0), end_(0) {
    names_->node = classes[0], names_->late = classes[1], names_->token = classes[2];
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
      if (!parts[3].is_none()) made.kind = kind_of(parts[3]);
      if (late.equal(parts[3])) names_->late_kind = made.kind;
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
    find_matches(patterns, firsts);
    for (const Type& each : types_) names_->types.push_back(each.name);
  }

  // The tree of a text; None if the text has an error. `tick()` is called after each 64 tokens, and may raise.
  nb::object tree(nb::str text, nb::handle tick) const {
    const auto made = std::make_shared<SyntaxNodes>(names_, text);
    std::vector<int32_t> states{start_};
    std::vector<Value> values;
    const Py_ssize_t length = PyUnicode_GetLength(text.ptr());
    if (length >= INT32_MAX) return nb::none();
    size_t count = 0;
    for (Py_ssize_t at = 0; at < length;) {
      const Py_ssize_t begin = at;
      const int32_t found = next_token(text, at, length);
      if (found < 0 || at == begin) return nb::none();
      const auto type = static_cast<size_t>(found);
      if (types_[type].is_ignored) continue;
      if (++count % kTicked == 0) tick();
      int32_t action;
      while ((action = action_of(states, type)) < 0) {
        if (action == kNone) return nb::none();
        reduce(productions_[static_cast<size_t>(-1 - action)], states, values, *made);
      }
      states.push_back(action);
      values.push_back({types_[type].is_kept ? made->add_token(type, begin, at, begin) : 0});
    }
    while (states.back() != end_) {
      const int32_t action = action_of(states, finish_);
      if (action >= 0 || action == kNone) return nb::none();
      reduce(productions_[static_cast<size_t>(-1 - action)], states, values, *made);
    }
    return SyntaxTree(made, values.back().one).tree(true, tick);
  }

 private:
  static constexpr int32_t kNone = INT32_MIN;
  static constexpr size_t kTicked = 64;  // tokens between two calls of tick()

  struct Type {
    nb::object name;
    bool is_ignored = false, is_kept = false;
    std::shared_ptr<const FirstMatch> match = nullptr;
  };
  struct Production {
    size_t size = 0, name = 0;
    std::vector<std::pair<size_t, bool>> parts;
    int32_t kind = kNone;  // of the node; none: the children belong to the node above
    bool is_single = false;
  };
  // A value on the parser's stack: a token or node, or a list of children for the node above.
  struct Value {
    uint32_t one = 0;
    bool is_list = false;
    std::vector<uint32_t> several = {};
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

  int32_t kind_of(nb::handle name) {
    std::vector<nb::object>& kinds = names_->kinds;
    const auto known = std::ranges::find_if(kinds, [&](const nb::object& each) { return each.equal(name); });
    const auto at = static_cast<int32_t>(known - kinds.begin());
    if (known == kinds.end()) kinds.push_back(nb::borrow(name));
    return at;
  }

  void find_matches(const nb::dict& patterns, const nb::list& firsts) {
    for (auto [name, pattern] : patterns) {
      if (std::optional<FirstMatch> made = nb::cast<const PythonPattern&>(pattern).first_match()) {
        types_[type_of(name)].match = std::make_shared<const FirstMatch>(std::move(*made));
      }
    }
    for (size_t k = 0; k < firsts_.size(); ++k) {
      for (nb::handle name : nb::cast<nb::list>(firsts[k])) {
        firsts_[k].types.push_back(static_cast<int32_t>(type_of(name)));
        firsts_[k].is_plain = firsts_[k].is_plain && types_[static_cast<size_t>(firsts_[k].types.back())].match;
      }
    }
  }

  // Returns the type of the token that begins at `at`, and sets `at` to its end; -1: there is none.
  int32_t next_token(const nb::str& text, Py_ssize_t& at, Py_ssize_t length) const {
    const Py_UCS4 first = PyUnicode_ReadChar(text.ptr(), at);
    if (first < firsts_.size() && firsts_[first].is_plain) {
      for (const int32_t type : firsts_[first].types) {
        const Py_ssize_t end = types_[static_cast<size_t>(type)].match->end(text.ptr(), at, length);
        if (end < 0) continue;
        at = end;
        return type;
      }
      return -1;
    }
    const nb::object match = match_of(text, at)(text, at);
    at = nb::cast<Py_ssize_t>(match.attr(names_of_match_.end)());
    PyObject* const number = PyDict_GetItemWithError(numbers_.ptr(), nb::object(match.attr(names_of_match_.last_group)).ptr());
    if (!number && PyErr_Occurred()) throw nb::python_error();
    return number ? nb::cast<int32_t>(nb::handle(number)) : -1;
  }

  // Replaces the parts of a production on the stacks by the value that it makes.
  void reduce(const Production& own, std::vector<int32_t>& states, std::vector<Value>& values, SyntaxNodes& nodes) const {
    if (own.kind == kNone && own.size == 1 && !own.parts.empty()) {
      states.pop_back();  // the only part takes the place
    } else {
      const size_t start = values.size() - own.size;
      std::vector<uint32_t> children;
      for (const auto& [k, is_inlined] : own.parts) {
        Value& value = values[start + k];
        if (!is_inlined || !value.is_list) {
          children.push_back(value.one);
        } else if (children.empty()) {
          children = std::move(value.several);
        } else {
          children.insert(children.end(), value.several.begin(), value.several.end());
        }
      }
      values.resize(start);
      states.resize(states.size() - own.size);
      if (own.kind == kNone) {
        values.push_back({.is_list = true, .several = std::move(children)});
      } else {
        values.push_back({own.is_single && children.size() == 1 ? children[0] : nodes.add_node(own.kind, children)});
      }
    }
    states.push_back(gotos_[static_cast<size_t>(states.back()) * symbols_.size() + own.name]);
  }

  // Names of attributes, as strings that Python compares by identity.
  struct NamesOfMatch {
    nb::object end = nb::steal(PyUnicode_InternFromString("end")), last_group = nb::steal(PyUnicode_InternFromString("lastgroup"));
  };
  struct First {
    std::vector<int32_t> types;
    bool is_plain = true;  // whether all types have automata
  };

  NamesOfMatch names_of_match_;
  std::shared_ptr<SyntaxNodes::Names> names_ = std::make_shared<SyntaxNodes::Names>();
  nb::object matches_;
  int32_t start_, end_;
  size_t finish_ = 0;  // the type of the end of the text
  nb::dict numbers_;  // of types, by name
  std::vector<Type> types_;
  std::array<First, 128> firsts_;  // by the first character
  std::unordered_map<std::string, size_t> symbols_;
  std::vector<Production> productions_;
  std::vector<int32_t> actions_, gotos_;
};

inline void bind_lalr(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<LalrTables>(m, "LalrTables")
      .def(nb::init<nb::object, nb::object, nb::object, nb::dict, nb::list, nb::dict, int64_t, int64_t, nb::tuple, nb::object, nb::dict,
                    nb::list>(),
           "matches"_a, "ignored"_a, "kept"_a, "actions"_a, "productions"_a, "gotos"_a, "start"_a, "end"_a, "classes"_a, "late"_a.none(),
           "patterns"_a, "firsts"_a)
      .def("tree", &LalrTables::tree, "text"_a, "tick"_a);
}

}  // namespace tokenfst
