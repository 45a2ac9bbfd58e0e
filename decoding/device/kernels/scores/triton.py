# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
"""Scores of tokens by Triton, as ``plain`` specifies them.

A program adds the scores of a block of tokens to one row of logits. Scores of a resident row are read. For other
rows the bytes of each token are run through the tables, as often as the longest token of the block has bytes. One
launch, without synchronization with the host. Sums are computed in the order of the bytes, in float32, as in
``plain``.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from tokenfst.decoding.device.kernels.launching import launch
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.decoding.device.tables.weights import WeightTables

BLOCK = 1024
"""The number of tokens that one program scores."""
ADVANCED = 32
"""The number of rows that one program advances."""


@triton.jit
def _ones(words):
    """How many bits of each int32 word are 1."""
    words = words - ((words >> 1) & 0x55555555)
    words = (words & 0x33333333) + ((words >> 2) & 0x33333333)
    words = (words + (words >> 4)) & 0x0F0F0F0F
    return (words * 0x01010101) >> 24


@triton.jit
def _step(
    state, entry, reads, table, weights, num_classes, bits, first, failures, costs, words, chain: tl.constexpr
):  # fmt: skip
    """The targets of states by classes of bytes, 0 if there is none, and the weights of these steps."""
    if chain == 0:
        place = state.to(tl.int64) * num_classes + entry
        weight = tl.load(weights + place, mask=reads, other=0.0)
        reached = tl.load(table + place, mask=reads, other=0)
    else:
        weight = tl.zeros_like(state).to(tl.float32)
        arc = tl.zeros_like(state) - 1
        bit = entry & 31
        below = ~((tl.zeros_like(bit) - 1) << bit)
        for _ in range(chain):
            place = state.to(tl.int64) * words + (entry >> 5)
            going = reads & (arc < 0)
            here = tl.load(bits + place, mask=going, other=0)
            found = going & (((here >> bit) & 1) != 0)
            arc = tl.where(found, tl.load(first + place, mask=found, other=0) + _ones(here & below), arc)
            going = going & (arc < 0)
            weight = weight + tl.load(costs + state, mask=going, other=0.0)
            state = tl.where(going, tl.load(failures + state, mask=going, other=0), state)
        found = arc >= 0
        weight = tl.where(found, weight + tl.load(weights + arc, mask=found, other=0.0), 0.0)
        reached = tl.load(table + arc, mask=found, other=0)
    return reached, weight


@triton.jit
def _weighed(
    state,
    kind,
    token,
    known,
    table,
    weights,
    classes,
    text,
    tokens,
    num_classes,
    bits,
    first,
    failures,
    costs,
    words,
    chain: tl.constexpr,
):  # The states that the bytes of tokens lead to, and the weights of the tokens.
    """The states that the bytes of tokens lead to, and the weights of the tokens."""
    record = tokens + tl.where(known, token, 0).to(tl.int64) * 4
    before = state == 2
    begin = tl.where(before, tl.load(record + 2), tl.load(record))
    length = tl.where(before, tl.load(record + 3), tl.load(record + 1))
    length = tl.where(known & (kind == 0), length, 0)
    total = tl.zeros_like(state).to(tl.float32)
    for i in range(tl.max(length, 0)):
        reads = i < length
        byte = tl.load(text + begin + i, mask=reads, other=0)
        entry = tl.load(classes + byte.to(tl.int32), mask=reads, other=0)
        reached, weight = _step(
            state, entry, reads, table, weights, num_classes, bits, first, failures, costs, words, chain
        )
        total = tl.where(reads, total + weight, total)
        state = tl.where(reads, reached, state)
    return state, total, length


@triton.jit
def _store(logits, stride, width, row, token, inside, score, factor):
    """Add the scores of a block of tokens to a row of logits."""
    at = logits + row.to(tl.int64) * stride + token
    old = tl.load(at, mask=token < width, other=0.0).to(tl.float32)
    allowed = inside & (score != float("-inf"))
    new = tl.where(allowed, old + factor * tl.where(allowed, score, 0.0), float("-inf"))
    tl.store(at, new.to(logits.dtype.element_ty), mask=token < width)


@triton.jit
def add_scores_kernel(
    logits, stride, width, batch, factor, slots, scored, table, weights, finals, classes, text, tokens, kinds,
    special, num_states, num_classes, vocab_size, bits, first, failures, costs, words, chain: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    """Add the scores of a block of tokens to one row of logits."""
    row = tl.program_id(0)
    token = tl.program_id(1) * block + tl.arange(0, block)
    inside = token < vocab_size
    state = tl.load(batch + row)
    state = tl.where((state >= 0) & (state < num_states), state, 0)
    kind = tl.load(kinds + token, mask=inside, other=0)
    slot = tl.load(slots + state)
    if slot >= 0:
        score = tl.load(scored + slot.to(tl.int64) * vocab_size + token, mask=inside, other=float("-inf"))
    else:
        each = state + tl.zeros_like(token)
        reached, score, length = _weighed(
            each, kind, token, inside, table, weights, classes, text, tokens, num_classes, bits, first, failures,
            costs, words, chain,
        )  # fmt: skip
        silent = (state == 2) & (kind == 0) & (tl.load(tokens + token * 4 + 1, mask=inside, other=0) > 0)
        score = tl.where((reached == 0) | ((length == 0) & (silent == 0)), float("-inf"), score)
        score = tl.where(kind == 2, special, score)
        score = tl.where(state > 1, score, float("-inf"))
        score = tl.where(kind == 1, tl.where(state > 1, tl.load(finals + state), 0.0), score)
    _store(logits, stride, width, row, token, inside, score, factor)


@triton.jit
def add_rows_kernel(
    logits, stride, width, batch, factor, scored, num_states, vocab_size, block: tl.constexpr
):  # fmt: skip
    """For one row of the batch, add a block of the resident row of scores that its state names to its logits."""
    row = tl.program_id(0)
    token = tl.program_id(1) * block + tl.arange(0, block)
    inside = token < vocab_size
    state = tl.load(batch + row)
    state = tl.where((state >= 0) & (state < num_states), state, 0)
    score = tl.load(scored + state.to(tl.int64) * vocab_size + token, mask=inside, other=float("-inf"))
    _store(logits, stride, width, row, token, inside, score, factor)


@triton.jit
def advance_scores_kernel(
    batch, taken, count, table, weights, finals, classes, text, tokens, kinds, special, num_states, num_classes,
    vocab_size, bits, first, failures, costs, words, start, absorbs, reached, scored, chain: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    """The states of a block of rows after one token each, and the tokens' scores."""
    row = tl.program_id(0) * block + tl.arange(0, block)
    here = row < count
    at = tl.load(batch + row, mask=here, other=0)
    at = tl.where((at >= 0) & (at < num_states), at, 0)
    token = tl.load(taken + row, mask=here, other=0)
    inside = (token >= 0) & (token < vocab_size)
    token = tl.where(inside, token, 0)
    kind = tl.load(kinds + token)
    state, total, length = _weighed(
        at, kind, token, inside, table, weights, classes, text, tokens, num_classes, bits, first, failures, costs,
        words, chain,
    )  # fmt: skip
    state = tl.where((at == 2) & (length == 0) & (kind == 0) & (absorbs == 0), start, state)
    state = tl.where(kind == 2, tl.where(special > float("-inf"), at, 0), state)
    total = tl.where(kind == 2, special, total)
    final = tl.load(finals + at)
    state = tl.where(kind == 1, tl.where(final > float("-inf"), 1, 0), state)
    total = tl.where(kind == 1, final, total)
    state = tl.where(inside & (at > 1), state, tl.where(at == 1, 1, 0))
    total = tl.where(state == 0, float("-inf"), tl.where(at == 1, 0.0, total))
    tl.store(reached + row, state, mask=here)
    tl.store(scored + row, total, mask=here)


