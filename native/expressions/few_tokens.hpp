// Words of an expression that are cut into few tokens: at most so many tokens have a byte of the word.
//
// A token has a byte of the word if it lies in it, or begins before it, or ends behind it. So what counts are the boundaries
// strictly inside of the word: Few{n} is what is left where no byte of the current token belongs to the word, FewInside{n} where
// one does. A byte leads to FewInside{n}, a boundary from there to Few{n - 1}; Few{0} has the empty word or none.
// In a grammar that needs a stack, whether tokens end a text in time would be a question about the whole stack. There a boundary
// is only passed where so many tokens are left as the shortest rest of the word has bytes, each of which is a token: then no text
// comes to a dead end, and no search is needed. Elsewhere the search for tokens finds what exactly is left.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "expressions/arena.hpp"
#include "expressions/moves.hpp"

namespace tokenfst {

// How long the shortest words of expressions without calls are, as far as that was asked: by breadth.
class ShortestWords {
 public:
  // Whether `id` has a word of at most `most` bytes. `moves(id)` are those of a closed expression.
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
    uint32_t length = 0;  // of the shortest word, if it was found; else no word is shorter
    bool found = false;
  };
  std::unordered_map<NodeId, Known> known_;
};

}  // namespace tokenfst
