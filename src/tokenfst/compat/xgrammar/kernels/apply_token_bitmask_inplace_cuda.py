"""The name of xgrammar's CUDA kernel, which torch compiles on import. Here it is the Triton kernel."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tokenfst.compat.xgrammar.kernels.apply_token_bitmask_inplace_triton import (
    apply_token_bitmask_inplace_triton,
)


def apply_token_bitmask_inplace_cuda(
    logits: torch.Tensor, bitmask: torch.Tensor, indices: Sequence[int] | torch.Tensor | None = None
) -> None:
    """Set the logits of forbidden tokens to -inf, in all rows or in those in ``indices``."""
    apply_token_bitmask_inplace_triton(logits, bitmask, indices=indices)
