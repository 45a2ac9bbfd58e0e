"""Shortest distances (sums over all paths) for any semiring.

Without cycles: one pass in topological order. With cycles, if the semiring has ``star``: elimination of the reachable
states (Kleene; cubic, exact up to the semiring's arithmetic). Otherwise the sums are relaxed until they change by less
than ``delta`` (Mohri 2002). This terminates for k-closed semirings, in which cycles add nothing after k rounds; for
others the budget ends it.

Multiplication is not assumed to be commutative: left and right factors are kept apart.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.semirings.machines import SemiringFst
from tokenfst.automata.semirings.protocol import Semiring
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import BudgetExceeded, FstArgError, FstOpError

Edges = dict[int, list[tuple[int, Any]]]


@checked
def shortestdistance(
    fst: SemiringFst, reverse: bool = False, delta: float = 1e-6, *, budget: Budget | None = None
) -> list[Any]:
    """For each state the sum of all paths from the start to it, or (``reverse``) from it to acceptance.

    Raises ``FstOpError`` if a sum diverges, or if multiplication does not distribute on the required side.
    """
    semiring, limit = fst.semiring, budget or Budget()
    if not delta > 0:
        raise FstArgError(f"shortestdistance: delta must be more than 0, not {delta!r}")
    if not (semiring.left_semiring if reverse else semiring.right_semiring):
        side, name = "left" if reverse else "right", semiring.name
        raise FstOpError(
            f"shortestdistance: in the semiring {name!r} products do not distribute from the {side}"
        )
    edges: Edges = {state: [] for state in fst.states()}
    for state in fst.states():
        for arc in fst.arcs(state):
            if reverse:
                edges[arc.nextstate].append((state, arc.weight))
            else:
                edges[state].append((arc.nextstate, arc.weight))
    if reverse:
        begin = {state: fst.final(state) for state in fst.states() if fst.is_final(state)}
    else:
        begin = {fst.start(): semiring.one} if fst.start() >= 0 else {}
    return sums(semiring, edges, begin, reverse, delta, Deadline(limit, "shortestdistance"), limit)


def sums(
    semiring: Semiring,
    edges: Edges,
    begin: dict[int, Any],
    before: bool,
    delta: float,
    clock: Deadline,
    limit: Budget,
) -> list[Any]:
    """For each node the sum over all paths from the nodes of ``begin``, which has their initial weights. ``before``:
    the weight of an edge is the left factor of its product with the sum so far; otherwise the right one.
    """
    found = [semiring.zero] * len(edges)

    def through(weight: Any, sofar: Any) -> Any:
        return semiring.times(weight, sofar) if before else semiring.times(sofar, weight)

    order = _order(edges, list(begin), clock)
    for node, weight in begin.items():
        found[node] = weight
    if order is not None:
        for node in order:
            clock.tick(1 + len(edges[node]))
            for target, weight in edges[node]:
                found[target] = semiring.plus(found[target], through(weight, found[node]))
    elif semiring.has_star():
        _eliminate(semiring, edges, found, through, clock, limit)
    else:
        _relax(semiring, edges, found, through, delta, clock)
    return found


def _order(edges: Edges, roots: list[int], clock: Deadline) -> list[int] | None:
    """The reachable nodes, in topological order; None if there is a cycle."""
    colours, order = dict[int, int](), list[int]()
    for root in roots:
        path = [(root, iter(edges[root]))] if root not in colours else []
        if path:
            colours[root] = 1
        while path:
            clock.tick()
            node, rest = path[-1]
            for target, _ in rest:
                if colours.get(target) == 1:
                    return None
                if target not in colours:
                    colours[target] = 1
                    path.append((target, iter(edges[target])))
                    break
            else:
                colours[node] = 2
                order.append(node)
                path.pop()
    return order[::-1]


def _eliminate(
    semiring: Semiring, edges: Edges, found: list[Any], through: Any, clock: Deadline, limit: Budget
) -> None:
    nodes = _reached(edges, [node for node, weight in enumerate(found) if weight != semiring.zero])
    if len(nodes) ** 2 * 100 > limit.bytes:
        raise BudgetExceeded("bytes", limit.bytes, "shortestdistance")
    matrix: dict[int, dict[int, Any]] = {node: {} for node in nodes}
    for node in nodes:
        for target, weight in edges[node]:
            row = matrix[node]
            row[target] = semiring.plus(row[target], weight) if target in row else weight
    entering: dict[int, set[int]] = {node: set() for node in nodes}
    for node in nodes:
        for target in matrix[node]:
            entering[target].add(node)
    # Paths through an eliminated node become arcs between the remaining ones; then back.
    rows = list[tuple[int, Any, dict[int, Any]]]()
    for node in nodes:
        out = matrix.pop(node)
        own = out.pop(node, None)
        star = semiring.one if own is None else semiring.star(own)
        into = {source: matrix[source].pop(node) for source in entering[node] if source in matrix}
        rows.append((node, star, into))
        found[node] = through(star, found[node])
        for target, weight in out.items():
            found[target] = semiring.plus(found[target], through(weight, found[node]))
            for source, entry in into.items():
                clock.tick()
                way, row = through(weight, through(star, entry)), matrix[source]
                row[target] = semiring.plus(row[target], way) if target in row else way
                entering[target].add(source)
    for node, star, into in reversed(rows):
        for source, weight in into.items():
            found[node] = semiring.plus(found[node], through(star, through(weight, found[source])))


def _reached(edges: Edges, waiting: list[int]) -> list[int]:
    reached = set[int]()
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting += [target for target, _ in edges[node]]
    return sorted(reached)


def _relax(
    semiring: Semiring, edges: Edges, found: list[Any], through: Any, delta: float, clock: Deadline
) -> None:
    left = {node: weight for node, weight in enumerate(found) if weight != semiring.zero}
    queue = deque(left)
    while queue:
        node = queue.popleft()
        more = left.pop(node, semiring.zero)
        clock.tick(1 + len(edges[node]))
        for target, weight in edges[node]:
            added = through(weight, more)
            total = semiring.plus(found[target], added)
            if semiring.near(total, found[target], delta):
                continue
            found[target] = total
            if target not in left:
                queue.append(target)
                left[target] = added
            else:
                left[target] = semiring.plus(left[target], added)
