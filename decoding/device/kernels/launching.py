"""Kernels started the short way: what Triton compiled is kept, and started again without Triton's own launcher.

``kernel[grid](...)`` binds arguments by name, looks at each for what the code may assume of it, and looks the compiled
kernel up by all that, at every call; most of a launch's time on the host. Here a launch is known by a key that says no
less about the arguments than Triton looks at, and a key that was met before starts its compiled kernel directly:
``compiled[grid](*arguments)``, the call that Triton's launcher itself ends in.

Invariant: arguments of one key are all alike to Triton. It looks at types, at whether addresses and integers divide by
16, at integers that are 1, and at those of more than 32 bits; constants are compared as they are. A version of Triton
whose compiled kernels take other arguments is noticed by the TypeError of the first direct start, and kept to its own
launcher from then on. The interpreter compiles nothing, so nothing is kept.

No GPU has run it yet, so it is taken only where ``TOKENFST_DIRECT_LAUNCH=1`` says so when this is imported; else
kernels are started by Triton.

Cost: a tuple of small tuples for each launch. Rejected: arguments packed once for the driver (they change with each
call: logits and outputs lie elsewhere); a C++ extension (to be built for each torch).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tokenfst.decoding.device.tables.pool import torch

_DIRECT = os.environ.get("TOKENFST_DIRECT_LAUNCH") == "1"
_KEPT: dict[tuple[Any, ...], tuple[Any, tuple[Any, ...]]] = {}
"""By key: the compiled kernel, and the constants behind its arguments."""
_REFUSED: set[int] = set()
"""Kernels, by id, whose compiled form takes other arguments."""
_MOST = 4096
"""Keys, beyond which all are forgotten. They differ in kinds of arguments only: a program has some tens."""
_INT32 = 2**31


def launch(
    kernel: Any, grid: tuple[int, ...], arguments: tuple[Any, ...], constants: Mapping[str, Any], warps: int
) -> None:
    """Start a kernel on the device of its tensors. ``arguments``: tensors and integers, the first of the signature;
    ``constants``: the rest, by name."""
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
        compiled, behind = kept
        try:
            compiled[(*grid, 1, 1)[:3]](*arguments, *behind)
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
    """What Triton looks at, or more."""
    if isinstance(argument, torch.Tensor):
        return argument.dtype, argument.data_ptr() % 16 == 0
    return argument == 1, argument % 16 == 0, -_INT32 <= argument < _INT32
