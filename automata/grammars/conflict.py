"""``Conflict``: why a grammar needs more than one stack.

A grammar is deterministic here if one stack suffices at every byte of every text. This is weaker than the conditions of
parser generators in one respect: two alternatives may stay undecided as long as the same rules wait below both, since
finite-state parts are determinized anyway. It is stronger in another: there is no lexer, so ``a+++b`` has two readings
until the next byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conflict:
    """A shortest text after which two rules may be active, with different rules waiting below them.

    ``rules``: the innermost rules in which the two parses differ, and ``places`` their lines and columns (from 1; 0 if
    the grammar has no text). ``stacks``: for each parse all rules that are open at the end of the text, outermost
    first.
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
    """The conflict after ``prefix``, from the possible rule stacks."""
    first = ways[0]
    second = next((way for way in ways if way != first), first)
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    rules = tuple(way[min(shared, len(way) - 1)] for way in (first, second))
    return Conflict(prefix, (rules[0], rules[1]), (place(rules[0]), place(rules[1])), (first, second))
