"""Token bitmasks: allocation, filling for a batch, and application to logits (convention 6).

A bitmask is int32 of shape ``(batch, ceil(V / 32))``: bit ``t % 32`` of word ``t // 32`` is 1 if token ``t`` is
allowed. xgrammar, llguidance, vLLM and SGLang share this layout, so masks can be passed to their kernels and theirs to
ours. Buffers are numpy arrays or torch tensors on the CPU; a kernel in the native core works on their memory in place.
Logits on another torch device are handled by ``on_device``, which copies the mask there.

This module never imports torch: a tensor is recognized by its class, which exists only once torch is imported.

Cost: checking two buffers takes 1-2 µs, masking one float32 row of 131,072 logits 5-7 µs (docs/decoding/masks.md).
Rejected: DLPack for the exchange, which costs more per call than masking a row.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst.common.arguments import checked, refuse, whole
from tokenfst.common.plurals import counted
from tokenfst.common.token_ids import outside
from tokenfst.errors import ArgumentValueError, LogitsError, MaskBufferError

if TYPE_CHECKING:
    import torch

Buffer: TypeAlias = "npt.NDArray[Any] | torch.Tensor"

_NUMPY_TYPES = {np.dtype(np.float32): 0, np.dtype(np.float16): 1}
_INT32 = np.dtype(np.int32)
_SIZES = (4, 2, 2)
"""Bytes per element of each element type; mask words have those of type 0."""
_TORCH_TYPES = {"torch.float32": 0, "torch.float16": 1, "torch.bfloat16": 2}
_THREAD_BYTES = 4 << 20
"""Logits per thread below which starting another thread costs more than it saves."""
_THREAD_ROWS = 16


@checked
def allocate_token_bitmask(batch: int, vocab_size: int) -> npt.NDArray[np.int32]:
    """A bitmask of shape ``(batch, ceil(vocab_size / 32))`` that allows every token."""
    if batch < 0 or vocab_size < 0:
        raise ArgumentValueError(f"batch and vocab_size must not be negative: {batch}, {vocab_size}")
    return np.full((batch, -(-vocab_size // 32)), -1, dtype=np.int32)


def bitmask_from_ids(ids: Iterable[int], vocab_size: int) -> npt.NDArray[np.int32]:
    """The bitmask row, of shape ``(ceil(vocab_size / 32),)``, that allows exactly these tokens.

    Raises ``TokenIdError`` for an id outside ``range(vocab_size)``.
    """
    chosen = np.fromiter(ids, dtype=np.int64)
    for bad in chosen[(chosen < 0) | (chosen >= vocab_size)][:1].tolist():
        raise outside(bad, vocab_size)
    bits = np.zeros(-(-vocab_size // 32) * 32, dtype=np.uint8)
    bits[chosen] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def unpack_bitmask(bitmask: Buffer, vocab_size: int) -> npt.NDArray[np.bool_]:
    """The bitmask as booleans, of shape ``(batch, vocab_size)``, or ``(vocab_size,)`` for a single row."""
    _, _, _, words_per_row, _ = _bitmask_view(bitmask)
    if vocab_size > 32 * words_per_row:
        raise MaskBufferError(
            f"a row of the bitmask has {counted(words_per_row, 'word')}, room for {32 * words_per_row:,} tokens, not "
            f"{vocab_size:,}"
        )
    words = np.ascontiguousarray(bitmask if isinstance(bitmask, np.ndarray) else bitmask.numpy())
    bits = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little", count=vocab_size)
    return bits.view(np.bool_)


def apply_token_bitmask_inplace(
    logits: Buffer,
    bitmask: Buffer,
    *,
    vocab_size: int | None = None,
    indices: Sequence[int] | npt.NDArray[np.integer[Any]] | torch.Tensor | None = None,
    check_nan: bool = True,
) -> None:
    """Set the logits of forbidden tokens to -inf; allowed logits keep their bits.

    ``logits``: shape ``(batch, width)`` or ``(width,)``, rows contiguous; float32 or float16 (numpy), also bfloat16
    (torch). ``bitmask``: int32, shape ``(batch, words)`` or ``(words,)``. Both may be numpy arrays or torch tensors on
    the CPU, in any combination. Torch logits on another device are masked there, after the mask is copied to it.

    Row r of the mask is applied to row r of the logits: by default for every row, where the batch sizes must be equal;
    or for each r in ``indices``, where other rows are unchanged and the batch sizes may differ.

    Logits beyond the mask's last word, or beyond ``vocab_size``, become -inf as well.

    Raises ``LogitsError`` if the logit of an allowed token is NaN, naming row and column, after all rows are masked
    (``check_nan=False`` leaves NaN unchanged), and ``MaskBufferError`` if a buffer does not fit.
    """
    _apply(logits, bitmask, vocab_size, indices, check_nan, False)


def apply_and_find_empty(
    logits: Buffer,
    bitmask: Buffer,
    *,
    vocab_size: int,
    indices: Sequence[int] | None = None,
    check_nan: bool = True,
) -> int | None:
    """Like ``apply_token_bitmask_inplace``; returns the first masked row in which every allowed logit is -inf, or None.

    Usually only a few logits are read. On a device other than the CPU all are, and the call synchronizes with the
    device.
    """
    return _apply(logits, bitmask, vocab_size, indices, check_nan, True)


def _apply(
    logits: Buffer, bitmask: Buffer, vocab_size: int | None, indices: Any, check_nan: bool, find_empty: bool
) -> int | None:
    scores = _logits_view(logits)
    if scores is None:
        from tokenfst.decoding.masks import on_device as bitmask_torch

        bitmask_torch.apply_on_device(
            logits, bitmask, vocab_size=vocab_size, indices=indices, check_nan=check_nan
        )
        return bitmask_torch.first_empty(logits, indices) if find_empty else None
    address, kind, rows, width, stride = scores
    mask_address, _, mask_rows, words, mask_stride = _bitmask_view(bitmask)
    chosen, count = None, rows
    if indices is not None:
        chosen = checked_indices(indices, min(rows, mask_rows))
        count = len(chosen)
    elif rows != mask_rows:
        raise MaskBufferError(
            f"the bitmask has {counted(mask_rows, 'row')} and the logits have {rows}; give one mask row per row of "
            "logits (numpy.broadcast_to repeats a row at no cost), or name the rows to mask in `indices`"
        )
    known = checked_vocab_size(vocab_size, width)
    nan = _native.apply_bitmask(
        address,
        kind,
        rows,
        width,
        stride,
        mask_address,
        mask_rows,
        words,
        mask_stride,
        known,
        chosen,
        check_nan,
        host_threads(count, width * _SIZES[kind] * count),
        "auto",
    )
    if nan is not None:
        raise_nan(*nan)
    if not find_empty:
        return None
    return _native.row_without_choice(
        address, kind, rows, width, stride, mask_address, mask_rows, words, mask_stride, known, chosen
    )


class MaskSource(Protocol):
    """The interface of a matcher that is written in Python."""

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool:
        """Write the allowed next tokens into a row.

        False promises that every token is allowed, so that the mask need not be applied.
        """


def fill_bitmasks(
    matchers: Sequence[_native.Matcher | MaskSource], bitmask: Buffer, threads: int | None = None
) -> None:
    """Write the next-token mask of ``matchers[i]`` into row ``i`` of ``bitmask``, for all matchers.

    ``threads``: number of threads that share the work (the GIL is released); by default one for every 16 matchers, at
    most one for each CPU. A matcher may occur several times. If any of them is implemented in Python (canonical
    sequences, limits of tokens with stacks), one thread fills all rows. Raises ``MaskBufferError`` if the buffer does
    not fit.
    """
    _, _, rows, _, _ = _bitmask_view(bitmask)
    if type(matchers) is not list and not isinstance(matchers, Sequence):
        refuse("fill_bitmasks", "matchers", matchers, "a sequence of matchers")
    if len(matchers) > rows:
        raise MaskBufferError(
            f"{counted(len(matchers), 'matcher')} cannot fill a bitmask of {counted(rows, 'row')}: give one row for "
            "each matcher"
        )
    if isinstance(bitmask, np.ndarray) and not bitmask.flags.writeable:
        raise MaskBufferError(
            "the bitmask is read-only; copy it, or allocate one by allocate_token_bitmask()"
        )
    if threads is None:
        threads = _threads(len(matchers), len(matchers) // _THREAD_ROWS)
    elif type(threads) is not int or threads < 1:
        threads = whole("fill_bitmasks", "threads", threads, 1)
    native = [matcher for matcher in matchers if isinstance(matcher, _native.Matcher)]
    if len(native) == len(matchers):
        _native.fill_bitmasks(native, bitmask, threads)
        return
    for row, matcher in enumerate(matchers):
        if not hasattr(matcher, "fill_next_token_bitmask"):
            refuse("fill_bitmasks", f"matchers[{row}]", matcher, "a Matcher")
        matcher.fill_next_token_bitmask(bitmask, row)


def raise_nan(row: int, column: int) -> None:
    """Raise ``LogitsError`` for a NaN logit."""
    raise LogitsError(
        f"the logit of token {column} in row {row} is NaN: no token can be chosen by it. Look for an "
        "overflow in the model (float16 activations are the usual cause); check_nan=False lets NaN pass"
    )


_View: TypeAlias = tuple[int, int, int, int, int]
"""A buffer as the kernel sees it: address, element type, rows, columns, bytes from row to row."""


def _logits_view(logits: Any) -> _View | None:
    """The logits, checked; None where they live on another device than the CPU."""
    if isinstance(logits, np.ndarray):
        kind = _NUMPY_TYPES.get(logits.dtype)
        if kind is None:
            raise MaskBufferError(
                f"numpy logits must be float32 or float16, not {logits.dtype}; convert them by "
                "logits.astype(numpy.float32)"
            )
        if not logits.flags.writeable:
            raise MaskBufferError(
                "the logits are read-only; masking in place needs a writable array: copy them"
            )
        view = _numpy_view(logits, kind, "logits", "width")
    elif is_tensor(logits):
        kind = _TORCH_TYPES.get(str(logits.dtype))
        if kind is None:
            raise MaskBufferError(
                f"torch logits must be float32, float16 or bfloat16, not {logits.dtype}; convert them by "
                "logits.float()"
            )
        if not logits.is_cpu:
            return None
        view = _torch_view(logits, kind, "logits", "width")
    else:
        raise MaskBufferError(f"logits must be a numpy array or a torch tensor, not {type(logits).__name__}")
    if view[2] > 1 and abs(view[4]) < view[3] * _SIZES[kind]:
        raise MaskBufferError(
            "the rows of the logits overlap in memory (an expanded view?); make them their own copy"
        )
    return view


def _bitmask_view(bitmask: Any) -> _View:
    if isinstance(bitmask, np.ndarray):
        if bitmask.dtype == _INT32:
            return _numpy_view(bitmask, 0, "bitmask", "words")
    elif is_tensor(bitmask):
        if not bitmask.is_cpu:
            raise MaskBufferError(
                f"the bitmask must be in host memory, not on {bitmask.device}; use bitmask.cpu()"
            )
        if str(bitmask.dtype) == "torch.int32":
            return _torch_view(bitmask, 0, "bitmask", "words")
    else:
        raise MaskBufferError(
            f"the bitmask must be a numpy array or a torch tensor, not {type(bitmask).__name__}"
        )
    raise MaskBufferError(
        f"the bitmask must be of dtype int32, not {bitmask.dtype}; allocate_token_bitmask(batch, vocab_size) "
        "makes one"
    )


def is_tensor(buffer: Any) -> bool:
    """Whether ``buffer`` is a torch tensor, determined without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(buffer, torch.Tensor)


