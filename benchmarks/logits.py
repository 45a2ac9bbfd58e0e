"""Applying a bitmask to logits on the CPU: ours, xgrammar's kernel, and torch's ``masked_fill_``.

Each call masks logits that were just written, all in the same memory for every library. ``masked_fill_`` is given
its mask as booleans already, which nobody has at hand: the unpacking is left out in its favour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tokenfst
from libraries import World, version
from measure import OURS, Figure, figure, sample

WIDTH = 131_072
DENSITIES = (0.001, 0.01, 0.1, 0.5, 0.9, 0.999, 1.0)


def logits_masking(world: World) -> Iterator[Figure]:
    """One row of float32 at all densities, and a batch of 64."""
    for density in DENSITIES:
        what = f"mask 1 x {WIDTH:,} float32 logits, {density:.1%} allowed"
        yield from _masking(what, rows=1, density=density, runs=401, target=1e-5)
    what = f"mask 64 x {WIDTH:,} float32 logits, 10.0% allowed"
    yield from _masking(what, rows=64, density=0.1, runs=41, target=1e-3)


def _masking(what: str, *, rows: int, density: float, runs: int, target: float) -> Iterator[Figure]:
    rng = np.random.default_rng(0)
    fresh = rng.standard_normal((rows, WIDTH), np.float32)
    allowed = rng.random((rows, WIDTH)) < density
    bitmask = np.packbits(allowed, axis=-1, bitorder="little").view(np.int32)
    logits = np.empty_like(fresh)
    expected = np.where(allowed, fresh, -np.inf)
    for name, apply in _kernels(logits, bitmask, allowed):
        seconds = sample(apply, setup=lambda: (np.copyto(logits, fresh), ())[1], runs=runs, warm_up=20)
        assert np.array_equal(logits, expected), f"{name} masked wrongly"
        yield figure(what, name, seconds, target=target if name == OURS else None)


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
