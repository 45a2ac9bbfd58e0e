"""``substring_of``: all substrings of a text by its suffix automaton (DAWG), built by the native core.

A state is the set of positions at which the words that lead to it end in the text (Blumer et al., "The smallest
automaton recognizing the subwords of a text", TCS 1985); at most 2n - 1 states and 3n - 4 edges for n bytes. If words
may start or end only at some positions, between characters or at word boundaries, the same bound holds, because these
positions are determined by adjacent characters (``native/words/suffix_automaton.hpp``).

Invariant: state 0 is DEAD, 1 the start, and the others are in breadth-first order of the bytes, so the numbering is
deterministic.

Cost: linear time and space. The core receives the automaton as a list of edges, 1.5 for each state, and walks it
lazily; a dense table (``SparseDfa.table``) is built only for operations on complete machines (OpenFst, reversal,
inverse images).

Rejected: a suffix array with states found by binary search, which has no bound on the states of a repetitive text.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst.automata.expressions.expression import Dfa, NativeMachine, machine
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import encode
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import BudgetExceeded, ConstraintError

_Places = npt.NDArray[np.uint8]
_SHOWN = 40


class SparseDfa(Dfa):
    """A ``Dfa`` that is stored as edges instead of a table.

    ``edges`` are uint32 pairs (class, next state); those of state q are ``edges[offsets[q]:offsets[q + 1]]``.
    """

    __slots__ = ("_dense", "edges", "offsets")
    edges: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.uint32]
    _dense: npt.NDArray[np.uint32] | None

    def __init__(
        self,
        classes: npt.NDArray[np.uint8],
        edges: npt.NDArray[np.uint32],
        accepting: npt.NDArray[np.bool_],
        offsets: npt.NDArray[np.uint32],
    ) -> None:
        values = {"classes": classes, "edges": edges, "accepting": accepting, "offsets": offsets}
        for name, value in {**values, "start": 1, "_dense": None}.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[type[SparseDfa], tuple[object, ...]]:
        return SparseDfa, (self.classes, self.edges, self.accepting, self.offsets)

    @property
    def num_states(self) -> int:
        """The number of states."""
        return len(self.accepting)

    @property
    def table(self) -> npt.NDArray[np.uint32]:
        """The dense table, built on first use. Raises BudgetExceeded("bytes") if it would be too large."""
        dense = self._dense
        if dense is None:
            shape = self.num_states, int(self.classes.max()) + 1
            if 4 * shape[0] * shape[1] > (limit := Budget().bytes):
                raise BudgetExceeded("bytes", limit, "the dense table of a suffix automaton")
            dense = np.zeros(shape, np.uint32)
            source = np.repeat(np.arange(self.num_states), np.diff(self.offsets))
            dense[source, self.edges[:, 0]] = self.edges[:, 1]
            dense.flags.writeable = False
            object.__setattr__(self, "_dense", dense)
        return dense

    def native_tables(self) -> NativeMachine:
        """The form that the native core reads: the edges of each state."""
        return self.classes, self.edges, self.accepting, self.start, self.offsets


@checked
def substring_of(text: str | bytes, words: bool = False, *, budget: Budget | None = None) -> Language:
    r"""Every substring of ``text``, including the empty one and the whole text.

    For a str, substrings of complete characters, in UTF-8; for bytes, of bytes. With ``words`` (str only), substrings
    neither start nor end inside a word, that is, between two characters that both match ``\w``.

    A deterministic automaton of at most 2n - 1 states for n bytes, in linear time. Raises ConstraintError for a lone
    surrogate and for ``words`` with bytes, BudgetExceeded("states").
    """
    data = encode(text)
    if data is None:
        raise ConstraintError("the text contains a lone surrogate, which UTF-8 cannot encode")
    if words and not isinstance(text, str):
        raise ConstraintError("words are made of characters, and this text is bytes: decode it")
    limit = (budget or Budget()).states
    if len(data) >= limit:  # every prefix of the text has its own state
        raise BudgetExceeded("states", limit, "substring_of(...)")
    begins = ends = _places(text, data, words)
    classes, edges, accepting, offsets = _native.suffix_automaton(data, begins, ends, limit)
    dfa = SparseDfa(classes, edges, accepting.astype(np.bool_), offsets)
    shown = text if len(text) <= _SHOWN else text[:_SHOWN]
    source = f"substring_of({shown!r}{'...' if len(text) > _SHOWN else ''}{', words=True' if words else ''})"
    return Language(machine(dfa, source), source, budget)


def _places(text: str | bytes, data: bytes, words: bool) -> _Places:
    """For each position from 0 to ``len(data)``: whether a substring may begin and end there."""
    places = np.ones(len(data) + 1, np.uint8)
    if isinstance(text, str):
        raw = np.frombuffer(data, np.uint8)
        places[:-1] = (raw & 0xC0) != 0x80
        if words:
            at = np.flatnonzero(places)  # the position of each character, and the end
            inside = [match.start() for match in re.finditer(r"(?<=\w)(?=\w)", text)]
            places[at[inside]] = 0
    return places
