"""The tensors of a device automaton, which grow as automata are added and stay within a capacity.

Each is allocated with spare room at its end, which is filled with zeros: a state there has DEAD's row and the mask
of the end tokens only. So a number beyond the used part, but within the tensor, does no harm. No tensor moves while
there is room: a captured CUDA graph keeps its addresses as long as ``generation`` stays the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tokenfst.decoding.device.tables.tables import FAR
from tokenfst.errors import BudgetExceeded, MissingDependencyError

try:
    import torch as torch
except ImportError as error:
    raise MissingDependencyError('device automata need torch: pip install "tokenfst[torch]"') from error

Tensor: TypeAlias = torch.Tensor


class Tables(NamedTuple):
    """All tables of all automata on the device, as ``tables.Packed`` describes them.

    ``states`` int32 (states, 8), ``table`` int32, ``classes`` uint8, ``bytes`` uint8, ``tokens`` int32 (V, 4),
    ``masks`` int32 (masks, 4), ``rows`` int32 (rows, ceil(V / 32)), ``flips`` int32, ``layers`` int32 (layers, 2).
    For stacks, as in ``stacks.PackedStacks``: ``controls`` int32 (states, 4), ``actions`` int32 (n, 5), ``pushes``
    int32 (n, 2), ``comb`` int32 (n, 2), ``frames`` int32.
    """

    states: torch.Tensor
    table: torch.Tensor
    classes: torch.Tensor
    bytes: torch.Tensor
    tokens: torch.Tensor
    masks: torch.Tensor
    rows: torch.Tensor
    flips: torch.Tensor
    layers: torch.Tensor
    controls: torch.Tensor
    actions: torch.Tensor
    pushes: torch.Tensor
    comb: torch.Tensor
    frames: torch.Tensor


class Pool:
    """``Tables`` that grow. ``capacity``: the maximum of their total bytes, ``None`` for no bound."""

    def __init__(self, device: torch.device, capacity: int | None) -> None:
        self.device, self.capacity = device, capacity
        self.generation = 0
        self.used: dict[str, int] = {}
        self._tensors: dict[str, torch.Tensor] = {}

    def append(self, parts: dict[str, npt.NDArray[Any]], where: str) -> None:
        """Append rows to several tables: to all of them, or raise ``BudgetExceeded`` and append none.

        No table has more than 2³¹ - 1 rows, because the tables refer to each other by int32.
        """
        wanted = {name: self.used.get(name, 0) + len(part) for name, part in parts.items()}
        grown = {name: rows for name, rows in wanted.items() if rows > self._room(name)}
        width = {name: part.nbytes // max(1, len(part)) for name, part in parts.items()}
        if max(wanted.values()) > FAR:
            raise BudgetExceeded("entries", FAR, f"one of the device tables, when {where} was added")
        extra = sum((rows - self._room(name)) * width[name] for name, rows in grown.items())
        if self.capacity is not None and self.memory() + extra > self.capacity:
            raise BudgetExceeded("bytes", self.capacity, f"the device tables, when {where} was added")
        left = FAR if self.capacity is None else self.capacity - self.memory() - extra
        for name, rows in grown.items():
            spare = min(self._room(name) // 2, left // max(1, width[name]))
            left -= spare * width[name]
            self._reserve(name, rows + spare, parts[name])
        for name, part in parts.items():
            begin = self.used.get(name, 0)
            self._tensors[name][begin : begin + len(part)] = _tensor(part).to(self.device)
            self.used[name] = wanted[name]

    def _room(self, name: str) -> int:
        return len(self._tensors[name]) if name in self._tensors else 0

    def _reserve(self, name: str, rows: int, like: npt.NDArray[Any]) -> None:
        fresh = torch.zeros((rows, *like.shape[1:]), dtype=_tensor(like[:0]).dtype, device=self.device)
        if name in self._tensors:
            fresh[: self.used[name]] = self._tensors[name][: self.used[name]]
        self._tensors[name] = fresh
        self.generation += 1

    def memory(self) -> int:
        """The bytes of all tables, including spare room."""
        return sum(tensor.nbytes for tensor in self._tensors.values())

    def memory_of(self, *names: str) -> int:
        """The bytes of some of the tables, including spare room."""
        return sum(self._tensors[name].nbytes for name in names)

    def tables(self) -> Tables:
        """The tensors as they are now."""
        return Tables(**self._tensors)


def _tensor(part: npt.NDArray[Any]) -> torch.Tensor:
    """A tensor of an array's memory. torch has no arithmetic for uint32, so these become int32."""
    writable = np.ascontiguousarray(part).view(np.int32 if part.dtype == np.uint32 else part.dtype)
    return torch.from_numpy(writable if writable.flags.writeable else writable.copy())
