"""Codes: how characters are spelled in bytes, and the deterministic automata of sets of spellings.

The idea: UTF-8, ``\\uXXXX`` and ``\\n`` are all of one kind. A *form* writes a code point, less a base, as digits
of mixed radix, one byte (or one of several) for a digit. A code is a set of forms; all their spellings together
must be a prefix code. An automaton that steps by characters becomes one that steps by bytes: a state between two
bytes is what each form can still write, cut into one part for each next digit. Parts of equal content are one
state, bottom up, so what lies between two character states is minimal and acyclic by construction.

Cost: linear in the number of blocks that a range cuts, plus one table of (states, 256).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tokenfst.automata.expression import Dfa
from tokenfst.automata.tables import frozen_dfa
from tokenfst.errors import BudgetExceeded

Steps = tuple[tuple[int, int, int], ...]
"""What a state does: disjoint, ascending ranges of code points, both ends included, each with the next state."""


@dataclass(frozen=True, eq=False)
class Form:
    """One way to spell the code points from ``least`` to ``greatest``.

    ``digits[k][d]`` are the bytes that may stand for the digit d at place k of the number ``code - base``; none,
    where that digit is not written this way.
    """

    least: int
    greatest: int
    base: int
    digits: tuple[tuple[bytes, ...], ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """For each place: how many code points share one digit there and all digits before."""
        sizes = [1]
        for digits in reversed(self.digits[1:]):
            sizes.append(sizes[-1] * len(digits))
        return tuple(reversed(sizes))


_Item = tuple[int, int, Steps]
"""A form, the place of its next digit, and what it can still write, relative to its block."""


def spell(
    steps: Sequence[Steps], accepting: Sequence[bool], forms: Sequence[Form], limit: int | None = None
) -> Dfa:
    """The byte automaton of an automaton over characters, with every spelling of each character.

    State k >= 1 does ``steps[k - 1]``; 1 is the start and 0 is dead. These states keep their numbers, and those
    between two bytes follow. More than ``limit`` states raise ``BudgetExceeded``. The result is trim if the given
    automaton is, and each of its characters has a spelling.
    """
    rows: list[dict[int, int]] = [{} for _ in range(len(steps) + 1)]
    interned: dict[frozenset[tuple[int, int]], int] = {}
    known: dict[tuple[_Item, ...], int] = {}

    def follow(items: Sequence[_Item]) -> dict[int, int]:
        branches: dict[int, list[_Item]] = {}
        row: dict[int, int] = {}
        for number, place, inside in items:
            form = forms[number]
            digits = form.digits[place]
            if place + 1 == len(form.digits):
                for low, high, target in inside:
                    row.update((byte, target) for spelled in digits[low : high + 1] for byte in spelled)
                continue
            for digit, part in cut(inside, form.sizes[place]):
                for byte in digits[digit]:
                    branches.setdefault(byte, []).append((number, place + 1, part))
        for byte, below in branches.items():
            row[byte] = between(tuple(below))
        return row

    def between(items: tuple[_Item, ...]) -> int:
        state = known.get(items)
        if state is None:
            row = follow(items)
            state = known[items] = interned.setdefault(frozenset(row.items()), len(rows))
            if state == len(rows):
                if limit is not None and state > limit:
                    raise BudgetExceeded("states", limit, "the spellings of characters")
                rows.append(row)
        return state

    for state, each in enumerate(steps, 1):
        items = [(number, 0, _within(each, form)) for number, form in enumerate(forms)]
        rows[state] = follow([item for item in items if item[2]])

    dense = np.zeros((len(rows), 256), np.uint32)
    for state, row in enumerate(rows):
        dense[state, list(row)] = list(row.values())
    numbers: dict[bytes, int] = {}
    columns = np.ascontiguousarray(dense.T)
    used = set(np.flatnonzero(dense.any(axis=0)).tolist())
    contents = [columns[byte].tobytes() if byte in used else b"" for byte in range(256)]
    classes = np.array([numbers.setdefault(content, len(numbers)) for content in contents], np.uint8)
    table = np.ascontiguousarray(columns[[contents.index(content) for content in numbers]].T)
    accepted = np.zeros(len(rows), np.bool_)
    accepted[1 : len(steps) + 1] = accepting
    return frozen_dfa(classes, table, accepted, 1)


def _within(steps: Steps, form: Form) -> Steps:
    """What of ``steps`` the form can write, less its base."""
    least, greatest, base = form.least, form.greatest, form.base
    return tuple(
        (max(low, least) - base, min(high, greatest) - base, target)
        for low, high, target in steps
        if low <= greatest and high >= least
    )


def cut(steps: Steps, size: int) -> list[tuple[int, Steps]]:
    """The blocks of ``size`` code points that ``steps`` touch: number, and content relative to its beginning."""
    parts: list[tuple[int, list[tuple[int, int, int]]]] = []
    for low, high, target in steps:
        (first, begin), (last, end) = divmod(low, size), divmod(high, size)
        if not parts or parts[-1][0] != first:
            parts.append((first, []))
        parts[-1][1].append((begin, end if first == last else size - 1, target))
        if first < last:
            parts += ((block, [(0, size - 1, target)]) for block in range(first + 1, last))
            parts.append((last, [(0, end, target)]))
    return [(block, tuple(part)) for block, part in parts]


def spell_one(code: int, forms: Sequence[Form]) -> Dfa:
    """``spell`` for one character: its spellings as a tree, whose last state is 2. Without the work on ranges."""
    rows: list[dict[int, int]] = [{}, {}, {}]
    for form in forms:
        if not form.least <= code <= form.greatest:
            continue
        places, number = [], code - form.base
        for size, digits in zip(form.sizes, form.digits, strict=True):
            digit, number = divmod(number, size)
            places.append(digits[digit])
        if not all(places):
            continue
        state = 1
        for place, choices in enumerate(places, 1):
            row = rows[state]
            known = {row.get(byte, len(rows)) for byte in choices}
            if len(known) > 1:  # spellings that part in the midst of a digit's bytes
                return spell((((code, code, 2),), ()), (False, True), forms)
            following = 2 if place == len(places) else known.pop()
            if following == len(rows):
                rows.append({})
            row.update((byte, following) for byte in choices)
            state = following
    columns: dict[int, list[int]] = {}
    for state, row in enumerate(rows):
        for byte, following in row.items():
            columns.setdefault(byte, [0] * len(rows))[state] = following
    numbers: dict[tuple[int, ...], int] = {(0,) * len(rows): 0}
    classes = np.zeros(256, np.uint8)
    for byte in sorted(columns):
        classes[byte] = numbers.setdefault(tuple(columns[byte]), len(numbers))
    accepted = np.zeros(len(rows), np.bool_)
    accepted[2] = True
    return frozen_dfa(classes, np.array(list(numbers), np.uint32).T.copy(), accepted, 1)
