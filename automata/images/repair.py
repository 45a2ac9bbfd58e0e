"""The nearest text of a language: the cheapest edits that turn a text into one of its texts.

It is a shortest path, in the tropical semiring, of text ∘ edits ∘ language. A node of the composition is a position in
the text and a state of the language's automaton. Its arcs copy the next letter, at no cost, or delete it, replace it or
insert one before it. Nodes are created by the search (Dijkstra), so a text that is nearly correct costs little more
than its length. Of all letters that lead to the same state, one, preferably printable, represents the others.

Cost: in the worst case (length of the text) x (states) nodes with an arc for each different next state; a heap.
Rejected: the explicit composition with ``tokenfst.fst`` (an arc for each pair of letters at each position).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.images.letters import LetterAutomaton, read_letters, require_language
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, ConstraintError, EmptyLanguageError

Kind = Literal["insert", "delete", "replace"]
_KINDS: tuple[Kind, ...] = ("insert", "delete", "replace")
_NODE_BYTES = 400
CHANGED: dict[Kind | None, int] = {None: 0, "insert": 1, "delete": 1, "replace": 2}
"""The number of letters that an edit writes or removes. Among paths of equal cost, the one with the least sum of these
is chosen.
"""
_Node = tuple[int, int]
_Step = tuple[_Node, Kind | None, int]
"""The previous node, the edit (None: a copy), and the letter that was written (-1: none)."""


class Edit(NamedTuple):
    """One edit: ``old``, at character ``at`` of the given text, becomes ``new``. An insertion before that character has
    an empty ``old``.
    """

    kind: Kind
    at: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Repair:
    """The nearest text of the language, the total cost of the edits, and the edits from left to right."""

    text: str
    cost: float
    edits: tuple[Edit, ...]


def repair_language(
    text: str, constraint: Constraint, costs: Mapping[str, float] | None, budget: Budget | None
) -> Repair:
    """``repair`` for a regular language; ``grammars.repairing`` defines it for all constraints."""
    language = require_language(constraint, "repair")
    limits = budget or language.budget
    deadline = Deadline(limits, "the search for the nearest text")
    priced = prices_of(costs or {})
    automaton = read_letters(language, "characters", deadline)
    if automaton.start == 0:
        raise EmptyLanguageError("repair: the constraint has no text")
    return _Search(text, automaton, priced, deadline).run()


def prices_of(costs: Mapping[str, float], call: str = "repair") -> dict[Kind, float]:
    """The cost of each edit, 1 by default. Raises ``ConstraintError``, which names the ``call``, for invalid costs."""
    made: dict[Kind, float] = dict.fromkeys(_KINDS, 1.0)
    for kind, cost in costs.items():
        if kind not in _KINDS:
            raise ConstraintError(f"{call}: costs are of 'insert', 'delete' and 'replace', not of {kind!r}")
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not cost >= 0:
            raise ConstraintError(
                f"{call}: the cost of {kind!r} must be a number that is not negative, not {cost!r}"
            )
        made[kind] = float(cost)
    return made


class LetterMoves:
    """The arcs of text ∘ edits ∘ automaton, for an automaton over letters."""

    def __init__(self, text: str, automaton: LetterAutomaton, prices: Mapping[Kind, float]) -> None:
        self._text, self._automaton, self._prices = text, automaton, prices
        self._classes = automaton.class_of([ord(each) for each in text]).tolist() if text else []
        self._letters = _letters(automaton)
        self._onward: dict[int, list[tuple[int, int]]] = {}

    def steps(self, at: int, state: int) -> list[tuple[_Node, float, Kind | None, int]]:
        """The arcs from a position in the text and a state: target, cost, kind, and the letter that is written (-1:
        none).
        """
        prices, found = self._prices, list[tuple[_Node, float, Kind | None, int]]()
        more = at < len(self._text)
        if (
            more
            and (group := self._classes[at]) >= 0
            and (target := int(self._automaton.table[state, group]))
        ):
            found.append(((at + 1, target), 0.0, None, ord(self._text[at])))
        if more:
            found.append(((at + 1, state), prices["delete"], "delete", -1))
        for target, letter in self._next(state):
            if more:
                found.append(((at + 1, target), prices["replace"], "replace", letter))
            found.append(((at, target), prices["insert"], "insert", letter))
        return [step for step in found if step[1] < math.inf]

    def _next(self, state: int) -> list[tuple[int, int]]:
        """Each next state, with a letter that leads to it."""
        if state not in self._onward:
            letters: dict[int, int] = {}
            for group, target in enumerate(self._automaton.table[state].tolist()):
                if target and _rank(self._letters[group]) < _rank(letters.get(target, -1)):
                    letters[target] = self._letters[group]
            self._onward[state] = list(letters.items())
        return self._onward[state]


class _Search:
    def __init__(
        self, text: str, automaton: LetterAutomaton, prices: dict[Kind, float], deadline: Deadline
    ) -> None:
        self._text, self._automaton, self._deadline = text, automaton, deadline
        self._moves = LetterMoves(text, automaton, prices)

    def run(self) -> Repair:
        """Run Dijkstra's algorithm. At equal cost it prefers fewer changed letters, then the position that is
        further on.
        """
        start: _Node = (0, self._automaton.start)
        best: dict[_Node, tuple[float, int]] = {start: (0.0, 0)}
        came: dict[_Node, _Step] = {}
        done: set[_Node] = set()
        heap = [(0.0, 0, 0, start[1])]
        while heap:
            cost, changed, after, state = heapq.heappop(heap)
            node = (-after, state)
            if node in done:
                continue
            done.add(node)
            if node[0] == len(self._text) and self._automaton.accepting[state]:
                return self._read_back(node, cost, came)
            for target, price, kind, letter in self._moves.steps(*node):
                total = (cost + price, changed + CHANGED[kind])
                if target not in best or total < best[target]:
                    best[target] = total
                    came[target] = (node, kind, letter)
                    heapq.heappush(heap, (*total, -target[0], target[1]))
            charge(len(best), self._deadline)
        raise ConstraintError(
            "repair: the edits that are allowed make no text of the constraint out of this one"
        )

    def _read_back(self, node: _Node, cost: float, came: dict[_Node, _Step]) -> Repair:
        steps = list[tuple[int, Kind | None, int]]()
        while node in came:
            node, kind, letter = came[node]
            steps.append((node[0], kind, letter))
        return written(self._text, cost, reversed(steps))


def charge(nodes: int, deadline: Deadline) -> None:
    """Count the nodes of a search, and check its time."""
    if nodes * _NODE_BYTES > deadline.budget.bytes:
        raise BudgetExceeded("bytes", deadline.budget.bytes, deadline.where)
    deadline.tick(10)


def written(text: str, cost: float, steps: Iterable[tuple[int, Kind | None, int]]) -> Repair:
    """The result of copies (None) and edits at positions of the text, from left to right, each with the letter that it
    writes (-1: none).
    """
    edits, made = list[Edit](), list[str]()
    for at, kind, letter in steps:
        new = chr(letter) if letter >= 0 else ""
        made.append(new)
        if kind is not None:
            edits.append(Edit(kind, at, "" if kind == "insert" else text[at], new))
    return Repair("".join(made), cost, tuple(edits))


def _rank(letter: int) -> tuple[int, int]:
    """The rank by which one of several letters represents all: first printable ASCII, then smaller ones. -1: none."""
    return (3 if letter < 0 else 0 if 0x20 < letter < 0x7F else 1 if letter == 0x20 else 2, letter)


def _letters(automaton: LetterAutomaton) -> list[int]:
    """For each class, the letter that represents it."""
    found = [-1] * automaton.table.shape[1]
    lasts = np.append(automaton.begins[1:], 0x110000) - 1
    for first, last, group in zip(
        automaton.begins.tolist(), lasts.tolist(), automaton.group.tolist(), strict=True
    ):
        if group < 0:
            continue
        # The first letter of the interval, and the first printable one.
        for letter in (first, max(first, 0x21)):
            if letter <= last and _rank(letter) < _rank(found[group]):
                found[group] = letter
    return found
