"""``Growth``: budget checks for machines that are built in Python, state by state (convention 8)."""

from __future__ import annotations

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.transducers.checks import STATE_BYTES
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

_ARC_BYTES = 32


class Growth:
    """The budget of one construction: ``grown`` checks the result so far."""

    def __init__(self, budget: Budget | None, what: str) -> None:
        self._budget, self._what = budget or Budget(), what
        self._deadline = Deadline(self._budget, what)

    def grown(self, made: VectorFst, work: int = 4) -> None:
        """Raise ``BudgetExceeded`` if a machine has too many states or arcs, or if the time is over.

        ``work``: approximate microseconds since the last check.
        """
        states = made.num_states()
        self.states(states)
        if made.num_arcs() * _ARC_BYTES + states * STATE_BYTES > self._budget.bytes:
            raise BudgetExceeded("bytes", self._budget.bytes, self._what)
        self._deadline.tick(work)

    def states(self, count: int) -> None:
        """Raise ``BudgetExceeded`` for more states than the limit."""
        if count > self._budget.states:
            raise BudgetExceeded("states", self._budget.states, self._what)
