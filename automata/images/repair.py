"""The nearest text of a language: the least costly edits that make a broken text one of its texts.

The idea: the shortest path, in the tropical semiring, of text ∘ edits ∘ language. A node of the composition is
a place in the text and a state of the language's automaton; it copies the letter that stands there, at no
cost, or deletes it, replaces it or inserts one before it. Nodes are made as the search (Dijkstra) comes to
them, so a text that is nearly right costs little more than its length. Of all letters that lead to the same
state one stands for the others: a printable one.

Cost: at worst (length of the text) x (states) nodes with an arc for each different next state; a heap.
Rejected: the composition written out with ``tokenfst.fst`` (an arc for each pair of letters at each place).
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
"""Letters that an edit writes or takes away: of ways at the same cost the one that changes least is taken."""
_Node = tuple[int, int]
_Step = tuple[_Node, Kind | None, int]
"""Where a node was come to from, by which edit (None: a copy), and the letter that was written (-1: none)."""


class Edit(NamedTuple):
    """One edit: ``old`` of the text at place ``at`` (empty where something is inserted before it) becomes
    ``new``."""

    kind: Kind
    at: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Repair:
    """A text of the language, what it costs, and the edits that make it, from left to right."""

    text: str
    cost: float
    edits: tuple[Edit, ...]


def repair_language(
    text: str, constraint: Constraint, costs: Mapping[str, float] | None, budget: Budget | None
) -> Repair:
    """``repair`` (automata/grammars) of a regular language."""
    language = require_language(constraint, "repair")
    limits = budget or language.budget
    deadline = Deadline(limits, "the search for the nearest text")
    priced = prices_of(costs or {})
    automaton = read_letters(language, "characters", deadline)
    if automaton.start == 0:
        raise EmptyLanguageError("repair: the constraint has no text")
    return _Search(text, automaton, priced, deadline).run()


def prices_of(costs: Mapping[str, float]) -> dict[Kind, float]:
    """What each edit costs, 1 if not given. ``ConstraintError`` for what is no cost."""
    made: dict[Kind, float] = dict.fromkeys(_KINDS, 1.0)
    for kind, cost in costs.items():
        if kind not in _KINDS:
            raise ConstraintError(f"repair: costs are of 'insert', 'delete' and 'replace', not of {kind!r}")
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not cost >= 0:
            raise ConstraintError(
                f"repair: the cost of {kind!r} must be a number that is not negative, not {cost!r}"
            )
        made[kind] = float(cost)
    return made


class LetterMoves:
    """What edits of a text do in an automaton over its letters: the arcs of text ∘ edits ∘ automaton."""

    def __init__(self, text: str, automaton: LetterAutomaton, prices: Mapping[Kind, float]) -> None:
        self._text, self._automaton, self._prices = text, automaton, prices
        self._classes = automaton.class_of([ord(each) for each in text]).tolist() if text else []
        self._letters = _letters(automaton)
        self._onward: dict[int, list[tuple[int, int]]] = {}

    def steps(self, at: int, state: int) -> list[tuple[_Node, float, Kind | None, int]]:
        """From a place in the text and a state: where an edit or a copy leads, its price, and the letter that it
        writes (-1: none)."""
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
        """Each state that follows, with a letter that leads there."""
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
        """Dijkstra; at the same cost what changes fewer letters, then what is furthest in the text."""
        start: _Node = (0, self._automaton.start)
        best: dict[_Node, tuple[float, int]] = {start: (0.0, 0)}
        came: dict[_Node, _Step] = {}
        done: set[_Node] = set()
        heap = [(0.0, 0, 0, start[1])]
        while heap:
            cost, changed, behind, state = heapq.heappop(heap)
            node = (-behind, state)
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
    """Count the nodes that a search has met, and its time."""
    if nodes * _NODE_BYTES > deadline.budget.bytes:
        raise BudgetExceeded("bytes", deadline.budget.bytes, deadline.where)
    deadline.tick(10)


def written(text: str, cost: float, steps: Iterable[tuple[int, Kind | None, int]]) -> Repair:
    """What copies (None) and edits at places of the text make, from left to right, each with the letter that it writes
    (-1: none)."""
    edits, made = list[Edit](), list[str]()
    for at, kind, letter in steps:
        new = chr(letter) if letter >= 0 else ""
        made.append(new)
        if kind is not None:
            edits.append(Edit(kind, at, "" if kind == "insert" else text[at], new))
    return Repair("".join(made), cost, tuple(edits))


def _rank(letter: int) -> tuple[int, int]:
    """Which of two letters is to stand for both: a printable one of ASCII, and the smaller one. -1: none."""
    return (3 if letter < 0 else 0 if 0x20 < letter < 0x7F else 1 if letter == 0x20 else 2, letter)


def _letters(automaton: LetterAutomaton) -> list[int]:
    """Of each class the letter that stands for it."""
    found = [-1] * automaton.table.shape[1]
    lasts = np.append(automaton.begins[1:], 0x110000) - 1
    for first, last, group in zip(
        automaton.begins.tolist(), lasts.tolist(), automaton.group.tolist(), strict=True
    ):
        if group < 0:
            continue
        # The first letter of the interval, and the first that can be printed.
        for letter in (first, max(first, 0x21)):
            if letter <= last and _rank(letter) < _rank(found[group]):
                found[group] = letter
    return found
