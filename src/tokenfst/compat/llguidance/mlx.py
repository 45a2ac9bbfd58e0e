"""Applies masks to logits with MLX, as ``llguidance.mlx`` does. For MLX-LM's own loops see docs/engines/mlx.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst.compat.llguidance.classes.matcher import LLMatcher
from tokenfst.compat.llguidance.numpy import (
    allocate_token_bitmask,
    fill_next_token_bitmask,
    get_bitmask_shape,
)
from tokenfst.decoding.engines.mlx import masked
from tokenfst.errors import MaskBufferError

import mlx.core as mx  # isort: skip  # after engines.mlx, whose error names the extra

__all__ = [
    "LLMatcher",
    "allocate_token_bitmask",
    "apply_token_bitmask",
    "apply_token_bitmask_kernel",
    "fill_next_token_bitmask",
    "get_bitmask_shape",
]


def apply_token_bitmask_kernel(data: mx.array, mask: mx.array) -> mx.array:
    """Logits of shape (rows, V), with -inf if a bit of the row of ``mask`` is 0, and for columns beyond the mask.

    This uses MLX's operations, on the device that MLX uses; llguidance's function needs Metal.
    """
    return masked(data, mask.view(mx.uint32))


def apply_token_bitmask(logits: mx.array, mask_np: npt.NDArray[np.int32]) -> mx.array:
    """Logits of one row or several, with -inf if a token is not allowed. One row is returned as a batch of one row."""
    mask: Any = np.atleast_2d(mask_np)
    data = logits[None] if logits.ndim == 1 else logits
    if mask.dtype != np.int32 or mask.ndim != 2 or data.ndim != 2 or len(mask) != data.shape[0]:
        raise MaskBufferError(
            "apply_token_bitmask: give logits of shape (rows, V) and a mask of int32 with as many rows, not of shapes "
            f"{logits.shape} and {mask_np.shape} ({mask_np.dtype})"
        )
    return apply_token_bitmask_kernel(data, mx.array(mask))
