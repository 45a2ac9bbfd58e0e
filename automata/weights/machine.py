"""``Machine``: a weighted automaton over bytes as arrays, which ``WeightedLanguage`` holds and the core walks.

It has log weights (natural logarithms; -inf is weight zero) on arcs and final states, one start with an initial weight,
and no epsilons. Several arcs of a state may read one byte. A *failure* arc, at most one for each state, reads nothing
and is taken only for bytes for which the state has no arc; its weight is then charged. So a back-off model is as large
as its table, and exact. Final weights do not use failures; these have been resolved.

Invariants: arcs are sorted by (state, byte); every state is on a path from the start to a final state, where a failure
counts as an arc; failures are acyclic. Arcs of weight zero, and arcs to states without a way on, are left out, but
their bytes must not fail instead: where a state has such an arc, ``make`` writes its failure as arcs. Cost: 13 bytes
for each arc, 24 for each state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_ARC_BYTES = 40
"""The memory, in bytes, of an arc during construction."""


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """The arrays; see the module. ``initial``: the start's log weight. A machine without texts has no states."""

    start: int
    initial: float
    finals: Floats
    offsets: npt.NDArray[np.uint32]
    labels: npt.NDArray[np.uint8]
    weights: Floats
    targets: npt.NDArray[np.uint32]
    failures: npt.NDArray[np.int32]
    failure_weights: Floats

    @property
    def num_states(self) -> int:
        """The number of states."""
        return len(self.finals)

    @property
    def has_failures(self) -> bool:
        """Whether any state has a failure arc."""
        return bool((self.failures >= 0).any())

    def sources(self) -> Ints:
        """The state of each arc."""
        return np.repeat(np.arange(self.num_states), np.diff(self.offsets.astype(np.int64)))

    def core_arguments(self) -> tuple[npt.NDArray[np.generic], ...]:
        """The arguments of the core's ``WeightedBytes``."""
        return (
            self.finals, self.offsets, self.labels, self.weights, self.targets, self.failures, self.failure_weights,
        )  # fmt: skip


def make(
    start: int, initial: float, finals: Floats, arcs: tuple[Ints, Ints, Floats, Ints],
    failures: tuple[Ints, Floats] | None = None,
) -> Machine:  # fmt: skip
    """The machine of arcs (source, byte, weight, target) in any order, trim. Linear apart from sorting."""
    count = len(finals)
    source, label, weight, target = arcs
    fails, costs = failures or (np.full(count, -1), np.zeros(count))
    fails = np.where(costs > -np.inf, fails, -1)
    while True:
        some = weight > -np.inf
        kept = _useful(count, start, finals, source[some], target[some], fails)
        dead = kept[source] & (fails[source] >= 0) & ~(some & kept[target])
        if not dead.any():
            break
        states = np.unique(source[dead])
        source, label, weight, target = _with_failures((source, label, weight, target), fails, costs, states)
        fails[states] = -1
    if initial == -np.inf or not kept[start]:
        empty = np.zeros(0)
        return Machine(
            0, -np.inf, empty, np.zeros(1, np.uint32), empty.astype(np.uint8), empty, empty.astype(np.uint32),
            empty.astype(np.int32), empty,
        )  # fmt: skip
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    on = (weight > -np.inf) & kept[source] & kept[target]
    source, label, weight, target = number[source[on]], label[on], weight[on], number[target[on]]
    order = np.lexsort((target, label, source))
    offsets = np.zeros(int(kept.sum()) + 1, np.uint32)
    offsets[1:] = np.cumsum(np.bincount(source, minlength=len(offsets) - 1))
    fails = np.where(fails >= 0, number[fails], -1)[kept]
    return Machine(
        int(number[start]),
        float(initial),
        np.ascontiguousarray(finals[kept], np.float64),
        offsets,
        label[order].astype(np.uint8),
        np.ascontiguousarray(weight[order], np.float64),
        target[order].astype(np.uint32),
        fails.astype(np.int32),
        np.where(fails >= 0, costs[kept], 0.0),
    )


def of_texts(texts: Sequence[tuple[bytes, float]]) -> Machine:
    """A path for each text, whose log weight is at its end. Linear apart from sorting."""
    ends, source = [-np.inf], []
    for text, weight in texts:
        if not text:
            ends[0] = float(np.logaddexp(ends[0], weight))
            continue
        source += [0, *range(len(ends), len(ends) + len(text) - 1)]
        ends += [*[-np.inf] * (len(text) - 1), weight]
    label = np.frombuffer(b"".join(text for text, _ in texts), np.uint8).astype(np.int64)
    arcs = np.array(source, np.int64), label, np.zeros(len(label)), np.arange(1, len(ends))
    return make(0, 0.0, np.array(ends), arcs)


