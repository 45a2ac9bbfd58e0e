r"""Texts in messages: escapes for characters that a terminal would obey or that could not be seen, and places in texts.

Messages quote names, patterns and texts of strangers. Such a text may contain control characters, which a terminal
obeys, and characters that reverse the direction of what follows, so that a message reads differently from what it says.
"""

from __future__ import annotations

LAYOUT = "\n\t"
"""Characters that are not printable, and that messages contain as they are."""
_LONGEST, _AROUND = 400, 100
"""The length from which a line is cut in a message, and the number of its characters then shown on each side."""


def printable(text: str, kept: str = "") -> str:
    r"""``text`` with escapes (``\x1b``, ``\u202e``) for characters that cannot be printed, except those in ``kept``."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode()
        for each in text
    )


def caret(text: str | bytes, position: int) -> str:
    """The line of ``text`` that contains ``position``, with a caret below that position. Of a long line, it is the part
    around the position.
    """
    shown = text if isinstance(text, str) else text.decode("latin-1")
    begin = shown.rfind("\n", 0, position) + 1
    end = shown.find("\n", position)
    line, at = (shown[begin:] if end < 0 else shown[begin:end]), position - begin
    if len(line) > _LONGEST:
        first, last = max(0, at - _AROUND), at + _AROUND
        cut = "…" * (first > 0)
        line, at = cut + line[first:last] + "…" * (last < len(line)), at - first + len(cut)
    before = printable(line[:at], LAYOUT)
    # A tab stays a tab, so that the caret stands below its character however wide tabs are.
    under = "".join(each if each == "\t" else " " for each in before.ljust(at))
    return f"  {printable(line, LAYOUT)}\n  {under}^"


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """Line and column of a position of ``text``, both counted from 1, as used in errors."""
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
