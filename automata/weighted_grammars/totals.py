"""The total weight of the words of each rule of a weighted grammar, and normalization of the rules by it.

The weight of a call is the total weight of the called rule, so the total of a rule is a sum over paths of its automaton
(``sums``) that uses the totals of its callees. Mutually recursive rules are polynomial equations, solved by Newton's
method from below, as in ``grammar_mass``, in multiples of the totals of short words, so that no number overflows or
underflows. After division by the weight of all continuations (Nederhof and Satta,
"Probabilistic parsing as intersection", 2003), the weights of each state sum to one.

Series of matrices are summed by squaring, 1 + M + M² + ... = (1 + M)(1 + M²)(1 + M⁴)...: there is no subtraction, so
small sums are as accurate as large ones, and zeros stay zero. Cost: (number of mutually recursive rules)³ for each
step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.rules.graph import components
from tokenfst.automata.weighted_grammars.nets import Arcs, Net
from tokenfst.automata.weights.machine import Floats, Machine
from tokenfst.automata.weights.sums import inward_sums, onward_sums
from tokenfst.errors import BudgetExceeded, DivergingGrammarError, DivergingSumError

_LARGEST = 1e13
_STEPS = 200
_ROUNDS = 20
_DOUBLINGS = 60
WHERE = "the sum over a weighted grammar"


def totals(nets: Sequence[Net], deadline: Deadline) -> tuple[Floats, list[Floats]]:
    """The log of the total of each rule, and of the continuations of each of its states.

    Raises ``DivergingSumError`` for a language, ``DivergingGrammarError``, ``BudgetExceeded``.
    """
    logs = np.full(len(nets), -np.inf)
    onward: list[Floats] = [np.zeros(0)] * len(nets)
    graph = {number: set(net.calls[1].tolist()) for number, net in enumerate(nets)}
    for part in components(graph):
        deadline.check()
        if len(part) > 1 or part[0] in graph[part[0]]:
            _solve(nets, part, logs, deadline)
        for number in part:
            onward[number] = _onward(nets[number], logs, deadline)
            if len(part) == 1:
                logs[number] = onward[number][nets[number].start]
    return logs, onward


def divided(nets: Sequence[Net], logs: Floats, onward: Sequence[Floats]) -> list[Net]:
    """The nets normalized so that the weights of each state sum to one, without arcs that lead to no word."""
    made = []
    for net, ahead in zip(nets, onward, strict=True):
        alive = ahead > -np.inf
        zero = np.where(alive, ahead, 0.0)

        def on(
            arcs: Arcs,
            more: Floats,
            alive: np.ndarray[tuple[int], np.dtype[np.bool_]] = alive,
            zero: Floats = zero,
        ) -> Arcs:
            source, label, weight, target = arcs
            kept = alive[source] & alive[target] & (weight + more > -np.inf)
            weight = weight + np.where(kept, more, 0.0) + zero[target] - zero[source]
            return source[kept], label[kept], weight[kept], target[kept]

        finals = np.where(alive, net.finals - zero, -np.inf)
        made.append(
            Net(
                net.name,
                net.start,
                finals,
                on(net.bytes, np.zeros(len(net.bytes[0]))),
                on(net.calls, logs[net.calls[1]]),
            )
        )
    return made


def without_bytes(nets: Sequence[Net]) -> list[Net]:
    """The nets restricted to empty words."""
    return [Net(net.name, net.start, net.finals, _none(), net.calls) for net in nets]


def passed(net: Net, deadline: Deadline) -> Floats:
    """The log of the mean number of visits of each state in a word of a rule whose weights add up to one."""
    certain = np.zeros(int(net.calls[1].max(initial=-1)) + 1)
    return _sums(net, certain, deadline, inward=True)


def series(matrix: Floats, names: Sequence[str], deadline: Deadline) -> Floats:
    """1 + M + M² + ... of a non-negative matrix; raises ``DivergingGrammarError``."""
    size = len(matrix)
    if 4 * 8 * size**2 > deadline.budget.bytes:
        raise BudgetExceeded(
            "bytes", deadline.budget.bytes, f"{WHERE}: {size:,} rules or states that call each other"
        )
    found, power = np.eye(size) + matrix, matrix
    for _ in range(_DOUBLINGS):
        deadline.check()
        power = power @ power
        more = found @ power
        if not more.max(initial=0) < _LARGEST:
            break
        if (more <= 1e-17 * found).all():
            return found
        found = found + more
    raise DivergingGrammarError(names)


def _none() -> Arcs:
    whole = np.zeros(0, np.int64)
    return whole, whole, np.zeros(0), whole


def _solve(nets: Sequence[Net], part: list[int], logs: Floats, deadline: Deadline) -> None:
    """Newton's method on the totals of rules that call each other round, in multiples of the totals of short words."""
    names = [nets[number].name for number in part]
    _begin(nets, part, logs, deadline)
    part = [number for number in part if logs[number] > -np.inf]
    place = {number: at for at, number in enumerate(part)}
    scale, found = logs[part], np.ones(len(part))
    scales = np.zeros(len(nets))
    scales[part] = scale
    for _ in range(_STEPS):
        deadline.check()
        logs[part] = np.log(found) + scale
        values, slopes = np.zeros(len(part)), np.zeros((len(part), len(part)))
        for at, number in enumerate(part):
            net, ahead = nets[number], _onward(nets[number], logs, deadline)
            source, rule, weight, target = net.calls
            after = _sums(net, logs, deadline, inward=True)
            with np.errstate(over="ignore"):
                values[at] = np.exp(ahead[net.start] - scale[at])
                each = np.exp(after[source] + weight + ahead[target] + scales[rule] - scale[at])
            for called, slope in zip(rule.tolist(), each.tolist(), strict=True):
                if called in place:
                    slopes[at, place[called]] += slope
        change = np.maximum(values - found, 0)
        if not (np.isfinite(values).all() and np.isfinite(slopes).all()):
            raise DivergingGrammarError(names)
        if (change <= 1e-15 * found).all():
            return
        grown = found + series(slopes, names, deadline) @ change
        if not grown.max() < _LARGEST:
            raise DivergingGrammarError(names)
        if (grown <= found * (1 + 1e-15)).all():
            return
        found = grown
    raise DivergingGrammarError(names)


