"""Capture events of a text that arrives incrementally: saved positions that all parses share are final.

Cost: that of ``Run`` for each byte; if there are several threads, their saved positions are compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from tokenfst.automata.captures.reader import Reader
from tokenfst.automata.captures.run import Saved, shared
from tokenfst.automata.captures.trees import Temperature
from tokenfst.automata.events.event import Event
from tokenfst.common.plurals import counted
from tokenfst.errors import ConstraintError


class CaptureEvents:
    """The events of one text. Raises ConstraintError where it leaves the constraint, BudgetExceeded."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self._run = reader, reader.run()
        self._data = bytearray()
        self._told = 0
        self._known: Saved = None
        """Saved positions that all ways had when there was one, and how many they are."""
        self._known_number = 0
        self._open: dict[str | int, list[int]] = {}

    def feed(self, data: bytes) -> list[Event]:
        """The events that the next part of the text determines."""
        self._run.feed(data)
        self._data += data
        ways = self._run.all_saved()
        if not ways:
            raise ConstraintError(
                f"the text leaves the constraint within its first {counted(len(self._data), 'byte')}"
            )
        return self._tell(ways)

    def close(self) -> list[Event]:
        """The events that the end of the text determines."""
        if self._run.ended == ():
            raise ConstraintError("the text ends before it is one of the constraint")
        return self._tell([self._run.ended])  # type: ignore[list-item]

    def _tell(self, ways: list[Saved]) -> list[Event]:
        """The events that all threads agree on and that were not reported yet."""
        saved = shared(ways, self._known)
        if saved is None:  # the way that had them is gone, and those that are left made their own
            self._known, self._known_number = None, 0
            saved = shared(ways) or []
        fresh = saved[self._told - self._known_number :]
        if len(ways) == 1:
            self._known, self._known_number = ways[0], self._known_number + len(saved)
        self._told += len(fresh)
        return [event for save in fresh for event in self._events(*save)]

    def _events(self, name: str | int | Temperature, begins: bool, place: int) -> Iterator[Event]:
        """The event of a saved position."""
        if isinstance(name, Temperature):
            return
        if begins:
            self._open.setdefault(name, []).append(place)
            if isinstance(name, str):
                yield Event("capture begun", (name,), place)
            return
        for capture in self._reader.closed(name, self._open[name].pop(), place, self._data):
            if capture.name != name:  # of a leaf that is read once more, now that it is whole
                yield Event("capture begun", (capture.name,), capture.begin)
            yield Event("capture ended", (capture.name,), capture)
