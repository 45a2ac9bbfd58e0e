"""``ScoreRow``: the scores of all tokens at one node, and the cache of such rows.

Invariant: ``scores`` are finite; forbidden tokens have 0 there and no bit in ``allowed``. So adding a row costs one
pass of a mask and one of an addition, and with weight 0 only the mask remains.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokenfst.budget import Budget
from tokenfst.common.locks import fork_safe_lock
from tokenfst.errors import BudgetExceeded

_SHARE = 8
"""The cache takes up to this fraction (1/8) of the budget's bytes: 128 MiB by default."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRow:
    """For each token its score (float32, 0 if forbidden), and a bit (int32 words) that is 1 if it is allowed."""

    scores: npt.NDArray[np.float32]
    allowed: npt.NDArray[np.int32]

    @classmethod
    def of(cls, scores: npt.NDArray[np.float32]) -> ScoreRow:
        """The row for scores in which forbidden tokens have -inf."""
        some = scores > -np.inf
        bits = np.zeros(-(-len(scores) // 32) * 32, np.bool_)
        bits[: len(scores)] = some
        return cls(np.where(some, scores, np.float32(0)), np.packbits(bits, bitorder="little").view(np.int32))

    @property
    def bytes(self) -> int:
        """Its memory in bytes."""
        return self.scores.nbytes + self.allowed.nbytes

    def full(self) -> npt.NDArray[np.float32]:
        """The scores, with -inf for forbidden tokens."""
        bits = np.unpackbits(self.allowed.view(np.uint8), bitorder="little", count=len(self.scores))
        return np.where(bits.view(np.bool_), self.scores, np.float32(-np.inf))


class RowCache:
    """A least-recently-used cache of rows by key; shared by threads. Equal keys always give equal rows."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._rows: OrderedDict[Hashable, ScoreRow] = OrderedDict()
        self._bytes = 0
        self._lock = fork_safe_lock()
        self.made = 0
        """How many rows were made so far."""

    def row(self, key: Hashable, make: Callable[[], ScoreRow]) -> ScoreRow:
        """The row of a key, computed if it is not cached. Raises ``BudgetExceeded("bytes")`` if a single row is too
        large.
        """
        with self._lock:
            found = self._rows.get(key)
            if found is not None:
                self._rows.move_to_end(key)
                return found
        found = make()
        if found.bytes > self._budget.bytes:
            raise BudgetExceeded("bytes", self._budget.bytes, "the scores of a vocabulary")
        with self._lock:
            self.made += 1
            if key not in self._rows:
                self._rows[key] = found
                self._bytes += found.bytes
            while self._bytes > self._budget.bytes // _SHARE and len(self._rows) > 1:
                self._bytes -= self._rows.popitem(last=False)[1].bytes
        return found

    def __len__(self) -> int:
        return len(self._rows)
