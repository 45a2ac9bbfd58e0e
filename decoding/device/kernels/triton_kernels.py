# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
"""Triton kernels of the masking loop; ``triton`` starts them, ``plain`` specifies their results.

Every function here is compiled for the device: its arguments are pointers into tables (``tables``) and numbers, in
the order in which the tables are used. Triton's interpreter (TRITON_INTERPRET=1) runs them on the host.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def mask_at(
    state, row, each, left, states, layers, masks, num_states, has_left: tl.constexpr, has_each: tl.constexpr,
    steps: tl.constexpr,
):  # fmt: skip
    """The row, and the range of flips, of the mask of a row of the batch: ``plain.mask_of``."""
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


@triton.jit
def text_of(state, token, known, states, tokens):
    """For tokens at states: where their text begins, its length, and their length inside of a text.

    The last one is below 0 for end tokens. Tokens at the beginning of a text may spell something else.
    """
    record = tokens + tl.where(known, token, 0).to(tl.int64) * 4
    inside = tl.load(record + 1)
    first = (tl.load(states + tl.where(known, state, 0).to(tl.int64) * 8 + 5) & 2) != 0
    begin = tl.where(first, tl.load(record + 2), tl.load(record))
    return begin, tl.where(known, tl.where(first, tl.load(record + 3), inside), 0), inside


@triton.jit
def state_after(row, at, length, inside, table):
    """The states that walks reach, where ``row`` is their last row; also for tokens without bytes and for end
    tokens.
    """
    reached = tl.load(table + row)
    reached = tl.where(length == 0, tl.where(inside > 0, tl.load(at + 6), 0), reached)
    return tl.where(inside < 0, tl.load(at + 5) & 1, reached)


@triton.jit
def walked(state, token, states, table, classes, text, tokens, num_states, vocab_size):
    """The states that tokens lead to: ``plain.advance``. The loop runs as often as the longest of the tokens has
    bytes.
    """
    known = (state > 1) & (state < num_states) & (token >= 0) & (token < vocab_size)
    at = states + tl.where(known, state, 0).to(tl.int64) * 8
    begin, length, inside = text_of(state, token, known, states, tokens)
    of_byte = classes + tl.load(at + 1)
    row = tl.load(at)
    for i in range(tl.max(length, 0)):
        reads = i < length
        byte = tl.load(text + begin + i, mask=reads, other=0)
        entry = tl.load(of_byte + byte.to(tl.int32), mask=reads, other=0).to(tl.int32) + 1
        row = tl.where(reads, tl.load(table + row + entry, mask=reads, other=0), row)
    reached = state_after(row, at, length, inside, table)
    return tl.where(known, reached, (state == 1).to(tl.int32))


@triton.jit(do_not_specialize=["left"])
def mask_kernel(
    logits, stride, width, batch, each, left, states, layers, masks, rows, flips, num_states, vocab_size, words,
    has_left: tl.constexpr, has_each: tl.constexpr, steps: tl.constexpr, most_flips: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    """Set the forbidden logits of one row and one block of tokens to -inf."""
    row = tl.program_id(0)
    base, flips_begin, flips_end = mask_at(
        tl.load(batch + row), row, each, left, states, layers, masks, num_states, has_left, has_each, steps
    )  # fmt: skip
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


@triton.jit
def columns_of(first, groups: tl.constexpr):
    """The columns of ``groups`` groups of 32, one group for each word of a mask."""
    return first + 32 * tl.arange(0, groups)[:, None] + tl.arange(0, 32)[None, :]


@triton.jit
def advance_kernel(
    batch, taken, count, states, table, classes, text, tokens, num_states, vocab_size, reached, block: tl.constexpr
):  # fmt: skip
    """The states of a block of rows after one token each."""
    row = tl.program_id(0) * block + tl.arange(0, block)
    state = tl.load(batch + row, mask=row < count, other=0)
    token = tl.load(taken + row, mask=row < count, other=0)
    found = walked(state, token, states, table, classes, text, tokens, num_states, vocab_size)
    tl.store(reached + row, found, mask=row < count)


@triton.jit
def path_of(node, parents, count, num_rows, depth):
    """How many nodes lead from a row of the batch to a node, including the node, and that row.

    The number is 0 if there are more than ``depth``, or if a parent is neither a node nor a row.
    """
    length = (node < count).to(tl.int32)
    at = tl.where(length > 0, node, 0).to(tl.int64)
    before = tl.load(parents + at)
    for _ in range(depth - 1):
        above = (before >= 0) & (before < count)
        length = tl.where((length > 0) & above, length + 1, length)
        at = tl.where(above, before, at)
        before = tl.load(parents + at)
    row = -1 - before
    rooted = (length > 0) & (before < 0) & (row < num_rows)
    return tl.where(rooted, length, 0), tl.where(rooted, row, 0)


@triton.jit
def node_above(node, steps, parents, most):
    """The node ``steps`` steps above another one on its path. ``most``: the greatest number of steps."""
    at = node.to(tl.int64)
    for k in range(most):
        at = tl.where(k < steps, tl.load(parents + at), at)
    return at


@triton.jit
def advance_tree_kernel(
    batch, parents, taken, count, num_rows, depth, states, table, classes, text, tokens, num_states, vocab_size,
    reached, block: tl.constexpr,
):  # fmt: skip
    """The states after a block of nodes of a tree of tokens.

    Each node walks its own path from the root, which has few tokens, so no node waits for another.
    """
    node = tl.program_id(0) * block + tl.arange(0, block)
    length, row = path_of(node, parents, count, num_rows, depth)
    state = tl.where(length > 0, tl.load(batch + row), 0)
    own = tl.where(length > 0, node, 0)
    for level in range(depth):
        at = node_above(own, length - 1 - level, parents, depth - 1 - level)
        token = tl.load(taken + at)
        after = walked(state, token, states, table, classes, text, tokens, num_states, vocab_size)
        state = tl.where(level < length, after, state)
    tl.store(reached + node, state, mask=node < count)


@triton.jit
def compose_kernel(
    batch, states, table, classes, text, tokens, num_states, vocab_size, words, bitmask, block: tl.constexpr
):  # fmt: skip
    """One block of words of the mask of a state, computed by running every token from it."""
    row = tl.program_id(0)
    token = tl.program_id(1) * block + tl.arange(0, block)
    state = tl.load(batch + row) + tl.zeros_like(token)
    reached = walked(state, token, states, table, classes, text, tokens, num_states, vocab_size)
    allowed = (state > 1) & (reached != 0)
    bits = tl.reshape(allowed.to(tl.int32) << (token % 32), (block // 32, 32))
    word = tl.program_id(1) * (block // 32) + tl.arange(0, block // 32)
    tl.store(bitmask + row * words + word, tl.sum(bits, 1), mask=word < words)
