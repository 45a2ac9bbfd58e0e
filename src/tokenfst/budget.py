"""The budget of a construction (convention 8): reached, it raises ``BudgetExceeded``; nothing is truncated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """Upper bounds for one construction.

    ``states``: states of the automaton. ``bytes``: memory of tables and masks. ``seconds``: wall-clock time of
    one call. ``positions``: size of an expression once its counted repetitions are written out.
    """

    states: int = 1_000_000
    bytes: int = 2 << 30
    seconds: float = 120.0
    positions: int = 10_000_000

    def __post_init__(self) -> None:
        from tokenfst.arguments import real, whole

        for name in ("states", "bytes", "positions"):
            given = getattr(self, name)
            if (
                name != "positions" or not isinstance(given, int) or given < 1
            ):  # positions are counted without a bound
                object.__setattr__(self, name, whole("Budget", name, given, 1))
        real("Budget", "seconds", self.seconds)
        if not self.seconds > 0:
            raise ValueError(f"Budget(seconds=...) must be positive, not {self.seconds!r}")
