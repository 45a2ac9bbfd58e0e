"""Scores of tokens in plain torch: the specification of ``triton``.

A row's state is the position of its text in a weighted automaton (``tables/weights``). The score of a token is the sum
of the weights of its bytes from there, -inf if they lead nowhere. If the state's row of scores is resident, it is read;
otherwise the vocabulary's trie is run from the state, level by level, all rows at once. DEAD and ENDED rows allow only
end tokens, with weight 0. Numbers out of range count as DEAD.

No shape depends on a value, except in ``add_``, which runs the trie only for the rows that are not resident, unless the
caller says that all are.
"""

from __future__ import annotations

from tokenfst.decoding.device.kernels.compose import Levels, Trie
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.decoding.device.tables.tables import DEAD, ENDED
from tokenfst.decoding.device.tables.weights import END, FIRST_STATE, SPECIAL, WeightTables

_NONE = float("-inf")


def scores(t: WeightTables, states: Tensor, levels: Levels) -> Tensor:
    """The scores of all tokens at each state, float32 (B, V). O(nodes of the trie) a row."""
    at = known(t, states)
    found = _run(t, at, levels.inside)
    if levels.initial is not None:
        first = _run(t, at, levels.initial)
        first = torch.where(levels.silent, 0.0, first)
        found = torch.where((at == FIRST_STATE)[:, None], first, found)
    live = (at > ENDED)[:, None]
    found = torch.where(t.kinds == SPECIAL, t.special, found)
    found = torch.where(live, found, _NONE)
    return torch.where(t.kinds == END, torch.where(live, t.finals[at][:, None], 0.0), found)


def add_(
    t: WeightTables, logits: Tensor, states: Tensor, weight: float, levels: Levels, resident: bool
) -> Tensor:
    """Add ``weight`` times the scores in place; -inf where there is none, and beyond the vocabulary. ``resident``:
    whether every state has a row.
    """
    at = known(t, states)
    slot = t.slots[at]
    if resident:
        found = t.rows[slot.clamp_min(0)]
    else:
        found = torch.empty((len(at), len(t.kinds)), dtype=torch.float32, device=at.device)
        there, missing = (slot >= 0).nonzero()[:, 0], (slot < 0).nonzero()[:, 0]
        found[there] = t.rows[slot[there]]
        found[missing] = scores(t, at[missing], levels)
    return _added(logits, found, weight)


def add_rows_(rows: Tensor, logits: Tensor, states: Tensor, weight: float) -> Tensor:
    """Add ``weight`` times ``rows[states]``, float32 (slots, V), in place, as ``add_`` does; row 0 for numbers out of
    range.
    """
    return _added(logits, rows[torch.where((states >= 0) & (states < len(rows)), states, DEAD)], weight)


def _added(logits: Tensor, scores: Tensor, weight: float) -> Tensor:
    own = logits[:, : scores.shape[1]]
    own.copy_(torch.where(scores == _NONE, _NONE, torch.add(own.float(), scores, alpha=weight)))
    logits[:, scores.shape[1] :] = _NONE
    return logits


def advance(t: WeightTables, states: Tensor, tokens: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """The states after ``tokens`` (int64, (B,)) and their scores; DEAD and -inf for a token without a score.
    ``longest``: the number of bytes of the longest token.
    """
    at = known(t, states)
    inside = (tokens >= 0) & (tokens < len(t.kinds))
    token = torch.where(inside, tokens, 0)
    kind, record = t.kinds[token], t.tokens[token]
    first = at == FIRST_STATE
    begin = torch.where(first, record[:, 2], record[:, 0])
    length = torch.where(kind == 0, torch.where(first, record[:, 3], record[:, 1]), 0)
    state, total = at, torch.zeros(len(at), dtype=torch.float32, device=at.device)
    for place in range(longest):
        reads = place < length
        byte = t.bytes[torch.where(reads, begin + place, 0)].long()
        entry = t.classes[byte]
        reached, weight = _step(t, state, entry)
        total = torch.where(reads, total + weight, total)
        state = torch.where(reads, reached, state)
    if not t.absorbs:
        state = torch.where(first & (length == 0) & (kind == 0), t.start, state)
    state = torch.where(kind == SPECIAL, at if t.special > _NONE else DEAD, state)
    total = torch.where(kind == SPECIAL, t.special, total)
    final = t.finals[at]
    state = torch.where(kind == END, torch.where(final > _NONE, ENDED, DEAD), state)
    total = torch.where(kind == END, final, total)
    state = torch.where(inside & (at > ENDED), state, torch.where(at == ENDED, ENDED, DEAD))
    total = torch.where(state == DEAD, _NONE, torch.where(at == ENDED, 0.0, total))
    return state.int(), total


def known(t: WeightTables, states: Tensor) -> Tensor:
    """The states that are in range, int32; DEAD for others."""
    return torch.where((states >= 0) & (states < len(t.finals)), states, DEAD)


def _run(t: WeightTables, at: Tensor, trie: Trie) -> Tensor:
    """The sum of each token's weights, -inf where its bytes lead nowhere or it has none."""
    state = at[:, None]
    total = torch.zeros(state.shape, dtype=torch.float32, device=at.device)
    states, totals = [state], [total]
    for parents, byte in trie.levels:
        state, total = state[:, parents], total[:, parents]
        entry = t.classes[byte].expand(len(at), -1)
        state, weight = _step(t, state, entry)
        total = total + weight
        states.append(state)
        totals.append(total)
    ends = trie.ends
    reached = torch.cat(states, 1)[:, ends]
    return torch.where((reached != DEAD) & (ends > 0), torch.cat(totals, 1)[:, ends], _NONE)


def _step(t: WeightTables, state: Tensor, entry: Tensor) -> tuple[Tensor, Tensor]:
    """The next states by classes of bytes, DEAD if there is none, and their weights."""
    if not t.chain:
        return t.table[state, entry], t.weights[state, entry]
    word, bit = entry >> 5, entry & 31
    cost = torch.zeros(state.shape, dtype=torch.float32, device=state.device)
    place = torch.full_like(entry, -1)
    for _ in range(t.chain):
        bits = t.bits[state, word]
        here = (place < 0) & ((bits >> bit & 1) != 0)
        place = torch.where(
            here, t.first[state, word] + ones(bits & ~(torch.full_like(bit, -1) << bit)), place
        )
        cost = torch.where(place < 0, cost + t.costs[state], cost)
        state = torch.where(place < 0, t.failures[state], state)
    arc = place.clamp_min(0)
    return torch.where(place < 0, DEAD, t.table[arc]), torch.where(place < 0, 0.0, cost + t.weights[arc])


def ones(words: Tensor) -> Tensor:
    """How many bits of each int32 word are 1."""
    words = words - (words >> 1 & 0x55555555)
    words = (words & 0x33333333) + (words >> 2 & 0x33333333)
    words = words + (words >> 4) & 0x0F0F0F0F
    return words * 0x01010101 >> 24
