"""Applies masks to logits on any device, with torch's operations."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tokenfst.compat.xgrammar.kernels.apply_token_bitmask_inplace_cpu import masked_columns
from tokenfst.decoding.masks.on_device import apply_on_device


def apply_token_bitmask_inplace_torch(
    logits: torch.Tensor,
    bitmask: torch.Tensor,
    vocab_size: int | None = None,
    indices: Sequence[int] | torch.Tensor | None = None,
) -> None:
    """Set the logits of forbidden tokens to -inf, in all rows or in those in ``indices``."""
    columns = masked_columns("apply_token_bitmask_inplace_torch", logits, bitmask, vocab_size)
    apply_on_device(logits[..., :columns], bitmask, indices=indices, check_nan=False)


def apply_token_bitmask_inplace_kernel_no_indices_torch(
    logits: torch.Tensor, bitmask: torch.Tensor, vocab_size: int
) -> None:
    """Set the logits of forbidden tokens to -inf, in all rows."""
    apply_token_bitmask_inplace_torch(logits, bitmask, vocab_size)


def apply_token_bitmask_inplace_kernel_indices_torch(
    logits: torch.Tensor, bitmask: torch.Tensor, vocab_size: int, indices: Sequence[int]
) -> None:
    """Set the logits of forbidden tokens to -inf, in the rows ``indices``."""
    apply_token_bitmask_inplace_torch(logits, bitmask, vocab_size, indices)
