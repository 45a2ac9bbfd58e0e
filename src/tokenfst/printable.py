r"""Escapes for characters that a terminal would obey, or that could not be seen.

Messages quote names, patterns and texts of strangers. Such a text may contain control characters, which a terminal
obeys, and characters that reverse the direction of what follows, so that a message reads differently from what it says.
"""

from __future__ import annotations


def printable(text: str, kept: str = "") -> str:
    r"""``text`` with escapes (``\x1b``, ``\u202e``) for characters that cannot be printed, except those in ``kept``."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode()
        for each in text
    )