def _numpy_view(array: npt.NDArray[Any], kind: int, what: str, last: str) -> _View:
    shape, strides, address = array.shape, array.strides, _native.buffer_address(array)
    if len(shape) == 2:
        (rows, columns), (stride, step) = shape, strides
    elif len(shape) == 1:
        rows, columns, stride, step = 1, shape[0], 0, strides[0]
    else:
        raise _wrong_shape(what, last, shape)
    if step != _SIZES[kind] and columns > 1 and rows > 0:  # strides of empty arrays are 0
        raise MaskBufferError(
            f"the rows of the {what} must be contiguous in memory; numpy.ascontiguousarray() makes them so"
        )
    return address, kind, rows, columns, stride


def _torch_view(tensor: Any, kind: int, what: str, last: str) -> _View:
    shape, strides, address = tensor.shape, tensor.stride(), tensor.data_ptr()
    if len(shape) == 2:
        (rows, columns), (stride, step) = shape, strides
    elif len(shape) == 1:
        rows, columns, stride, step = 1, shape[0], 0, strides[0]
    else:
        raise _wrong_shape(what, last, shape)
    if step != 1 and columns > 1 and rows > 0:
        raise MaskBufferError(
            f"the rows of the {what} must be contiguous in memory; .contiguous() makes them so"
        )
    return address, kind, rows, columns, stride * _SIZES[kind]


