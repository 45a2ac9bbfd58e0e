"""The masking loop by Triton kernels: the same results as ``plain`` and ``plain_stacks``, bit for bit.

The kernels are in ``triton_kernels``, ``triton_greedy_kernels`` and ``triton_stack_kernels``.

Tables must be ``dense``: a mask is a row, or a list on the empty row. Masking stores -inf where the row forbids, and
reads no logit. For a list, the program first saves the listed logits of its block, and restores them afterwards. The
greedy step writes no logit: each program finds the greatest allowed logit of a block of columns, in the order of the
numbers as integers; a second kernel finds the greatest of those and walks the token's bytes. A step is two launches,
also with stacks, without synchronization with the host, so CUDA graphs can capture it.

Tested on the CPU by Triton's interpreter (TRITON_INTERPRET=1); ``AVAILABLE`` says whether Triton is installed.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from tokenfst.decoding.device.kernels.launching import launch
from tokenfst.decoding.device.kernels.plain_stacks import SYMBOLS
from tokenfst.decoding.device.tables.pool import Tables, Tensor, torch
from tokenfst.decoding.device.tables.tables import MOST_FLIPS

AVAILABLE = find_spec("triton") is not None

if AVAILABLE:
    from triton import cdiv, next_power_of_2

    from tokenfst.decoding.device.kernels import triton_greedy_kernels as kernels_of_greedy
    from tokenfst.decoding.device.kernels import triton_kernels as kernels
    from tokenfst.decoding.device.kernels import triton_stack_kernels as stack_kernels

_BITS = {
    torch.float32: (torch.int32, 0x7F800000, 0x7FFFFFFF),
    torch.float16: (torch.int16, 0x7C00, 0x7FFF),
    torch.bfloat16: (torch.int16, 0x7F80, 0x7FFF),
}
"""For each type of logits: the integers of its width, infinity, and the greatest magnitude."""
BLOCK = 4096
"""The number of columns of a row that one program masks."""
READ = 8192
"""The number of columns of a row that one program of the greedy kernel reads."""
ADVANCED = 32
"""The number of rows that one program advances."""
COMPOSED = 1024
"""The number of tokens that one program runs from a state."""


def takes(logits: Tensor | None) -> bool:
    """Whether the kernels support the type of these logits, if there are any."""
    return logits is None or logits.dtype in _BITS


def mask_logits_(t: Tables, logits: Tensor, states: Tensor, left: Tensor | int | None, steps: int) -> Tensor:
    """``DeviceAutomaton.mask_logits_``."""
    rows, width = logits.shape
    if rows:
        arguments = (
            logits, logits.stride(0), width, states, *left_of(left, states), t.states, t.layers, t.masks, t.rows,
            t.flips, len(t.states), len(t.tokens), t.rows.shape[1],
        )  # fmt: skip
        constants = {**limited(left, steps), "most_flips": MOST_FLIPS, "block": BLOCK}
        launch(kernels.mask_kernel, (rows, cdiv(width, BLOCK)), arguments, constants, 4)
    return logits


def advance(t: Tables, states: Tensor, tokens: Tensor) -> Tensor:
    """``DeviceAutomaton.advance``."""
    reached = torch.empty_like(states)
    if len(states):
        arguments = (states, tokens, len(states), *_walk(t), reached)
        launch(kernels.advance_kernel, (cdiv(len(states), ADVANCED),), arguments, {"block": ADVANCED}, 1)
    return reached


def advance_tree(t: Tables, states: Tensor, parents: Tensor, tokens: Tensor, depth: int) -> Tensor:
    """``DeviceAutomaton.advance_tree``, in one launch."""
    reached = states.new_zeros(len(parents))
    if len(parents) and len(states):
        arguments = (states, parents, tokens, len(parents), len(states), depth, *_walk(t), reached)
        grid = (cdiv(len(parents), ADVANCED),)
        launch(kernels.advance_tree_kernel, grid, arguments, {"block": ADVANCED}, 1)
    return reached


def greedy(
    t: Tables, logits: Tensor, states: Tensor, left: Tensor | int | None, steps: int
) -> tuple[Tensor, Tensor]:
    """``DeviceAutomaton.step`` at temperature 0, in two launches.

    ``states``: int32 (B,), or (B, 2 + capacity) with stacks, whose masks are then found in the same launches.
    """
    rows, device = len(states), states.device
    blocks = cdiv(len(t.tokens), READ)
    chosen = torch.empty(rows, dtype=torch.int64, device=device)
    reached = torch.empty_like(states)
    if rows:
        integers, infinity, magnitude = _BITS[logits.dtype]
        keys, columns = torch.empty((2, rows, blocks), dtype=torch.int32, device=device)
        capacity, stacked = room_of(states)
        arguments: tuple[Any, ...] = (
            logits.view(integers), logits.stride(0), logits.shape[1], states, *left_of(left, states), t.states,
            t.layers, t.masks, t.rows, t.flips, len(t.states), len(t.tokens), t.rows.shape[1], t.controls, t.comb,
            t.frames, with_stacks(t), len(t.comb), len(t.frames), capacity, keys, columns,
        )  # fmt: skip
        constants = {
            **limited(left, steps),
            "most_flips": MOST_FLIPS,
            "infinity": infinity,
            "magnitude": magnitude,
            "block": READ,
            "stacked": stacked,
        }
        launch(kernels_of_greedy.greatest_kernel, (rows, blocks), arguments, constants, 8)
        arguments = (
            keys, columns, states, t.states, t.table, t.classes, t.bytes, t.tokens, t.actions, t.pushes, t.comb,
            with_stacks(t) if stacked else len(t.states), len(t.tokens), len(t.comb), capacity, chosen, reached, blocks,
        )  # fmt: skip
        constants = {"padded": next_power_of_2(blocks), "stacked": stacked}
        launch(kernels_of_greedy.choose_kernel, (rows,), arguments, constants, 1)
    return chosen, reached


def room_of(states: Tensor) -> tuple[int, int]:
    """The capacity of the stacks of a batch, and the power of 2 that is at least that; zeros for a batch without
    stacks.
    """
    capacity = states.shape[1] - SYMBOLS if states.dim() > 1 else 0
    return capacity, next_power_of_2(capacity) if capacity else 0


def compose(t: Tables, states: Tensor, only_end: Tensor) -> Tensor:
    """``DeviceAutomaton.compose``; ``only_end``: the mask of the end tokens, for rows in which nothing is allowed."""
    words = t.rows.shape[1]
    out = torch.empty((len(states), words), dtype=torch.int32, device=states.device)
    if len(states):
        grid = len(states), cdiv(32 * words, COMPOSED)
        launch(kernels.compose_kernel, grid, (states, *_walk(t), words, out), {"block": COMPOSED}, 4)
    return torch.where((out != 0).any(1, keepdim=True), out, only_end)


def advance_stacks(t: Tables, rows: Tensor, tokens: Tensor) -> Tensor:
    """``PushDownDeviceAutomaton.advance``."""
    reached, capacity = torch.empty_like(rows), rows.shape[1] - SYMBOLS
    if len(rows):
        arguments = (rows, tokens, *_stack_walk(t), capacity, reached)
        padded = next_power_of_2(capacity)
        launch(stack_kernels.advance_stacks_kernel, (len(rows),), arguments, {"padded": padded}, 1)
    return reached


def advance_tree_of_stacks(t: Tables, rows: Tensor, parents: Tensor, tokens: Tensor, depth: int) -> Tensor:
    """``PushDownDeviceAutomaton.advance_tree``, in one launch."""
    reached, capacity = rows.new_zeros((len(parents), rows.shape[1])), rows.shape[1] - SYMBOLS
    if len(parents) and len(rows):
        arguments = (
            rows, parents, tokens, len(parents), len(rows), depth, *_stack_walk(t), capacity, reached,
        )  # fmt: skip
        padded = next_power_of_2(capacity)
        launch(stack_kernels.advance_tree_of_stacks_kernel, (len(parents),), arguments, {"padded": padded}, 1)
    return reached


def resting(t: Tables, rows: Tensor, has_left: bool) -> tuple[Tensor, Tensor | None]:
    """The state whose mask each row has, int32 (B,).

    With ``has_left`` also the number of tokens, int32 (B,), that complete the part of the stack below what this
    state reads.
    """
    found, capacity = rows.new_empty(len(rows)), rows.shape[1] - SYMBOLS
    lengths = torch.empty_like(found) if has_left else None
    if len(rows):
        arguments = (
            rows, t.controls, t.comb, t.frames, with_stacks(t), len(t.comb), len(t.frames), capacity, found,
            found if lengths is None else lengths,
        )  # fmt: skip
        constants = {"has_left": has_left, "padded": next_power_of_2(capacity)}
        launch(stack_kernels.resting_kernel, (len(rows),), arguments, constants, 1)
    return found, lengths


def _stack_walk(t: Tables) -> tuple[Any, ...]:
    return (
        t.states, t.table, t.classes, t.bytes, t.tokens, t.actions, t.pushes, t.comb, with_stacks(t), len(t.tokens),
        len(t.comb),
    )  # fmt: skip


def with_stacks(t: Tables) -> int:
    """How many states have stacks, or may have them."""
    return min(len(t.states), len(t.controls))


def _walk(t: Tables) -> tuple[Any, ...]:
    return t.states, t.table, t.classes, t.bytes, t.tokens, len(t.states), len(t.tokens)


def left_of(left: Tensor | int | None, states: Tensor) -> tuple[Tensor, int]:
    """The remaining tokens in the form that kernels take: a tensor with one number a row, and a number for all rows."""
    return (states, -1 if left is None else left) if left is None or isinstance(left, int) else (left, 0)


def limited(left: Tensor | int | None, steps: int) -> dict[str, Any]:
    """The compile-time parameters of kernels: whether there is a limit of tokens, and whether it differs by row."""
    return {
        "has_left": left is not None,
        "has_each": left is not None and not isinstance(left, int),
        "steps": steps,
    }
