# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
"""Scores of tokens by Triton: what ``plain_scores`` says.

A program adds the scores of a block of tokens to one row of logits: those of a resident row are read, for others the
bytes of each token are run through the tables, as long as the longest of the block has bytes. One launch, without
synchronization with the host. Sums are made in the order of the bytes, in float32, as there.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from tokenfst.decoding.device.kernels.launching import launch
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.decoding.device.tables.weights import WeightTables

BLOCK = 1024
"""Tokens that one program scores."""
ADVANCED = 32
"""Rows that one program advances."""


@triton.jit
def _weighed(state, kind, token, known, table, weights, classes, text, tokens, num_classes):
    """Where the bytes of tokens lead from states, and what they weigh."""
    record = tokens + tl.where(known, token, 0).to(tl.int64) * 4
    first = state == 2
    begin = tl.where(first, tl.load(record + 2), tl.load(record))
    length = tl.where(first, tl.load(record + 3), tl.load(record + 1))
    length = tl.where(known & (kind == 0), length, 0)
    total = tl.zeros_like(state).to(tl.float32)
    for i in range(tl.max(length, 0)):
        reads = i < length
        byte = tl.load(text + begin + i, mask=reads, other=0)
        place = state.to(tl.int64) * num_classes + tl.load(classes + byte.to(tl.int32), mask=reads, other=0)
        total = tl.where(reads, total + tl.load(weights + place, mask=reads, other=0.0), total)
        state = tl.where(reads, tl.load(table + place, mask=reads, other=0), state)
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
    special, num_states, num_classes, vocab_size, block: tl.constexpr,
):  # fmt: skip
    """The scores of a block of tokens, added to one row of logits."""
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
            each, kind, token, inside, table, weights, classes, text, tokens, num_classes
        )
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
    """A block of the row of scores that one row of the batch names, added to its logits."""
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
    vocab_size, start, absorbs, reached, scored, block: tl.constexpr,
):  # fmt: skip
    """The states of a block of rows after a token each, and the tokens' scores."""
    row = tl.program_id(0) * block + tl.arange(0, block)
    here = row < count
    at = tl.load(batch + row, mask=here, other=0)
    at = tl.where((at >= 0) & (at < num_states), at, 0)
    token = tl.load(taken + row, mask=here, other=0)
    inside = (token >= 0) & (token < vocab_size)
    token = tl.where(inside, token, 0)
    kind = tl.load(kinds + token)
    state, total, length = _weighed(
        at, kind, token, inside, table, weights, classes, text, tokens, num_classes
    )
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
        launch(add_scores_kernel, (rows, triton.cdiv(width, BLOCK)), arguments, {"block": BLOCK}, 4)
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
        launch(advance_scores_kernel, grid, arguments, {"block": ADVANCED}, 1)
    return reached, scored


def _walk(t: WeightTables) -> tuple[Any, ...]:
    return (
        t.table, t.weights, t.finals, t.classes, t.bytes, t.tokens, t.kinds, t.special, len(t.finals),
        t.table.shape[1], len(t.kinds),
    )  # fmt: skip
