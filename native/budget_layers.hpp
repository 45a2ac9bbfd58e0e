// Masks under a token budget, made ahead of time. With n tokens left a state admits the tokens after which acceptance is at
// most n - 1 tokens away, the end tokens where it accepts: as n grows, nested sets, which change only where n - 1 is the
// distance after some token. So each state has a short list of (least distance, mask), ascending, the last of which is its
// whole mask; the mask for n is the last whose distance is at most n - 1, and nothing where there is none.
//
// Found by one walk of the vocabulary for each state whose tokens do not all lead equally far; the bound `worst` says for
// most states that they do. Masks are interned as everywhere (masks.hpp) and numbered on from the automaton's own.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "artifact.hpp"

namespace tokenfst {

struct BudgetLayers {
  std::vector<uint32_t> offsets;  // states + 1
  std::vector<uint32_t> layers;   // layers x (distance, mask)
  std::vector<uint32_t> mask_row, flip_offsets, flips, rows;
};

// Of a finished automaton without stacks. O(states x walk) at worst.
inline BudgetLayers budget_layers(TokenAutomaton& automaton, const Budget& budget) {
  const MaskPool& own = automaton.masks();
  MaskPool pool(own.vocab_size());
  for (uint32_t r = 1; r <= own.num_rows(); ++r) pool.adopt_row(own.row(r));
  for (MaskId id = 1; id < own.size(); ++id) pool.adopt(own[id].base_index, own[id].flips, own[id].num_flips);

  BudgetLayers out;
  Deadline deadline(budget.seconds);
  Stacks stacks;
  std::vector<uint32_t> row(pool.words()), list;
  std::map<uint32_t, std::vector<uint32_t>> reached;  // tokens by the distance behind them
  const size_t states = automaton.bytes().num_states();
  for (State q = 0; q < states; ++q) {
    out.offsets.push_back(static_cast<uint32_t>(out.layers.size() / 2));
    const uint32_t distance = q == kDead ? kUnreachable : automaton.distance({q}, stacks);
    if (distance == kUnreachable) continue;
    if (deadline.expired()) throw BudgetExceeded("seconds", budget.seconds, "masks under token budgets");
    if (pool.memory() > budget.bytes) throw BudgetExceeded("bytes", static_cast<double>(budget.bytes), "masks under token budgets");
    const MaskId whole = automaton.mask({q}, stacks);
    const uint32_t least = distance == 0 ? 0 : distance - 1;
    if (automaton.worst({q}, stacks) <= least) {
      out.layers.insert(out.layers.end(), {least, whole});
      continue;
    }
    for (auto& [farthest, tokens] : reached) tokens.clear();
    std::vector<uint32_t>* last = nullptr;
    uint32_t last_distance = kUnreachable;
    for (auto& [token, target] : automaton.arcs(q)) {
      const uint32_t farthest = automaton.distance({target}, stacks);
      if (farthest != last_distance) last = &reached[last_distance = farthest];
      last->push_back(token);
    }
    if (automaton.accepting({q})) reached[0].insert(reached[0].end(), automaton.vocabulary().eos().begin(), automaton.vocabulary().eos().end());
    std::erase_if(reached, [](auto& group) { return group.second.empty(); });
    std::ranges::fill(row, 0);
    list.clear();
    for (auto& [farthest, tokens] : reached) {
      MaskId mask = whole;
      if (farthest != reached.rbegin()->first) {
        for (uint32_t token : tokens) row[token >> 5] |= 1u << (token & 31);
        if (list.size() + tokens.size() <= MaskPool::kMaxFlips) {
          list.insert(list.end(), tokens.begin(), tokens.end());
          std::ranges::sort(list);
          mask = pool.add(0, list);
        } else {
          list.resize(MaskPool::kMaxFlips);  // sets grow: no list from here on
          mask = pool.add_dense(row.data());
        }
      }
      out.layers.insert(out.layers.end(), {farthest, mask});
    }
  }
  out.offsets.push_back(static_cast<uint32_t>(out.layers.size() / 2));
  write_masks(pool, out);
  return out;
}

}  // namespace tokenfst
