"""The sampled step by Triton: two launches without synchronization with the host (``triton_kernels``).

No logit is written. The kernels pass data to each other in a workspace. There is one for each batch size and
sampler, and it is kept, so that CUDA graphs find it at the same address. Tables must be ``dense``, as for the other
kernels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from triton import cdiv, next_power_of_2

from tokenfst.decoding.device.kernels.launching import launch
from tokenfst.decoding.device.kernels.sampling import triton_kernels as kernels
from tokenfst.decoding.device.kernels.sampling.plain import BLOCK, Rows
from tokenfst.decoding.device.kernels.triton import left_of, limited, room_of, with_stacks
from tokenfst.decoding.device.tables.pool import Tables, Tensor, torch
from tokenfst.decoding.device.tables.tables import MOST_FLIPS

_SPARE_BITS = {torch.float32: 0, torch.float16: 13, torch.bfloat16: 16}
"""The bits that are 0 in every logit of a type, as a float32."""


class Workspace(NamedTuple):
    """Memory that the two kernels share.

    For each block: its greatest score and its mass, and both again over all logits. For each group of 32: its
    greatest key. For each row: a list of groups. Parts that a sampler does not use have one element.
    """

    tops: Tensor
    masses: Tensor
    model_tops: Tensor
    model_masses: Tensor
    keys: Tensor
    listed: Tensor

    @classmethod
    def of(cls, rows: int, vocab_size: int, device: torch.device, *, filtered: bool, logs: bool) -> Workspace:
        """The workspace of ``rows`` rows; O(rows * V / 32) numbers."""
        blocks = cdiv(vocab_size, BLOCK)
        size, groups = rows * blocks, blocks * (BLOCK // 32)

        def empty(count: int, dtype: torch.dtype) -> Tensor:
            return torch.empty(max(count, 1), dtype=dtype, device=device)

        return cls(
            empty(size, torch.float32),
            empty(size, torch.int64),
            empty(size * logs, torch.float32),
            empty(size * logs, torch.int64),
            empty(rows * groups * filtered, torch.int32),
            empty(rows * max(groups, MOST_FLIPS) * filtered, torch.int32),
        )


def sample(
    t: Tables,
    logits: Tensor,
    states: Tensor,
    left: Tensor | int | None,
    steps: int,
    rows: Rows,
    workspace: Workspace,
    *,
    filtered: bool,
    walks: bool,
    logs: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """The tokens, the states after them (with ``walks``; otherwise ``states``), and with ``logs`` both
    log-probabilities.

    ``states``: int32 (B,), or (B, 2 + capacity) with stacks, whose masks are then found in the same launches.
    """
    count, device = len(states), states.device
    chosen = torch.empty(count, dtype=torch.int64, device=device)
    reached = torch.empty_like(states) if walks else states
    ours, models = torch.empty((2, count if logs else 1), dtype=torch.float32, device=device)
    if count:
        capacity, stacked = room_of(states)
        blocks, words = cdiv(len(t.tokens), BLOCK), t.rows.shape[1]
        groups = blocks * (BLOCK // 32)
        penalized = rows.seen is not None
        shared: tuple[Any, ...] = (
            logits, logits.stride(0), logits.shape[1], states, *left_of(left, states), t.states, t.layers, t.masks,
            t.rows, t.flips, len(t.states), len(t.tokens), words, rows.numbers,
            rows.numbers if rows.seen is None else rows.seen, t.controls, t.comb, t.frames, with_stacks(t), len(t.comb),
            len(t.frames), capacity,
        )  # fmt: skip
        options = {
            **limited(left, steps),
            "most_flips": MOST_FLIPS,
            "penalized": penalized,
            "filtered": filtered,
            "logs": logs,
            "shift": 0 if penalized else _SPARE_BITS[logits.dtype],
            "block": BLOCK,
            "stacked": stacked,
        }
        launch(kernels.mass_kernel, (count, blocks), (*shared, *workspace[:5]), options, 8)
        arguments = (
            *shared, *workspace, t.actions, t.pushes, t.table, t.classes, t.bytes, t.tokens, rows.seeds, rows.draws,
            rows.forced, chosen, reached, ours, models, blocks, max(groups, MOST_FLIPS),
        )  # fmt: skip
        padded = {"padded": next_power_of_2(blocks), "groups": next_power_of_2(groups)}
        launch(kernels.draw_kernel, (count,), arguments, {**options, "walks": walks, **padded}, 8)
    return chosen, reached, ours[:count] if logs else None, models[:count] if logs else None
