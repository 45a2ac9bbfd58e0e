"""Operations on machines over any semiring: rational operations, composition, epsilon removal, determinization,
pushing.

Each raises ``FstOpError`` if the semiring lacks a property that it needs. Those that are not linear (``compose``,
``rmepsilon``, ``push``, ``determinize``) take a budget.
"""

from __future__ import annotations

from typing import Any

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.semirings.distances import shortestdistance, sums
from tokenfst.automata.semirings.machines import SemiringFst, require_one_semiring
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import BudgetExceeded, FstOpError


class _Growing:
    """States by key, made when first named; counts them."""

    def __init__(self, fst: SemiringFst, call: str, budget: Budget | None) -> None:
        self.limit = budget or Budget()
        self.clock, self._call = Deadline(self.limit, call), call
        self.made = SemiringFst(fst.semiring)
        self.waiting: list[Any] = []
        self._places: dict[Any, int] = {}

    def place(self, key: Any) -> int:
        """The state of a key."""
        if key not in self._places:
            if len(self._places) >= self.limit.states:
                raise BudgetExceeded("states", self.limit.states, self._call)
            self._places[key] = self.made.add_state()
            self.waiting.append(key)
        return self._places[key]


def _appended(made: SemiringFst, other: SemiringFst) -> int:
    """The number that ``other``'s state 0 gets after the states of ``made``."""
    offset = made.num_states()
    for _ in other.states():
        made.add_state()
    for state in other.states():
        made.set_final(offset + state, other.final(state))
        for arc in other.arcs(state):
            made.add_arc(offset + state, arc.ilabel, arc.olabel, arc.weight, offset + arc.nextstate)
    return offset


@checked
def union(one: SemiringFst, other: SemiringFst) -> SemiringFst:
    """The union of two machines."""
    made = SemiringFst(require_one_semiring("union", one, other))
    made.set_start(made.add_state())
    for each in (one, other):
        offset = _appended(made, each)
        if each.start() >= 0:
            made.add_arc(0, 0, 0, made.semiring.one, offset + each.start())
    return made


@checked
def concat(one: SemiringFst, other: SemiringFst) -> SemiringFst:
    """The concatenation of two machines."""
    require_one_semiring("concat", one, other)
    made = one.copy()
    offset = _appended(made, other)
    for state in one.states():
        if one.is_final(state):
            if other.start() >= 0:
                made.add_arc(state, 0, 0, one.final(state), offset + other.start())
            made.set_final(state, made.semiring.zero)
    return made


@checked
def closure(fst: SemiringFst, closure_type: str = "star") -> SemiringFst:
    """The Kleene closure: "star" (any number of times) or "plus" (at least once)."""
    if closure_type not in ("star", "plus"):
        raise FstOpError(f"closure: closure_type is 'star' or 'plus', not {closure_type!r}")
    made = fst.copy()
    if fst.start() >= 0:
        for state in fst.states():
            if fst.is_final(state):
                made.add_arc(state, 0, 0, fst.final(state), fst.start())
    if closure_type == "star":
        start = made.add_state()
        made.set_start(start).set_final(start)
        if fst.start() >= 0:
            made.add_arc(start, 0, 0, made.semiring.one, fst.start())
    return made


@checked
def invert(fst: SemiringFst) -> SemiringFst:
    """The inverse: input and output labels exchanged."""
    return fst.relabelled(lambda arc: (arc.olabel, arc.ilabel))


@checked
def project(fst: SemiringFst, project_type: str) -> SemiringFst:
    """The acceptor of one side: "input" or "output"."""
    if project_type not in ("input", "output"):
        raise FstOpError(f"project: project_type is 'input' or 'output', not {project_type!r}")
    return fst.relabelled(lambda arc: (arc.ilabel if project_type == "input" else arc.olabel,) * 2)


@checked
def reverse(fst: SemiringFst) -> SemiringFst:
    """The reversed machine, over the reversed semiring."""
    semiring = fst.semiring
    made = SemiringFst(semiring.reversed_semiring())
    made.set_start(made.add_state())
    for _ in fst.states():
        made.add_state()
    for state in fst.states():
        if state == fst.start():
            made.set_final(state + 1)
        if fst.is_final(state):
            made.add_arc(0, 0, 0, semiring.reverse(fst.final(state)), state + 1)
        for arc in fst.arcs(state):
            made.add_arc(arc.nextstate + 1, arc.ilabel, arc.olabel, semiring.reverse(arc.weight), state + 1)
    return made