def _with_failures(
    arcs: tuple[Ints, Ints, Floats, Ints], fails: Ints, costs: Floats, states: Ints
) -> tuple[Ints, Ints, Floats, Ints]:
    """The arcs, and those that the failures of these states lead to as their own."""
    source, label, weight, target = arcs
    order = np.argsort(source, kind="stable")
    begins = np.searchsorted(source[order], np.arange(len(fails) + 1))
    made = [arcs]
    for state in states.tolist():
        own, seen, at, cost = label[order[begins[state] : begins[state + 1]]], np.zeros(256, bool), state, 0.0
        while fails[at] >= 0:
            seen[own] = True
            cost, at = cost + costs[at], int(fails[at])
            here = order[begins[at] : begins[at + 1]]
            own = label[here]
            free = here[~seen[own]]
            made.append((np.full(len(free), state), label[free], weight[free] + cost, target[free]))
    source, label, weight, target = map(np.concatenate, zip(*made, strict=True))
    return source, label, weight, target


def _useful(
    count: int, start: int, finals: Floats, source: Ints, target: Ints, fails: Ints
) -> npt.NDArray[np.bool_]:
    """The states on a path from the start to a final state."""
    failing = np.flatnonzero(fails >= 0)
    source, target = np.concatenate([source, failing]), np.concatenate([target, fails[failing]])
    first = np.zeros(count, bool)
    first[start] = True
    reached = _reached(count, source, target, first)
    # A failure target that is never entered by itself still has arcs that are taken.
    found: npt.NDArray[np.bool_] = reached & _reached(count, target, source, finals > -np.inf)
    return found


def _reached(count: int, source: Ints, target: Ints, first: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    order = np.argsort(source, kind="stable")
    target, seen = target[order], first.copy()
    begins = np.searchsorted(source[order], np.arange(count + 1))
    frontier = np.flatnonzero(first)
    while len(frontier):
        lengths = begins[frontier + 1] - begins[frontier]
        places = np.repeat(begins[frontier] - np.cumsum(lengths) + lengths, lengths) + np.arange(
            lengths.sum()
        )
        found = np.unique(target[places])
        frontier = found[~seen[found]]
        seen[frontier] = True
    return seen


def without_failures(machine: Machine, budget: Budget) -> Machine:
    """The same weights with explicit arcs in place of failures. At most 256 arcs for each state and path:
    ``BudgetExceeded("bytes")``.
    """
    if not machine.has_failures:
        return machine
    labels: list[npt.NDArray[np.uint8]] = [np.zeros(0, np.uint8)] * machine.num_states
    weights: list[Floats] = [np.zeros(0)] * machine.num_states
    targets: list[npt.NDArray[np.uint32]] = [np.zeros(0, np.uint32)] * machine.num_states
    total = 0
    for state in by_failure(machine.failures):
        own = slice(int(machine.offsets[state]), int(machine.offsets[state + 1]))
        parts = [(machine.labels[own], machine.weights[own], machine.targets[own])]
        fail = int(machine.failures[state])
        if fail >= 0:
            rest = ~np.isin(labels[fail], parts[0][0])
            cost = machine.failure_weights[state]
            parts.append((labels[fail][rest], weights[fail][rest] + cost, targets[fail][rest]))
        labels[state], weights[state], targets[state] = map(np.concatenate, zip(*parts, strict=True))
        total += len(labels[state])
        if total * _ARC_BYTES > budget.bytes:
            raise BudgetExceeded("bytes", budget.bytes, "the arcs that stand for failures")
    source = np.repeat(np.arange(machine.num_states), [len(each) for each in labels])
    arcs = source, np.concatenate(labels).astype(np.int64), np.concatenate(weights), np.concatenate(targets)
    return make(machine.start, machine.initial, machine.finals, (*arcs[:3], arcs[3].astype(np.int64)))


def by_failure(failures: npt.NDArray[np.int32]) -> list[int]:
    """The states, each after the target of its failure."""
    depth = np.full(len(failures), -1, np.int64)
    depth[failures < 0] = 0
    for state in np.flatnonzero(failures >= 0).tolist():
        chain = []
        while depth[state] < 0:
            chain.append(state)
            state = int(failures[state])
        for above, each in enumerate(reversed(chain), int(depth[state]) + 1):
            depth[each] = above
    order: list[int] = np.argsort(depth, kind="stable").tolist()
    return order


def is_deterministic(machine: Machine) -> bool:
    """Whether each text has at most one path: no state has two arcs for one byte."""
    same = (machine.sources()[1:] == machine.sources()[:-1]) & (machine.labels[1:] == machine.labels[:-1])
    return not same.any()
