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
        for name in ("states", "bytes", "seconds", "positions"):
            if not getattr(self, name) > 0:
                raise ValueError(f"Budget({name}=...) must be positive, not {getattr(self, name)!r}")
