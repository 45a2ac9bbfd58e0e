"""Exact sums over all paths of a weighted automaton, of which there may be infinitely many.

The total weight b(q) of all paths from a state to acceptance satisfies b(q) = final(q) + Σ w b(target). Strongly
connected components are solved in reverse topological order: a state without a cycle by a sum of logarithms, a
component as a system of linear equations (I - A) x = r. The sum converges if and only if (I - A) x = 1 has a positive
solution (A is non-negative and irreducible, so its spectral radius is then below one); otherwise ``DivergingSumError``
names a cycle. A component whose paths have more than 10^13 arcs on average counts as diverging.

Numerics: sums between components are logarithms. If the sums of a component differ much, it is solved in multiples of
the sums over its short paths, so small ones are as accurate as large ones. Cost: O(arcs) and n^3 for a component of n
states, whose n^2 numbers the budget's bytes bound.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.rules.graph import components
from tokenfst.automata.weights.machine import Floats, Ints, Machine
from tokenfst.common.plurals import counted
from tokenfst.errors import BudgetExceeded, DivergingSumError

_LARGEST = 1e13
_SPREAD = 1e4
WHERE = "the sum over a weighted language"


def onward_sums(machine: Machine, deadline: Deadline) -> Floats:
    """For each state the log-sum of all paths from it to acceptance, including its final weight."""
    source, target = machine.sources(), machine.targets.astype(np.int64)
    return _solve(machine, source, target, machine.finals, deadline)


def inward_sums(machine: Machine, deadline: Deadline) -> Floats:
    """For each state the log-sum of all paths from the start to it, including the initial weight."""
    first = np.full(machine.num_states, -np.inf)
    first[machine.start] = machine.initial
    return _solve(machine, machine.targets.astype(np.int64), machine.sources(), first, deadline)


def log_sum(values: Floats) -> float:
    """log Σ e^value; -inf for no values."""
    most = float(values.max(initial=-np.inf))
    return most if most == -np.inf else most + float(np.log(np.exp(values - most).sum()))


def _solve(machine: Machine, source: Ints, target: Ints, ends: Floats, deadline: Deadline) -> Floats:
    budget = deadline.budget
    order = np.argsort(source, kind="stable")
    begins = np.searchsorted(source[order], np.arange(machine.num_states + 1))
    onward: dict[int, list[int]] = {}
    for state in range(machine.num_states):
        deadline.tick(1)
        onward[state] = target[order[begins[state] : begins[state + 1]]].tolist()
    sums = np.full(machine.num_states, -np.inf)
    for part in components(onward, deadline):
        deadline.tick(10)
        arcs = np.concatenate([order[begins[state] : begins[state + 1]] for state in part])
        if len(part) == 1 and part[0] not in onward[part[0]]:
            values = np.append(machine.weights[arcs] + sums[target[arcs]], ends[part[0]])
            sums[part[0]] = log_sum(values)
            continue
        deadline.check()
        if 4 * 8 * len(part) ** 2 > budget.bytes:
            raise BudgetExceeded("bytes", budget.bytes, f"{WHERE}: a cycle of {counted(len(part), 'state')}")
        sums[part] = _component(machine, np.array(part), arcs, (source, target), sums, ends, deadline)
    return sums


def _component(
    machine: Machine,
    part: Ints,
    arcs: Ints,
    ways: tuple[Ints, Ints],
    sums: Floats,
    ends: Floats,
    deadline: Deadline,
) -> Floats:
    """The sums of the states of one component; the sums of components after it are known."""
    source, target = (each[arcs] for each in ways)
    place = dict(zip(part.tolist(), range(len(part)), strict=True))
    inside = np.isin(target, part)
    at = np.array([place[each] for each in source.tolist()], np.int64)
    to = np.array([place[each] for each in target[inside].tolist()], np.int64)
    known = np.full(len(part), -np.inf)
    weights = machine.weights[arcs]
    np.logaddexp.at(known, np.append(np.arange(len(part)), at[~inside]),
                    np.append(ends[part], weights[~inside] + sums[target[~inside]]))  # fmt: skip
    found = solved(known, (at[inside], to, weights[inside]), deadline)
    if found is None:
        raise _diverging(machine, part, arcs[inside], ways)
    return found


def solved(known: Floats, arcs: tuple[Ints, Ints, Floats], deadline: Deadline) -> Floats | None:
    """The logs x of the least solution of e^x(at) = e^known(at) + Σ e^weight e^x(to) for arcs (at, to, weight), sorted
    by the first; None if it diverges. Raises ``BudgetExceeded("seconds")``.
    """
    at, to, weights = arcs
    found = _in_multiples(known, arcs, np.zeros(len(known)), _SPREAD)
    if found is not None:
        return found
    # Sums of short paths have the order of magnitude of the result, so with them as scales nothing is lost.
    places, begins = np.unique(at, return_index=True)
    scale = known
    for _ in known:
        deadline.check()
        before, scale = scale, known.copy()
        onward = np.logaddexp.reduceat(weights + before[to], begins)
        scale[places] = np.logaddexp(known[places], onward)
        if not (scale > before + 1).any():
            break
    return _in_multiples(known, arcs, scale, np.inf)


def _in_multiples(
    known: Floats, arcs: tuple[Ints, Ints, Floats], scale: Floats, spread: float
) -> Floats | None:
    """The solution in multiples of e^scale, 0 where that is 0. None if it diverges, if numbers overflow, or if some is
    smaller than another by a factor of ``spread``, since the errors of all are relative to the largest one.
    """
    some = scale > -np.inf
    if not some.any():
        return scale
    scale = np.where(some, scale, 0.0)
    at, to, weights = arcs
    both = some[at] & some[to]
    at, to, weights = at[both], to[both], weights[both]
    matrix = np.zeros((len(known), len(known)))
    with np.errstate(over="ignore"):
        np.add.at(matrix, (at, to), np.exp(weights + scale[to] - scale[at]))
    most = float((known - scale).max())
    right = np.exp(known - scale - most) if most > -np.inf else np.zeros(len(known))
    try:
        found = np.linalg.solve(np.eye(len(known)) - matrix, np.stack([right, np.ones(len(known))], 1))
    except np.linalg.LinAlgError:
        return None
    sums, lengths = found.T
    if not (np.isfinite(found).all() and (lengths > 0).all() and lengths.max() < _LARGEST):
        return None
    if not sums[some].min() > 0 or sums[some].max() > spread * sums[some].min():
        return None
    return np.where(some, np.log(np.where(some, sums, 1.0)) + most + scale, -np.inf)


def _diverging(machine: Machine, part: Ints, arcs: Ints, ways: tuple[Ints, Ints]) -> DivergingSumError:
    """The error, with a shortest cycle through the state of the component whose arcs weigh most."""
    source, target = ways
    inside = arcs.tolist()
    weighs = np.bincount(source[arcs], np.exp(np.minimum(machine.weights[arcs], 700)), machine.num_states)
    first = int(part[np.argmax(weighs[part])])
    by_source: dict[int, list[int]] = {}
    for arc in sorted(inside, key=lambda arc: -machine.weights[arc]):
        by_source.setdefault(int(source[arc]), []).append(arc)
    came: dict[int, int] = {}
    queue = deque([first])
    while queue and first not in came:
        for arc in by_source[queue.popleft()]:
            if int(target[arc]) not in came:
                came[int(target[arc])] = arc
                queue.append(int(target[arc]))
    cycle, at = [came[first]], int(source[came[first]])
    while at != first:
        cycle.append(came[at])
        at = int(source[came[at]])
    if not np.array_equal(source, machine.sources()):  # walked against the arcs
        cycle.reverse()
    text = bytes(machine.labels[cycle[::-1]].tolist())
    return DivergingSumError(text, float(machine.weights[cycle].sum()), len(part))


def sum_by_state(machine: Machine, values: Floats) -> Floats:
    """For each state the log-sum of the values of its arcs; -inf if it has none."""
    found = np.full(machine.num_states, -np.inf)
    some: npt.NDArray[np.bool_] = np.diff(machine.offsets.astype(np.int64)) > 0
    if some.any():
        found[some] = np.logaddexp.reduceat(values, machine.offsets[:-1][some].astype(np.int64))
    return found
