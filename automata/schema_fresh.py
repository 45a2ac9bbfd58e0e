"""Which strings may be told apart as a text goes on: names that a schema does not list, and items that must differ.

The idea: an automaton reads such a string, and the sequence remembers it (``distinct.fresh``). A finite set of
strings takes away no prefix that begins infinitely many words; where some prefix begins few, or where there are fewer
words in all than a text has room for, it is said, so that masks look for one that is left.
Few names are listed instead: each is then an option of its own, which automata remember (``expression.unordered``).

Cost: one small automaton for each set with a pattern or format, which is kept; of those that outgrow ``_GLANCE`` it is
not known how many words they have, so that masks look for one always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from json import dumps

import numpy as np

from tokenfst.automata.distinct import FAR, NEAR, fresh
from tokenfst.automata.expression import Dfa, Expr, union
from tokenfst.automata.language import Language
from tokenfst.automata.schema_strings import Strings
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

MANY = 1 << 20
"""So many words are more than any array or object has: they never run out."""
MOST_LISTED = 256
"""So many names can be listed, where one of them must be there."""
MOST_OPTIONS = 8
"""So many names are listed without need: automata remember each set of those that were used."""
_GLANCE = Budget(states=5_000, seconds=2.0)
_PLAIN = 93
"""Letters of one byte that JSON spells as they are, but for two."""
_LONGEST = 128


@dataclass(frozen=True, slots=True)
class Room:
    """How many texts a set has, at most ``MANY``; ``None`` if that is not known. ``thin``: some prefix has fewer.
    ``words``: the texts themselves, if they are few. ``near``, ``far``: as of ``distinct.fresh``, behind the quotation
    mark or, unless it is thin, behind any prefix."""

    count: int | None
    thin: bool = True
    words: frozenset[str] | None = None
    near: int = 0
    far: int = 0


def fresh_text(cells: tuple[Strings, ...]) -> Expr:
    """The JSON texts of a union of cells, each different from all before it in the same array or object."""
    found = room(cells)
    fewest = 0 if found.count == MANY else max(found.count or 1, 1)
    text = union(*(cell.json() for cell in cells))
    return fresh(text, thin=found.thin, fewest=fewest, near=found.near, far=found.far)


def room(cells: tuple[Strings, ...]) -> Room:
    """How many texts a union of cells has."""
    if len(cells) == 1:
        [cell] = cells
        if cell.values is None and not cell.parts and cell.high is None:
            return _endless(cell.low, len(cell.excluded))
    return _room(cells)


@lru_cache(maxsize=512)
def _endless(low: int, excluded: int) -> Room:
    """The same of the texts of at least so many characters, but for some."""
    near, far = (_least_length(low, None, excluded, number) for number in (NEAR, FAR))
    return Room(MANY, thin=False, near=near, far=far)


@lru_cache(maxsize=512)
def _room(cells: tuple[Strings, ...]) -> Room:
    if len(cells) != 1:
        rooms = [room((cell,)) for cell in cells]
        if any(each.count == MANY for each in rooms):
            near, far = (
                min((length for length in lengths if length), default=0)
                for lengths in zip(
                    *((each.near, each.far) for each in rooms if each.count == MANY), strict=True
                )
            )
            return Room(MANY, near=near, far=far)
        return _searched(lambda: Language.union_of(cell.content() for cell in cells), frozenset())
    cell = cells[0]
    if cell.values is not None:
        count = len(cell.values)
        words = cell.values if count <= MOST_LISTED else None
        sizes = sorted(len(dumps(word, ensure_ascii=False).encode()) - 2 for word in cell.values)
        near, far = (sizes[min(number, count - 1)] + 1 if count else 0 for number in (NEAR, FAR))
        return Room(min(count, MANY), words=words, near=near, far=far)
    if not cell.parts:
        if cell.high == 0:
            words = frozenset({""}) - cell.excluded if not cell.low else frozenset()
            return Room(len(words), words=words)
        near, far = (_least_length(cell.low, cell.high, len(cell.excluded), number) for number in (NEAR, FAR))
        return Room(MANY, thin=cell.high is not None, near=near, far=far)
    every = replace(cell, excluded=frozenset())
    return _searched(every.content, frozenset(filter(every.holds, cell.excluded)))


def _searched(content: Callable[[], Language], excluded: frozenset[str]) -> Room:
    """The same of a language without some of its words, by its automaton."""
    try:
        dfa = content().with_budget(_GLANCE).determinize()
    except BudgetExceeded:
        return Room(None)
    if dfa.start == 0:
        return Room(0, words=frozenset())
    counts = _counts(dfa)
    count = counts[dfa.start] - len(excluded)
    thin = count < MANY or min(counts.values()) < MANY
    near, far = _lengths(dfa, counts, len(excluded), only_start=thin)
    if count >= MANY:
        return Room(MANY, thin, near=near, far=far)
    words = frozenset(_words(dfa)) - excluded if count <= MOST_LISTED else None
    return Room(count, words=words, near=near, far=far)


def _least_length(low: int, high: int | None, excluded: int, number: int) -> int:
    """Bytes within which more than ``number`` texts end behind any prefix, of those of ``low`` to ``high`` characters,
    without some ``excluded`` ones."""
    letters = 1
    while _PLAIN**letters <= number + excluded:
        letters += 1
    return low + letters if high is None or low + letters <= high else 4 * high


def _lengths(dfa: Dfa, counts: dict[int, int], excluded: int, *, only_start: bool) -> tuple[int, int]:
    """The same for ``NEAR`` and ``FAR``, by counting words that JSON spells as they are, byte by byte; 0 if they are
    longer than ``_LONGEST``."""
    plain = [byte for byte in range(0x20, 256) if byte not in b'"\\']
    sizes = np.bincount(dfa.classes[plain], minlength=dfa.table.shape[1]).astype(float)
    states = [dfa.start] if only_start else list(counts)
    totals = np.array([counts[state] for state in states], float)
    accepting = dfa.accepting.astype(float)
    words, length, found = accepting, 0, []
    for number in (NEAR, FAR):
        wanted = np.minimum(totals, number + 1.0 + excluded)
        while length < _LONGEST and (words[states] < wanted).any():
            words = np.minimum(accepting + words[dfa.table] @ sizes, 1e15)
            words[0] = 0
            length += 1
        found.append(0 if (words[states] < wanted).any() else max(length, 1))
    return found[0], found[1]


def _counts(dfa: Dfa) -> dict[int, int]:
    """Of each state, the number of words that lead to acceptance; ``MANY`` squared if there are infinitely many, or so
    many. By taking away states all of whose successors are counted: cycles stay."""
    endless = MANY * MANY
    sizes = np.bincount(dfa.classes, minlength=dfa.table.shape[1]).tolist()
    counts: dict[int, int] = {0: 0}
    before: dict[int, set[int]] = {}
    missing: dict[int, int] = {}
    for state, row in enumerate(dfa.table.tolist()):
        following = set(row) - {0}
        missing[state] = len(following)
        for target in following:
            before.setdefault(target, set()).add(state)
    ready = [state for state, left in missing.items() if state and not left]
    while ready:
        state = ready.pop()
        onward = zip(dfa.table[state].tolist(), sizes, strict=True)
        total = int(dfa.accepting[state]) + sum(counts[target] * size for target, size in onward)
        counts[state] = min(total, endless)
        for source in before.get(state, ()):
            missing[source] -= 1
            if not missing[source]:
                ready.append(source)
    del counts[0]
    return {state: counts.get(state, endless) for state in range(1, dfa.num_states)}


def _words(dfa: Dfa) -> list[str]:
    """All words of a finite language of texts."""
    found: list[str] = []
    rows, accepting = dfa.table[:, dfa.classes].tolist(), dfa.accepting.tolist()
    onward = [[(target, bytes([byte])) for byte, target in enumerate(row) if target] for row in rows]
    pending = [(dfa.start, b"")]
    while pending:
        state, word = pending.pop()
        if accepting[state]:
            found.append(word.decode())
        pending += ((target, word + byte) for target, byte in onward[state])
    return found
