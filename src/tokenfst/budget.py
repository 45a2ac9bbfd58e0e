"""``Budget``: resource limits of one construction (convention 8 of docs/project/conventions.md).

A construction that reaches a limit raises ``BudgetExceeded``. It never returns a truncated result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_MOST_STATES = (1 << 31) - 2
_MOST = (1 << 63) - 1
"""The bound of an unlimited budget: the greatest signed number of 64 bits."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Upper bounds for one construction.

    ``states``: states of the automaton. ``bytes``: memory of tables and masks. ``seconds``: wall-clock time of one
    call. The clock starts when the call's own work starts, after any wait for another thread that works on the same
    automaton. ``positions``: size of an expression after its counted repetitions are expanded.

    A field that is not given has its default: ``Budget(seconds=5)`` still bounds memory by 1 GiB.
    ``Budget.unlimited()`` sets no bounds. Raises ``ArgumentTypeError`` for other types than numbers, and
    ``ArgumentValueError`` for numbers that are not positive.
    """

    states: int = 1_000_000
    bytes: int = 1 << 30
    seconds: float = 30.0
    positions: int = 10_000_000

    @classmethod
    def unlimited(cls) -> Budget:
        """A budget without bounds, other than those of the core (2^31 - 2 states) and of the available memory.

        A construction that does not terminate then runs forever. ``dataclasses.replace(Budget.unlimited(),
        seconds=600)`` bounds only the time.
        """
        return cls(states=_MOST_STATES, bytes=_MOST, seconds=math.inf, positions=_MOST)

    def _repr_html_(self) -> str:
        from tokenfst.common.notebook import card

        fields = [(name, getattr(self, name)) for name in ("states", "bytes", "seconds", "positions")]
        bounds = {"states": _MOST_STATES, "bytes": _MOST, "seconds": math.inf, "positions": _MOST}
        return card(
            "Budget", [(name, "no bound" if value == bounds[name] else value) for name, value in fields]
        )

    def __post_init__(self) -> None:
        if (
            self.states.__class__ is self.bytes.__class__ is self.positions.__class__ is int
            and self.seconds.__class__ is float
            and min(self.states, self.bytes, self.positions) >= 1
            and max(self.states, self.bytes) <= _MOST
            and self.seconds > 0
        ):
            return
        from tokenfst.common.arguments import real, refuse, whole
        from tokenfst.errors import ArgumentValueError

        for name in ("states", "bytes", "positions"):
            given = getattr(self, name)
            if name == "bytes" and isinstance(given, str):
                self._refuse_size(given)
            if (
                name != "positions" or not isinstance(given, int) or given < 1
            ):  # positions are counted without a bound
                object.__setattr__(self, name, whole("Budget", name, given, 1))
        real("Budget", "seconds", self.seconds)
        if not self.seconds > 0:
            refuse("Budget", "seconds", self.seconds, "positive", ArgumentValueError)

    def _refuse_size(self, text: str) -> None:
        from tokenfst.common.arguments import refuse, shown
        from tokenfst.common.sizes import size_of
        from tokenfst.errors import ArgumentTypeError

        size = size_of(text)
        if not size:
            refuse("Budget", "bytes", text, "an integer")
        raise ArgumentTypeError(
            f"Budget: bytes must be an integer, not {shown(text)}: write bytes={size:_}, or {_as_product(size)}"
        )


def _as_product(size: int) -> str:
    """A number of bytes as a person writes it in Python: ``500 << 20``."""
    for shift in (40, 30, 20, 10):
        if size % (1 << shift) == 0:
            return f"{size >> shift} << {shift}"
    return str(size)


DEFAULT = Budget()
"""The budget where none is given: one object, since checking its fields takes as long as a short question."""

QUICK = Budget(states=5_000, bytes=64 << 20, positions=1_000_000)
"""The budget of a question that may stay unanswered.

Its answer only simplifies a result, makes a text more readable, or adds an example to a message. It bounds states,
bytes and positions, and leaves the seconds to the caller, so that the answer does not depend on the clock.

Three short budgets differ from it, because they count something else:

- ``automata.json_schema.sets.work``: one schema asks thousands of questions whether a language is empty, and all of
  them share one bound of states. Each has 2,000 states, so that a few hard questions do not use up the others' share.
- ``common.notebook.GLANCE``: a picture shows at most 12 states, so the search stops at the thirteenth.
- ``decoding.compiling.estimate``: the user asked for an estimate of a size and waits up to a second for it.
"""
