"""Direct launches: a compiled Triton kernel is stored and launched again without Triton's own launcher.

At every call ``kernel[grid](...)`` binds arguments by name, inspects the properties that the code may assume of them,
and looks up the compiled kernel. This is most of a launch's time on the host. Here a launch has a key that says at
least as much about the arguments as Triton inspects. A key that was seen before launches its compiled kernel directly:
``compiled[grid](*arguments)``, the call that Triton's launcher ends in.

Invariant: Triton does not distinguish arguments with the same key. It inspects types, whether addresses and integers
are divisible by 16, integers that are 1, and integers of more than 32 bits; constants are compared by value. If the
compiled kernels of a version of Triton take other arguments, the first direct launch raises TypeError, and from then on
Triton's own launcher is used. The interpreter compiles nothing, so nothing is stored.

No GPU has run this yet. It is used only if ``TOKENFST_DIRECT_LAUNCH=1`` is set when this module is imported; otherwise
Triton launches kernels.

Cost: a tuple of small tuples for each launch. Rejected: packing the arguments once for the driver (they change with
each call, as logits and outputs have other addresses); a C++ extension (it would have to be built for each version of
torch).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tokenfst.decoding.device.tables.pool import torch

_DIRECT = os.environ.get("TOKENFST_DIRECT_LAUNCH") == "1"
_KEPT: dict[tuple[Any, ...], tuple[Any, tuple[Any, ...]]] = {}
"""By key: the compiled kernel, and the constants that follow its arguments."""
_REFUSED: set[int] = set()
"""The ids of kernels whose compiled form takes other arguments."""
_MOST = 4096
"""The greatest number of keys; beyond it all are forgotten. A program has some tens, since keys differ only in the
kinds of arguments.
"""
_INT32 = 2**31


def launch(
    kernel: Any, grid: tuple[int, ...], arguments: tuple[Any, ...], constants: Mapping[str, Any], warps: int
) -> None:
    """Launch a kernel on the device of its tensors. ``arguments``: tensors and integers, the first parameters of the
    signature; ``constants``: the others, by name.
    """
    device = next(one.device for one in arguments if isinstance(one, torch.Tensor))
    if device.type == "cuda" and device.index != torch.cuda.current_device():
        with torch.cuda.device(device):
            _started(kernel, grid, arguments, constants, warps, device)
    else:
        _started(kernel, grid, arguments, constants, warps, device)


def _started(
    kernel: Any,
    grid: tuple[int, ...],
    arguments: tuple[Any, ...],
    constants: Mapping[str, Any],
    warps: int,
    device: torch.device,
) -> None:
    key = (id(kernel), device, warps, *constants.values(), *map(kind, arguments))
    kept = _KEPT.get(key)
    if kept is not None:
        compiled, trailing = kept
        try:
            compiled[(*grid, 1, 1)[:3]](*arguments, *trailing)
        except TypeError:
            _REFUSED.add(id(kernel))
            del _KEPT[key]
        else:
            return
    compiled = kernel[grid](*arguments, **constants, num_warps=warps)
    if _DIRECT and compiled is not None and id(kernel) not in _REFUSED and hasattr(compiled, "__getitem__"):
        if len(_KEPT) >= _MOST:
            _KEPT.clear()
        _KEPT[key] = compiled, tuple(constants[name] for name in kernel.arg_names[len(arguments) :])


def kind(argument: Any) -> tuple[Any, ...]:
    """The properties of an argument that Triton inspects, or more."""
    if isinstance(argument, torch.Tensor):
        return argument.dtype, argument.data_ptr() % 16 == 0
    return argument == 1, argument % 16 == 0, -_INT32 <= argument < _INT32
