# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
"""Applies masks to logits on a GPU, with a Triton kernel: one program for each row and block of columns.

A program reads the mask words of its columns, unpacks their bits and stores -inf for each bit that is 0. It reads no
logit. Triton's interpreter (TRITON_INTERPRET=1) runs it on the CPU.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch

from tokenfst.common.plurals import counted
from tokenfst.compat.xgrammar.kernels.apply_token_bitmask_inplace_cpu import masked_columns
from tokenfst.decoding.device.kernels.launching import launch
from tokenfst.decoding.masks.bitmask import checked_indices
from tokenfst.errors import MaskBufferError, MissingDependencyError

try:
    import triton
    import triton.language as tl
except ImportError as error:
    raise MissingDependencyError(
        'apply_token_bitmask_inplace_triton needs Triton: pip install "tokenfst[gpu]"; '
        "apply_token_bitmask_inplace_torch takes any device without it"
    ) from error

_BLOCK = 4096


@triton.jit
def apply_token_bitmask_inplace_kernel(
    logits, stride, bitmask, words, rows, width, has_rows: tl.constexpr, block: tl.constexpr
):
    """Set the forbidden logits of one row and one block of columns to -inf."""
    row = tl.program_id(0)
    if has_rows:
        row = tl.load(rows + row)
    column = tl.program_id(1) * block + tl.arange(0, block)
    inside = column < width
    word = tl.load(bitmask + row.to(tl.int64) * words + column // 32, mask=inside, other=0)
    allowed = ((word >> (column % 32)) & 1) != 0
    tl.store(logits + row.to(tl.int64) * stride + column, float("-inf"), mask=inside & (allowed == 0))


def apply_token_bitmask_inplace_triton(
    logits: torch.Tensor,
    bitmask: torch.Tensor,
    vocab_size: int | None = None,
    indices: Sequence[int] | torch.Tensor | None = None,
) -> None:
    """Set the logits of forbidden tokens to -inf, in all rows or in those in ``indices``."""
    name = "apply_token_bitmask_inplace_triton"
    if logits.device.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        raise MaskBufferError(
            f"{name}: logits must be on a GPU, not on the CPU; use apply_token_bitmask_inplace_cpu there"
        )
    columns = masked_columns(name, logits, bitmask, vocab_size)
    scores, mask = torch.atleast_2d(logits), torch.atleast_2d(bitmask).to(logits.device).contiguous()
    if scores.stride(1) != 1:
        raise MaskBufferError(f"{name}: the logits of a row must lie side by side; call contiguous() first")
    rows, count = mask, len(scores)
    if indices is not None:
        chosen = checked_indices(indices, min(len(scores), len(mask)))
        rows, count = torch.tensor(chosen, dtype=torch.int32, device=logits.device), len(chosen)
    elif len(scores) != len(mask):
        raise MaskBufferError(
            f"{name}: the bitmask has {counted(len(mask), 'row')} and the logits have {len(scores)}; name rows in "
            "`indices`"
        )
    if count and columns:
        launch(
            apply_token_bitmask_inplace_kernel,
            (count, triton.cdiv(columns, _BLOCK)),
            (scores, scores.stride(0), mask, mask.shape[1], rows, columns),
            {"has_rows": indices is not None, "block": _BLOCK},
            8,
        )
