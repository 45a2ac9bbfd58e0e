"""Applies masks to logits with MLX."""

from __future__ import annotations

from typing import Any

from tokenfst.decoding.engines.mlx import masked
from tokenfst.errors import MaskBufferError

import mlx.core as mx  # isort: skip  # after engines.mlx, whose error names the extra


def apply_token_bitmask_mlx(bitmask: Any, logits: Any, vocab_size: int) -> Any:
    """The first ``vocab_size`` logits of each row, with -inf if a token is forbidden.

    ``bitmask``: int32, with one row for each row of logits.
    """
    if bitmask.dtype not in (mx.int32, mx.uint32):
        raise MaskBufferError(f"apply_token_bitmask_mlx: bitmask must be of int32, not {bitmask.dtype}")
    if bitmask.shape[:-1] != logits.shape[:-1]:
        raise MaskBufferError(
            f"apply_token_bitmask_mlx: give a row of bitmask for each of logits; their shapes are {bitmask.shape} "
            f"and {logits.shape}"
        )
    return masked(logits[..., :vocab_size], bitmask.view(mx.uint32))
