"""Transition tables of deterministic automata: freezing, validation of external tables, trimming.

Invariant of every ``Dfa`` that leaves this module: its arrays are read-only, state 0 is DEAD and absorbing, every other
state is reachable from the start, and acceptance is reachable from it (convention 3). The native core relies on this.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst._native import live_states
from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.budget import Budget
from tokenfst.errors import ConstraintError

_BLOCK = 1 << 18
"""Table entries that are copied between two checks of the clock."""


def frozen_dfa(
    classes: npt.NDArray[np.uint8],
    table: npt.NDArray[np.uint32],
    accepting: npt.NDArray[np.bool_],
    start: int,
) -> Dfa:
    """A ``Dfa`` with these arrays, which become read-only. They are not checked."""
    for array in (classes, table, accepting):
        array.flags.writeable = False
    return Dfa(classes, table, accepting, start)


EMPTY_DFA = frozen_dfa(np.zeros(256, np.uint8), np.zeros((1, 1), np.uint32), np.zeros(1, np.bool_), 0)
"""The automaton of the empty language."""


def trim(dfa: Dfa, deadline: Deadline | None = None) -> Dfa:
    """The same language as a validated, trimmed copy; the remaining states keep their order.

    Accepts any tables of the right shapes: state 0 must be absorbing and not accepting. Linear in the table. Raises
    ``ConstraintError`` with the reason, ``BudgetExceeded`` after the seconds of ``deadline``, by default those of
    ``Budget()``.
    """
    classes, table, accepting = (np.asarray(a) for a in (dfa.classes, dfa.table, dfa.accepting))
    if classes.shape != (256,) or table.ndim != 2 or 0 in table.shape or accepting.shape != table.shape[:1]:
        raise ConstraintError(
            f"tables must have shapes classes (256,), table (states, classes), accepting (states,), "
            f"not {classes.shape}, {table.shape}, {accepting.shape}"
        )
    for name, array, kind in (
        ("classes", classes, np.integer),
        ("table", table, np.integer),
        ("accepting", accepting, np.bool_),
    ):
        if not np.issubdtype(array.dtype, kind):
            raise ConstraintError(f"{name} must hold {kind.__name__} values, not {array.dtype}")
    states, groups = table.shape
    if classes.min() < 0 or classes.max() >= groups:
        raise ConstraintError(f"classes names class {classes.max()}, but the table has {groups} columns")
    if table.min() < 0 or table.max() >= states:
        raise ConstraintError(f"the table names state {table.max()}, but there are {states} states")
    if not 0 <= dfa.start < states:
        raise ConstraintError(f"start {dfa.start} is not one of the {states} states")
    if table[0].any() or accepting[0]:
        raise ConstraintError("state 0 must be DEAD: it must not accept, and every byte must lead back to it")

    flat = np.ascontiguousarray(table, np.uint32)
    clock = deadline or Deadline(Budget(), "the trimming of an automaton")
    with clock.part() as budget:
        kept = live_states(flat, np.ascontiguousarray(accepting, np.bool_), dfa.start, budget.seconds).astype(
            np.bool_
        )
    if not kept[dfa.start]:
        return EMPTY_DFA
    kept[0] = True
    number = np.cumsum(kept, dtype=np.uint32) - np.uint32(1)
    number[~kept] = 0
    rows = np.flatnonzero(kept)
    trimmed = np.empty((len(rows), groups), np.uint32)
    size = 1 + _BLOCK // groups
    for begin in range(0, len(rows), size):
        clock.check()
        trimmed[begin : begin + size] = number[flat[rows[begin : begin + size]]]
    return frozen_dfa(
        classes.astype(np.uint8), trimmed, accepting[kept].astype(np.bool_), int(number[dfa.start])
    )


def levels(
    source: npt.NDArray[Any],
    target: npt.NDArray[Any],
    seeds: npt.NDArray[Any],
    states: int,
    deadline: Deadline | None = None,
) -> npt.NDArray[np.int64]:
    """The breadth-first distance of each state from the seeds, by arcs source -> target; -1 if it is unreachable.
    Raises BudgetExceeded("seconds") after ``deadline``.
    """
    order = np.argsort(source, kind="stable")
    target = target[order]
    begin = np.searchsorted(source[order], np.arange(states + 1))
    level = np.full(states, -1, np.int64)
    level[seeds] = 0
    frontier, depth = seeds, 0
    while len(frontier):
        if deadline is not None:
            deadline.tick(10 + len(frontier))
        count = begin[frontier + 1] - begin[frontier]
        nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        met = target[np.repeat(begin[frontier], count) + nth]
        frontier = np.unique(met[level[met] < 0]).astype(np.int64)
        depth += 1
        level[frontier] = depth
    return level