def _begin(nets: Sequence[Net], part: list[int], logs: Floats, deadline: Deadline) -> None:
    """Set the logs of the part's rules to totals of some of their words: at most the totals of all, and usually of the
    same order of magnitude.
    """

    def total(number: int) -> float:
        return float(_onward(nets[number], logs, deadline)[nets[number].start])

    callers: dict[int, set[int]] = {number: set() for number in part}
    for number in part:
        for called in set(nets[number].calls[1].tolist()) & callers.keys():
            callers[called].add(number)
    waiting = list(part)
    while waiting:
        number = waiting.pop()
        if logs[number] == -np.inf:
            logs[number] = total(number)
            if logs[number] > -np.inf:
                waiting += callers[number]
    for _ in range(_ROUNDS):
        before = logs[part]
        for number in part:
            logs[number] = total(number)
        if not (logs[part] > before + 1).any():
            break


def _onward(net: Net, logs: Floats, deadline: Deadline) -> Floats:
    try:
        return _sums(net, logs, deadline, inward=False)
    except DivergingSumError:
        if len(net.calls[0]):
            raise DivergingGrammarError([net.name]) from None
        raise


def _sums(net: Net, logs: Floats, deadline: Deadline, *, inward: bool) -> Floats:
    """For each state of a net the sum of all paths to it or from it, with calls weighted by the called rules."""
    source = np.concatenate([net.bytes[0], net.calls[0]])
    label = np.concatenate([net.bytes[1], np.zeros(len(net.calls[0]), np.int64)])
    weight = np.concatenate([net.bytes[2], net.calls[2] + logs[net.calls[1]]])
    target = np.concatenate([net.bytes[3], net.calls[3]])
    some = np.flatnonzero(weight > -np.inf)
    order = some[np.argsort(source[some], kind="stable")]
    count = len(net.finals)
    offsets = np.zeros(count + 1, np.uint32)
    offsets[1:] = np.cumsum(np.bincount(source[order], minlength=count))
    machine = Machine(
        net.start, 0.0, net.finals, offsets, label[order].astype(np.uint8), weight[order],
        target[order].astype(np.uint32), np.full(count, -1, np.int32), np.zeros(count),
    )  # fmt: skip
    return (inward_sums if inward else onward_sums)(machine, deadline)
