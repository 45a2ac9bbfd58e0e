// Words of an expression that few tokens spell: at most n tokens contain a byte of the word.
//
// A token contains a byte of the word if it lies in it, begins before it, or ends after it. So only boundaries strictly
// inside the word count: Few{n} is the rest if no byte of the current token belongs to the word, FewInside{n} if one
// does. A byte leads to FewInside{n}, and a boundary from there to Few{n - 1}. Few{0} has the empty word, or no word. In a
// grammar that needs a stack, whether tokens can end the word in time would depend on the whole stack. There a boundary
// is passed only if at least as many tokens are left as the shortest rest of the word has bytes, each of which is a
// token: then no text leads to a dead end, and no search is needed. In other languages, a search over tokens decides
// exactly which texts lead on.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "expressions/arena.hpp"
#include "derivatives/moves.hpp"

namespace tokenfst {

// The lengths of shortest words of expressions without calls, computed on demand by breadth-first search.
class ShortestWords {
 public:
  // Whether `id` has a word of at most `most` bytes. `moves(id)` returns the moves of a closed expression. O(moves of the expressions
  // that fewer than `most` bytes lead to); results are cached.
  template <class Moves>
  bool within(Arena& arena, NodeId id, uint32_t most, Moves&& moves) {
    if (arena[id].nullable) return true;
    Known& known = known_[id];
    if (known.found) return known.length <= most;
    if (known.length > most) return false;
    std::vector<NodeId> now{id}, next;
    std::unordered_set<NodeId> seen{id};
    for (uint32_t length = 1; length <= most && !now.empty(); ++length) {
      next.clear();
      for (const NodeId at : now) {
        arena.tick();
        for (const Move& move : moves(at)) {
          if (move.target == kEmpty || !seen.insert(move.target).second) continue;
          if (arena[move.target].nullable) {
            known_[id] = {length, true};
            return true;
          }
          next.push_back(move.target);
        }
      }
      std::swap(now, next);
    }
    known_[id] = {most + 1, false};
    return false;
  }
  size_t memory() const { return 32 * known_.size(); }

 private:
  struct Known {
    uint32_t length = 0;  // the length of the shortest word, if it was found; otherwise a lower bound
    bool found = false;
  };
  std::unordered_map<NodeId, Known> known_;
};

}  // namespace tokenfst
