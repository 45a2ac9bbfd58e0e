# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
"""Triton kernels of the greedy step; ``triton`` starts them, ``plain.greedy`` specifies their results.

Two launches, with and without stacks. ``greatest_kernel``: a program takes a block of columns of a row, finds the
row's mask, and writes the block's greatest allowed logit and the first column that has it. ``choose_kernel``: a
program takes a row, takes the greatest of its blocks, and walks the token's bytes, from a state or on a stack.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tokenfst.decoding.device.kernels.triton_kernels import columns_of
from tokenfst.decoding.device.kernels.triton_stack_kernels import mask_of_row, step_row

NO_KEY = tl.constexpr(-(2**31))
NAN_KEY = tl.constexpr(2**31 - 1)


@triton.jit
def _keys(at, column, loaded, allowed, infinity: tl.constexpr, magnitude: tl.constexpr):
    """Logits as integers in the order of the numbers: equal zeros are equal, and every NaN is above all other
    numbers.
    """
    bits = tl.load(at + column, mask=loaded, other=0).to(tl.int32)
    size = bits & magnitude
    key = tl.where(size > infinity, NAN_KEY, tl.where(bits < 0, -size, size))
    return tl.where(allowed, key, NO_KEY)


@triton.jit(do_not_specialize=["left"])
def greatest_kernel(
    bits, stride, width, batch, each, left, states, layers, masks, rows, flips, num_states, vocab_size, words,
    controls, comb, frames, num_controls, num_slots, num_frames, capacity, keys, columns,
    has_left: tl.constexpr, has_each: tl.constexpr, steps: tl.constexpr, most_flips: tl.constexpr,
    infinity: tl.constexpr, magnitude: tl.constexpr, block: tl.constexpr, stacked: tl.constexpr,
):  # fmt: skip
    """The greatest allowed logit of a block of columns, and its first column.

    ``bits``: int16 or int32 (B, width), the logits as integers. ``keys``, ``columns``: int32 (B, blocks), written.
    ``stacked``: ``padded`` of ``mask_of_row``. Loads depend on words of the mask, not on bits, so that a lane loads
    16 bytes at once. The column is searched for in the one group that has the greatest logit; reading this group
    again is faster than keeping an index for each column.
    """
    row = tl.program_id(0)
    base, flips_begin, flips_end = mask_of_row(
        row, batch, each, left, states, layers, masks, num_states, controls, comb, frames, num_controls, num_slots,
        num_frames, capacity, has_left, has_each, steps, stacked,
    )  # fmt: skip
    at = bits + row.to(tl.int64) * stride
    first = tl.program_id(1) * block
    groups: tl.constexpr = block // 32
    if flips_begin < flips_end:
        place = flips_begin + tl.arange(0, most_flips)
        token = tl.load(flips + place, mask=place < flips_end, other=-1)
        listed = (token >= first) & (token < first + block)
        key = _keys(at, token, listed, listed, infinity, magnitude)
        best = tl.max(key, 0)
        found = tl.min(tl.where(listed & (key == best), token, vocab_size), 0)
    else:
        mask = rows + base.to(tl.int64) * words + tl.program_id(1) * groups
        group = tl.arange(0, groups)
        inside = words - tl.program_id(1) * groups
        word = tl.load(mask + group, mask=group < inside, other=0)[:, None]
        column = columns_of(first, groups)
        allowed = ((word >> (column % 32)) & 1) != 0
        greatest = tl.max(_keys(at, column, (word != 0) & (column < width), allowed, infinity, magnitude), 1)
        best = tl.max(greatest, 0)
        nearest = tl.min(tl.where(greatest == best, group, groups - 1), 0)
        near = first + 32 * nearest + tl.arange(0, 32)
        bit = tl.load(mask + nearest, mask=nearest < inside, other=0) >> tl.arange(0, 32)
        again = _keys(at, near, (bit & 1) != 0, (bit & 1) != 0, infinity, magnitude)
        found = tl.min(tl.where(((bit & 1) != 0) & (again == best), near, vocab_size), 0)
    out = row * tl.num_programs(1) + tl.program_id(1)
    tl.store(keys + out, best)
    tl.store(columns + out, found)


@triton.jit
def choose_kernel(
    keys, columns, batch, states, table, classes, text, tokens, actions, pushes, comb, num_states, vocab_size,
    num_slots, capacity, chosen, reached, blocks, padded: tl.constexpr, stacked: tl.constexpr,
):  # fmt: skip
    """The token with the greatest logit of a row's blocks, and the state, or state and stack, that it leads to.

    ``keys``, ``columns``: int32 (B, blocks). ``chosen``: int64 (B,), written. ``reached``: int32 in the shape of
    ``batch``, written. ``padded``: a power of 2, at least ``blocks``. ``stacked``: as for ``greatest_kernel``.
    """
    row = tl.program_id(0)
    place = tl.arange(0, padded)
    key = tl.load(keys + row * blocks + place, mask=place < blocks, other=NO_KEY)
    column = tl.load(columns + row * blocks + place, mask=place < blocks, other=vocab_size)
    best = tl.max(key, 0)
    token = tl.min(tl.where(key == best, column, vocab_size), 0)
    tl.store(chosen + row, token.to(tl.int64))
    step_row(
        row, token, batch, reached, states, table, classes, text, tokens, actions, pushes, comb, num_states,
        num_states, vocab_size, num_slots, capacity, stacked,
    )  # fmt: skip
