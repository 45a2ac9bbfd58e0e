// A finite set of words as an expression: the prefix tree of a schema's enumeration, in which a derivative visits the
// branches of one node only.
//
// The sorted words are processed in order. The words so far have one open node for each length at which the current word has
// diverged from others; all nodes beyond the common prefix with the next word are finished. Branches are only made between
// characters of UTF-8. Linear in the sorted words; without recursion, however many words are prefixes of each other.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "python/expression_node.hpp"

namespace tokenfst {

class WordTree {
 public:
  // The expression of these words, which must be sorted and distinct.
  static nb::object of(const std::vector<std::string_view>& words) {
    WordTree tree;
    for (size_t k = 0; k < words.size(); ++k) tree.add(words[k], k + 1 < words.size() ? words[k + 1] : std::string_view());
    return any_of(tree.open_[0].branches);
  }

 private:
  struct Open {
    size_t depth;
    std::vector<nb::object> branches;
  };

  // Adds a word; `next` is the word that follows it.
  void add(std::string_view word, std::string_view next) {
    const size_t shared = shared_by(word, next);
    nb::object branch = nb::borrow(expression_nodes::epsilon);
    size_t end = word.size();
    for (; open_.back().depth > shared; open_.pop_back()) {
      Open& last = open_.back();
      last.branches.push_back(after(word.substr(last.depth, end - last.depth), branch));
      branch = any_of(last.branches);
      end = last.depth;
    }
    if (open_.back().depth < shared) open_.push_back({shared, {}});
    open_.back().branches.push_back(after(word.substr(shared, end - shared), branch));
  }

  static size_t shared_by(std::string_view word, std::string_view next) {
    const auto [at, other] = std::ranges::mismatch(word, next);
    size_t shared = static_cast<size_t>(at - word.begin());
    const auto inside = [&](std::string_view each) { return shared < each.size() && (each[shared] & 0xC0) == 0x80; };
    while (shared > 0 && (inside(word) || inside(next))) --shared;
    return shared;
  }

  // `letters`, followed by `branch`.
  static nb::object after(std::string_view letters, const nb::object& branch) {
    const nb::bytes text(letters.data(), letters.size());
    const nb::object word = checked(expression_nodes::literal(nullptr, text.ptr()));
    PyObject* const parts[] = {word.ptr(), branch.ptr()};
    return checked(expression_nodes::concat(nullptr, parts, 2));
  }
  static nb::object any_of(const std::vector<nb::object>& branches) {
    std::vector<PyObject*> parts;
    parts.reserve(branches.size());
    for (const nb::object& branch : branches) parts.push_back(branch.ptr());
    return checked(expression_nodes::union_of(nullptr, parts.data(), static_cast<Py_ssize_t>(parts.size())));
  }
  static nb::object checked(PyObject* made) {
    if (!made) throw nb::python_error();
    return nb::steal(made);
  }

  std::vector<Open> open_ = {{0, {}}};
};

inline void bind_word_tree(nb::module_& m) {
  using namespace nb::literals;
  m.def(
      "word_tree",
      [](nb::list given) {
        std::vector<std::string_view> words;
        for (nb::handle each : given) {
          if (!PyBytes_Check(each.ptr())) throw nb::type_error("words must be bytes");
          const auto word = nb::borrow<nb::bytes>(each);  // the list holds the object
          words.emplace_back(word.c_str(), word.size());
        }
        std::ranges::sort(words);
        const auto repeated = std::ranges::unique(words);
        words.erase(repeated.begin(), repeated.end());
        return WordTree::of(words);
      },
      "words"_a);
}

}  // namespace tokenfst
