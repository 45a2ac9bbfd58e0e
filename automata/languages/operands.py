"""Checks of the arguments of operators and queries: texts, byte tables, repetition bounds, budgets.

Each check raises an error that names the argument.
"""

from __future__ import annotations

from dataclasses import fields

from tokenfst.budget import Budget
from tokenfst.common.arguments import refuse, shown
from tokenfst.common.remedies import remedy
from tokenfst.errors import ArgumentTypeError, ConstraintError

_MOST_REPETITIONS = 2**31 - 1
"""The greatest bound of a repetition in the core."""


def encode(word: str | bytes, asked: str = "a question about a language", name: str = "word") -> bytes | None:
    """Text as UTF-8; ``None`` if it contains a lone surrogate. TypeError for what is neither text nor bytes
    (``bytes(5)`` would be five NULs), which names the call (``asked``) and the argument.
    """
    if isinstance(word, str):
        try:
            return word.encode()
        except UnicodeEncodeError:
            return None
    if not isinstance(word, bytes | bytearray | memoryview):
        refuse(asked, name, word, "text or bytes")
    return bytes(word)


def encode_any(word: str | bytes, asked: str, name: str) -> bytes:
    """``encode``, but lone surrogates are encoded like other code points. The result is then not UTF-8."""
    data = encode(word, asked, name)
    if data is None:
        assert isinstance(word, str)
        data = word.encode("utf-8", "surrogatepass")
    return data


def byte_table(table: object) -> bytes:
    """The argument of ``map_bytes``: one byte for each byte."""
    if not isinstance(table, bytes | bytearray | memoryview):
        refuse("map_bytes", "table", table, "256 bytes, as bytes.maketrans makes them")
    if len(table) != 256:
        raise ConstraintError(
            f"map_bytes: table must have 256 bytes, one for each byte (as bytes.maketrans makes it), not {len(table)}"
        )
    return bytes(table)


def bounds(low: int, high: int | None) -> None:
    """Raise ConstraintError for invalid bounds of a repetition."""
    if low < 0 or (high is not None and high < low):
        raise ConstraintError(
            f"cannot repeat {low} to {high} times"
            if high is not None
            else f"cannot repeat at least {low} times: low must be at least 0"
        )
    refuse_large("repeat", low=low, high=high)


def refuse_large(call: str, **counts: int | None) -> None:
    """Raise ConstraintError for a number of repetitions that the core does not count. ``call``: the public function
    whose arguments the numbers are.
    """
    for name, value in counts.items():
        if value is not None and value > _MOST_REPETITIONS:
            raise ConstraintError(f"{call}: {name} must be at most {_MOST_REPETITIONS}, not {value}")


def refuse_operand(sign: str, other: object) -> None:
    """Raise ArgumentTypeError for an operand if it is known what makes a constraint of it. For others the operator
    returns ``NotImplemented``, so that Python asks them.
    """
    if found := remedy("a Constraint", other):
        raise ArgumentTypeError(f"{sign}: both sides must be constraints, not {shown(other)}: {found}")


def widest(*budgets: Budget | None) -> Budget | None:
    """The field-wise maximum of the given budgets: the budget of a combination."""
    given = [budget for budget in budgets if budget is not None]
    if not given:
        return None
    if all(budget is given[0] for budget in given):
        return given[0]
    return Budget(*(max(getattr(b, field.name) for b in given) for field in fields(Budget)))
