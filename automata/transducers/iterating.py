"""Iterators over the arcs of a state, under pywrapfst's names.

They are Python's iterators too: ``for arc in machine.arcs(state)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from tokenfst.automata.transducers.arcs import Arc
from tokenfst.automata.transducers.checks import at_state
from tokenfst.automata.transducers.weights import ArcType, Weight
from tokenfst.errors import FstArgError, FstIndexError


class ArcIterator(Iterator[Arc]):
    """The arcs that a state has when the iterator is made, each as a new ``Arc``."""

    def __init__(self, kind: ArcType, rows: list[tuple[int, int, float, int]]) -> None:
        self._kind, self._rows, self._at = kind, rows, 0

    def __next__(self) -> Arc:
        if self._at >= len(self._rows):
            raise StopIteration
        self._at += 1
        return self._arc(self._at - 1)

    def done(self) -> bool:
        """Whether it is after the last arc."""
        return self._at >= len(self._rows)

    def next(self) -> None:
        """Go to the next arc."""
        self._at += 1

    def position(self) -> int:
        """The number of the current arc."""
        return self._at

    def reset(self) -> None:
        """Go to the first arc."""
        self._at = 0

    def seek(self, a: int) -> None:
        """Go to arc ``a``. Raises ``FstArgError`` for a negative number."""
        if a < 0:
            raise FstArgError(f"seek: the number of an arc must not be negative: {a}")
        self._at = a

    def value(self) -> Arc:
        """The current arc. Raises ``FstIndexError`` after the last one."""
        if self.done():
            raise FstIndexError(
                f"the iterator is after the last of {len(self._rows)} arcs: reset() goes back"
            )
        return self._arc(self._at)

    def _arc(self, at: int) -> Arc:
        ilabel, olabel, weight, target = self._rows[at]
        return Arc(ilabel, olabel, Weight.of(self._kind, weight), target)


class MutableArcIterator(ArcIterator):
    """An ``ArcIterator`` that can replace the current arc.

    ``set_value`` writes back the arcs that the state had when the iterator was made; arcs added since then are lost.
    """

    def __init__(self, fst: WithArcs, state: int) -> None:
        super().__init__(fst.kind, at_state(fst.core.arcs, state))
        self._fst, self._state = fst, state

    def __iter__(self) -> Iterator[Arc]:
        """From the current arc on; in the loop, ``position`` is that of the arc at hand."""
        while not self.done():
            yield self.value()
            self.next()

    def set_value(self, arc: Arc) -> None:
        """Replace the current arc. Linear in the arcs of the state.

        Raises ``FstIndexError`` after the last arc, and the errors of ``VectorFst.add_arc``, which change nothing.
        """
        self.value()
        self._fst.add_arc(self._state, arc)  # checks it
        core = self._fst.core
        self._rows[self._at] = core.arcs(self._state)[-1]
        core.clear_arcs(self._state, core.num_arcs(self._state))
        for row in self._rows:
            core.add_arc(self._state, *row)


class WithArcs(ABC):
    """The methods of a machine that look at the arcs of one state."""

    core: Any
    """The core's object."""

    @property
    @abstractmethod
    def kind(self) -> ArcType:
        """The arc type with its properties."""

    def arcs(self, state: int) -> ArcIterator:
        """The outgoing arcs of a state."""
        return ArcIterator(self.kind, at_state(self.core.arcs, state))

    def mutable_arcs(self, state: int) -> MutableArcIterator:
        """The outgoing arcs of a state, which ``set_value`` replaces."""
        return MutableArcIterator(self, state)

    @abstractmethod
    def add_arc(self, state: int, arc: Arc) -> object:
        """Add an arc to a state."""

    def num_input_epsilons(self, state: int) -> int:
        """The number of arcs of a state with an epsilon input."""
        return sum(arc[0] == 0 for arc in at_state(self.core.arcs, state))

    def num_output_epsilons(self, state: int) -> int:
        """The number of arcs of a state with an epsilon output."""
        return sum(arc[1] == 0 for arc in at_state(self.core.arcs, state))
