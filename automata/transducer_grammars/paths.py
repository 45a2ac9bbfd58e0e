"""The paths of an acyclic machine, as pynini's ``paths`` gives them: all, as iterators, or one after another, with
``next`` and ``done``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tokenfst.automata.transducer_grammars.strings import TokenType, name_of
from tokenfst.automata.transducer_operations import building
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import Weight
from tokenfst.errors import FstArgError, FstOpError

_Path = tuple[list[int], list[int], float]
"""Input labels, output labels, and the weight."""


class Paths:
    """The paths of an acyclic machine, each as an input, an output and a weight.

    ``items``, ``istrings``, ``ostrings`` and ``weights`` iterate over all paths. ``istring``, ``ostring``, ``ilabels``,
    ``olabels`` and ``weight`` describe the current path; ``next`` moves to the next one until ``done``, and ``reset``
    returns to the first.
    """

    def __init__(self, fst: VectorFst, input_token_type: TokenType, output_token_type: TokenType) -> None:
        if not fst.properties(_ACYCLIC):
            raise FstArgError("paths: the machine has cycles, so its paths have no end")
        self._fst, self._types = fst, (input_token_type, output_token_type)
        self._rest: Iterator[_Path] | None = None
        self._current: _Path | None = None

    def _all(self) -> Iterator[_Path]:
        core, kind = self._fst.core, self._fst.kind.core
        waiting: list[tuple[int, list[int], list[int], float]] = []
        if self._fst.start() >= 0:
            waiting.append((self._fst.start(), [], [], kind.one()))
        while waiting:
            state, read, written, weight = waiting.pop()
            if (final := core.final(state)) != kind.zero():
                yield read, written, kind.times(weight, final)
            for ilabel, olabel, more, target in reversed(core.arcs(state)):
                waiting.append((target, [*read, ilabel], [*written, olabel], kind.times(weight, more)))

    def _text(self, side: int, labels: list[int]) -> str:
        return text_of(labels, self._types[side], self._fst.tables[side])

    def items(self) -> Iterator[tuple[str, str, Weight]]:
        """Input, output and weight of each."""
        for read, written, weight in self._all():
            yield (
                self._text(0, read),
                self._text(1, written),
                Weight.of(self._fst.kind, weight),
            )

    def istrings(self) -> Iterator[str]:
        """The input of each."""
        return (self._text(0, read) for read, _, _ in self._all())

    def ostrings(self) -> Iterator[str]:
        """The output of each."""
        return (self._text(1, written) for _, written, _ in self._all())

    def weights(self) -> Iterator[Weight]:
        """The weight of each."""
        return (Weight.of(self._fst.kind, weight) for _, _, weight in self._all())

    def done(self) -> bool:
        """Whether there is no current path: all have been passed."""
        if self._rest is None:
            self._rest = self._all()
            self._current = next(self._rest, None)
        return self._current is None

    def next(self) -> None:
        """Move to the next path."""
        if not self.done() and self._rest is not None:
            self._current = next(self._rest, None)

    def reset(self) -> None:
        """Return to the first path."""
        self._rest = None

    def _here(self) -> _Path:
        if self.done() or self._current is None:
            raise FstArgError(
                "paths: there is no current path: all have been passed. reset() returns to the first"
            )
        return self._current

    def ilabels(self) -> list[int]:
        """The input labels of the current path, one for each arc; 0 is epsilon."""
        return list(self._here()[0])

    def olabels(self) -> list[int]:
        """The output labels of the current path, one for each arc; 0 is epsilon."""
        return list(self._here()[1])

    def istring(self) -> str:
        """The input of the current path."""
        return self._text(0, self._here()[0])

    def ostring(self) -> str:
        """The output of the current path."""
        return self._text(1, self._here()[1])

    def weight(self) -> Weight:
        """The weight of the current path."""
        return Weight.of(self._fst.kind, self._here()[2])


_ACYCLIC = 0x800000000


def text_of(labels: Iterable[int], token_type: TokenType, table: SymbolTable | None = None) -> str:
    """The string that labels spell, with generated labels as names in brackets; epsilons spell nothing. ``table``: that
    of the machine. Raises ``FstOpError`` for labels without meaning.
    """
    labels = building.plain([label for label in labels if label], token_type, table)
    if isinstance(token_type, SymbolTable):
        return building.spelled(labels, token_type)
    out = bytearray()
    for label in labels:
        if (name := name_of(label)) is not None or (token_type == "byte" and label > 255):
            out += f"[{name or label}]".encode()
        else:
            out += bytes([label]) if token_type == "byte" else building.spelled([label], "utf8").encode()
    try:
        return out.decode()
    except UnicodeDecodeError:
        raise FstOpError(f"the labels {labels!r:.60} are no UTF-8") from None