def _wrong_shape(what: str, last: str, shape: Sequence[int]) -> MaskBufferError:
    return MaskBufferError(f"the {what} must have shape (batch, {last}) or ({last},), not {tuple(shape)}")


def checked_vocab_size(vocab_size: int | None, width: int) -> int:
    """The number of tokens in a row that are masked: ``vocab_size``, or all."""
    if vocab_size is None:
        return width
    if type(vocab_size) is not int:
        vocab_size = whole("apply_token_bitmask_inplace", "vocab_size", vocab_size)
    if vocab_size < 0:
        raise ArgumentValueError(f"vocab_size must not be negative: {vocab_size}")
    return vocab_size


def checked_indices(indices: Any, rows: int) -> list[int]:
    """The rows to mask, each within both buffers."""
    if getattr(indices, "is_meta", False):
        raise MaskBufferError("`indices` is a tensor on the device meta and holds no numbers")
    chosen = indices.tolist() if hasattr(indices, "tolist") else [operator.index(i) for i in indices]
    for index in chosen:
        if not 0 <= index < rows:
            raise MaskBufferError(
                f"`indices` names row {index}, but logits and bitmask have only {counted(rows, 'row')} in common"
            )
    if len(set(chosen)) != len(chosen):
        raise MaskBufferError("`indices` names a row twice")
    return chosen


def host_threads(rows: int, size: int) -> int:
    """The number of threads for masking ``size`` bytes of logits in ``rows`` rows."""
    return _threads(rows, size // _THREAD_BYTES)


def _threads(rows: int, wanted: int) -> int:
    return min(rows, wanted, os.cpu_count() or 1) if wanted > 1 else 1