@checked
def connect(fst: SemiringFst) -> SemiringFst:
    """The machine without states that are not on a path from the start to a final state; the others keep their
    order. Arcs of weight Zero are on no path, and are left out.
    """
    zero = fst.semiring.zero
    forward: list[set[int]] = [
        {arc.nextstate for arc in fst.arcs(state) if arc.weight != zero} for state in fst.states()
    ]
    backward: list[set[int]] = [set() for _ in fst.states()]
    for state, targets in enumerate(forward):
        for target in targets:
            backward[target].add(state)

    def reached(edges: list[set[int]], waiting: list[int]) -> set[int]:
        seen = set(waiting)
        while waiting:
            for target in edges[waiting.pop()] - seen:
                seen.add(target)
                waiting.append(target)
        return seen

    kept = reached(forward, [fst.start()] if fst.start() >= 0 else [])
    kept &= reached(backward, [state for state in fst.states() if fst.is_final(state)])
    made = SemiringFst(fst.semiring)
    place = {state: made.add_state() for state in sorted(kept)}
    for state, here in place.items():
        made.set_final(here, fst.final(state))
        for arc in fst.arcs(state):
            if arc.nextstate in place and arc.weight != zero:
                made.add_arc(here, arc.ilabel, arc.olabel, arc.weight, place[arc.nextstate])
    return made.set_start(place[fst.start()]) if fst.start() in place else made


@checked
def compose(one: SemiringFst, other: SemiringFst, *, budget: Budget | None = None) -> SemiringFst:
    """The composition. Each pair of paths occurs once (sequence filter). Raises ``FstOpError`` unless the semiring is
    commutative.
    """
    semiring = require_one_semiring("compose", one, other)
    if not semiring.commutative:
        raise FstOpError(f"compose: the semiring {semiring.name!r} is not commutative")
    grow = _Growing(one, "compose", budget)
    if one.start() < 0 or other.start() < 0:
        return grow.made
    by_input = [dict[int, list[Any]]() for _ in other.states()]
    for state in other.states():
        for arc in other.arcs(state):
            by_input[state].setdefault(arc.ilabel, []).append(arc)
    grow.made.set_start(grow.place((one.start(), other.start(), 0)))
    while grow.waiting:
        key = grow.waiting.pop()
        (first, second, part), here = key, grow.place(key)
        if one.is_final(first) and other.is_final(second):
            grow.made.set_final(here, semiring.times(one.final(first), other.final(second)))
        # Epsilons of the first before those of the second: part 1, once the second has moved alone.
        for arc in by_input[second].get(0, ()):
            to = grow.place((first, arc.nextstate, 1))
            grow.made.add_arc(here, 0, arc.olabel, arc.weight, to)
        for arc in one.arcs(first):
            grow.clock.tick()
            if arc.olabel == 0:
                if part == 0:
                    to = grow.place((arc.nextstate, second, 0))
                    grow.made.add_arc(here, arc.ilabel, 0, arc.weight, to)
                continue
            for match in by_input[second].get(arc.olabel, ()):
                to = grow.place((arc.nextstate, match.nextstate, 0))
                weight = semiring.times(arc.weight, match.weight)
                grow.made.add_arc(here, arc.ilabel, match.olabel, weight, to)
    return connect(grow.made)


