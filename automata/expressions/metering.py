"""Counting what a construction in Python makes, and the seconds it takes, against a budget (convention 8).

A rewriting of a grammar makes nodes for one rule after another. A node in memory weighs more than a position of
a counted repetition, so it counts for sixteen of ``Budget.positions``. Reached, the error names the rule that
the last nodes were made for.

A loop counts its work in ticks, of about a microsecond each; the clock is looked at after every ``_TICKS`` of them.
So the clock only decides whether the construction ends with an error, and never what it makes.
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
    """The seconds of one call, which all of its parts share."""

    __slots__ = ("_end", "_ticks", "budget", "where")

    def __init__(self, budget: Budget, where: str) -> None:
        self.budget, self.where = budget, where
        self._end = time.monotonic() + budget.seconds
        self._ticks = _TICKS

    def check(self) -> None:
        """``BudgetExceeded("seconds")`` once they are over."""
        if time.monotonic() > self._end:
            raise BudgetExceeded("seconds", self.budget.seconds, self.where)

    def tick(self, work: int = 1) -> None:
        """Count work, in microseconds about, and look at the clock now and then."""
        self._ticks -= work
        if self._ticks < 0:
            self._ticks = _TICKS
            self.check()

    @contextmanager
    def part(self) -> Iterator[Budget]:
        """The budget with the seconds that are left, for a part that has a clock of its own."""
        self.check()
        try:
            yield replace(self.budget, seconds=max(self._end - time.monotonic(), 1e-3))
        except BudgetExceeded as error:
            if error.resource != "seconds":
                raise
            raise BudgetExceeded("seconds", self.budget.seconds, error.where) from None


class NodeMeter:
    """The nodes made and the time spent by one construction."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.nodes = 0
        self.deadline = time.monotonic() + budget.seconds

    def charge(self, nodes: int, rule: str) -> None:
        """Count ``nodes`` made for ``rule``. Raises BudgetExceeded("positions" or "seconds")."""
        self.nodes += nodes
        self.require(self.nodes, rule)

    def require(self, nodes: int, rule: str) -> None:
        """The same errors where so many nodes will be made at least, with those that are made already."""
        if nodes * _POSITIONS > self.budget.positions:
            raise BudgetExceeded("positions", self.budget.positions, f"the rule {rule!r}")
        if time.monotonic() > self.deadline:
            raise BudgetExceeded("seconds", self.budget.seconds, f"the rule {rule!r}")
