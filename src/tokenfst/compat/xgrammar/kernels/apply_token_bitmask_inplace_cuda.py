"""xgrammar's kernel in CUDA, which torch compiles when it is imported; here the Triton kernel behind the same name."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tokenfst.compat.xgrammar.kernels.apply_token_bitmask_inplace_triton import (
    apply_token_bitmask_inplace_triton,
)


def apply_token_bitmask_inplace_cuda(
    logits: torch.Tensor, bitmask: torch.Tensor, indices: Sequence[int] | torch.Tensor | None = None
) -> None:
    """Set the logits of forbidden tokens to -inf: of all rows, or of those in ``indices``."""
    apply_token_bitmask_inplace_triton(logits, bitmask, indices=indices)
