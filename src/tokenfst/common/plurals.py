"""Numbers with nouns, for ``repr``, messages and the command line."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``1 state``, ``2,000 states``, ``0 entries``. ``plural``: that of the noun, if it is not regular."""
    if number != 1:
        noun = plural or (f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s")
    return f"{number:,} {noun}"
