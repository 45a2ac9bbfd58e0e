r"""The slow twins of the named groups: what each accepts, read off its definition, on one given text.

``unquoted`` is the productions of YAML 1.2.2 (126 to 133) with their look-around, word for word, run by ``re``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence


def is_substring(part: str, text: str, words: bool = False) -> bool:
    """Whether ``part`` stands in ``text``; with ``words``, at a place where it begins and ends inside of no word."""

    def border(place: int) -> bool:
        return not re.match(r"\w\w", text[place - 1 : place + 1]) if place else True

    return any(
        text.startswith(part, begin) and (not words or (border(begin) and border(begin + len(part))))
        for begin in range(len(text) + 1)
    )


def is_quoted(text: str, quote: str = '"') -> bool:
    """Whether ``text`` is one quoted string."""
    if len(text) < 2 or text[0] != quote or re.search(r"[\n\r]", text):
        return False
    at = 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at == len(text) - 1


_C_PRINTABLE = "\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff"
_NS_CHAR = rf"(?:(?![ \t\n\r\ufeff])[{_C_PRINTABLE}])"
_C_INDICATOR = r"""[-?:,\[\]{}#&*!|>'"%@`]"""
_NS_PLAIN_FIRST = rf"(?:(?!{_C_INDICATOR}){_NS_CHAR}|[?:\-](?={_NS_CHAR}))"
_NS_PLAIN_CHAR = rf"(?:(?![:#]){_NS_CHAR}|(?<=[^ \t\n\r\ufeff])#|:(?={_NS_CHAR}))"
_NS_PLAIN_ONE_LINE = re.compile(rf"{_NS_PLAIN_FIRST}(?:[ \t]*{_NS_PLAIN_CHAR})*")


def is_unquoted(text: str) -> bool:
    """Whether ``text`` is a plain scalar on one line."""
    return _NS_PLAIN_ONE_LINE.fullmatch(text) is not None


def is_until(text: str, stop: str) -> bool:
    """Whether ``text`` ends with the first place where ``stop`` ends."""
    return text.find(stop) == len(text) - len(stop) >= 0


def is_list(text: str, items: Sequence[str], separator: str) -> bool:
    """Whether ``text`` is some of ``items``, at least one, in any order and number."""
    return any(text == item for item in items) or any(
        text.startswith(item + separator) and is_list(text[len(item + separator) :], items, separator)
        for item in items
    )


def is_subsequence(text: str, items: Sequence[str], separator: str) -> bool:
    """Whether ``text`` is some of ``items``, at least one, each once at most and in order."""
    for k, item in enumerate(items):
        rest = text[len(item) :]
        if text.startswith(item) and (
            not rest
            or (
                rest.startswith(separator)
                and is_subsequence(rest[len(separator) :], items[k + 1 :], separator)
            )
        ):
            return True
    return False
