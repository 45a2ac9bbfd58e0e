"""Automata over letters (characters or bytes): conversion from languages over bytes, construction state by state, and
conversion back.

Rewriting of texts works on letters, which are characters (code points) or bytes. Letters that no state distinguishes
are one class, so a state is a short row, whatever the size of the alphabet. A construction is a function from a state
to its successors, and ``crawl`` computes all reachable states.

Invariant: state 0 is DEAD; letters that a text cannot contain (surrogates) have the class -1. Results are minimal.
Cost: linear in the ranges of characters in the states of the language; ``crawl`` takes one row of classes for each
state.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from tokenfst.automata.characters.codes import Steps, spell
from tokenfst.automata.characters.utf8 import (
    ASCII,
    MAX_CODE_POINT,
    MULTIBYTE,
    SURROGATES,
    Characters,
    characters,
)
from tokenfst.automata.expressions.distinct import distinct_rows
from tokenfst.automata.expressions.expression import EMPTY, Expr, machine
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.expressions.minimization import minimal
from tokenfst.automata.expressions.tables import frozen_dfa
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.common.remedies import remedy
from tokenfst.errors import BudgetExceeded, ConstraintError

Unit = Literal["characters", "bytes"]
Ints = npt.NDArray[np.int64]

_State = TypeVar("_State", bound=Hashable)


@dataclass(frozen=True, eq=False)
class LetterAutomaton:
    """A deterministic automaton over classes of letters. State 0 is DEAD.

    ``begins`` (intervals,): the first letter of each interval, ascending from 0; ``group`` (intervals,): its class, or
    -1. ``table`` (states, classes), ``accepting`` (states,), ``start``.
    """

    begins: Ints
    group: Ints
    table: Ints
    accepting: npt.NDArray[np.bool_]
    start: int

    def class_of(self, letters: Sequence[int] | Ints) -> Ints:
        """The class of each letter."""
        return self.group[np.searchsorted(self.begins, np.asarray(letters), side="right") - 1]


def require_language(language: object, what: str) -> Language:
    """``language``, if it is a language that does not constrain tokens; otherwise raises ``ConstraintError``."""
    if isinstance(language, Language):
        language.program().refuse_tokens()
        return language
    of_grammar = "of a grammar, take the regular approximation grammar.truncate(depth)"
    instead = of_grammar if isinstance(language, Constraint) else remedy("a Language", language) or of_grammar
    raise ConstraintError(f"{what} takes a Language, not {type(language).__name__}: {instead}")


def read_letters(language: Language, unit: Unit, deadline: Deadline) -> LetterAutomaton:
    """The automaton of ``language`` over letters. For characters, restricted to valid UTF-8."""
    with deadline.part() as budget:
        dfa = language.with_budget(budget).determinize()
    if unit == "bytes":
        made = minimal(dfa.table, dfa.accepting, dfa.start, deadline)
        begins = np.arange(256)
        return LetterAutomaton(
            begins, dfa.classes.astype(np.int64), made.table.astype(np.int64), made.accepting, made.start
        )
    with deadline.part() as budget:
        read = characters(dfa, budget.states, budget.seconds)
    return by_characters(read, (), deadline)


def by_characters(read: Characters, cuts: Iterable[int], deadline: Deadline) -> LetterAutomaton:
    """The minimal automaton over characters. ``cuts``: characters that get a separate interval."""
    [(first_surrogate, last_surrogate)] = SURROGATES
    counts = [len(steps) for steps in read.steps]
    arcs = np.array([step for steps in read.steps for step in steps], np.int64).reshape(-1, 3)
    ends = np.array([0, first_surrogate, last_surrogate + 1])
    begins = np.unique(np.concatenate([arcs[:, 0], arcs[:, 1] + 1, ends]))
    begins = begins[begins <= MAX_CODE_POINT]
    if (len(counts) + 1) * len(begins) * 4 > deadline.budget.bytes:
        raise BudgetExceeded("bytes", deadline.budget.bytes, "the characters of a byte automaton")
    deadline.check()
    table = np.zeros((len(counts) + 1, len(begins)), np.uint32)
    source = np.repeat(np.arange(1, len(counts) + 1), counts)
    low, high = np.searchsorted(begins, arcs[:, 0]), np.searchsorted(begins, arcs[:, 1] + 1)
    size = high - low
    nth = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    table[np.repeat(source, size), np.repeat(low, size) + nth] = np.repeat(arcs[:, 2], size)
    deadline.check()
    letters = (begins < first_surrogate) | (begins > last_surrogate)
    own = np.flatnonzero(letters)
    distinct = distinct_rows(lambda part: table[:, own[part]].T, len(own), len(table), deadline)
    group = np.full(len(begins), -1)
    group[own] = distinct.number
    made = minimal(distinct.rows.T, np.array([False, *read.accepting]), 1, deadline)
    # Characters with an interval of their own have the class of the interval around them.
    alone = np.fromiter(cuts, np.int64)
    finer = np.unique(np.concatenate([begins, alone, alone + 1]))
    finer = finer[finer <= MAX_CODE_POINT]
    group = group[np.searchsorted(begins, finer, side="right") - 1]
    return LetterAutomaton(finer, group, made.table.astype(np.int64), made.accepting, made.start)


def crawl(
    start: _State,
    follow: Callable[[_State], tuple[_State | None, Mapping[int, _State]]],
    accepts: Callable[[_State], bool],
    classes: int,
    deadline: Deadline,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
    """The transition table, uint32 (states, ``classes``), and the accepting states, bool (states,), of all states that
    ``start`` reaches. ``start`` has number 1, and 0 is DEAD.

    ``follow`` returns the next state for all classes that its mapping does not name (None: DEAD), and the mapping from
    classes to next states; it must count its own work if that is large. Raises
    ``BudgetExceeded("states", "bytes" or "seconds")``.
    """
    budget, where = deadline.budget, deadline.where
    held = 0
    numbers: dict[_State, int] = {start: 1}
    order = [start]
    rows = [np.zeros(classes, np.uint32)]

    def number(state: _State) -> int:
        found = numbers.setdefault(state, len(order) + 1)
        if found > len(order):
            order.append(state)
        return found

    for state in order:
        others, steps = follow(state)
        rest = None if len(steps) == classes else others
        row = np.full(classes, 0 if rest is None else number(rest), np.uint32)
        for letter, following in steps.items():
            row[letter] = number(following)
        rows.append(row)
        held += row.nbytes + sys.getsizeof(state)
        if len(order) > budget.states:
            raise BudgetExceeded("states", budget.states, where)
        if held > budget.bytes:
            raise BudgetExceeded("bytes", budget.bytes, where)
        deadline.tick(10 + len(steps))
    return np.stack(rows), np.array([False, *map(accepts, order)])


def write_letters(
    begins: Ints,
    group: Ints,
    table: npt.NDArray[Any],
    accepting: npt.NDArray[np.bool_],
    unit: Unit,
    deadline: Deadline,
    source: str | None = None,
) -> Expr:
    """The language over bytes of an automaton over classes of letters with start state 1."""
    made = minimal(table, accepting, 1, deadline)
    if made.start == 0:
        return EMPTY
    if unit == "bytes":
        return machine(frozen_dfa(group.astype(np.uint8), made.table, made.accepting, made.start), source)
    wide = np.append(made.table, np.zeros((len(made.table), 1), np.uint32), axis=1)
    steps = []
    for state in range(1, len(wide)):
        steps.append(_ranges(begins, wide[state, group]))
        deadline.tick(20 + len(begins) // 100 + len(steps[-1]))
    with deadline.part() as budget:
        dfa = spell(steps, made.accepting[1:].tolist(), (ASCII, *MULTIBYTE), budget.states, budget.seconds)
    return machine(dfa, source)


def _ranges(begins: Ints, targets: npt.NDArray[np.uint32]) -> Steps:
    """The steps of a state, as ranges, given its target for each interval."""
    edge = np.flatnonzero(np.append(True, targets[1:] != targets[:-1]))
    low = begins[edge].tolist()
    high = [*(begin - 1 for begin in low[1:]), MAX_CODE_POINT]
    return tuple(step for step in zip(low, high, targets[edge].tolist(), strict=True) if step[2])
