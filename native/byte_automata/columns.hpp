// The columns of a byte automaton's rows: classes of bytes, then symbols, then the token boundary.
//
// Bytes that no set, machine or lexicon of the expressions distinguishes share a class. Computed once for each program.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "derivatives/byte_derivatives.hpp"

namespace tokenfst {

class Columns {
 public:
  // The columns of finished tables: `count` of them in all.
  Columns(const std::array<uint8_t, 256>& classes, uint32_t count, uint32_t symbols, uint32_t boundary)
      : classes_(classes), count_(count), first_symbol_(count), symbols_(symbols), boundary_(boundary) {}
  // The columns of an arena's expressions and of their lexicons. `boundary`: whether there is a column for token boundaries.
  Columns(const Arena& arena, const Selections& selections, uint32_t symbols, bool boundary) : symbols_(symbols) {
    std::array<uint32_t, 256> current{};
    uint32_t count = number(classes_of(arena.sets()), current);
    std::vector<uint32_t> split;
    auto refine = [&](uint32_t keys, auto key) {  // `key` returns numbers below `keys`
      split.assign(size_t{count} * keys, kNone);
      count = 0;
      for (int byte = 0; byte < 256; ++byte) {
        uint32_t& part = split[current[byte] * keys + key(byte)];
        if (part == kNone) part = count++;
        current[byte] = part;
      }
    };
    for (auto& machine : arena.machines()) refine(machine->num_classes, [&](int byte) { return uint32_t{machine->classes[byte]}; });
    for (auto& lexicon : selections.lexicons()) {
      ByteSet used;
      for (uint8_t byte : lexicon->labels()) used.add(byte);
      refine(257, [&](int byte) { return used.has(static_cast<uint8_t>(byte)) ? byte + 1u : 0u; });
    }
    byte_of_class_.assign(count, 0);
    for (int byte = 255; byte >= 0; --byte) {
      classes_[byte] = static_cast<uint8_t>(current[byte]);
      byte_of_class_[current[byte]] = static_cast<uint8_t>(byte);
    }
    one_of_each_ = arena.everything() - ByteSet::all();
    for (uint8_t byte : byte_of_class_) one_of_each_.add(byte);
    first_symbol_ = count;
    count_ = first_symbol_ + symbols;
    if (boundary) boundary_ = count_++;
  }

  uint32_t count() const { return count_; }
  const uint8_t* classes() const { return classes_.data(); }
  // The column of a byte, and that of a symbol.
  uint32_t of_byte(uint8_t byte) const { return classes_[byte]; }
  uint32_t of_symbol(uint32_t symbol) const { return first_symbol_ + symbol; }
  uint32_t num_symbols() const { return symbols_; }
  // kNone: there is none.
  uint32_t boundary() const { return boundary_; }
  bool is_byte(uint32_t column) const { return column < first_symbol_; }
  // Whether the columns were computed from expressions; false for finished tables.
  bool distinguishes_bytes() const { return !byte_of_class_.empty(); }

  // A byte of a column, or its symbol. The column must not be the boundary.
  ByteDerivatives::Letter letter(uint32_t column) const {
    return is_byte(column) ? ByteDerivatives::Letter::byte(byte_of_class_[column])
                           : ByteDerivatives::Letter::symbol(column - first_symbol_);
  }
  // Calls f(column) for each column of a set's bytes and symbols.
  template <class F>
  void each(const ByteSet& set, F&& f) const {
    const ByteSet first = set & one_of_each_;
    for (uint32_t k = 0; k < 4; ++k) {
      for (uint64_t word = first.words[k]; word; word &= word - 1) f(uint32_t{classes_[k * 64 + std::countr_zero(word)]});
    }
    for (uint64_t word = first.words[4]; word; word &= word - 1) f(first_symbol_ + std::countr_zero(word));
  }

 private:
  // The classes of bytes that no set distinguishes. Most sets have one byte, which is a class of its own. These classes are put aside
  // first, so that the other sets are intersected with few classes.
  static std::vector<ByteSet> classes_of(std::span<const ByteSet> sets) {
    ByteSet letters;
    for (const ByteSet& set : sets) {
      if (set.size() == 1 && !set.has_symbols()) letters = letters | set;
    }
    const ByteSet others = ByteSet::all() - letters;
    std::vector<ByteSet> classes(1, others);
    for (const ByteSet& set : sets) {
      if ((set & others).empty()) continue;
      for (size_t k = 0, count = classes.size(); k < count; ++k) {
        const ByteSet inside = classes[k] & set, outside = classes[k] - set;
        if (inside.empty() || outside.empty()) continue;
        classes[k] = inside;
        classes.push_back(outside);
      }
    }
    for (int byte = 0; byte < 256; ++byte) {
      if (letters.has(static_cast<uint8_t>(byte))) classes.push_back(ByteSet::single(static_cast<uint8_t>(byte)));
    }
    return classes;
  }
  // Sets for each byte the number of its class, in the order of the classes' least bytes; returns how many there are.
  static uint32_t number(const std::vector<ByteSet>& classes, std::array<uint32_t, 256>& numbers) {
    std::array<uint32_t, 256> found;
    for (uint32_t k = 0; k < classes.size(); ++k) {
      for (uint32_t word = 0; word < 4; ++word) {
        for (uint64_t left = classes[k].words[word]; left; left &= left - 1) found[word * 64 + std::countr_zero(left)] = k;
      }
    }
    std::vector<uint32_t> named(classes.size(), kNone);
    uint32_t count = 0;
    for (size_t byte = 0; byte < 256; ++byte) {
      uint32_t& name = named[found[byte]];
      if (name == kNone) name = count++;
      numbers[byte] = name;
    }
    return count;
  }

  std::array<uint8_t, 256> classes_{};
  uint32_t count_ = 0, first_symbol_ = 0, symbols_ = 0, boundary_ = kNone;
  std::vector<uint8_t> byte_of_class_;  // a byte of each class; empty for finished tables
  ByteSet one_of_each_;                 // one byte of each class, and all symbols
};

}  // namespace tokenfst
