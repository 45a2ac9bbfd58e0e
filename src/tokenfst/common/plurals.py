"""Numbers with nouns, for what values show of themselves, messages and the command line."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 state``, ``2,000 states``, ``0 entries``."""
    plural = noun if number == 1 else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}"
