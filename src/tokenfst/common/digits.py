"""Numbers in texts of strangers: Python raises a plain ValueError for more than 4,300 digits."""

from __future__ import annotations


def natural(digits: str, most: int) -> int:
    """The number that decimal digits write; ``most + 1`` if it is greater than ``most``."""
    short = digits.lstrip("0")
    return min(int(short or "0"), most + 1) if len(short) <= len(str(most)) else most + 1
