"""Machines over semirings written in Python: states, arcs, and conversion from and to ``tokenfst.fst``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tokenfst.automata.semirings.protocol import Semiring
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import arc_type_named
from tokenfst.common.arguments import checked
from tokenfst.common.plurals import counted
from tokenfst.errors import FstArgError, FstIndexError, FstOpError


class SemiringArc(NamedTuple):
    """An arc: labels (0 is epsilon), a weight, and the target state."""

    ilabel: int
    olabel: int
    weight: Any
    nextstate: int


class SemiringFst:
    """A transducer over a ``Semiring``. Raises ``FstIndexError`` for unknown states, ``FstBadWeightError`` for invalid
    weights.
    """

    @checked
    def __init__(self, semiring: Semiring) -> None:
        self.semiring = semiring
        self._arcs: list[list[SemiringArc]] = []
        self._finals: list[Any] = []
        self._start = -1
        self.tables: tuple[SymbolTable | None, SymbolTable | None] = (None, None)
        """The symbol tables of inputs and outputs. Files have them; results of operations do not."""

    def set_tables(self, tables: tuple[SymbolTable | None, SymbolTable | None]) -> SemiringFst:
        """Set both symbol tables."""
        self.tables = tables
        return self

    def add_state(self) -> int:
        """Add a state and return its number."""
        self._arcs.append([])
        self._finals.append(self.semiring.zero)
        return len(self._arcs) - 1

    def add_arc(self, state: int, ilabel: int, olabel: int, weight: Any, nextstate: int) -> SemiringFst:
        """Add an arc to a state."""
        for label in (ilabel, olabel):
            if not isinstance(label, int) or not 0 <= label < 2**31:
                raise FstIndexError(f"a label is from 0 to 2^31 - 1, not {label!r}")
        arc = SemiringArc(ilabel, olabel, self.semiring.checked(weight), self._state(nextstate))
        self._arcs[self._state(state)].append(arc)
        return self

    def set_start(self, state: int) -> SemiringFst:
        """Set the start state."""
        self._start = self._state(state)
        return self

    def set_final(self, state: int, weight: Any = ...) -> SemiringFst:
        """Set the final weight of a state (One by default)."""
        value = self.semiring.one if weight is ... else self.semiring.checked(weight)
        self._finals[self._state(state)] = value
        return self

    def start(self) -> int:
        """The start state, or -1."""
        return self._start

    def num_states(self) -> int:
        """The number of states."""
        return len(self._arcs)

    def num_arcs(self, state: int | None = None) -> int:
        """The number of arcs of ``state``; by default, of all states together."""
        return sum(map(len, self._arcs)) if state is None else len(self._arcs[self._state(state)])

    def states(self) -> range:
        """All states."""
        return range(len(self._arcs))

    def arcs(self, state: int) -> Iterator[SemiringArc]:
        """The outgoing arcs of a state."""
        return iter(self._arcs[self._state(state)])

    def final(self, state: int) -> Any:
        """The final weight of a state: Zero if it is not final."""
        return self._finals[self._state(state)]

    def is_final(self, state: int) -> bool:
        """Whether a state is final."""
        return bool(self.final(state) != self.semiring.zero)

    def copy(self) -> SemiringFst:
        """An independent copy, with the same tables."""
        return self.mapped(lambda weight: weight).set_tables(self.tables)

    def mapped(
        self, function: Callable[[Any], Any], semiring: Semiring | None = None,
        labels: Callable[[SemiringArc], tuple[int, int]] = lambda arc: (arc.ilabel, arc.olabel),
    ) -> SemiringFst:  # fmt: skip
        """The machine with ``function`` applied to each weight, over another semiring if one is given; Zero
        stays Zero.
        """
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
        """The machine with new labels: ``function(arc)`` returns input and output label."""
        return self.mapped(lambda weight: weight, labels=function)

    def _state(self, state: int) -> int:
        if not isinstance(state, int) or not 0 <= state < len(self._arcs):
            raise FstIndexError(f"there is no state {state!r}: the machine has {len(self._arcs)}")
        return state

    def __repr__(self) -> str:
        size = f"{counted(self.num_states(), 'state')} and {counted(self.num_arcs(), 'arc')}"
        return f"<SemiringFst {self.semiring.name} of {size}>"


@checked
def lifted(fst: VectorFst, semiring: Semiring, weight: Any) -> SemiringFst:
    """A machine of ``tokenfst.fst`` over another semiring: ``weight(number, arc)`` returns the weight of each arc; the
    arc is ``None`` for a final weight.
    """
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
    """A machine of ``tokenfst.fst``: ``weight(value)`` returns the number."""
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
    """The common semiring; raises ``FstOpError`` if they differ, by class or by name."""
    first = fsts[0].semiring
    for each in fsts[1:]:
        if type(each.semiring) is not type(first) or each.semiring.name != first.name:
            raise FstOpError(f"{call}: the machines are over {first.name!r} and {each.semiring.name!r}")
    return first
