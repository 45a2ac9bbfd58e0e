"""The slow twins of ``spelling.spell`` and ``utf8.characters``: the same definitions in plain Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokenfst.automata.characters.codes import Form, Steps
from tokenfst.automata.characters.utf8 import ASCII, MULTIBYTE, Characters, overlap, without_surrogates
from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.expressions.tables import frozen_dfa
from tokenfst.errors import BudgetExceeded

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


def characters(dfa: Dfa, limit: int | None = None) -> Characters:
    """What ``dfa``, a trim automaton over bytes, does with whole characters.

    More than ``limit`` ranges of characters raise ``BudgetExceeded("states")``: that many states would spell them.
    """
    reader = _Reader(dfa, limit)
    numbers = {dfa.start: 1}
    order = [dfa.start]
    steps: list[Steps] = []
    for state in order:
        found = reader.steps(state)
        for _, _, target in found:
            if target not in numbers:
                order.append(target)
                numbers[target] = len(order)
        steps.append(tuple((low, high, numbers[target]) for low, high, target in found))
    accepting = tuple(bool(dfa.accepting[state]) for state in order)
    return Characters(tuple(steps), accepting, reader.whole)


class _Reader:
    """Follows lead bytes and continuation bytes; notes in ``whole`` where anything else is possible."""

    def __init__(self, dfa: Dfa, limit: int | None) -> None:
        self.dfa, self.limit = dfa, limit
        self.found = 0
        self.whole = True
        self.known: dict[tuple[int, int], Steps] = {}

    def steps(self, state: int) -> Steps:
        """What the automaton does from ``state`` with one character; the targets are states of ``dfa``."""
        following = self.following(state)
        self.whole &= not any(following[0x80:0xC0]) and not any(following[0xF5:])
        found: list[tuple[int, int, int]] = []
        for form in (ASCII, *MULTIBYTE):
            first, count = form.digits[0][0][0], len(form.digits[0])
            valid = without_surrogates(((form.least, form.greatest),))
            for low, high, target in self.joined(following[first : first + count], len(form.digits)):
                if any(begin <= low and high <= end for begin, end in valid):
                    found.append((low, high, target))
                    continue
                self.whole = False
                found += ((begin, end, target) for begin, end in overlap(((low, high),), valid))
        return tuple(found)

    def following(self, state: int) -> list[int]:
        states: list[int] = self.dfa.table[state, self.dfa.classes].tolist()
        return states

    def joined(self, following: list[int], places: int) -> Steps:
        """What ``places`` bytes spell, the first of them leading to ``following``."""
        size = 64 ** (places - 1)
        steps: list[tuple[int, int, int]] = []
        for number, state in enumerate(following):
            for low, high, target in self.block(state, places - 1) if state else ():
                begin = low + number * size
                if steps and steps[-1][1:] == (begin - 1, target):
                    begin = steps.pop()[0]
                steps.append((begin, high + number * size, target))
        self.found += len(steps)
        if self.limit is not None and self.found > self.limit:
            raise BudgetExceeded("states", self.limit, "the characters of a byte automaton")
        return tuple(steps)

    def block(self, state: int, places: int) -> Steps:
        """What ``places`` continuation bytes spell from ``state`` on; at most three."""
        if places == 0:
            return ((0, 0, state),)
        if (state, places) not in self.known:
            following = self.following(state)
            others = any(following[:0x80]) or any(following[0xC0:]) or self.dfa.accepting[state]
            self.whole &= not others
            self.known[state, places] = self.joined(following[0x80:0xC0], places)
        return self.known[state, places]
