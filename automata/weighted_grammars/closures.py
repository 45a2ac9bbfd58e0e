"""The input of the core's chart parser for weighted grammars: rules without empty words, and two closures.

A call of a rule that may be empty can also continue as an epsilon arc, with the weight of the empty word; epsilon arcs
are removed by summing their series. After that, a complete rule has read at least one byte, and cycles without bytes
are solved in advance (Jelinek and Lafferty 1991, Stolcke 1995): ``predicts``, the rules that a call starts, with the
sum over all left-corner paths; ``units``, the rules that a complete rule completes as their only part.

Invariant: a value is zero only because of the form of the rules, never because a number underflows: otherwise
``ConstraintError``. Cost: (number of rules)³ operations, and memory in its square and in rules times states with calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.weighted_grammars.nets import Arcs, Net, columns
from tokenfst.automata.weighted_grammars.totals import WHERE, series
from tokenfst.automata.weights.machine import Floats
from tokenfst.errors import BudgetExceeded, ConstraintError

_Entries = list[list[tuple[int, int, float]]]
"""By number: rule, target, weight."""
_Bools = npt.NDArray[np.bool_]


@dataclass(slots=True)
class _Joined:
    """The nets side by side."""

    starts: list[int]
    rule_of: list[int]
    finals: Floats
    bytes: Arcs
    calls: _Entries


def make_core(nets: Sequence[Net], empty: Floats, deadline: Deadline) -> _native.WeightedRules:
    """The core's form of nets whose weights are normalized; ``empty``: the log weight of each rule's empty word."""
    names = [net.name for net in nets]
    joined = _join([_without_empty(net, empty, deadline) for net in nets])
    count, states = len(nets), len(joined.finals)
    _room(count * count, deadline)
    first, first_some = np.zeros((count, count)), np.zeros((count, count), bool)
    alone, alone_some = first.copy(), first_some.copy()
    corners: _Entries = [[] for _ in nets]
    for rule, start in enumerate(joined.starts):
        for called, target, weight in joined.calls[start]:
            first[rule, called] += np.exp(weight)
            first_some[rule, called] = True
            corners[called].append((rule, target, weight))
            if joined.finals[target] > -np.inf:
                alone[rule, called] += np.exp(weight + joined.finals[target])
                alone_some[rule, called] = True
    begins = _closed(first, first_some, names, deadline)
    ends = _closed(alone, alone_some, names, deadline)
    predicts: _Entries = [[] for _ in range(states)]
    entries = 0
    for state, calls in enumerate(joined.calls):
        if not calls:
            continue
        deadline.tick(count // 100 + 5)
        row = np.logaddexp.reduce([weight + begins[called] for called, _, weight in calls], axis=0)
        predicts[state] = [(rule, 0, float(row[rule])) for rule in np.flatnonzero(row > -np.inf).tolist()]
        entries += len(predicts[state])
        _room(40 * entries, deadline)
    units = [[(rule, 0, float(ends[rule, done])) for rule in np.flatnonzero(ends[:, done] > -np.inf).tolist()]
             for done in range(count)]  # fmt: skip
    begun = [[(rule, 0, float(begins[0, rule])) for rule in np.flatnonzero(begins[0] > -np.inf).tolist()]]
    sources, labels, logs, targets = joined.bytes
    order = np.lexsort((targets, labels, sources))
    offsets = np.zeros(states + 1, np.uint32)
    offsets[1:] = np.cumsum(np.bincount(sources, minlength=states))
    machine = _native.WeightedBytes(
        joined.finals, offsets, labels[order].astype(np.uint8), logs[order], targets[order].astype(np.uint32),
        np.full(states, -1, np.int32), np.zeros(states),
    )  # fmt: skip
    return _native.WeightedRules(
        machine, np.array(joined.rule_of, np.uint32), np.array(joined.starts, np.uint32),
        (np.diff(offsets) > 0).astype(np.uint8), _table(joined.calls), _table(predicts), _table(corners), _table(units),
        _table(begun), 0, min(float(empty[0]), 0.0),
    )  # fmt: skip


def _join(nets: Sequence[Net]) -> _Joined:
    made = _Joined(
        [],
        [],
        np.concatenate([net.finals for net in nets]),
        columns([]),
        [[] for net in nets for _ in net.finals],
    )
    base, parts = 0, []
    for number, net in enumerate(nets):
        made.starts.append(base + net.start)
        made.rule_of += [number] * len(net.finals)
        source, label, weight, target = net.bytes
        parts.append((source + base, label, weight, target + base))
        for at, called, log, to in zip(*(each.tolist() for each in net.calls), strict=True):
            made.calls[base + at].append((called, base + to, log))
        base += len(net.finals)
    source, label, weight, target = (np.concatenate(each) for each in zip(*parts, strict=True))
    made.bytes = source, label, weight, target
    return made


def _without_empty(net: Net, empty: Floats, deadline: Deadline) -> Net:
    """The same words, with calls restricted to words that are not empty."""
    source, called, weight, target = net.calls
    passes = np.flatnonzero(empty[called] > -np.inf)
    if not len(passes):
        return net
    inside = np.unique(np.concatenate([source[passes], target[passes]]))
    place = {state: at for at, state in enumerate(inside.tolist())}
    matrix, some = np.zeros((len(inside),) * 2), np.zeros((len(inside),) * 2, bool)
    for arc in passes.tolist():
        at = place[int(source[arc])], place[int(target[arc])]
        matrix[at] += np.exp(weight[arc] + empty[called[arc]])
        some[at] = True
    ways = _closed(matrix, some, [net.name], deadline)
    finals = net.finals.copy()
    own: dict[bool, list[tuple[int, int, float, int]]] = {False: [], True: []}
    by_source: dict[bool, dict[int, list[tuple[int, float, int]]]] = {
        False: defaultdict(list),
        True: defaultdict(list),
    }
    for calls, arcs in ((False, net.bytes), (True, net.calls)):
        for at, label, log, to in zip(*(each.tolist() for each in arcs), strict=True):
            if at in place:
                by_source[calls][at].append((label, log, to))
            else:
                own[calls].append((at, label, log, to))
    for state, row in zip(inside.tolist(), ways, strict=True):
        reached = [(int(inside[at]), float(row[at])) for at in np.flatnonzero(row > -np.inf).tolist()]
        finals[state] = np.logaddexp.reduce([log + net.finals[through] for through, log in reached])
        for calls in (False, True):
            for through, log in reached:
                deadline.tick(1 + len(by_source[calls][through]))
                own[calls] += [
                    (state, label, log + more, to) for label, more, to in by_source[calls][through]
                ]
        _room(80 * (len(own[False]) + len(own[True])), deadline)
    return Net(net.name, net.start, finals, columns(own[False]), columns(own[True]))


def _closed(matrix: Floats, some: _Bools, names: Sequence[str], deadline: Deadline) -> Floats:
    """The logs of 1 + M + M² + ...; ``some``: the entries at which M is not zero."""
    found = series(matrix, names, deadline)
    reached = some | np.eye(len(some), dtype=bool)
    while True:
        further = (reached.astype(np.float32) @ reached.astype(np.float32)) > 0
        if (further == reached).all():
            break
        reached = further
    if (reached & (found <= 0)).any():
        raise ConstraintError(
            f"{WHERE}: weights are so far apart that float64 cannot say what they are together"
        )
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(np.where(reached, found, 0.0))
    return logs


def _table(
    entries: _Entries,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32], Floats]:
    offsets = np.zeros(len(entries) + 1, np.uint32)
    offsets[1:] = np.cumsum([len(each) for each in entries])
    rule, target, weight = (
        zip(*(entry for each in entries for entry in each), strict=True) if offsets[-1] else ((),) * 3
    )
    return offsets, np.array(rule, np.uint32), np.array(target, np.uint32), np.array(weight, np.float64)


def _room(bytes_: int, deadline: Deadline) -> None:
    if bytes_ > deadline.budget.bytes:
        raise BudgetExceeded("bytes", deadline.budget.bytes, WHERE)
