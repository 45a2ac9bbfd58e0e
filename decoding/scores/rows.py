"""The scores of all tokens at one place, and how they are kept.

Invariant: ``scores`` are finite; forbidden tokens have 0 there and no bit in ``allowed``. So adding a row costs
the pass of a mask and one pass of an addition, and a weight of 0 leaves the mask.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded
from tokenfst.locks import fork_safe_lock

_SHARE = 8
"""Rows are kept up to this part of the budget's bytes: 128 MiB of the default."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRow:
    """Of each token its score (float32, 0 where forbidden), and a bit (int32 words) that says whether it may come."""

    scores: npt.NDArray[np.float32]
    allowed: npt.NDArray[np.int32]

    @classmethod
    def of(cls, scores: npt.NDArray[np.float32]) -> ScoreRow:
        """The row of scores with -inf in them."""
        some = scores > -np.inf
        bits = np.zeros(-(-len(scores) // 32) * 32, np.bool_)
        bits[: len(scores)] = some
        return cls(np.where(some, scores, np.float32(0)), np.packbits(bits, bitorder="little").view(np.int32))

    @property
    def bytes(self) -> int:
        """What it takes in memory."""
        return self.scores.nbytes + self.allowed.nbytes

    def full(self) -> npt.NDArray[np.float32]:
        """The scores with -inf where a token is forbidden."""
        bits = np.unpackbits(self.allowed.view(np.uint8), bitorder="little", count=len(self.scores))
        return np.where(bits.view(np.bool_), self.scores, np.float32(-np.inf))


class KeptRows:
    """Rows by key, the latest used ones; shared by threads. The same key always has the same row."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._rows: OrderedDict[Hashable, ScoreRow] = OrderedDict()
        self._bytes = 0
        self._lock = fork_safe_lock()
        self.made = 0
        """How many rows were made so far."""

    def row(self, key: Hashable, make: Callable[[], ScoreRow]) -> ScoreRow:
        """The row of a key, made where it is not there. ``BudgetExceeded("bytes")`` where one alone is too large."""
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
