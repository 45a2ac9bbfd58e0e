"""Random sampling of texts from a weighted automaton: of any length, or of a given length.

Of any length: a random walk by the weights of a normalized machine. Of n bytes: for each state and k up to n the
log-sum of all paths to acceptance with k bytes; then a random walk by those. O(n x arcs) once, and O(256) per byte.
"""

from __future__ import annotations

import numpy as np

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.weights.machine import Floats, Machine
from tokenfst.automata.weights.sums import sum_by_state
from tokenfst.budget import Budget
from tokenfst.common.plurals import counted
from tokenfst.errors import BudgetExceeded, EmptyLanguageError


def drawn(machine: Machine, count: int, generator: np.random.Generator, budget: Budget) -> list[bytes]:
    """Samples from a normalized machine."""
    deadline = Deadline(budget, "drawing texts")
    shares: dict[int, Floats] = {}
    texts = []
    for _ in range(count):
        state, text = machine.start, bytearray()
        while True:
            deadline.tick(20)
            if state not in shares:
                shares[state] = np.append(machine.weights[_arcs(machine, state)], machine.finals[state])
            choice = _choice(shares[state], generator)
            if choice == len(shares[state]) - 1:
                break
            arc = int(machine.offsets[state]) + choice
            text.append(int(machine.labels[arc]))
            state = int(machine.targets[arc])
        texts.append(bytes(text))
    return texts


def of_length(
    machine: Machine, count: int, length: int, generator: np.random.Generator, budget: Budget
) -> list[bytes]:
    """Samples of ``length`` bytes; raises ``EmptyLanguageError`` if there are none."""
    if 8 * (length + 1) * machine.num_states > budget.bytes:
        raise BudgetExceeded("bytes", budget.bytes, "the weights of texts by length")
    deadline = Deadline(budget, "the weights of texts by length")
    target = machine.targets.astype(np.int64)
    ways = [machine.finals]
    for _ in range(length):
        deadline.tick(1 + len(target) // 10)
        ways.append(sum_by_state(machine, machine.weights + ways[-1][target]))
    if ways[-1][machine.start] == -np.inf:
        raise EmptyLanguageError(f"no text of {counted(length, 'byte')} has a weight")
    texts = []
    for _ in range(count):
        deadline.tick(20)
        state, text = machine.start, bytearray()
        for left in range(length - 1, -1, -1):
            deadline.tick(20)
            own = _arcs(machine, state)
            arc = own.start + _choice(machine.weights[own] + ways[left][target[own]], generator)
            text.append(int(machine.labels[arc]))
            state = int(target[arc])
        texts.append(bytes(text))
    return texts


def _arcs(machine: Machine, state: int) -> slice:
    return slice(int(machine.offsets[state]), int(machine.offsets[state + 1]))


def _choice(logs: Floats, generator: np.random.Generator) -> int:
    """An index, as probable as its share."""
    most = logs.max()
    sums = np.cumsum(np.exp(logs - most))
    return int(np.searchsorted(sums, generator.random() * sums[-1], side="right"))
