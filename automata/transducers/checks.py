"""Arguments that several operations take: budgets, tolerances, choices, and what is not there yet."""

from __future__ import annotations

from collections.abc import Iterable

from tokenfst.automata.transducers.weights import Weight
from tokenfst.budget import Budget
from tokenfst.errors import FstArgError

NO_STATE_ID = -1
"""The state that is none: ``start`` of a machine without one."""
NO_LABEL = -1
WeightLike = Weight | str | float
SHORTEST_DELTA = 1e-6
DELTA = 1 / 1024
Limits = tuple[int, int, float]


def limits(budget: Budget | None) -> Limits:
    """A budget as the core takes it."""
    given = budget or Budget()
    return given.states, given.bytes, given.seconds


def chosen(name: str, value: object, choices: Iterable[str]) -> str:
    """``value`` if it is one of ``choices``, else ``FstArgError``."""
    if value not in (known := tuple(choices)):
        raise FstArgError(f"{name} is {' or '.join(map(repr, known))}, not {value!r}")
    return str(value)


def positive(name: str, value: float) -> float:
    """A tolerance: more than 0."""
    if not value > 0 or value == float("inf"):
        raise FstArgError(f"{name} must be more than 0 and finite, not {value!r}")
    return value


def refuse_unbuilt(call: str, **given: object) -> None:
    """``FstArgError`` for an argument of OpenFst's that is not there yet, unless it is left out."""
    for name, value in given.items():
        if value not in (None, NO_STATE_ID, "auto"):
            raise FstArgError(f"{call}: {name}={value!r} is not there yet in tokenfst.fst; leave it out")


QUEUE_TYPES = ("auto", "fifo", "lifo", "shortest", "state", "top")
"""OpenFst's names. The order of work is chosen by the machine here, whatever is asked for; the result is the
same."""
