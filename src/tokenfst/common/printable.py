r"""Texts in messages: escapes for characters that a terminal would obey or that could not be seen, and places in texts.

Messages quote names, patterns and texts of strangers. Such a text may contain control characters, which a terminal
obeys, and characters that reverse the direction of what follows, so that a message reads differently from what it says.
"""

from __future__ import annotations

LAYOUT = "\n\t"
"""Characters that are not printable, and that messages contain as they are."""


def printable(text: str, kept: str = "") -> str:
    r"""``text`` with escapes (``\x1b``, ``\u202e``) for characters that cannot be printed, except those in ``kept``."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode()
        for each in text
    )


def caret(text: str | bytes, position: int) -> str:
    """The line of ``text`` that contains ``position``, with a caret below that position."""
    shown = text if isinstance(text, str) else text.decode("latin-1")
    begin = shown.rfind("\n", 0, position) + 1
    end = shown.find("\n", position)
    line = shown[begin:] if end < 0 else shown[begin:end]
    before = printable(line[: position - begin], LAYOUT)
    # A tab stays a tab, so that the caret stands below its character however wide tabs are.
    under = "".join(each if each == "\t" else " " for each in before.ljust(position - begin))
    return f"  {printable(line, LAYOUT)}\n  {under}^"


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """Line and column of a position of ``text``, both counted from 1, as used in errors."""
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
