"""What a text with calls says, by definition and slowly: every way to cut it into free text and calls.

Free text ends where a trigger first ends in it (docs/constraints/structural-tags.md). A call is a beginning, arguments,
and an end; which texts are arguments is asked of a function.
"""

from __future__ import annotations

from collections.abc import Callable

Reading = tuple[str, tuple[tuple[str, str], ...]]
"""Content, and calls: names with the text of their arguments."""


def readings(
    text: str, trigger: str, begins: dict[str, str], end: str, is_arguments: Callable[[str], bool]
) -> set[Reading]:
    """All readings of calls in free text. ``begins``: of each name what a call of it begins with."""
    place = text.find(trigger)
    if place < 0:
        return {(text, ())}
    found = set()
    for name, begin in begins.items():
        if not text.startswith(begin, place):
            continue
        start = place + len(begin)
        for stop in range(start, len(text) + 1):
            if text.startswith(end, stop) and is_arguments(text[start:stop]):
                for content, calls in readings(text[stop + len(end) :], trigger, begins, end, is_arguments):
                    found.add((text[:place] + content, ((name, text[start:stop]), *calls)))
    return found


def block_readings(
    text: str,
    block: tuple[str, str],
    separator: str,
    begins: dict[str, str],
    end: str,
    is_arguments: Callable[[str], bool],
) -> set[Reading]:
    """The same for calls that stand in a block."""
    place = text.find(block[0])
    if place < 0:
        return {(text, ())}
    found = set()
    for calls, rest in _lists(text[place + len(block[0]) :], separator, begins, end, is_arguments):
        if rest.startswith(block[1]):
            after = rest.removeprefix(block[1])
            for content, more in block_readings(after, block, separator, begins, end, is_arguments):
                found.add((text[:place] + content, (*calls, *more)))
    return found


def _lists(
    text: str, separator: str, begins: dict[str, str], end: str, is_arguments: Callable[[str], bool]
) -> set[tuple[tuple[tuple[str, str], ...], str]]:
    """One call or more at the beginning of a text, and what is left."""
    found = set()
    for name, begin in begins.items():
        if not text.startswith(begin):
            continue
        for stop in range(len(begin), len(text) + 1):
            if text.startswith(end, stop) and is_arguments(text[len(begin) : stop]):
                call, rest = (name, text[len(begin) : stop]), text[stop + len(end) :]
                found.add(((call,), rest))
                if rest.startswith(separator):
                    after = rest.removeprefix(separator)
                    for calls, left in _lists(after, separator, begins, end, is_arguments):
                        found.add(((call, *calls), left))
    return found
