"""The masking loop as Triton kernels: what ``device_torch`` says, bit for bit, at the speed of memory.

Tables must be ``dense``: a mask is a row, or a list on the empty row. Masking stores -inf where the row forbids and reads no
logit; for a list the program puts the listed logits of its block aside first and back afterwards. The greedy step writes no
logit: each program finds the greatest allowed one of a block of columns, by the order of the numbers as integers, and a second
kernel the greatest of those, then walks the token's bytes. A step is two launches, with nothing between them and the host, so
CUDA graphs can capture it.

Tested on the CPU by Triton's interpreter (TRITON_INTERPRET=1); ``AVAILABLE`` says whether Triton is installed.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch

from tokenfst.decoding.device_pool import Tables
from tokenfst.decoding.device_tables import MOST_FLIPS

AVAILABLE = find_spec("triton") is not None

if AVAILABLE:
    import triton
    import triton.language as tl

    NO_KEY = tl.constexpr(-(2**31))
    NAN_KEY = tl.constexpr(2**31 - 1)

    @triton.jit  # type: ignore[misc]
    def _mask_at(
        state,
        row,
        each,
        left,
        states,
        layers,
        masks,
        num_states,
        has_left: tl.constexpr,
        has_each: tl.constexpr,
        steps: tl.constexpr,
    ):
        """The row, and the range of flips, of what a row may take: ``device_torch.mask_of``."""
        at = states + tl.where((state >= 0) & (state < num_states), state, 0).to(tl.int64) * 8
        mask = tl.load(at + 2)
        if has_left:
            if has_each:
                left = tl.load(each + row)
            begin = tl.load(at + 3)
            low = begin
            high = tl.load(at + 4)
            for _ in tl.static_range(steps):
                searching = low < high
                middle = tl.where(searching, (low + high) // 2, 0)
                fits = tl.load(layers + 2 * middle) < left
                low = tl.where(searching & fits, middle + 1, low)
                high = tl.where(searching & (fits == 0), middle, high)
            found = tl.load(layers + 2 * tl.where(low > begin, low - 1, 0) + 1)
            mask = tl.where(left < 0, mask, tl.where(low > begin, found, 0))
        of = masks + mask.to(tl.int64) * 4
        return tl.load(of), tl.load(of + 1), tl.load(of + 2)

    @triton.jit  # type: ignore[misc]
    def _walked(state, token, states, table, classes, text, tokens, num_states, vocab_size):
        """The states behind tokens: ``device_torch.advance``. Loops as long as the longest of them has bytes."""
        known = (state > 1) & (state < num_states) & (token >= 0) & (token < vocab_size)
        at = states + tl.where(known, state, 0).to(tl.int64) * 8
        record = tokens + tl.where(known, token, 0).to(tl.int64) * 4
        flags = tl.load(at + 5)
        inside = tl.load(record + 1)
        first = (flags & 2) != 0
        begin = tl.where(first, tl.load(record + 2), tl.load(record))
        length = tl.where(known, tl.where(first, tl.load(record + 3), inside), 0)
        of_byte = classes + tl.load(at + 1)
        row = tl.load(at)
        for i in range(tl.max(length, 0)):
            reads = i < length
            byte = tl.load(text + begin + i, mask=reads, other=0)
            entry = tl.load(of_byte + byte.to(tl.int32), mask=reads, other=0).to(tl.int32) + 1
            row = tl.where(reads, tl.load(table + row + entry, mask=reads, other=0), row)
        reached = tl.load(table + row)
        reached = tl.where(length == 0, tl.where(inside > 0, tl.load(at + 6), 0), reached)
        reached = tl.where(inside < 0, flags & 1, reached)
        return tl.where(known, reached, (state == 1).to(tl.int32))

    @triton.jit(do_not_specialize=["left"])  # type: ignore[misc]
    def _mask_kernel(
        logits, stride, width, batch, each, left, states, layers, masks, rows, flips, num_states, vocab_size, words,
        has_left: tl.constexpr, has_each: tl.constexpr, steps: tl.constexpr, most_flips: tl.constexpr, block: tl.constexpr,
    ):  # fmt: skip
        row = tl.program_id(0)
        base, flips_begin, flips_end = _mask_at(
            tl.load(batch + row),
            row,
            each,
            left,
            states,
            layers,
            masks,
            num_states,
            has_left,
            has_each,
            steps,
        )
        at = logits + row.to(tl.int64) * stride
        first = tl.program_id(1) * block
        column = first + tl.arange(0, block)
        if flips_begin < flips_end:
            place = flips_begin + tl.arange(0, most_flips)
            token = tl.load(flips + place, mask=place < flips_end, other=-1)
            here = (token >= first) & (token < first + block)
            kept = tl.load(at + token, mask=here, other=0.0)
            tl.debug_barrier()
            tl.store(at + column, float("-inf"), mask=column < width)
            tl.debug_barrier()
            tl.store(at + token, kept, mask=here)
        else:
            word = tl.load(rows + base.to(tl.int64) * words + column // 32, mask=column < vocab_size, other=0)
            allowed = ((word >> (column % 32)) & 1) != 0
            tl.store(at + column, float("-inf"), mask=(column < width) & (allowed == 0))

    @triton.jit  # type: ignore[misc]
    def _greatest(at, column, allowed, vocab_size, infinity: tl.constexpr, magnitude: tl.constexpr):
        """The greatest logit of some columns and the first of them that has it: as integers in the order of the numbers,
        where equal zeros are equal and every NaN is above all others."""
        bits = tl.load(at + column, mask=allowed, other=0).to(tl.int32)
        size = bits & magnitude
        key = tl.where(size > infinity, NAN_KEY, tl.where(bits < 0, -size, size))
        key = tl.where(allowed, key, NO_KEY)
        best = tl.max(key, 0)
        return best, tl.min(tl.where(allowed & (key == best), column, vocab_size), 0)

    @triton.jit(do_not_specialize=["left"])  # type: ignore[misc]
    def _greatest_kernel(
        bits, stride, batch, each, left, states, layers, masks, rows, flips, num_states, vocab_size, words, keys, columns,
        has_left: tl.constexpr, has_each: tl.constexpr, steps: tl.constexpr, most_flips: tl.constexpr,
        infinity: tl.constexpr, magnitude: tl.constexpr, block: tl.constexpr,
    ):  # fmt: skip
        """The greatest allowed logit of a block of columns, and its first column."""
        row = tl.program_id(0)
        base, flips_begin, flips_end = _mask_at(
            tl.load(batch + row),
            row,
            each,
            left,
            states,
            layers,
            masks,
            num_states,
            has_left,
            has_each,
            steps,
        )
        at = bits + row.to(tl.int64) * stride
        first = tl.program_id(1) * block
        if flips_begin < flips_end:
            place = flips_begin + tl.arange(0, most_flips)
            token = tl.load(flips + place, mask=place < flips_end, other=-1)
            listed = (token >= first) & (token < first + block)
            best, found = _greatest(at, token, listed, vocab_size, infinity, magnitude)
        else:
            column = first + tl.arange(0, block)
            word = tl.load(rows + base.to(tl.int64) * words + column // 32, mask=column < vocab_size, other=0)
            allowed = ((word >> (column % 32)) & 1) != 0
            best, found = _greatest(at, column, allowed, vocab_size, infinity, magnitude)
        out = row * tl.num_programs(1) + tl.program_id(1)
        tl.store(keys + out, best)
        tl.store(columns + out, found)

    @triton.jit  # type: ignore[misc]
    def _choose_kernel(
        keys, columns, batch, states, table, classes, text, tokens, num_states, vocab_size, chosen, reached,
        blocks, padded: tl.constexpr,
    ):  # fmt: skip
        """The greatest of a row's blocks, and the state behind it."""
        row = tl.program_id(0) + tl.arange(0, 1)
        place = tl.arange(0, padded)
        key = tl.load(keys + tl.program_id(0) * blocks + place, mask=place < blocks, other=NO_KEY)
        column = tl.load(columns + tl.program_id(0) * blocks + place, mask=place < blocks, other=vocab_size)
        best = tl.max(key, 0)
        token = tl.min(tl.where(key == best, column, vocab_size), 0) + tl.zeros_like(row)
        state = tl.load(batch + row)
        tl.store(chosen + row, token.to(tl.int64))
        tl.store(
            reached + row, _walked(state, token, states, table, classes, text, tokens, num_states, vocab_size)
        )

    @triton.jit  # type: ignore[misc]
    def _advance_kernel(
        batch, taken, count, states, table, classes, text, tokens, num_states, vocab_size, reached, block: tl.constexpr
    ):  # fmt: skip
        row = tl.program_id(0) * block + tl.arange(0, block)
        state = tl.load(batch + row, mask=row < count, other=0)
        token = tl.load(taken + row, mask=row < count, other=0)
        found = _walked(state, token, states, table, classes, text, tokens, num_states, vocab_size)
        tl.store(reached + row, found, mask=row < count)

    @triton.jit  # type: ignore[misc]
    def _compose_kernel(
        batch, states, table, classes, text, tokens, num_states, vocab_size, words, bitmask, block: tl.constexpr
    ):  # fmt: skip
        """One block of words of the mask of a state, by running every token from it."""
        row = tl.program_id(0)
        token = tl.program_id(1) * block + tl.arange(0, block)
        state = tl.load(batch + row) + tl.zeros_like(token)
        reached = _walked(state, token, states, table, classes, text, tokens, num_states, vocab_size)
        bits = tl.reshape((reached != 0).to(tl.int32) << (token % 32), (block // 32, 32))
        word = tl.program_id(1) * (block // 32) + tl.arange(0, block // 32)
        tl.store(bitmask + row * words + word, tl.sum(bits, 1), mask=word < words)


_BITS = {
    torch.float32: (torch.int32, 0x7F800000, 0x7FFFFFFF),
    torch.float16: (torch.int16, 0x7C00, 0x7FFF),
    torch.bfloat16: (torch.int16, 0x7F80, 0x7FFF),
}
"""Of each type of logits: integers of its width, infinity, and the greatest magnitude."""
BLOCK = 4096
"""Columns of a row that one program takes."""
ADVANCED = 32
"""Rows that one program advances."""
COMPOSED = 1024
"""Tokens that one program runs from a state."""


def takes(logits: torch.Tensor | None) -> bool:
    """Whether the kernels know the type of these logits, if there are any."""
    return logits is None or logits.dtype in _BITS


def mask_logits_(
    t: Tables, logits: torch.Tensor, states: torch.Tensor, left: torch.Tensor | int | None, steps: int
) -> torch.Tensor:
    """``DeviceAutomaton.mask_logits_``."""
    rows, width = logits.shape
    if rows:
        _mask_kernel[rows, triton.cdiv(width, BLOCK)](
            logits, logits.stride(0), width, states, *_left(left, states), t.states, t.layers, t.masks, t.rows, t.flips,
            len(t.states), len(t.tokens), t.rows.shape[1], **_budgeted(left, steps), most_flips=MOST_FLIPS, block=BLOCK,
        )  # fmt: skip
    return logits


def advance(t: Tables, states: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """``DeviceAutomaton.advance``."""
    reached = torch.empty_like(states)
    if len(states):
        _advance_kernel[(triton.cdiv(len(states), ADVANCED),)](
            states, tokens, len(states), *_walk(t), reached, block=ADVANCED, num_warps=1
        )
    return reached


def greedy(
    t: Tables, logits: torch.Tensor, states: torch.Tensor, left: torch.Tensor | int | None, steps: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """``DeviceAutomaton.step`` at temperature 0."""
    rows, device = len(states), states.device
    blocks = triton.cdiv(len(t.tokens), BLOCK)
    chosen = torch.empty(rows, dtype=torch.int64, device=device)
    reached = torch.empty_like(states)
    if rows:
        integers, infinity, magnitude = _BITS[logits.dtype]
        keys, columns = torch.empty((2, rows, blocks), dtype=torch.int32, device=device)
        _greatest_kernel[rows, blocks](
            logits.view(integers), logits.stride(0), states, *_left(left, states), t.states, t.layers, t.masks, t.rows,
            t.flips, len(t.states), len(t.tokens), t.rows.shape[1], keys, columns, **_budgeted(left, steps),
            most_flips=MOST_FLIPS, infinity=infinity, magnitude=magnitude, block=BLOCK,
        )  # fmt: skip
        _choose_kernel[(rows,)](
            keys,
            columns,
            states,
            *_walk(t),
            chosen,
            reached,
            blocks,
            padded=triton.next_power_of_2(blocks),
            num_warps=1,
        )
    return chosen, reached


def compose(t: Tables, states: torch.Tensor) -> torch.Tensor:
    """``DeviceAutomaton.compose``, without the end tokens: int32 (B, ceil(V / 32))."""
    words = t.rows.shape[1]
    out = torch.empty((len(states), words), dtype=torch.int32, device=states.device)
    if len(states):
        _compose_kernel[len(states), triton.cdiv(32 * words, COMPOSED)](
            states, *_walk(t), words, out, block=COMPOSED
        )
    return out


def _walk(t: Tables) -> tuple[Any, ...]:
    return t.states, t.table, t.classes, t.bytes, t.tokens, len(t.states), len(t.tokens)


def _left(left: torch.Tensor | int | None, states: torch.Tensor) -> tuple[torch.Tensor, int]:
    return (left, 0) if isinstance(left, torch.Tensor) else (states, -1 if left is None else left)


def _budgeted(left: torch.Tensor | int | None, steps: int) -> dict[str, Any]:
    return {"has_left": left is not None, "has_each": isinstance(left, torch.Tensor), "steps": steps}
