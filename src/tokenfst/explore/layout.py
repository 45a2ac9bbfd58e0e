"""Positions of the states of a picture: columns by distance from the first state, with few crossings.

The method is that of Sugiyama, Tagawa and Toda (1981): breadth-first search gives each state its column. An arrow over
several columns is divided by virtual positions, so that it goes around states; an arrow that leads back is drawn as a
bow. Each column is then ordered by the mean position of its members' neighbours, forwards and backwards a few times.
Deterministic; linear in the positions for each sweep.

Rejected: Graphviz, which draws better, but is a program that many machines do not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

COLUMN, ROW = 150.0, 76.0
"""The distances between the centres of two columns, and of two rows."""
_SWEEPS = 8


@dataclass(frozen=True, slots=True)
class Placed:
    """``at``: the centre of each state. ``ways``: for each arrow the points that it passes, including its ends."""

    at: list[tuple[float, float]]
    ways: list[list[tuple[float, float]]]


def place(count: int, arrows: Sequence[tuple[int, int]]) -> Placed:
    """Place the states 0 to ``count`` - 1. State 0 is the first and reaches all others."""
    column = _columns(count, arrows)
    members: list[list[int]] = [[] for _ in range(max(column, default=0) + 1)]
    for state, where in enumerate(column):
        members[where].append(state)
    chains = []
    beside: dict[int, list[int]] = {state: [] for state in range(count)}
    empty = count
    for source, target in arrows:
        chain = [source]
        for where in range(column[source] + 1, column[target]):
            members[where].append(empty)
            beside[empty] = []
            chain.append(empty)
            empty += 1
        if target != source:
            chain.append(target)
        for one, other in pairwise(chain):
            beside[one].append(other)
            beside[other].append(one)
        chains.append(chain)
    row = _ordered(members, beside)
    points = {
        state: (number * COLUMN, row[state] * ROW)
        for number, states in enumerate(members)
        for state in states
    }
    return Placed(
        [points[state] for state in range(count)], [[points[each] for each in chain] for chain in chains]
    )


def _columns(count: int, arrows: Iterable[tuple[int, int]]) -> list[int]:
    """The least number of arrows from state 0 to each state."""
    onward: list[list[int]] = [[] for _ in range(count)]
    for source, target in arrows:
        onward[source].append(target)
    found = [-1] * count
    pending = [0] if count else []
    if count:
        found[0] = 0
    for state in pending:
        for target in onward[state]:
            if found[target] < 0:
                found[target] = found[state] + 1
                pending.append(target)
    return [max(each, 0) for each in found]


def _ordered(members: list[list[int]], beside: dict[int, list[int]]) -> dict[int, float]:
    """Order each column in place, and return the row of each position; columns are centred on row 0."""
    row: dict[int, float] = {}
    for states in members:
        row.update(_rows(states))
    numbers = list(range(len(members)))
    for sweep in range(_SWEEPS):
        for number in numbers if sweep % 2 == 0 else reversed(numbers):
            near = {number - 1, number + 1}
            known = {state for each in near if 0 <= each < len(members) for state in members[each]}
            means = {
                state: (sum(row[each] for each in linked) / len(linked) if linked else row[state])
                for state in members[number]
                for linked in [[each for each in beside[state] if each in known]]
            }
            members[number].sort(key=lambda state: (means[state], row[state]))  # used at once
            row.update(_rows(members[number]))
    return row


def _rows(states: list[int]) -> dict[int, float]:
    return {state: number - (len(states) - 1) / 2 for number, state in enumerate(states)}
