"""Sizes in bytes as people write and read them: 500M, 2G, 1.5 GiB; 12.5 kB."""

from __future__ import annotations

import re

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([kKMGT]?)i?B?")


def size_of(text: str) -> int | None:
    """The number of bytes that a text such as ``500M`` writes (powers of 1024); None for other texts."""
    match = _SIZE.fullmatch(text)
    return None if match is None else int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def byte_size(number: float) -> str:
    """``512 B``, ``1.5 kB``, ``2.0 MB``: powers of 1,000."""
    unit = "B"
    for larger in ("kB", "MB", "GB"):
        if number < 999.95:
            break
        number, unit = number / 1000, larger
    return f"{number:,.0f} {unit}" if unit == "B" else f"{number:,.1f} {unit}"
