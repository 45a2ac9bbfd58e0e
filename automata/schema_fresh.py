"""Which strings may be told apart as a text goes on: names that a schema does not list, and items that must differ.

The idea: an automaton reads such a string, and the sequence remembers it (``distinct.fresh``). A finite set of
strings takes away no prefix that begins infinitely many words; so only languages with more words than a text has room
for are marked, and where some prefix begins few it is said, so that masks look for one that is left.
Few words are listed instead: each is then an option of its own, which automata remember (``expression.unordered``).

Cost: one small automaton for each set with a pattern or format, which is kept; those that outgrow ``_GLANCE`` are left
as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tokenfst.automata.distinct import fresh
from tokenfst.automata.expression import Dfa, Expr, union
from tokenfst.automata.schema_strings import Strings
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

MANY = 1 << 20
"""So many words are more than any array or object has."""
MOST_LISTED = 256
_GLANCE = Budget(states=5_000, seconds=2.0)


@dataclass(frozen=True, slots=True)
class Room:
    """How many texts a set has: ``many``, and ``thin`` if some prefix has fewer; or the few that it has, as ``words``;
    or a number in between, or one that is not known."""

    many: bool = False
    thin: bool = False
    words: frozenset[str] | None = None


_EVERYTHING = Room(many=True)


def fresh_text(cells: Iterable[Strings]) -> Expr | None:
    """The JSON texts of a union of cells, each different from all before it in the same array or object; ``None`` if
    there are too few of them for that."""
    known = list(cells)
    rooms = [room(cell) for cell in known]
    if not any(each.many for each in rooms):
        return None
    thin = len(known) > 1 or rooms[0].thin
    return fresh(union(*(cell.json() for cell in known)), thin=thin)


def room(cell: Strings) -> Room:
    """How many texts a cell has."""
    if cell.values is None and not cell.parts and cell.high is None:
        return _EVERYTHING
    return _room(cell)


@lru_cache(maxsize=512)
def _room(cell: Strings) -> Room:
    if cell.values is not None:
        return Room(words=cell.values if len(cell.values) <= MOST_LISTED else None)
    if not cell.parts:
        if cell.high == 0:
            return Room(words=frozenset({""}) - cell.excluded if not cell.low else frozenset())
        return Room(many=True, thin=cell.high is not None)
    try:
        dfa = replace(cell, excluded=frozenset()).content().with_budget(_GLANCE).determinize()
    except BudgetExceeded:
        return Room()
    if dfa.start == 0:
        return Room(words=frozenset())
    counts = _counts(dfa)
    if counts[dfa.start] >= MANY + len(cell.excluded):
        return Room(many=True, thin=min(counts.values()) < MANY)
    if counts[dfa.start] > MOST_LISTED + len(cell.excluded):
        return Room()
    return Room(words=frozenset(_words(dfa)) - cell.excluded)


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
