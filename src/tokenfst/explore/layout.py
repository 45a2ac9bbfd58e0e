"""Positions of the states of a picture: columns from left to right, with few crossings.

The method is that of Sugiyama, Tagawa and Toda (1981), in three steps.

1. Each state gets a column: the length of a longest path from state 0 to it, where back arrows do not count (those to a
   state on the way of a depth-first search). Then a text is read from left to right. But if short and long paths lead
   to the same states, there are many long arrows. If the arrows skip more columns than there are states, the column is
   the length of a shortest path instead.
2. An arrow over several columns gets a virtual position in each column between, so that it goes around states. A back
   arrow gets none, and is drawn as a curve.
3. Each column is ordered by the mean rows of its members' neighbours, in ``_SWEEPS`` sweeps, forwards and backwards in
   turn.

The distance of two columns depends on the texts between them. The result is deterministic; a sweep takes time linear in
positions and arrows, and sorts the columns.

Rejected: Graphviz, which draws better, but is a program that many computers do not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

NARROW, COLUMN, ROW = 80.0, 150.0, 76.0
"""The least and the greatest distance between the centres of two columns, and the distance of two rows."""
_CHARACTER = 6.7
"""An upper bound of the average width of a character in the words below a state or in an arrow's label."""
_STATE, _SPACE = 34.0, 20.0
"""The width of a state, and the width of the space between two texts or beside the label of an arrow."""
_SWEEPS = 8


@dataclass(frozen=True, slots=True)
class Placed:
    """Positions in a picture, as pairs (x, y). ``at``: the centre of each state. ``ways``: for each arrow, the points
    on its way, including its ends (for a loop, one point).
    """

    at: list[tuple[float, float]]
    ways: list[list[tuple[float, float]]]


def place(words: Sequence[int], labelled: Sequence[tuple[int, int, int]]) -> Placed:
    """Place states and arrows. ``words``: for each state, the number of characters of the words below it. ``labelled``:
    for each arrow, its source, its target, and the number of characters of its label. State 0 must reach all others.
    """
    count, arrows = len(words), [arrow[:2] for arrow in labelled]
    onward: list[list[int]] = [[] for _ in range(count)]
    for source, target in arrows:
        onward[source].append(target)
    column = _after_all(onward)
    if sum(max(column[target] - column[source] - 1, 0) for source, target in arrows) > count:
        column = _nearest(onward)
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
    at = _columns(column, len(members), words, labelled)
    points = {
        state: (at[number], row[state] * ROW) for number, states in enumerate(members) for state in states
    }
    return Placed(
        [points[state] for state in range(count)], [[points[each] for each in chain] for chain in chains]
    )


def _columns(
    column: Sequence[int], count: int, words: Sequence[int], labelled: Sequence[tuple[int, int, int]]
) -> list[float]:
    """The centre of each column. Columns are so far apart that texts of neighbouring columns do not overlap, nor labels
    and states, but at most ``COLUMN``; the page shortens longer texts.
    """
    half, gap = [0.0] * count, [NARROW] * count
    for state, length in enumerate(words):
        half[column[state]] = max(half[column[state]], length * _CHARACTER / 2)
    for source, target, length in labelled:
        first, last = column[source], column[target]
        if last == first + 1:
            gap[first] = max(gap[first], length * _CHARACTER + _STATE + _SPACE)
        elif last > first or source == target:  # the label stands in the middle, above a column
            middle = (first + last + 1) // 2
            half[middle] = max(half[middle], length * _CHARACTER / 2)
        elif last == first:  # beside the states
            gap[first] = COLUMN
    at = [0.0] * count
    for number in range(1, count):
        texts = half[number - 1] + half[number] + _SPACE
        at[number] = at[number - 1] + min(COLUMN, max(gap[number - 1], texts))
    return at


def _nearest(onward: Sequence[Sequence[int]]) -> list[int]:
    """The least number of arrows from state 0 to each state."""
    found = [-1] * len(onward)
    pending = [0] if onward else []
    found[:1] = pending
    for state in pending:
        for target in onward[state]:
            if found[target] < 0:
                found[target] = found[state] + 1
                pending.append(target)
    return [max(each, 0) for each in found]


def _after_all(onward: Sequence[Sequence[int]]) -> list[int]:
    """The length of a longest path from state 0 to each state, without back arrows, so that all other arrows lead to
    the right. A back arrow leads to a state that is on the path of the depth-first search when it leaves the source.
    """
    found = [0] * len(onward)
    for state, targets in reversed(_left(onward)):  # each after all that lead to it
        for target in targets:
            found[target] = max(found[target], found[state] + 1)
    return found


def _left(onward: Sequence[Sequence[int]]) -> list[tuple[int, list[int]]]:
    """The states in the order in which a depth-first search leaves them (postorder), each with the targets of its
    arrows that are not back arrows.
    """
    order: list[tuple[int, list[int]]] = []
    path = [(0, iter(onward[0]))] if onward else []
    reached, on_path = {0}, {0}
    while path:
        state, rest = path[-1]
        target = next(rest, None)
        if target is None:
            path.pop()
            order.append((state, [each for each in onward[state] if each not in on_path]))
            on_path.discard(state)
        elif target not in reached:
            reached.add(target)
            on_path.add(target)
            path.append((target, iter(onward[target])))
    return order


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
