"""Push-down automata on a device in plain torch: the specification of ``native/device/stacks.hpp`` and of
``triton_stack_kernels``.

Pure functions of tables and tensors, without synchronization with the host, as in ``plain``. A batch is int32 (B, 2 +
capacity): state, depth, and the symbols of the stack, the top last, followed by zeros. All loops have the greatest
length that the tables need: bytes of the longest token, looks into the stack after one byte, symbols pushed by one
action.
"""

from __future__ import annotations

from tokenfst.decoding.device.kernels.plain import bytes_read, state_reached
from tokenfst.decoding.device.tables.pool import Tables, Tensor, torch
from tokenfst.decoding.device.tables.tables import (
    DEAD,
    ENDED,
    FAR,
    ROW,
    StackLoops,
)

STATE, DEPTH, SYMBOLS = 0, 1, 2
"""The columns of a row."""
OVERFLOWN = -1
"""The depth of a row whose stack exceeded the capacity."""


def known(t: Tables, rows: Tensor) -> Tensor:
    """Which rows are active: neither dead nor ended, and with nothing out of range; bool (B,)."""
    state, depth = rows[:, STATE], rows[:, DEPTH]
    fits = (depth >= 0) & (depth <= rows.shape[1] - SYMBOLS)
    return (state > ENDED) & (state < min(len(t.states), len(t.controls))) & fits


def _find(t: Tables, owner: Tensor, answer: Tensor) -> Tensor:
    """The entries that owners of slots have for answers; 0 for none."""
    at = owner.long() + answer
    at = torch.where((at >= 0) & (at < len(t.comb)), at, 0)
    slot = t.comb[at]
    return torch.where((owner > 0) & (slot[:, 0] == owner), slot[:, 1], 0)


def resting(t: Tables, rows: Tensor, asks: int) -> tuple[Tensor, Tensor]:
    """For each row the state whose mask it has, after the looks into its stack, and the number of symbols below the
    inspected ones: int32 (B,), (B,).
    """
    live = known(t, rows)
    control = t.controls[torch.where(live, rows[:, STATE], DEAD)]
    below = torch.where(live, rows[:, DEPTH], 0)
    at, ask = control[:, 1], control[:, 0]
    for _ in range(asks):
        asking, fits = ask > 0, below > 0
        below = torch.where(asking & fits, below - 1, below)
        symbol = _symbol(rows[:, SYMBOLS:], below)
        value = _find(t, ask, 2 * symbol.long() + (below > 0))
        at = torch.where(asking, torch.where(fits, value, DEAD), at)
        ask = torch.where(asking & fits, -value, 0).clamp_min(0)
    ended = torch.where(rows[:, STATE] == ENDED, ENDED, DEAD)
    return torch.where(live, at, ended).int(), torch.where(live, below, 0).int()


def length(t: Tables, rows: Tensor, symbols: Tensor) -> Tensor:
    """The sum of the distances of the lowest ``symbols`` symbols, int32 (B,); at most ``FAR``."""
    offset = t.controls[torch.where(known(t, rows), rows[:, STATE], DEAD), 3]
    frames = rows[:, SYMBOLS:].long() + offset[:, None]
    inside = (frames >= 0) & (frames < len(t.frames))
    each = torch.where(inside, t.frames[torch.where(inside, frames, 0)].long(), FAR)
    place = torch.arange(each.shape[1], dtype=torch.int32, device=rows.device)
    return torch.where(place < symbols[:, None], each, 0).sum(1).clamp_max(FAR).int()


def advance(t: Tables, rows: Tensor, tokens: Tensor, longest: int, loops: StackLoops) -> Tensor:
    """The rows after ``tokens``, int64 (B,). O(B * longest * looks * pushes)."""
    live = known(t, rows) & (tokens >= 0) & (tokens < len(t.tokens))
    at = t.states[torch.where(live, rows[:, STATE], DEAD)]
    token = t.tokens[torch.where(live, tokens, 0)]
    reads, entry = bytes_read(t, at, token, longest)
    row, stack = at[:, ROW], rows[:, SYMBOLS:]
    depth = torch.where(live, rows[:, DEPTH], 0)
    over = torch.zeros_like(live)
    for i in range(longest):
        row = torch.where(reads[:, i], t.table[row + entry[:, i]], row)
        for _ in range(loops.looks + 1):
            row, stack, depth, over = _acted(t, row, stack, depth, over, loops.pushes)
    reached = torch.where(live, state_reached(t, at, token, row), DEAD)

    over = (over & live) | (rows[:, DEPTH] == OVERFLOWN)
    reached = torch.where((rows[:, STATE] == ENDED) & ~over, ENDED, torch.where(over, DEAD, reached))
    depth = torch.where(reached > ENDED, depth, 0)
    column = torch.arange(stack.shape[1], dtype=torch.int32, device=rows.device)
    stack = torch.where(column < depth[:, None], stack, 0)
    depth = torch.where(over, OVERFLOWN, depth)
    return torch.cat([reached[:, None], depth[:, None], stack], 1).int()


def _acted(
    t: Tables, row: Tensor, stack: Tensor, depth: Tensor, over: Tensor, pushes: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Apply the actions (negative numbers in ``row``): the results are states, or again actions."""
    acting = row < 0
    action = t.actions[torch.where(acting, -row, 0)]
    depth = torch.where(acting & (action[:, 1] == 0), 0, depth)
    lost = torch.zeros_like(acting)
    for k in range(pushes):
        at = action[:, 2] + k
        pushing = acting & (at < action[:, 3]) & ~lost & ~over
        push = t.pushes[torch.where(pushing, at, 0)]
        chained = pushing & (push[:, 1] > 0) & (depth > 0)
        both = _find(t, push[:, 1], _symbol(stack, depth - 1).long())
        lost = lost | (chained & (both == 0))
        full = pushing & ~chained & (depth == stack.shape[1])
        over = over | full
        slot = torch.where(chained, depth - 1, torch.where(full, 0, depth))
        symbol = torch.where(chained, both - 1, push[:, 0])
        stack = _put(stack, slot, symbol, pushing & ~full)
        depth = torch.where(pushing & ~chained & ~full, depth + 1, depth)
    looking, fits = acting & (action[:, 4] > 0), depth > 0
    depth = torch.where(looking & fits, depth - 1, depth)
    found = -_find(t, action[:, 4], 2 * _symbol(stack, depth).long() + (depth > 0))
    row = torch.where(acting, torch.where(looking, torch.where(fits, found, 0), action[:, 0]), row)
    return torch.where(lost | over, 0, row), stack, depth, over


def _symbol(stack: Tensor, at: Tensor) -> Tensor:
    """The symbols at these heights; arbitrary where there are none."""
    return stack.gather(1, at.clamp(0, stack.shape[1] - 1)[:, None].long())[:, 0]


def _put(stack: Tensor, at: Tensor, symbols: Tensor, where: Tensor) -> Tensor:
    """Stacks with these symbols at these heights, for the rows of ``where``."""
    column = torch.arange(stack.shape[1], dtype=torch.int32, device=stack.device)
    return torch.where((column == at[:, None]) & where[:, None], symbols[:, None], stack)
