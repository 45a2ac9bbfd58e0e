"""The cost of reading one schema: steps that are counted, and the wall clock of its budget.

The idea: front ends intersect, unite and complement sets case by case in Python, and cases multiply. Each case is a
*step* of about 10 µs, and counts as some of ``Budget.positions``; the clock is read at each step. So no result depends
on the speed of the computer: reading ends early only because of a count, or with an error because the time is up. Both
errors name the place.

A search in the native core decides whether a language of texts is empty. Its answer only makes results simpler, so it
may be left undecided: each search has few states and little memory, and a further bound limits all searches together.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from tokenfst._native import plain_parts
from tokenfst.automata.languages.engine import make_automaton
from tokenfst.budget import QUICK, Budget
from tokenfst.common.clock_cache import Recent
from tokenfst.errors import BudgetExceeded, UnsupportedSchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokenfst.automata.expressions.expression import Expr

_DEFAULT = Budget()
_POSITIONS = 64
"""The number of ``Budget.positions`` that a step counts as."""
_QUESTION = replace(QUICK, states=2_000, bytes=16 << 20)
"""The budget of one query whether a language is empty: a smaller ``QUICK``, for the reasons given there."""
_ALL_QUESTIONS = 1_500_000
"""The bound of the states of all queries together. A state counts once for each language in the query: about 0.8 µs."""
_ASKED = 50
"""The fixed cost of a query, in states."""
_SEARCHED: Recent[Hashable, tuple[bool, int]] = Recent(512)
"""Answers to queries of earlier schemas, and their costs. A query that is answered from here costs the same as a
search.

So no result depends on what was read before.
"""
_MOST_PARTS = 1 << 62
"""Numbers of parts are capped here."""


class Placed(Protocol):
    """Anything that knows its address."""

    def where(self) -> str:
        """The address."""


class Work:
    """The remaining budget of one schema. ``place``: the part that is being read; only errors need its address."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = budget or _DEFAULT
        self.place: Placed | str = "#"
        self._left = self.budget.positions
        self._end = time.monotonic() + self.budget.seconds
        self._states = _ALL_QUESTIONS
        self._answers: dict[Hashable, bool] = {}

    def tick(self, steps: int = 1) -> None:
        """Count some steps, and check the clock. Raises BudgetExceeded("positions" or "seconds")."""
        self._left -= steps * _POSITIONS
        if self._left < 0:
            raise self.exceeded("positions")
        self.look()

    def look(self) -> None:
        """Check the clock only, for code that counts no steps because it is linear in the schema.

        Raises BudgetExceeded("seconds").
        """
        if time.monotonic() > self._end:
            raise self.exceeded("seconds")

    def exceeded(self, resource: str) -> BudgetExceeded:
        """The error that says that ``resource`` is exhausted at this place."""
        return BudgetExceeded(resource, getattr(self.budget, resource), self.where())

    def where(self) -> str:
        """The address of the place."""
        return self.place if isinstance(self.place, str) else self.place.where()

    @contextmanager
    def placed_errors(self) -> Iterator[None]:
        """A context that adds the place to errors of the core's budgets, which know no place."""
        try:
            yield
        except BudgetExceeded as error:
            where = self.where()
            if error.where == where:
                raise
            limit = self.budget.seconds if error.resource == "seconds" else error.limit
            detail = f" ({error.where})" if error.where else ""
            raise BudgetExceeded(error.resource, limit, f"{where}{detail}", error.advice) from None

    @contextmanager
    def half(self, what: str) -> Iterator[None]:
        """A context that may use half of the remaining positions. Raises UnsupportedSchemaError, which names ``what``
        needs more, so that the other half is left for a simpler construction.
        """
        kept = self._left // 2
        self._left -= kept
        limit, where = self._left, self.where()
        try:
            yield
        except BudgetExceeded as error:
            if error.resource != "positions":
                raise
            raise UnsupportedSchemaError(where, f"{what} needs more than {limit:,} positions") from None
        finally:
            self._left += kept

    def left(self) -> Budget:
        """The user's budget with the seconds that remain. Raises BudgetExceeded("seconds") if none remain."""
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise self.exceeded("seconds")
        return replace(self.budget, seconds=seconds)

    def glance(self, budget: Budget) -> Budget:
        """``budget``, for a short search, with the seconds that remain. Raises BudgetExceeded("seconds") if none
        remain.
        """
        return replace(budget, seconds=self.left().seconds)

    def is_plainly_empty(self, key: Hashable, texts: Callable[[], Expr], parts: int) -> bool:
        """Whether a short search finds that a language has no word. ``key`` identifies the language.

        ``parts``: the number of languages that it combines, all of which each state has to track.
        """
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
        """Whether an expression is found to have no word, and how many states the search took."""
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
    """The number of values in the JSON text of ``value``. An object that occurs at several places counts at each of
    them.

    Linear in the objects. In a cycle, an object counts once more. Raises BudgetExceeded("seconds").
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
