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

import numpy as np

from tokenfst.automata.distinct import fresh
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


@dataclass(frozen=True, slots=True)
class Room:
    """How many texts a set has, at most ``MANY``; ``None`` if that is not known. ``thin``: some prefix has fewer.
    ``words``: the texts themselves, if they are few."""

    count: int | None
    thin: bool = True
    words: frozenset[str] | None = None


_EVERYTHING = Room(MANY)


def fresh_text(cells: tuple[Strings, ...]) -> Expr:
    """The JSON texts of a union of cells, each different from all before it in the same array or object."""
    found = room(cells)
    fewest = 0 if found.count == MANY else max(found.count or 1, 1)
    return fresh(union(*(cell.json() for cell in cells)), thin=found.thin, fewest=fewest)


def room(cells: tuple[Strings, ...]) -> Room:
    """How many texts a union of cells has."""
    if len(cells) == 1 and cells[0].values is None and not cells[0].parts and cells[0].high is None:
        return _EVERYTHING
    return _room(cells)


@lru_cache(maxsize=512)
def _room(cells: tuple[Strings, ...]) -> Room:
    if len(cells) != 1:
        rooms = [room((cell,)) for cell in cells]
        if any(each.count == MANY for each in rooms):
            return Room(MANY)
        return _searched(lambda: Language.union_of(cell.content() for cell in cells), frozenset())
    cell = cells[0]
    if cell.values is not None:
        count = len(cell.values)
        return Room(min(count, MANY), words=cell.values if count <= MOST_LISTED else None)
    if not cell.parts:
        if cell.high == 0:
            words = frozenset({""}) - cell.excluded if not cell.low else frozenset()
            return Room(len(words), words=words)
        return Room(MANY, thin=cell.high is not None)
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
    if count >= MANY:
        return Room(MANY, thin=min(counts.values()) < MANY)
    return Room(count, words=frozenset(_words(dfa)) - excluded if count <= MOST_LISTED else None)


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
    pending = [(dfa.start, b"")]
    while pending:
        state, word = pending.pop()
        if dfa.accepting[state]:
            found.append(word.decode())
        for byte in range(256):
            target = int(dfa.table[state, dfa.classes[byte]])
            if target:
                pending.append((target, word + bytes([byte])))
    return found
