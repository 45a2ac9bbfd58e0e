"""Checks of the arguments of operators and queries: texts, byte tables, repetition bounds, budgets.

Each check raises an error that names the argument.
"""

from __future__ import annotations

from dataclasses import fields

from tokenfst.arguments import refuse
from tokenfst.budget import Budget
from tokenfst.errors import ConstraintError


def encode(word: str | bytes) -> bytes | None:
    """Text as UTF-8; ``None`` if it contains a lone surrogate."""
    if isinstance(word, str):
        try:
            return word.encode()
        except UnicodeEncodeError:
            return None
    return word if isinstance(word, bytes) else as_bytes("word", word)


def as_bytes(name: str, value: object) -> bytes:
    """A bytes-like argument as bytes; TypeError for anything else (``bytes(5)`` would be five NULs)."""
    if not isinstance(value, bytes | bytearray | memoryview):
        refuse("a question about a language", name, value, "text or bytes" if name == "word" else "bytes")
    return bytes(value)


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
        raise ConstraintError(f"cannot repeat {low} to {high} times")


def widest(*budgets: Budget | None) -> Budget | None:
    """The field-wise maximum of the given budgets: the budget of a combination."""
    given = [budget for budget in budgets if budget is not None]
    if not given:
        return None
    if all(budget is given[0] for budget in given):
        return given[0]
    return Budget(*(max(getattr(b, field.name) for b in given) for field in fields(Budget)))