def add_(t: WeightTables, logits: Tensor, states: Tensor, weight: float) -> Tensor:
    """``DeviceScores.scores_into``."""
    rows, width = logits.shape
    if rows:
        arguments = (logits, logits.stride(0), width, states, weight, t.slots, t.rows, *_walk(t))
        constants = {"chain": t.chain, "block": BLOCK}
        launch(add_scores_kernel, (rows, triton.cdiv(width, BLOCK)), arguments, constants, 4)
    return logits


def add_rows_(table: Tensor, logits: Tensor, states: Tensor, weight: float) -> Tensor:
    """``DeviceScoreMatchers.scores_into``."""
    rows, width = logits.shape
    if rows:
        arguments = (logits, logits.stride(0), width, states, weight, table, *table.shape)
        launch(add_rows_kernel, (rows, triton.cdiv(width, BLOCK)), arguments, {"block": BLOCK}, 4)
    return logits


def advance(t: WeightTables, states: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """``DeviceScores.advance``."""
    reached = torch.empty_like(states)
    scored = torch.empty(len(states), dtype=torch.float32, device=states.device)
    if len(states):
        arguments = (
            states, tokens, len(states), *_walk(t), t.start, int(t.absorbs), reached, scored,
        )  # fmt: skip
        grid = (triton.cdiv(len(states), ADVANCED),)
        launch(advance_scores_kernel, grid, arguments, {"chain": t.chain, "block": ADVANCED}, 1)
    return reached, scored


def _walk(t: WeightTables) -> tuple[Any, ...]:
    return (
        t.table, t.weights, t.finals, t.classes, t.bytes, t.tokens, t.kinds, t.special, len(t.finals),
        t.table.shape[-1], len(t.kinds), t.bits, t.first, t.failures, t.costs, t.bits.shape[1],
    )  # fmt: skip
