"""Where a grammar needs more than one stack: what is shown of it.

A grammar is deterministic here if one stack is enough at every byte of every text. That is less than what parser
generators ask: which of two alternatives is being read may stay open as long as both have the same rules
waiting below, since what is read by finite means is made deterministic anyway; and more than what they may assume,
since nothing tells tokens from each other beforehand: ``a+++b`` has two readings until the next byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conflict:
    """A shortest text after which two rules may be going on, with different rules waiting below them.

    ``rules``: the two innermost rules that tell the ways apart, and ``places`` their lines and columns (from 1; 0
    where the grammar has no text). ``stacks``: all rules around the end of the text, outermost first, each way.
    """

    prefix: bytes
    rules: tuple[str, str]
    places: tuple[tuple[int, int], tuple[int, int]]
    stacks: tuple[tuple[str, ...], tuple[str, ...]]

    def __str__(self) -> str:
        first, second = (
            f"{rule!r}{f' (line {line}, column {column})' if line else ''}"
            for rule, (line, column) in zip(self.rules, self.places, strict=True)
        )
        stacks = " or ".join(dict.fromkeys(" > ".join(stack) for stack in self.stacks))
        where = f"{first} and in {second}" if first != second else f"two places of {first}"
        return f"after {self.prefix!r} the text may be in {where}, and one stack is not enough: {stacks}"


def make_conflict(
    prefix: bytes, ways: Sequence[tuple[str, ...]], place: Callable[[str], tuple[int, int]]
) -> Conflict:
    """The conflict behind ``prefix``, of the rule stacks that the text may end in."""
    first = ways[0]
    second = next((way for way in ways if way != first), first)
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    rules = tuple(way[min(shared, len(way) - 1)] for way in (first, second))
    return Conflict(prefix, (rules[0], rules[1]), (place(rules[0]), place(rules[1])), (first, second))
