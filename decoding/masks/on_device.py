"""Application of a bitmask to torch logits on any device, by torch operations only.

The packed mask (V / 8 bytes per row) is copied to the device and unpacked there by shifts, and the forbidden logits are
filled with -inf. Memory: V bytes per row for the unpacked bits. On the CPU the native kernel is far faster;
``apply_token_bitmask_inplace`` chooses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenfst.common.plurals import counted
from tokenfst.decoding.masks import bitmask as host
from tokenfst.errors import MaskBufferError, MissingDependencyError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError(
        'masking torch tensors needs torch: pip install "tokenfst[torch]"'
    ) from error


def apply_on_device(
    logits: Any, bitmask: Any, *, vocab_size: int | None = None, indices: Any = None, check_nan: bool = True
) -> None:
    """``apply_token_bitmask_inplace`` for a torch tensor of floating-point logits on any device.

    The bitmask may be a numpy array, or a torch tensor on the host or on the device of the logits. The NaN test
    synchronizes with the device; with ``check_nan=False`` the call returns at once.
    """
    if logits.is_meta:
        raise MaskBufferError("the logits are on the device meta and hold no numbers")
    mask = torch.from_numpy(np.ascontiguousarray(bitmask)) if isinstance(bitmask, np.ndarray) else bitmask
    if mask.dtype != torch.int32:
        raise MaskBufferError(f"the bitmask must be of dtype int32, not {mask.dtype}")
    if not 1 <= logits.dim() <= 2 or not 1 <= mask.dim() <= 2:
        raise MaskBufferError(
            "logits and bitmask must have 1 or 2 dimensions; they have shapes "
            f"{tuple(logits.shape)} and {tuple(mask.shape)}"
        )
    scores = logits if logits.dim() == 2 else logits.unsqueeze(0)
    mask = (mask if mask.dim() == 2 else mask.unsqueeze(0)).to(logits.device, non_blocking=True)
    rows = None
    if indices is not None:
        checked = host.checked_indices(indices, min(len(scores), len(mask)))
        rows = torch.tensor(checked, dtype=torch.long, device=logits.device)
        mask = mask.index_select(0, rows)
    elif len(mask) != len(scores):
        raise MaskBufferError(
            f"the bitmask has {counted(len(mask), 'row')} and the logits have {len(scores)}"
        )

    width = scores.shape[1]
    known = min(host.checked_vocab_size(vocab_size, width), 32 * mask.shape[1])
    shifts = torch.arange(32, dtype=torch.int32, device=logits.device)
    bits = (mask.unsqueeze(-1) >> shifts) & 1
    forbidden = torch.ones((len(mask), width), dtype=torch.bool, device=logits.device)
    forbidden[:, :known] = bits.flatten(1)[:, :known] == 0
    if rows is None:
        nan = scores.isnan() & ~forbidden if check_nan else None
        scores.masked_fill_(forbidden, float("-inf"))
    else:
        chosen = scores.index_select(0, rows)
        nan = chosen.isnan() & ~forbidden if check_nan else None
        scores.index_copy_(0, rows, chosen.masked_fill_(forbidden, float("-inf")))
    if nan is not None and bool(nan.any()):
        row, column = nan.nonzero()[0].tolist()
        host.raise_nan(row if rows is None else int(rows[row]), column)


def first_empty(logits: Any, indices: Any) -> int | None:
    """The first row, of all or of those in ``indices``, in which all logits are -inf."""
    scores = logits if logits.dim() == 2 else logits.unsqueeze(0)
    empty = (scores == float("-inf")).all(1).nonzero().flatten().tolist()
    return next((row for row in empty if indices is None or row in indices), None)
