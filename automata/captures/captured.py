"""What constraints know of captures: the part of ``Constraint`` that asks ``Reader``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tokenfst.arguments import checked_but
from tokenfst.automata.captures.reader import Part, Reader
from tokenfst.automata.captures.trees import Reading, is_heated
from tokenfst.automata.captures.values import Captures
from tokenfst.budget import Budget
from tokenfst.errors import ConstraintError


class Captured(ABC):
    """A set of texts that may bring a reading."""

    __slots__ = ("_capture_reader", "_reading")

    def __init__(self, reading: Reading | None) -> None:
        self._reading = reading
        self._capture_reader: Reader | None = None

    @property
    @abstractmethod
    def budget(self) -> Budget:
        """The bounds of every question."""

    @abstractmethod
    def explain(self, text: str | bytes, *, prefix: bool = False) -> Any:
        """Whether a text is in the constraint, or the beginning of one."""

    @property
    def reading(self) -> Reading | None:
        """How the named groups and rules of the constraint read its texts; ``None`` if it has none."""
        return self._reading

    @property
    def is_heated(self) -> bool:
        """Whether a rule says a temperature (``matcher.temperature``)."""
        reading = self.reading
        return reading is not None and (reading.heated or is_heated(reading.start, reading.rules))

    @property
    def capture_names(self) -> tuple[str, ...]:
        """The names of what is captured in texts, in the order of the constraint."""
        return () if self.reading is None else self.reading.names

    @property
    def reader(self) -> Reader | None:
        """What reads the texts; ``None`` if the constraint has no reading. Raises ConstraintError, BudgetExceeded."""
        if self._capture_reader is None and self.reading is not None:
            self._capture_reader = Reader(self.reading, self.budget)
        return self._capture_reader

    @checked_but("text")
    def captures(self, text: str | bytes, *, prefix: bool = False) -> Captures:
        """What the named groups and rules of the constraint have read in ``text``: by name, all captures of each, in
        the order in which they begin.

        Of several ways to read the text it is the first, as in Perl and Python: earlier alternatives before later ones,
        greedy repetitions as long, lazy ones as short as possible, decisions on the left first. ``prefix``: ``text``
        need only be the beginning of one; of a beginning, the reading is the first of all that are left, captures may
        still be open (``end`` is ``None``), and what comes later may change it.

        Linear in the text where it can be read in few ways. Raises ConstraintError for other texts, and where captures
        cannot be told (patterns that look around, rules that begin with themselves); BudgetExceeded.
        """
        explained = self.explain(text, prefix=prefix)
        if not explained:
            raise ConstraintError(f"captures: {explained}")
        return self.captured([explained.text], whole=None if prefix else True)

    def captured(self, parts: Sequence[Part], *, whole: bool | None) -> Captures:
        """``captures`` of what is known to be a text (``whole``), the beginning of one (False), or either: bytes, and
        tokens that have none."""
        reader = self.reader
        if reader is None or not reader.names:
            return {}
        found = reader.captures(parts, whole=whole)
        if found is None:
            raise ConstraintError("captures: this is no text of the constraint, nor the beginning of one")
        return found
