"""Applying a bitmask to logits on the CPU: ours, xgrammar's kernel, and torch's ``masked_fill_``.

Each call masks logits that were just written, in the same memory for every library. Its address is a multiple of 64,
as torch allocates; in one figure it is 16 bytes further, as numpy allocates large arrays. ``masked_fill_`` gets its
mask as booleans. No decoder has them, but the time to unpack a bitmask is left out in favour of ``masked_fill_``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tokenfst
from benchmarks.measuring.libraries import World, version
from benchmarks.measuring.measure import OURS, Figure, figure, sample

WIDTH = 131_072
BLOCK = 4_096
"""Logits are written by copying this many values repeatedly, so that the source takes little of the caches."""

DENSITIES = (0.001, 0.01, 0.1, 0.5, 0.9, 0.999, 1.0)


def logits_masking(world: World) -> Iterator[Figure]:
    """One row of float32 at all densities, and a batch of 64."""
    for density in DENSITIES:
        what = f"mask 1 x {WIDTH:,} float32 logits, {density:.1%} allowed"
        yield from _masking(what, rows=1, density=density, runs=401, target=1e-5)
    what = f"mask 1 x {WIDTH:,} float32 logits, 50.0% allowed, as numpy aligns them"
    yield from _masking(what, rows=1, density=0.5, runs=401, target=1e-5, offset=16)
    what = f"mask 64 x {WIDTH:,} float32 logits, 10.0% allowed"
    yield from _masking(what, rows=64, density=0.1, runs=41, target=1e-3)


def _masking(
    what: str, *, rows: int, density: float, runs: int, target: float, offset: int = 0
) -> Iterator[Figure]:
    rng = np.random.default_rng(0)
    block = rng.standard_normal(BLOCK, np.float32)
    allowed = rng.random((rows, WIDTH)) < density
    bitmask = np.packbits(allowed, axis=-1, bitorder="little").view(np.int32)
    logits = _allocate(rows, offset)
    expected = np.where(allowed, np.tile(block, WIDTH // BLOCK), -np.inf)

    def write() -> tuple[()]:
        logits.reshape(-1, BLOCK)[:] = block
        return ()

    for name, apply in _kernels(logits, bitmask, allowed):
        seconds = sample(apply, setup=write, runs=runs, warm_up=20)
        assert np.array_equal(logits, expected), f"{name} masked wrongly"
        yield figure(what, name, seconds, target=target if name.startswith(OURS) else None)


def _allocate(rows: int, offset: int) -> Any:
    """Logits that begin ``offset`` bytes after an address that is a multiple of 4,096."""
    memory = np.empty(rows * WIDTH * 4 + 8192, np.uint8)
    begin = -memory.ctypes.data % 4096 + offset
    return memory[begin : begin + rows * WIDTH * 4].view(np.float32).reshape(rows, WIDTH)


def _kernels(logits: Any, bitmask: Any, allowed: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    yield OURS, lambda: tokenfst.apply_token_bitmask_inplace(logits, bitmask)
    if version("torch") is None:
        return
    import torch

    torch.set_num_threads(1)
    scores, words, forbidden = map(torch.from_numpy, (logits, bitmask, ~allowed))
    yield f"{OURS}, torch tensors", lambda: tokenfst.apply_token_bitmask_inplace(scores, words)
    if version("xgrammar") is not None:
        import xgrammar

        yield "xgrammar", lambda: xgrammar.apply_token_bitmask_inplace(scores, words)
    minus_infinity = float("-inf")
    yield "masked_fill_", lambda: scores.masked_fill_(forbidden, minus_infinity)
