"""Counting what a construction over rules makes, against a budget (convention 8).

A rewriting of a grammar makes nodes for one rule after another. A node in memory weighs more than a position of
a counted repetition, so it counts for sixteen of ``Budget.positions``. Reached, the error names the rule that
the last nodes were made for.
"""

from __future__ import annotations

import time

from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

_POSITIONS = 16


class NodeMeter:
    """The nodes made and the time spent by one construction."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.nodes = 0
        self.deadline = time.monotonic() + budget.seconds

    def charge(self, nodes: int, rule: str) -> None:
        """Count ``nodes`` made for ``rule``. Raises BudgetExceeded("positions" or "seconds")."""
        self.nodes += nodes
        if self.nodes * _POSITIONS > self.budget.positions:
            raise BudgetExceeded("positions", self.budget.positions, f"the rule {rule!r}")
        if time.monotonic() > self.deadline:
            raise BudgetExceeded("seconds", self.budget.seconds, f"the rule {rule!r}")
