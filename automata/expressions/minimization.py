"""Minimization of deterministic automata over any alphabet, in numpy.

Moore's partition refinement: states are distinguished by acceptance, then by the classes of their successors, until the
partition is stable. Two things make it faster: letters with equal columns count once, and the initial partition is by
the lengths of the shortest accepted and of the shortest rejected word from each state, which the language of a state
determines. So the long chains that counting creates, Moore's worst case, are separated at once.

Usage. ``minimal(table, accepting, start)``; ``tokenfst.automata.openfst.byte_automata.minimize_dfa`` does the same for
byte automata in the native core.

Complexity. O(rounds * states * columns * log states); there are at most as many rounds as states, and few in practice.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokenfst.automata.expressions.distinct import distinct_rows
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.expressions.tables import levels


class Machine(NamedTuple):
    """A complete deterministic automaton. ``table``: uint32 (states, letters); ``accepting``: bool (states,)."""

    table: npt.NDArray[np.uint32]
    accepting: npt.NDArray[np.bool_]
    start: int


def minimal(
    table: npt.NDArray[Any], accepting: npt.NDArray[np.bool_], start: int, deadline: Deadline | None = None
) -> Machine:
    """The minimal automaton of the same language, with states numbered breadth-first, so that the result is canonical.

    State 0 is DEAD, whether it is reachable or not (convention 3). ``deadline`` is checked in each round:
    ``BudgetExceeded``.
    """
    letters = table.shape[1]
    distinct = distinct_rows(lambda part: table[:, part].T, letters, len(table), deadline)
    columns, group = distinct.rows.T, distinct.number
    inside = levels(*_arcs(columns), np.array([start]), len(table), deadline) >= 0
    number = np.cumsum(inside) - 1
    columns, accepting, start = number[columns[inside]], accepting[inside], int(number[start])

    source, target = _arcs(columns)
    accepted = levels(target, source, np.flatnonzero(accepting), len(columns), deadline)
    rejected = levels(target, source, np.flatnonzero(~accepting), len(columns), deadline)
    label = np.unique(accepted * (len(columns) + 1) + rejected, return_inverse=True)[1].ravel()
    while True:
        if deadline is not None:
            deadline.check()
        _, first, finer = distinct_rows(
            partial(_with_targets, label.astype(np.int32), columns), len(columns), columns.shape[1], deadline
        )
        if len(first) == label.max() + 1:
            break
        label = finer
    quotient, final, live = finer[columns[first]], accepting[first], accepted[first] >= 0
    if not live[finer[start]]:
        return Machine(np.zeros((1, letters), np.uint32), np.zeros(1, np.bool_), 0)

    order = _breadth_first(quotient[:, group], int(finer[start]))
    order = order[live[order]]
    number = np.zeros(len(first), np.int64)
    number[order] = np.arange(1, len(order) + 1)
    least = np.zeros((len(order) + 1, letters), np.uint32)
    least[1:] = number[quotient[order]][:, group]
    return Machine(least, np.concatenate(([False], final[order])), 1)


def _with_targets(
    label: npt.NDArray[np.int32], columns: npt.NDArray[Any], part: slice
) -> npt.NDArray[np.int32]:
    """The labels of some states and of their targets."""
    return np.column_stack([label[part], label[columns[part]]])


def _arcs(table: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Source and target of every entry."""
    return np.repeat(np.arange(len(table)), table.shape[1]), table.ravel().astype(np.int64)


def _breadth_first(table: npt.NDArray[Any], start: int) -> npt.NDArray[np.int64]:
    """The states in the order of a breadth-first search that takes the letters in their order."""
    seen = np.zeros(len(table), np.bool_)
    seen[start] = True
    frontier = np.array([start])
    found: list[npt.NDArray[np.int64]] = []
    while len(frontier):
        found.append(frontier)
        met = table[frontier].ravel()
        states, place = np.unique(met[~seen[met]], return_index=True)
        frontier = states[np.argsort(place)]
        seen[frontier] = True
    return np.concatenate(found)
