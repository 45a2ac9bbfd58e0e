// Push-down automata in device tables, for tensors in host memory (their content: decoding/device/tables/stacks.py; the
// specification is decoding/device/kernels/plain_stacks.py, and results are equal bit for bit).
//
// A row of a batch is a state, a depth and that many symbols, the top last, followed by zeros. A depth of -1 means that
// the stack exceeded its capacity; such a row is dead, and stays so. The content of a row is range-checked before it
// indexes anything: a state, a depth or a symbol out of range makes the row dead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/kernels.hpp"

namespace tokenfst {

// The tables, borrowed like those of states.
struct DeviceStacks {
  static constexpr int32_t kState = 0, kDepth = 1, kSymbols = 2, kOverflown = -1;

  struct Control {
    int32_t ask, leaf, closed, frames;
  };
  struct Action {
    int32_t place, keeps, pushes_begin, pushes_end, look;
  };
  struct Push {
    int32_t frame, chain;
  };
  struct Slot {
    int32_t owner, value;
  };

  DeviceTables tables;
  const Control* controls;
  const Action* actions;
  const Push* pushes;
  const Slot* comb;
  const int32_t* frames;
  int32_t num_states, num_slots, num_frames, capacity;  // num_states includes control states

  size_t width() const { return static_cast<size_t>(capacity) + kSymbols; }

  // Writes the row after a token; all rows have width() numbers. O(bytes of the token, and width()).
  void advance(const int32_t* from, int64_t token, int32_t* to) const {
    std::copy_n(from, width(), to);
    if (is_known(from)) std::fill(to + kSymbols + from[kDepth], to + width(), 0);
    if (to[kDepth] == kOverflown) return clear(to, DeviceTables::kDead, kOverflown);
    if (to[kState] == DeviceTables::kEnded) return clear(to, DeviceTables::kEnded, 0);
    int32_t reached = DeviceTables::kDead;
    if (is_known(from) && token >= 0 && token < tables.vocab_size) reached = walked(to, token);
    if (reached <= DeviceTables::kEnded) return clear(to, reached, to[kDepth] == kOverflown ? kOverflown : 0);
    to[kState] = reached;
  }

  // The state whose mask a row has, found by the stack symbols that must be inspected, and `below`, the number of
  // symbols below those.
  int32_t resting(const int32_t* row, int32_t& below) const {
    below = 0;
    if (!is_known(row)) return row[kState] == DeviceTables::kEnded ? DeviceTables::kEnded : DeviceTables::kDead;
    below = row[kDepth];
    int32_t at = controls[row[kState]].leaf;
    for (int32_t ask = controls[row[kState]].ask; ask > 0; ask = std::max(-at, 0)) {
      if (below == 0) return DeviceTables::kDead;
      --below;
      at = find(ask, 2 * int64_t{row[kSymbols + below]} + (below > 0));
    }
    return at;
  }
  // The sum of the distances of the lowest `symbols` symbols of a row: so many tokens complete them. INT32_MAX if it is greater.
  int32_t length(const int32_t* row, int32_t symbols) const {
    int64_t sum = 0;
    const int32_t offset = symbols > 0 ? controls[row[kState]].frames : 0;
    for (int32_t i = 0; i < symbols; ++i) {
      const int64_t frame = int64_t{row[kSymbols + i]} + offset;
      sum += frame >= 0 && frame < num_frames ? frames[frame] : kFar;
    }
    return static_cast<int32_t>(std::min(sum, int64_t{kFar}));
  }

 private:
  static constexpr int32_t kFar = INT32_MAX;

  bool is_known(const int32_t* row) const {
    return row[kState] > DeviceTables::kEnded && row[kState] < num_states && row[kDepth] >= 0 && row[kDepth] <= capacity;
  }
  void clear(int32_t* row, int32_t state, int32_t depth) const {
    std::fill_n(row, width(), 0);
    row[kState] = state;
    row[kDepth] = depth;
  }
  // The value that an owner of slots keeps for an answer; 0: none.
  int32_t find(int32_t owner, int64_t answer) const {
    const int64_t at = owner + answer;
    return at >= 0 && at < num_slots && comb[at].owner == owner ? comb[at].value : 0;
  }

  int32_t walked(int32_t* row, int64_t token) const {
    const DeviceTables::StateRecord& from = tables.states[row[kState]];
    const DeviceTables::TokenRecord& text = tables.tokens[token];
    if (text.length < 0) return from.flags & DeviceTables::kAccepting ? DeviceTables::kEnded : DeviceTables::kDead;
    const bool first = from.flags & DeviceTables::kFirst;
    const int32_t begin = first ? text.first_begin : text.begin, length = first ? text.first_length : text.length;
    if (length == 0) return text.length > 0 ? from.after_empty : DeviceTables::kDead;
    const uint8_t* const class_of = tables.classes + from.classes;
    int32_t at = from.row;
    for (const uint8_t *byte = tables.bytes + begin, *end = byte + length; byte != end && at != 0; ++byte) {
      at = tables.table[at + 1 + class_of[*byte]];
      while (at < 0) at = act(-at, row);
    }
    return tables.table[at];
  }
  // Applies an action to the stack. Returns the place in the table that it leads to; or, if its state inspects the stack,
  // the negated number of the action for the symbol on top, which is popped. 0: dead.
  int32_t act(int32_t number, int32_t* row) const {
    const Action& action = actions[number];
    int32_t& depth = row[kDepth];
    int32_t* const symbols = row + kSymbols;
    if (!action.keeps) {
      std::fill_n(symbols, depth, 0);
      depth = 0;
    }
    for (int32_t k = action.pushes_begin; k < action.pushes_end; ++k) {
      if (pushes[k].chain > 0 && depth > 0) {
        const int32_t both = find(pushes[k].chain, symbols[depth - 1]);
        if (both == 0) return 0;
        symbols[depth - 1] = both - 1;
      } else if (depth == capacity) {
        depth = kOverflown;
        return 0;
      } else {
        symbols[depth++] = pushes[k].frame;
      }
    }
    if (action.look == 0) return action.place;
    if (depth == 0) return 0;
    --depth;
    const int32_t top = symbols[depth];
    symbols[depth] = 0;
    return -find(action.look, 2 * int64_t{top} + (depth > 0));
  }
};

}  // namespace tokenfst
