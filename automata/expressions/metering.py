"""Counting of nodes and time in Python constructions, against a budget (convention 8).

A transformation of a grammar creates nodes for one rule after another. A node in memory is larger than a position of a
counted repetition, so it counts for sixteen of ``Budget.positions``. The error names the rule of the last nodes.

A loop counts its work in ticks of about a microsecond; the clock is read after every ``_TICKS`` of them. So the clock
only decides whether the construction raises, never what it produces.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

_POSITIONS = 16
_TICKS = 1_000


class Deadline:
    """The time limit of one call, shared by all of its parts."""

    __slots__ = ("_end", "_ticks", "budget", "where")

    def __init__(self, budget: Budget, where: str) -> None:
        self.budget, self.where = budget, where
        self._end = time.monotonic() + budget.seconds
        self._ticks = _TICKS

    def check(self) -> None:
        """Raise ``BudgetExceeded("seconds")`` if the time is over."""
        if time.monotonic() > self._end:
            raise BudgetExceeded("seconds", self.budget.seconds, self.where)

    def tick(self, work: int = 1) -> None:
        """Count ``work``, in ticks of about a microsecond, and check the time after every ``_TICKS`` of them."""
        self._ticks -= work
        if self._ticks < 0:
            self._ticks = _TICKS
            self.check()

    @contextmanager
    def part(self) -> Iterator[Budget]:
        """The budget with the remaining seconds, for a part with a separate clock."""
        self.check()
        try:
            yield replace(self.budget, seconds=max(self._end - time.monotonic(), 1e-3))
        except BudgetExceeded as error:
            if error.resource != "seconds":
                raise
            raise BudgetExceeded("seconds", self.budget.seconds, error.where or self.where) from None


class NodeMeter:
    """A counter of the nodes and the time of one construction."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.nodes = 0
        self.deadline = time.monotonic() + budget.seconds

    def charge(self, nodes: int, rule: str) -> None:
        """Count ``nodes`` created for ``rule``. Raises BudgetExceeded("positions" or "seconds")."""
        self.nodes += nodes
        self.require(self.nodes, rule)

    def require(self, nodes: int, rule: str) -> None:
        """Raise the same errors if a construction with ``nodes`` nodes in all would exceed the budget."""
        if nodes * _POSITIONS > self.budget.positions:
            raise BudgetExceeded("positions", self.budget.positions, f"the rule {rule!r}")
        if time.monotonic() > self.deadline:
            raise BudgetExceeded("seconds", self.budget.seconds, f"the rule {rule!r}")
