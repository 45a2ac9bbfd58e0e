"""What reading one schema may cost: steps that are counted, and the wall clock of its budget.

The idea: front ends meet, join and complement sets case by case in Python, and cases multiply. Each case is a *step*,
about 10 µs, and counts for some of ``Budget.positions``; the clock is looked at with it. So no result depends on how
fast the machine is: what ends early does so by its count, or raises that the user's time is up. Both name the place.

Questions whether a language of texts is empty are searches in the native core. They only make results simpler, so that
they may be left open: each has few states and little memory, and all of them together have a bound, too.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from tokenfst._native import plain_parts
from tokenfst.automata.languages.engine import make_automaton
from tokenfst.budget import Budget
from tokenfst.clock_cache import Recent
from tokenfst.errors import BudgetExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokenfst.automata.expressions.expression import Expr

_DEFAULT = Budget()
_POSITIONS = 64
"""What a step counts for in ``Budget.positions``."""
_QUESTION = Budget(states=2_000, bytes=16 << 20)
"""What one question whether a language is empty may cost. It is asked many times: less than ``QUICK``."""
_ALL_QUESTIONS = 1_500_000
"""States of all of them together, each counted for every language that the question combines: about 0.8 µs."""
_ASKED = 50
"""The fixed cost of a query, in states."""
_SEARCHED: Recent[Hashable, tuple[bool, int]] = Recent(512)
"""Answers to questions that earlier schemas asked, and what they took, which counts again: so no result depends on what
was read before."""
_MOST_PARTS = 1 << 62
"""Where parts are not counted any further."""


class Placed(Protocol):
    """What knows its address."""

    def where(self) -> str:
        """The address."""


class Work:
    """The steps of one schema. ``place``: what is being read; its address is asked for in errors only."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = budget or _DEFAULT
        self.place: Placed | str = "#"
        self._left = self.budget.positions
        self._end = time.monotonic() + self.budget.seconds
        self._states = _ALL_QUESTIONS
        self._answers: dict[Hashable, bool] = {}

    def tick(self, steps: int = 1) -> None:
        """Count some steps. BudgetExceeded("positions" or "seconds")."""
        self._left -= steps * _POSITIONS
        if self._left < 0:
            raise self.exceeded("positions")
        self.look()

    def look(self) -> None:
        """Look at the clock in what counts no steps: it is linear in the schema. BudgetExceeded("seconds")."""
        if time.monotonic() > self._end:
            raise self.exceeded("seconds")

    def exceeded(self, resource: str) -> BudgetExceeded:
        """The error of a budget that is used up at this place."""
        return BudgetExceeded(resource, getattr(self.budget, resource), self.where())

    def where(self) -> str:
        """The address of the place."""
        return self.place if isinstance(self.place, str) else self.place.where()

    @contextmanager
    def placed_errors(self) -> Iterator[None]:
        """Say the place in errors of the core's budgets, too, which know none."""
        try:
            yield
        except BudgetExceeded as error:
            where = self.where()
            if error.where == where:
                raise
            limit = self.budget.seconds if error.resource == "seconds" else error.limit
            detail = f" ({error.where})" if error.where else ""
            raise BudgetExceeded(error.resource, limit, f"{where}{detail}") from None

    def left(self) -> Budget:
        """The budget of a search now: its seconds are those that are left. BudgetExceeded if none are."""
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise self.exceeded("seconds")
        return replace(self.budget, seconds=seconds)

    def glance(self, budget: Budget) -> Budget:
        """The same of a short look, whose other bounds are those of ``budget``."""
        return replace(budget, seconds=self.left().seconds)

    def is_plainly_empty(self, key: Hashable, texts: Callable[[], Expr], parts: int) -> bool:
        """Whether a short search finds that a language has no word, which ``key`` names. ``parts``: how many languages
        it combines, which each state has to do with."""
        found = self._answers.get(key)
        if found is None:
            if self._states < _ASKED:
                return False
            if self._states < _QUESTION.states:
                found, used = self._search(texts())
            else:  # all that a question may cost: so its answer is the same in each schema
                found, used = _SEARCHED.get(key, lambda: self._search(texts()))
            self._answers[key] = found
            self.tick()
            self._states -= (_ASKED + used) * parts
        return found

    def _search(self, expr: Expr) -> tuple[bool, int]:
        """Whether an expression plainly has no word, and how many states that took."""
        budget = replace(_QUESTION, states=min(_QUESTION.states, self._states), seconds=self.left().seconds)
        used = budget.states
        try:
            automaton = make_automaton(expr, budget)
            empty = automaton.viable_prefix(b"") < 0
            used = automaton.num_states
        except BudgetExceeded as error:
            if error.resource == "seconds":
                raise self.exceeded("seconds") from None
            empty = False
        return empty, used


def text_parts(value: Any, work: Work) -> int:
    """How many values the JSON text of a value has: one that stands in several places counts in each of them.

    Linear in the objects. What an object holds of itself counts once more. BudgetExceeded("seconds").
    """
    if plain := plain_parts(value):
        return plain
    parts: dict[int, int] = {}
    waiting: list[tuple[Any, bool]] = [(value, False)]
    while waiting:
        each, is_entered = waiting.pop()
        inner: Collection[Any]
        if isinstance(each, Mapping):
            inner = each.values()
        elif isinstance(each, list | tuple):
            inner = each
        else:
            continue
        if is_entered:
            parts[id(each)] = min(_MOST_PARTS, 1 + sum(parts.get(id(part), 1) for part in inner))
        elif id(each) not in parts:
            work.look()
            parts[id(each)] = 1
            waiting.append((each, True))
            waiting += [(part, False) for part in inner]
    return parts.get(id(value), 1)
