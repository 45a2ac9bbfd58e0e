# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
"""Triton kernels of push-down automata; ``triton`` starts them, ``plain_stacks`` specifies their results.

A program takes one row of a batch and holds its stack in registers, distributed over the lanes. It reads a symbol
with a sum in which all other places count 0, and writes one with a select, so no load of a symbol waits for a
store. The contents of a row are compared with bounds before they are used as an index. Loops end whatever a row
contains: ``tables.stacks`` refuses automata in which one byte may read the stack any number of times.

Cost: O(bytes of the token * depth / 32) a row. Rejected: one row in each lane with its stack in memory, because
lanes would diverge at the next action, and all would wait for the longest walk.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tokenfst.decoding.device.kernels.triton_kernels import (
    mask_at,
    node_above,
    path_of,
    state_after,
    text_of,
    walked,
)

FAR = tl.constexpr(2**31 - 1)


@triton.jit
def _is_known(state, depth, num_states, capacity):
    """Whether a row is active: neither dead nor ended, with all values in range."""
    return (state > 1) & (state < num_states) & (depth >= 0) & (depth <= capacity)


@triton.jit
def _find(owner, answer, comb, num_slots):
    """The entry of an owner of slots for an answer; 0 if there is none, or no owner."""
    at = owner.to(tl.int64) + answer
    inside = (owner > 0) & (at >= 0) & (at < num_slots)
    slot = comb + 2 * tl.where(inside, at, 0)
    named = tl.load(slot, mask=inside, other=0) == owner
    return tl.where(inside & named, tl.load(slot + 1, mask=inside, other=0), 0)


@triton.jit
def _symbol(stack, place, at):
    """The symbol at this height; 0 if there is none."""
    return tl.sum(tl.where(place == at, stack, 0), 0).to(tl.int64)


@triton.jit
def _acted(row, stack, depth, place, capacity, actions, pushes, comb, num_slots):
    """The result of the action ``-row``: a row, or another action; 0 if the row of the batch dies.

    The depth is then -1 if the stack was full, and -2 if symbols did not match.
    """
    action = actions + (-row).to(tl.int64) * 5
    depth = tl.where(tl.load(action + 1) == 0, 0, depth)
    k = tl.load(action + 2)
    end = tl.load(action + 3)
    while (k < end) & (depth >= 0):
        push = pushes + k.to(tl.int64) * 2
        chain = tl.load(push + 1)
        chained = (chain > 0) & (depth > 0)
        both = _find(tl.where(chained, chain, 0), _symbol(stack, place, depth - 1), comb, num_slots)
        slot = tl.where(chained, depth - 1, depth)
        stack = tl.where(place == slot, tl.where(chained, both - 1, tl.load(push)), stack)
        joined = tl.where(both == 0, -2, depth)
        depth = tl.where(chained, joined, tl.where(depth == capacity, -1, depth + 1))
        k += 1
    look = tl.load(action + 4)
    looks = (look > 0) & (depth > 0)
    depth = tl.where(looks, depth - 1, depth)
    answer = 2 * _symbol(stack, place, depth) + (depth > 0).to(tl.int64)
    found = -_find(tl.where(looks, look, 0), answer, comb, num_slots)
    return tl.where(depth < 0, 0, tl.where(look > 0, found, tl.load(action))), stack, depth


@triton.jit
def _walked(
    state, given, stack, token, place, states, table, classes, text, tokens, actions, pushes, comb, num_states,
    vocab_size, num_slots, capacity,
):  # fmt: skip
    """The state, the depth and the stack after a token: ``plain_stacks.advance``."""
    known = _is_known(state, given, num_states, capacity) & (token >= 0) & (token < vocab_size)
    depth = tl.where(known, given, 0)
    stack = tl.where(place < depth, stack, 0)
    at = states + tl.where(known, state, 0).to(tl.int64) * 8
    begin, length, inside = text_of(state, token, known, states, tokens)
    of_byte = classes + tl.load(at + 1)
    row = tl.load(at)
    i = begin
    while (i < begin + length) & (row != 0):
        byte = tl.load(text + i).to(tl.int32)
        row = tl.load(table + row + tl.load(of_byte + byte).to(tl.int32) + 1)
        while row < 0:
            row, stack, depth = _acted(row, stack, depth, place, capacity, actions, pushes, comb, num_slots)
        i += 1
    number = tl.where(known, state_after(row, at, length, inside, table), (state == 1).to(tl.int32))
    over = (given == -1) | (depth == -1)
    number = tl.where(over, 0, number)
    depth = tl.where(number > 1, depth, 0)
    return number, tl.where(over, -1, depth), tl.where(place < depth, stack, 0)


@triton.jit
def _store(reached, row, number, depth, stack, place, capacity):
    begin = row.to(tl.int64) * (capacity + 2)
    tl.store(reached + begin, number)
    tl.store(reached + begin + 1, depth)
    tl.store(reached + begin + 2 + place, stack, mask=place < capacity)


@triton.jit
def step_stack(
    row, token, batch, reached, states, table, classes, text, tokens, actions, pushes, comb, num_states, vocab_size,
    num_slots, capacity, padded: tl.constexpr,
):  # fmt: skip
    """Write the row after a token to ``reached``."""
    begin = row.to(tl.int64) * (capacity + 2)
    place = tl.arange(0, padded)
    number, depth, stack = _walked(
        tl.load(batch + begin), tl.load(batch + begin + 1),
        tl.load(batch + begin + 2 + place, mask=place < capacity, other=0), token, place, states, table, classes, text,
        tokens, actions, pushes, comb, num_states, vocab_size, num_slots, capacity,
    )  # fmt: skip
    _store(reached, row, number, depth, stack, place, capacity)


@triton.jit
def step_row(
    row, token, batch, reached, states, table, classes, text, tokens, actions, pushes, comb, num_states, num_controls,
    vocab_size, num_slots, capacity, stacked: tl.constexpr,
):  # fmt: skip
    """Write the row after a token to ``reached``. ``stacked``: ``padded`` of ``step_stack``, or 0 for automata without
    stacks, whose rows are states.
    """
    if stacked > 0:
        step_stack(
            row, token, batch, reached, states, table, classes, text, tokens, actions, pushes, comb, num_controls,
            vocab_size, num_slots, capacity, stacked,
        )  # fmt: skip
    else:
        places = row + tl.arange(0, 1)
        taken = token + tl.zeros_like(places)
        after = walked(
            tl.load(batch + places), taken, states, table, classes, text, tokens, num_states, vocab_size
        )
        tl.store(reached + places, after)


@triton.jit
def advance_stacks_kernel(
    batch, taken, states, table, classes, text, tokens, actions, pushes, comb, num_states, vocab_size, num_slots,
    capacity, reached, padded: tl.constexpr,
):  # fmt: skip
    """Compute the row after a token. ``padded``: a power of 2, at least ``capacity``."""
    row = tl.program_id(0)
    step_stack(
        row, tl.load(taken + row), batch, reached, states, table, classes, text, tokens, actions, pushes, comb,
        num_states, vocab_size, num_slots, capacity, padded,
    )  # fmt: skip


@triton.jit
def advance_tree_of_stacks_kernel(
    batch, parents, taken, count, num_rows, levels, states, table, classes, text, tokens, actions, pushes, comb,
    num_states, vocab_size, num_slots, capacity, reached, padded: tl.constexpr,
):  # fmt: skip
    """The row after a node of a tree of tokens: walks its path from the root, with the stack in registers
    throughout.
    """
    node = tl.program_id(0)
    length, row = path_of(node, parents, count, num_rows, levels)
    begin = row * (capacity + 2)
    place = tl.arange(0, padded)
    number = tl.where(length > 0, tl.load(batch + begin), 0)
    depth = tl.where(length > 0, tl.load(batch + begin + 1), 0)
    stack = tl.load(batch + begin + 2 + place, mask=place < capacity, other=0)
    for level in range(length):
        at = node_above(node, length - 1 - level, parents, length - 1 - level)
        number, depth, stack = _walked(
            number, depth, stack, tl.load(taken + at), place, states, table, classes, text, tokens, actions, pushes,
            comb, num_states, vocab_size, num_slots, capacity,
        )  # fmt: skip
    _store(reached, node, number, depth, stack, place, capacity)


@triton.jit
def _resting(
    at, controls, comb, frames, num_states, num_slots, num_frames, capacity, has_left: tl.constexpr,
    padded: tl.constexpr,
):  # fmt: skip
    """The state whose mask the row at ``at`` has: ``plain_stacks.resting``.

    With ``has_left`` also the ``length`` of the part of the stack below what this state reads.
    """
    state = tl.load(at)
    depth = tl.load(at + 1)
    known = _is_known(state, depth, num_states, capacity)
    control = controls + tl.where(known, state, 0).to(tl.int64) * 4
    below = tl.where(known, depth, 0)
    ask = tl.load(control, mask=known, other=0)
    leaf = tl.load(control + 1)
    while ask > 0:
        fits = below > 0
        below = tl.where(fits, below - 1, below)
        answer = 2 * tl.load(at + 2 + below).to(tl.int64) + (below > 0).to(tl.int64)
        leaf = _find(tl.where(fits, ask, 0), answer, comb, num_slots)
        ask = -leaf
    length = tl.full((), 0, tl.int32)
    if has_left:
        place = tl.arange(0, padded)
        lies = place < below
        frame = tl.load(at + 2 + place, mask=lies, other=0).to(tl.int64) + tl.load(control + 3)
        has_distance = lies & (frame >= 0) & (frame < num_frames)
        each = tl.load(frames + frame, mask=has_distance, other=FAR).to(tl.int64)
        total = tl.sum(tl.where(lies, each, 0), 0)
        length = tl.minimum(total, FAR).to(tl.int32)
    return tl.where(known, leaf, (state == 1).to(tl.int32)), length


@triton.jit
def resting_kernel(
    batch, controls, comb, frames, num_states, num_slots, num_frames, capacity, found, lengths,
    has_left: tl.constexpr, padded: tl.constexpr,
):  # fmt: skip
    """``_resting`` for each row."""
    row = tl.program_id(0)
    at = batch + row.to(tl.int64) * (capacity + 2)
    state, length = _resting(
        at, controls, comb, frames, num_states, num_slots, num_frames, capacity, has_left, padded
    )
    tl.store(found + row, state)
    if has_left:
        tl.store(lengths + row, length)


@triton.jit
def mask_of_row(
    row, batch, each, left, states, layers, masks, num_states, controls, comb, frames, num_controls, num_slots,
    num_frames, capacity, has_left: tl.constexpr, has_each: tl.constexpr, steps: tl.constexpr, padded: tl.constexpr,
):  # fmt: skip
    """``mask_at`` for a row of a batch.

    ``padded``: 0 if rows are numbers of states; with stacks a power of 2, at least ``capacity``.
    """
    if padded > 0:
        at = batch + row.to(tl.int64) * (capacity + 2)
        state, length = _resting(
            at, controls, comb, frames, num_controls, num_slots, num_frames, capacity, has_left, padded
        )
        if has_left:
            if has_each:
                left = tl.load(each + row)
            left = tl.where(left < 0, -1, tl.maximum(left - length, 0))
        base, begin, end = mask_at(
            state, row, each, left, states, layers, masks, num_states, has_left, False, steps
        )
    else:
        state = tl.load(batch + row)
        base, begin, end = mask_at(
            state, row, each, left, states, layers, masks, num_states, has_left, has_each, steps
        )
    return base, begin, end