@checked
def rmepsilon(fst: SemiringFst, delta: float = 1e-6, *, budget: Budget | None = None) -> SemiringFst:
    """An equivalent machine without epsilon arcs. Raises ``FstOpError`` if the sum of an epsilon cycle diverges."""
    semiring, limit = fst.semiring, budget or Budget()
    if not (semiring.left_semiring and semiring.right_semiring):
        raise FstOpError(
            f"rmepsilon: in the semiring {semiring.name!r} products do not distribute from both sides"
        )
    clock = Deadline(limit, "rmepsilon")
    edges: dict[int, list[tuple[int, Any]]] = {state: [] for state in fst.states()}
    for state in fst.states():
        edges[state] = [(a.nextstate, a.weight) for a in fst.arcs(state) if not a.ilabel and not a.olabel]
    made = SemiringFst(semiring)
    for _ in fst.states():
        made.add_state()
    for state in fst.states():
        near = sums(semiring, edges, {state: semiring.one}, False, delta, clock, limit)
        final, arcs = semiring.zero, dict[tuple[int, int, int], Any]()
        for middle, weight in enumerate(near):
            if weight == semiring.zero:
                continue
            final = semiring.plus(final, semiring.times(weight, fst.final(middle)))
            for arc in fst.arcs(middle):
                if arc.ilabel or arc.olabel:
                    key, way = (arc.ilabel, arc.olabel, arc.nextstate), semiring.times(weight, arc.weight)
                    arcs[key] = semiring.plus(arcs[key], way) if key in arcs else way
        made.set_final(state, final)
        for (ilabel, olabel, target), weight in arcs.items():
            made.add_arc(state, ilabel, olabel, weight, target)
    if fst.start() >= 0:
        made.set_start(fst.start())
    return connect(made)


@checked
def push(fst: SemiringFst, delta: float = 1e-6, *, budget: Budget | None = None) -> SemiringFst:
    """Push weights towards the start."""
    fst = connect(fst)
    semiring = fst.semiring
    rest = shortestdistance(fst, True, delta, budget=budget)
    made = SemiringFst(semiring)
    for _ in fst.states():
        made.add_state()
    if fst.start() < 0:
        return made
    first = made.add_state()
    made.set_start(first).add_arc(first, 0, 0, rest[fst.start()], fst.start())
    for state in fst.states():
        if fst.is_final(state):
            made.set_final(state, semiring.divide_left(fst.final(state), rest[state]))
        for arc in fst.arcs(state):
            weight = semiring.divide_left(semiring.times(arc.weight, rest[arc.nextstate]), rest[state])
            made.add_arc(state, arc.ilabel, arc.olabel, weight, arc.nextstate)
    return made


@checked
def determinize(fst: SemiringFst, delta: float = 1e-6, *, budget: Budget | None = None) -> SemiringFst:
    """An equivalent machine with at most one arc for each input label of a state.

    Acceptors only (``FstOpError``): outputs must be part of the weight (``Gallic``). Epsilon is treated as a label.
    Exponential in the worst case; does not terminate for some machines: ``BudgetExceeded``.
    """
    semiring, fst = fst.semiring, connect(fst)
    if not semiring.left_semiring:
        raise FstOpError(
            f"determinize: in the semiring {semiring.name!r} products do not distribute from the left"
        )
    if any(arc.ilabel != arc.olabel for state in fst.states() for arc in fst.arcs(state)):
        raise FstOpError(
            "determinize: the machine is a transducer: put its outputs into the weights (Gallic)"
        )
    grow = _Growing(fst, "determinize", budget)
    if fst.start() < 0:
        return grow.made
    values: dict[Any, dict[int, Any]] = {}

    def subset(elements: dict[int, Any]) -> int:
        key = tuple(sorted((state, semiring.key(weight, delta)) for state, weight in elements.items()))
        values.setdefault(key, elements)
        return grow.place(key)

    grow.made.set_start(subset({fst.start(): semiring.one}))
    while grow.waiting:
        key = grow.waiting.pop()
        here, final = grow.place(key), semiring.zero
        moves = dict[int, dict[int, Any]]()
        for state, owed in values[key].items():
            final = semiring.plus(final, semiring.times(owed, fst.final(state)))
            for arc in fst.arcs(state):
                grow.clock.tick()
                way, reached = semiring.times(owed, arc.weight), moves.setdefault(arc.ilabel, {})
                old = reached.get(arc.nextstate)
                reached[arc.nextstate] = way if arc.nextstate not in reached else semiring.plus(old, way)
        grow.made.set_final(here, final)
        for label, reached in sorted(moves.items()):
            common = semiring.zero
            for way in reached.values():
                common = semiring.plus(common, way)
            if common != semiring.zero:
                owed_next = {state: semiring.divide_left(way, common) for state, way in reached.items()}
                grow.made.add_arc(here, label, label, common, subset(owed_next))
    return grow.made
