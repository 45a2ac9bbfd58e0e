"""Checks of arguments that several operations share: budgets, tolerances, choices, pruning thresholds, special
labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from tokenfst.automata.transducers.weights import ArcType, Weight, number
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, FstArgError

NO_STATE_ID = -1
"""The absent state: ``start`` of a machine without one."""
NO_LABEL = -1
WeightLike = Weight | str | float
SHORTEST_DELTA = 1e-6
DELTA = 1 / 1024
Limits = tuple[int, int, float]
_DEFAULT = Budget()
_MOST_STATES = 2**31 - 2
STATE_BYTES = 64
"""The approximate memory, in bytes, of a state while a machine is built."""
T = TypeVar("T")


def limits(budget: Budget | None) -> Limits:
    """A budget in the core's form."""
    given = budget or _DEFAULT
    return given.states, given.bytes, given.seconds


def at_state(call: Callable[..., T], state: int, *others: object) -> T:
    """A call of the core whose first argument is a state. Raises ``FstArgError`` if that is not an integer of 64
    bits.
    """
    try:
        return call(state, *others)
    except TypeError:
        raise FstArgError(
            f"{call.__name__}: a state is a whole number below 2^31, not {state!r:.200}"
        ) from None


def room_for_states(call: str, count: int, n: int, budget: Budget | None) -> None:
    """Refuse to add ``n`` states to ``count`` if they do not fit the budget's bytes."""
    limit = budget or _DEFAULT
    if n < 0 or count + n > _MOST_STATES:
        raise FstArgError(f"{call}: n must not be negative, and a machine has at most 2^31 - 2 states: {n}")
    if (count + n) * STATE_BYTES > limit.bytes:
        raise BudgetExceeded("bytes", limit.bytes, f"{call} of {n:,}")


def chosen(name: str, value: object, choices: Iterable[str]) -> str:
    """``value`` if it is one of ``choices``, else ``FstArgError``."""
    if value not in (known := tuple(choices)):
        raise FstArgError(f"{name} is {' or '.join(map(repr, known))}, not {value!r}")
    return str(value)


def positive(name: str, value: float) -> float:
    """A tolerance, which must be greater than 0."""
    if not value > 0 or value == float("inf"):
        raise FstArgError(f"{name} must be more than 0 and finite, not {value!r}")
    return value


def not_negative(name: str, value: float) -> float:
    """A tolerance or a count, which must not be below 0."""
    if value < 0:
        raise FstArgError(f"{name} must not be negative: {value!r}")
    return value


def kept(call: str, kind: ArcType, weight: WeightLike | None, nstate: int) -> tuple[float, int]:
    """Pruning limits in the core's form: a threshold (Zero: all paths) and a number of states (-1: all)."""
    if nstate < NO_STATE_ID:
        raise FstArgError(f"{call}: nstate is a number of states, or -1 for no limit: {nstate}")
    return (kind.core.zero() if weight is None else number(weight, kind, f"{call}: weight")), nstate


QUEUE_TYPES = ("auto", "fifo", "lifo", "shortest", "state", "top")
"""OpenFst's names. They have no effect: the core chooses the queue by the machine's properties, with the same result.
"""


def special(
    phi_label: int, rho_label: int, sigma_label: int, match_type: str, rewrite_mode: str, phi_loop: bool,
    acceptor: Callable[[], bool],
) -> tuple[int, int, bool, bool, bool]:  # fmt: skip
    """The special label of a composition in the core's form.

    Its kind, its label, whether it is written on both sides of its arcs, whether a phi loop consumes, and whether it is
    an output of the first machine. ``acceptor``: whether the machine with the label is an acceptor, called for
    ``rewrite_mode="auto"``.
    """
    by_output = chosen("compose: match_type", match_type, ("input", "output")) == "output"
    chosen("compose: rewrite_mode", rewrite_mode, ("auto", "always", "never"))
    given = {"sigma_label": sigma_label, "rho_label": rho_label, "phi_label": phi_label}
    kinds = [kind for kind, label in enumerate(given.values(), 1) if label != NO_LABEL]
    if not kinds:
        return 0, NO_LABEL, False, phi_loop, by_output
    names = list(given)
    if len(kinds) > 1:
        raise FstArgError(
            f"compose: one special label is allowed, not both {names[kinds[0] - 1]} and {names[kinds[1] - 1]}"
        )
    name, label = names[kinds[0] - 1], given[names[kinds[0] - 1]]
    if not (1 if kinds[0] < 3 else 0) <= label < 2**31:
        raise FstArgError(f"compose: {name} is a label that is not epsilon, or -1 for none: {label}")
    both = acceptor() if rewrite_mode == "auto" else rewrite_mode == "always"
    return kinds[0], label, both, phi_loop, by_output
