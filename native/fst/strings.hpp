// Strings of labels as numbers: equal strings have equal numbers. A string is its first label and the number of the
// rest, so first(), rest(), length() and prepending a label cost O(1), and all else the number of labels that are read.
#pragma once

#include <vector>

#include "containers/hash_index.hpp"
#include "fst/machine.hpp"

namespace tokenfst::fst {

class Strings {
 public:
  static constexpr Id kEmpty = 0;
  Strings() { nodes_.push_back({0, kEmpty, 0}); }

  // The string of `label` and then `rest`; the label may be 0.
  Id cons(Id label, Id rest) {
    const uint64_t key = static_cast<uint64_t>(label) << 32 | static_cast<uint32_t>(rest);
    const uint32_t hash = static_cast<uint32_t>((key * 0x9E3779B97F4A7C15ull) >> 32);
    const uint32_t found = index_.find(hash, [&](uint32_t at) { return nodes_[at].label == label && nodes_[at].rest == rest; });
    if (found != HashIndex::kNothing) return static_cast<Id>(found);
    nodes_.push_back({label, rest, nodes_[rest].length + 1});
    index_.add(hash, static_cast<uint32_t>(nodes_.size() - 1));
    return static_cast<Id>(nodes_.size() - 1);
  }
  // The string of one label; the empty string for epsilon.
  Id of(Id label) { return label == 0 ? kEmpty : cons(label, kEmpty); }
  // The same, but epsilon adds nothing.
  Id before(Id label, Id rest) { return label == 0 ? rest : cons(label, rest); }
  Id first(Id s) const { return nodes_[s].label; }
  Id rest(Id s) const { return nodes_[s].rest; }
  uint32_t length(Id s) const { return nodes_[s].length; }
  // The string without its first `count` labels; it must have as many.
  Id drop(Id s, uint32_t count) const {
    while (count--) s = nodes_[s].rest;
    return s;
  }
  Id concat(Id a, Id b) {
    if (a == kEmpty) return b;
    if (b == kEmpty) return a;
    return onto(a, length(a), b);
  }
  // The longest common prefix.
  Id common(Id a, Id b) {
    if (a == b) return a;
    uint32_t shared = 0;
    for (Id x = a, y = b; x != kEmpty && y != kEmpty && first(x) == first(y); x = rest(x), y = rest(y)) ++shared;
    return shared == length(a) ? a : onto(a, shared, kEmpty);
  }
  uint64_t memory() const { return nodes_.capacity() * sizeof(Node) + index_.memory(); }

 private:
  struct Node {
    Id label, rest;
    uint32_t length;
  };
  // The first `count` labels of `a`, followed by `b`.
  Id onto(Id a, uint32_t count, Id b) {
    buffer_.clear();
    for (; count--; a = rest(a)) buffer_.push_back(first(a));
    while (!buffer_.empty()) {
      b = cons(buffer_.back(), b);
      buffer_.pop_back();
    }
    return b;
  }

  std::vector<Node> nodes_;
  HashIndex index_;
  std::vector<Id> buffer_;
};

}  // namespace tokenfst::fst
