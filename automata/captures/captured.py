"""``Captured``: the mixin that gives constraints their capture methods, implemented by ``Reader``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tokenfst.automata.captures.reader import Part, Reader
from tokenfst.automata.captures.trees import Reading, has_temperature
from tokenfst.automata.captures.values import Captures
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but
from tokenfst.errors import ConstraintError


class Captured(ABC):
    """The base class of constraints that may have a reading, with their capture methods."""

    __slots__ = ("_capture_reader", "_reading")

    def __init__(self, reading: Reading | None) -> None:
        self._reading = reading
        self._capture_reader: Reader | None = None

    @property
    @abstractmethod
    def budget(self) -> Budget:
        """The bounds of every query."""

    @abstractmethod
    def explain(self, text: str | bytes, *, prefix: bool = False) -> Any:
        """Whether a text is in the constraint (``prefix``: or is a prefix of such a text), with an explanation."""

    @property
    def reading(self) -> Reading | None:
        """How texts divide into named groups and rules; ``None`` if the constraint has no names."""
        return self._reading

    @property
    def has_temperature(self) -> bool:
        """Whether a part of the constraint sets a sampling temperature (``matcher.temperature``)."""
        reading = self.reading
        return reading is not None and (
            reading.has_temperature or has_temperature(reading.start, reading.rules)
        )

    @property
    def capture_names(self) -> tuple[str, ...]:
        """The names of all captures, in the order of the constraint."""
        return () if self.reading is None else self.reading.names

    @property
    def reader(self) -> Reader | None:
        """The parser of captures, made on first use; ``None`` if the constraint has no reading.

        Raises ConstraintError if captures are not defined, BudgetExceeded.
        """
        if self._capture_reader is None and self.reading is not None:
            self._capture_reader = Reader(self.reading, self.budget)
        return self._capture_reader

    @checked_but("text")
    def captures(self, text: str | bytes, *, prefix: bool = False) -> Captures:
        """The captures of the constraint's named groups and rules in ``text``: for each name, in the order of their
        starts.

        If the text is ambiguous, the preferred parse is that of Perl and Python: earlier alternatives before later
        ones, greedy repetitions as long, lazy ones as short as possible, with decisions on the left first. ``prefix``:
        ``text`` may be a prefix of a text of the constraint. Then the preferred parse is the first of all that remain,
        captures may be open (``end`` is ``None``), and later text may change them.

        Linear in the text if it has few parses. Raises ConstraintError for other texts, and if captures are not defined
        (patterns with look-around, left-recursive rules); BudgetExceeded.
        """
        explained = self.explain(text, prefix=prefix)
        if not explained:
            raise ConstraintError(f"captures: {explained}")
        return self.captured([explained.text], whole=None if prefix else True)

    def captured(self, parts: Sequence[Part], *, whole: bool | None) -> Captures:
        """``captures`` for input that is given in parts: bytes, and tokens without bytes.

        ``whole``: the input is a complete text (True), a prefix of one (False), or either (None).
        """
        reader = self.reader
        if reader is None or not reader.names:
            return {}
        found = reader.captures(parts, whole=whole)
        if found is None:
            raise ConstraintError("captures: this is not a text of the constraint, nor the beginning of one")
        return found
