"""What a transducer maps to what, by matrices: slow and obviously right.

``relation(machine, longest)`` has the weight of every pair of an input and an output of at most ``longest``
labels each. What has been read and written says where one can be, with which weight; each pair follows from those that
are a label shorter, and the epsilons after it are summed by a closure of their matrix: an inverse for sums of
probabilities, Floyd and Warshall where the sum is a minimum.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Plain:
    """A transducer as lists. Weights are costs: negative logarithms, or what is to be smallest."""

    start: int
    finals: dict[int, float]
    arcs: list[tuple[int, int, int, float, int]] = field(default_factory=list)
    """(source, input, output, weight, target)"""
    states: int = 0


def plain(machine: Any) -> Plain:
    """Of a machine of ours, or pywrapfst's."""
    made = Plain(machine.start(), {}, [], machine.num_states())
    for state in machine.states():
        final = float(machine.final(state))
        if final != np.inf:
            made.finals[state] = final
        for arc in machine.arcs(state):
            made.arcs.append((state, arc.ilabel, arc.olabel, float(arc.weight), arc.nextstate))
    return made


class Diverges(Exception):
    """Paths through epsilons have no sum."""


def _sum_closure(m: np.ndarray) -> np.ndarray:
    if len(m) and abs(np.linalg.eigvals(m)).max() > 0.999:
        raise Diverges
    reached = np.eye(len(m)) + (m > 0)
    for _ in range(
        len(m).bit_length()
    ):  # numbers of ways would outgrow float64, so each square is cut to 0 and 1
        reached = (reached @ reached > 0).astype(float)
    return np.where(reached > 0, np.linalg.inv(np.eye(len(m)) - m), 0.0)


def _least_closure(m: np.ndarray) -> np.ndarray:
    best = m.copy()
    for k in range(len(m)):
        best = np.minimum(best, best[:, k : k + 1] + best[k : k + 1, :])
    np.fill_diagonal(best, np.minimum(np.diag(best), 0))
    return best


def _sum_times(v: np.ndarray, m: np.ndarray) -> np.ndarray:
    return v @ m


def _least_times(v: np.ndarray, m: np.ndarray) -> np.ndarray:
    if (
        v.size * m.shape[1] > 1_000_000 and v.ndim > 1
    ):  # row by row, as the sums of all pairs need much memory
        return np.stack([_least_times(row, m) for row in v])
    return (v[..., :, None] + m).min(axis=-2, initial=np.inf)


def relation(machine: Plain, longest: int, sums: bool, labels: tuple[int, ...] = (1, 2)) -> dict[Any, float]:
    """Weights as costs, those of nothing left out. ``sums``: costs are negative logarithms that are summed as
    probabilities; else the least counts.
    """
    if machine.start < 0:
        return {}
    n = machine.states
    zero = 0.0 if sums else np.inf
    plus: Callable[[Any, Any], Any] = np.add if sums else np.minimum
    times, closure = (_sum_times, _sum_closure) if sums else (_least_times, _least_closure)
    nothing = np.full((n, n), zero)
    by: dict[tuple[int, int], np.ndarray] = {}
    for source, ilabel, olabel, weight, target in machine.arcs:
        m = by.setdefault((ilabel, olabel), nothing.copy())
        m[source, target] = plus(m[source, target], np.exp(-weight) if sums else weight)
    ends = np.full(n, zero)
    for state, weight in machine.finals.items():
        ends[state] = np.exp(-weight) if sums else weight
    acceptor = all(arc[1] == arc[2] for arc in machine.arcs)

    def stepping(reads: tuple[int, ...], writes: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray]:
        """From the states after some pairs of words to those after each pair and one of some steps: each of the
        labels read with each of those written; an acceptor writes what it reads.
        """
        pairs = [(i, i) for i in reads] if acceptor else list(itertools.product(reads, writes))
        shape = len(reads), len(pairs) // len(reads), n
        moves = np.concatenate([by.get(pair, nothing) for pair in pairs], axis=1)

        def step(before: np.ndarray) -> np.ndarray:
            first, second = before.shape[:2]
            made = times(before, moves).reshape(first, second, *shape).swapaxes(1, 2)
            return made.reshape(first * shape[0], second * shape[1], n)

        return step

    read, write, both = stepping(labels, (0,)), stepping((0,), labels), stepping(labels, labels)
    star = closure(by[0, 0]) if (0, 0) in by else None
    # reached[i, j][x, y]: the weights of the states after the x-th word of i labels read and the y-th of j written; of
    # an acceptor, where j is 0, after the x-th word read and written.
    reached: dict[tuple[int, int], np.ndarray] = {}
    found: dict[Any, float] = {}
    words = [list(itertools.product(labels, repeat=size)) for size in range(longest + 1)]
    for i, j in itertools.product(range(longest + 1), range(1 if acceptor else longest + 1)):
        ways = [
            step(reached[i - a, j - b])
            for a, b, step in ((1, 0, read), (0, 1, write), (1, 1, both))
            if i >= a and j >= b
        ]
        if ways:
            here = functools.reduce(plus, ways)
        else:
            here = np.full((1, 1, n), zero)
            here[0, 0, machine.start] = 1.0 if sums else 0.0
        reached[i, j] = here = here if star is None else times(here, star)
        values = here @ ends if sums else (here + ends).min(axis=-1)
        for x, y in zip(*np.nonzero(values != zero), strict=True):
            value = float(values[x, y])
            pair = words[i][x], words[i][x] if acceptor else words[j][y]
            found[pair] = float(-np.log(value)) if sums else value
    return found


def diverges(machine: Plain) -> bool:
    """Whether the costs of all paths, as negative logarithms, have no sum."""
    total = np.zeros((machine.states, machine.states))
    for source, _, _, weight, target in machine.arcs:
        total[source, target] += np.exp(-weight)
    return bool(machine.states and abs(np.linalg.eigvals(total)).max() > 0.999)


def close(one: dict[Any, float], other: dict[Any, float], tolerance: float) -> bool:
    """Whether both have the same pairs with about the same weights."""
    return one.keys() == other.keys() and all(
        abs(one[key] - other[key]) <= tolerance * max(1, abs(one[key])) for key in one
    )


def random_plain(
    rng: random.Random,
    states: int = 5,
    arcs: int = 8,
    *,
    acceptor: bool = False,
    epsilons: bool = True,
    acyclic: bool = False,
    least: float = 0.0,
) -> Plain:
    """A random machine over the labels 1 and 2; weights are quarters, at least ``least``."""
    n = rng.randint(1, states)
    made = Plain(0, {}, [], n)
    first = 0 if epsilons else 1
    for _ in range(rng.randint(0, arcs)):
        source, target = rng.randrange(n), rng.randrange(n)
        if acyclic:
            if source == target:
                continue
            source, target = min(source, target), max(source, target)
        ilabel = rng.randint(first, 2)
        olabel = ilabel if acceptor else rng.randint(first, 2)
        made.arcs.append((source, ilabel, olabel, least + rng.randint(0, 8) / 4, target))
    for _ in range(rng.randint(1, 2)):
        made.finals[rng.randrange(n)] = least + rng.randint(0, 4) / 4
    return made
