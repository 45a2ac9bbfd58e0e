"""Sizes in bytes as people write them: 500M, 2G, 1.5 GiB."""

from __future__ import annotations

import re

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([kKMGT]?)i?B?")


def size_of(text: str) -> int | None:
    """The number of bytes that a text such as ``500M`` writes (powers of 1024); None for other texts."""
    match = _SIZE.fullmatch(text)
    return None if match is None else int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))
