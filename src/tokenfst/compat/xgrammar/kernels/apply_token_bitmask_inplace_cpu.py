"""Applies masks to logits on the CPU, with the native core."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tokenfst.decoding.masks.bitmask import apply_token_bitmask_inplace
from tokenfst.errors import MaskBufferError


def apply_token_bitmask_inplace_cpu(
    logits: torch.Tensor,
    bitmask: torch.Tensor,
    vocab_size: int | None = None,
    indices: Sequence[int] | torch.Tensor | None = None,
) -> None:
    """Set the logits of forbidden tokens to -inf, in all rows or in those in ``indices``."""
    for name, each in (("logits", logits), ("bitmask", bitmask)):
        if each.device.type != "cpu":
            raise MaskBufferError(
                f"apply_token_bitmask_inplace_cpu: {name} must be on the CPU, not on {each.device}; "
                "apply_token_bitmask_inplace takes any device"
            )
    apply_token_bitmask_inplace(
        logits[..., : masked_columns("apply_token_bitmask_inplace_cpu", logits, bitmask, vocab_size)],
        bitmask,
        indices=indices,
        check_nan=False,
    )


def masked_columns(name: str, logits: torch.Tensor, bitmask: torch.Tensor, vocab_size: int | None) -> int:
    """How many logits of a row are masked: as many as the mask has bits, or ``vocab_size``."""
    if bitmask.dtype != torch.int32:
        raise MaskBufferError(f"{name}: bitmask must be of torch.int32, not {bitmask.dtype}")
    if not 1 <= logits.dim() <= 2 or not 1 <= bitmask.dim() <= 2:
        raise MaskBufferError(
            f"{name}: logits and bitmask must have 1 or 2 dimensions, not shapes {tuple(logits.shape)} and "
            f"{tuple(bitmask.shape)}"
        )
    most: int = min(logits.shape[-1], 32 * bitmask.shape[-1])
    if vocab_size is None:
        return most
    if not 0 <= vocab_size <= most:
        raise MaskBufferError(
            f"{name}: vocab_size must be from 0 to {most:,}, which logits and bitmask have, not {vocab_size!r}"
        )
    return vocab_size
