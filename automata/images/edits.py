"""Closure under edits: the texts within edit distance k of some text of a language.

This is the Levenshtein automaton (Schulz and Mihov, "Fast string correction with Levenshtein automata", IJDAR 2002) of
a whole language instead of one word: the composition of the language's automaton with the transducer that copies,
inserts, deletes and replaces letters, at most k times. A state of the composition is a state q of the language with the
number e of edits so far; determinized, it is the least e for each q, because (q, e) can do everything that (q, e + 1)
can. A transposition is an intermediate state: "the second of two letters has been read; the first must follow, and then
q".

Invariant: sets are closed under deletions, so equal sets are equal states.

Cost: for one word of n letters and fixed k, O(n) states; for a language, exponential in its states in the worst case,
as for any determinization, within the budget. Rejected: rational composition in OpenFst: it keeps the dominated pairs
and treats an inserted character as up to four letters.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.images.letters import (
    LetterAutomaton,
    Unit,
    crawl,
    read_letters,
    require_language,
    write_letters,
)
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but
from tokenfst.errors import ConstraintError

_State = frozenset[tuple[int, int]]
"""Pairs (q, e): q was reached with at least e edits. A negative q is the middle of a transposition."""


@checked_but("language", "k")
def within_edits(
    language: Language,
    k: int,
    *,
    unit: Unit = "characters",
    transpositions: bool = False,
    budget: Budget | None = None,
) -> Language:
    """The texts that at most ``k`` edits make of some text of ``language``.

    An edit inserts, deletes or replaces one character (a code point). With ``transpositions`` it may also swap two
    adjacent characters, between and on which no other edit is applied (optimal string alignment distance). With
    ``unit="bytes"`` letters are bytes, and the result contains invalid UTF-8 too; with characters, words that are not
    valid UTF-8 are ignored.

    Computes all states of ``language`` and of the result. For a word and a fixed ``k`` their number is linear in the
    length of the word, with a factor that grows exponentially in ``k``; for a language it is exponential in the worst
    case. Raises ``ConstraintError`` for a negative ``k``, another unit or a grammar; ``BudgetExceeded`` if it exceeds
    ``budget`` (by default that of the language).
    """
    source = require_language(language, "within_edits")
    if not isinstance(k, int) or k < 0:
        raise ConstraintError(f"within_edits takes a number of edits of at least 0, not {k!r}")
    if unit not in ("characters", "bytes"):
        raise ConstraintError(f"the unit of an edit is 'characters' or 'bytes', not {unit!r}")
    name = f"within_edits({source.source}, {k})"
    deadline = Deadline(budget or source.budget, name)
    letters = read_letters(source, unit, deadline)
    if letters.start == 0:
        return Language.empty()
    edits = _Edits(letters, k, transpositions, deadline)
    table, accepting = crawl(edits.start, edits.follow, edits.accepts, letters.table.shape[1], deadline)
    made = write_letters(letters.begins, letters.group, table, accepting, unit, deadline)
    return Language(made, name, deadline.budget)


class _Edits:
    """The sets of pairs, and the targets of letters."""

    def __init__(self, letters: LetterAutomaton, k: int, transpositions: bool, deadline: Deadline) -> None:
        self.k, self.transpositions, self.deadline = k, transpositions, deadline
        self.rows: list[list[int]] = letters.table.tolist()
        self.arcs = [[(c, q) for c, q in enumerate(row) if q] for row in self.rows]
        self.next = [np.unique([q for _, q in arcs]).tolist() for arcs in self.arcs]
        self.final: list[bool] = letters.accepting.tolist()
        self.states = len(self.rows)
        self.deleted = lru_cache(maxsize=None)(self._deleted)
        self.swaps = lru_cache(maxsize=None)(self._swaps)
        self.start = self.closed({letters.start: 0})

    def accepts(self, state: _State) -> bool:
        return any(q > 0 and self.final[q] for q, _ in state)

    def follow(self, state: _State) -> tuple[_State | None, dict[int, _State]]:
        """The target of all letters that the language does not use, and the targets of the others."""
        edited: dict[int, int] = {}
        matched: dict[int, dict[int, int]] = {}
        for q, errors in state:
            if q < 0:
                due, target = divmod(-q - 1, self.states)
                _reach(matched.setdefault(due, {}), target, errors)
                continue
            self.deadline.tick(1 + len(self.arcs[q]))
            for letter, target in self.arcs[q]:
                _reach(matched.setdefault(letter, {}), target, errors)
            if errors < self.k:
                _reach(edited, q, errors + 1)
                for target in self.next[q]:
                    _reach(edited, target, errors + 1)
                for second, pending in self.swaps(q) if self.transpositions else ():
                    _reach(matched.setdefault(second, {}), pending, errors + 1)
        others = self.closed(edited) if edited else None
        steps: dict[int, _State] = {}
        for letter, reached in matched.items():
            self.deadline.tick(1 + len(edited))
            for q, errors in edited.items():
                _reach(reached, q, errors)
            steps[letter] = self.closed(reached)
        return others, steps

    def closed(self, reached: dict[int, int]) -> _State:
        """The closure under deletions."""
        whole = dict(reached)
        for q, errors in reached.items():
            near = self.deleted(q) if q > 0 else ()
            self.deadline.tick(1 + len(near))
            for target, more in near:
                if errors + more <= self.k:
                    _reach(whole, target, errors + more)
        return frozenset(whole.items())

    def _deleted(self, q: int) -> list[tuple[int, int]]:
        """The states up to k letters after q, each with the least number of letters."""
        found = {q: 0}
        frontier = [q]
        while frontier and found[frontier[0]] < self.k:
            self.deadline.tick(1 + len(frontier))
            more = found[frontier[0]] + 1
            frontier = list(
                dict.fromkeys(each for state in frontier for each in self.next[state] if each not in found)
            )
            found.update(dict.fromkeys(frontier, more))
        return list(found.items())

    def _swaps(self, q: int) -> list[tuple[int, int]]:
        """For each two letters from q on: the second one, and the intermediate state that waits for the first one."""
        self.deadline.tick(sum(len(self.arcs[middle]) for _, middle in self.arcs[q]))
        return list(
            dict.fromkeys(
                (second, -1 - (first * self.states + target))
                for first, middle in self.arcs[q]
                for second, target in self.arcs[middle]
            )
        )


def _reach(states: dict[int, int], q: int, errors: int) -> None:
    known = states.get(q)
    if known is None or errors < known:
        states[q] = errors
