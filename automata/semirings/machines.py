"""Machines over semirings written in Python: states, arcs, and the way from and to ``tokenfst.fst``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tokenfst.arguments import checked
from tokenfst.automata.semirings.protocol import Semiring
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import arc_type_named
from tokenfst.errors import FstArgError, FstIndexError, FstOpError


class SemiringArc(NamedTuple):
    """An arc: labels (0 is epsilon), a value of the semiring, and the state it leads to."""

    ilabel: int
    olabel: int
    weight: Any
    nextstate: int


class SemiringFst:
    """A transducer over a ``Semiring``. ``FstIndexError`` for states that are not there, ``FstBadWeightError`` for what
    is no value."""

    @checked
    def __init__(self, semiring: Semiring) -> None:
        self.semiring = semiring
        self._arcs: list[list[SemiringArc]] = []
        self._finals: list[Any] = []
        self._start = -1

    def add_state(self) -> int:
        """One more state; its number."""
        self._arcs.append([])
        self._finals.append(self.semiring.zero)
        return len(self._arcs) - 1

    def add_arc(self, state: int, ilabel: int, olabel: int, weight: Any, nextstate: int) -> SemiringFst:
        """One more arc from a state."""
        for label in (ilabel, olabel):
            if not isinstance(label, int) or not 0 <= label < 2**31:
                raise FstIndexError(f"a label is from 0 to 2^31 - 1, not {label!r}")
        arc = SemiringArc(ilabel, olabel, self.semiring.checked(weight), self._state(nextstate))
        self._arcs[self._state(state)].append(arc)
        return self

    def set_start(self, state: int) -> SemiringFst:
        """Begin at a state."""
        self._start = self._state(state)
        return self

    def set_final(self, state: int, weight: Any = ...) -> SemiringFst:
        """Let a state accept with a weight (One if not given)."""
        value = self.semiring.one if weight is ... else self.semiring.checked(weight)
        self._finals[self._state(state)] = value
        return self

    def start(self) -> int:
        """The start, or -1."""
        return self._start

    def num_states(self) -> int:
        """How many states there are."""
        return len(self._arcs)

    def num_arcs(self, state: int | None = None) -> int:
        """How many arcs leave a state, or (without one) there are in all."""
        return sum(map(len, self._arcs)) if state is None else len(self._arcs[self._state(state)])

    def states(self) -> range:
        """All states."""
        return range(len(self._arcs))

    def arcs(self, state: int) -> Iterator[SemiringArc]:
        """The arcs that leave a state."""
        return iter(self._arcs[self._state(state)])

    def final(self, state: int) -> Any:
        """The final weight of a state: Zero where it does not accept."""
        return self._finals[self._state(state)]

    def is_final(self, state: int) -> bool:
        """Whether a state accepts."""
        return bool(self.final(state) != self.semiring.zero)

    def copy(self) -> SemiringFst:
        """A machine of its own."""
        return self.mapped(lambda weight: weight)

    def mapped(
        self, function: Callable[[Any], Any], semiring: Semiring | None = None,
        labels: Callable[[SemiringArc], tuple[int, int]] = lambda arc: (arc.ilabel, arc.olabel),
    ) -> SemiringFst:  # fmt: skip
        """The machine with ``function`` of each weight, over another semiring if one is given; Zero stays Zero."""
        made = SemiringFst(semiring or self.semiring)
        zero = self.semiring.zero
        for _ in self.states():
            made.add_state()
        for state in self.states():
            final = self.final(state)
            made.set_final(state, made.semiring.zero if final == zero else function(final))
            for arc in self.arcs(state):
                weight = made.semiring.zero if arc.weight == zero else function(arc.weight)
                made.add_arc(state, *labels(arc), weight, arc.nextstate)
        return made if self._start < 0 else made.set_start(self._start)

    def relabelled(self, function: Callable[[SemiringArc], tuple[int, int]]) -> SemiringFst:
        """The machine with other labels: ``function(arc)`` gives input and output."""
        return self.mapped(lambda weight: weight, labels=function)

    def _state(self, state: int) -> int:
        if not isinstance(state, int) or not 0 <= state < len(self._arcs):
            raise FstIndexError(f"there is no state {state!r}: the machine has {len(self._arcs)}")
        return state

    def __repr__(self) -> str:
        return f"<SemiringFst {self.semiring.name} of {self.num_states()} states and {self.num_arcs()} arcs>"


@checked
def lifted(fst: VectorFst, semiring: Semiring, weight: Any) -> SemiringFst:
    """A machine of ``tokenfst.fst`` over another semiring: ``weight(number, arc)`` makes the value of each arc, with
    ``None`` for the arc where it is a final weight."""
    if not callable(weight):
        raise FstArgError("lifted: weight must be a function of a number and an arc")
    made, zero = SemiringFst(semiring), fst.kind.core.zero()
    for _ in fst.states():
        made.add_state()
    for state in fst.states():
        final = fst.core.final(state)
        if final != zero:
            made.set_final(state, weight(final, None))
        for ilabel, olabel, number, target in fst.core.arcs(state):
            if number != zero:
                arc = SemiringArc(ilabel, olabel, number, target)
                made.add_arc(state, ilabel, olabel, weight(number, arc), target)
    return made if fst.start() < 0 else made.set_start(fst.start())


@checked
def lowered(fst: SemiringFst, arc_type: str, weight: Any) -> VectorFst:
    """A machine of ``tokenfst.fst``: ``weight(value)`` makes the number."""
    if not callable(weight):
        raise FstArgError("lowered: weight must be a function of a value")
    made, zero = VectorFst(arc_type), fst.semiring.zero
    checked_weight = arc_type_named(arc_type).core.checked_weight
    made.add_states(fst.num_states())
    for state in fst.states():
        if fst.is_final(state):
            made.set_final(state, checked_weight(weight(fst.final(state))))
        for arc in fst.arcs(state):
            if arc.weight != zero:
                number = checked_weight(weight(arc.weight))
                made.core.add_arc(state, arc.ilabel, arc.olabel, number, arc.nextstate)
    return made if fst.start() < 0 else made.set_start(fst.start())


def require_one_semiring(call: str, *fsts: SemiringFst) -> Semiring:
    """The semiring of all; ``FstOpError`` where they are different ones."""
    first = fsts[0].semiring
    for each in fsts[1:]:
        if each.semiring is not first and each.semiring.name != first.name:
            raise FstOpError(f"{call}: the machines are over {first.name!r} and {each.semiring.name!r}")
    return first
