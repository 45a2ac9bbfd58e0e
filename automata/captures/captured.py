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
    """A set of texts that may have a capture reading."""

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
        """Whether a text is in the constraint, or a prefix of one."""

    @property
    def reading(self) -> Reading | None:
        """The parser of the constraint's named groups and rules; ``None`` if there are none."""
        return self._reading

    @property
    def has_temperature(self) -> bool:
        """Whether a rule sets a sampling temperature (``matcher.temperature``)."""
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
        """The reader of captures; ``None`` if the constraint has none. Raises ConstraintError, BudgetExceeded."""
        if self._capture_reader is None and self.reading is not None:
            self._capture_reader = Reader(self.reading, self.budget)
        return self._capture_reader

    @checked_but("text")
    def captures(self, text: str | bytes, *, prefix: bool = False) -> Captures:
        """The captures of the constraint's named groups and rules in ``text``: by name, in the order of their starts.

        If the text is ambiguous, the preferred parse is that of Perl and Python: earlier alternatives before later
        ones, greedy repetitions as long, lazy ones as short as possible, with decisions on the left first. ``prefix``:
        ``text`` may be a prefix of a text. Then the preferred parse is the first of all remaining ones, captures may be
        open (``end`` is ``None``), and later text may change it.

        Linear in the text if it has few parses. Raises ConstraintError for other texts, and if captures are not defined
        (patterns with look-around, left-recursive rules); BudgetExceeded.
        """
        explained = self.explain(text, prefix=prefix)
        if not explained:
            raise ConstraintError(f"captures: {explained}")
        return self.captured([explained.text], whole=None if prefix else True)

    def captured(self, parts: Sequence[Part], *, whole: bool | None) -> Captures:
        """``captures`` for input that is known to be a text (``whole``), a prefix of one (False), or either (None):
        bytes, and tokens without bytes.
        """
        reader = self.reader
        if reader is None or not reader.names:
            return {}
        found = reader.captures(parts, whole=whole)
        if found is None:
            raise ConstraintError("captures: this is not a text of the constraint, nor the beginning of one")
        return found
