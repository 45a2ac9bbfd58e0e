"""``constraint.stream()``: a text that arrives in parts, with the events that it determines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Self

from tokenfst.automata.captures.captured import Captured
from tokenfst.automata.captures.reader import Reader
from tokenfst.automata.events.capture_events import CaptureEvents
from tokenfst.automata.events.event import Event
from tokenfst.automata.events.json_events import JsonEvents
from tokenfst.common.arguments import checked, refuse
from tokenfst.errors import ConstraintError


class Stream:
    """A text in parts: ``feed`` returns the events that a part determines, ``close`` those that the end determines.

    ``text``: the bytes so far. Parts may be cut anywhere, also inside a character. Not thread-safe.
    """

    def __init__(self, constraint: Streamed, *, json: bool = False, parts: Iterable[bytes] = ()) -> None:
        self._constraint, self._is_json = constraint, json
        self._parts = [*parts]
        self._begin()
        if self._parts:
            self._read(self.text)

    @property
    def text(self) -> bytes:
        """The bytes so far."""
        return b"".join(self._parts)

    def feed(self, data: str | bytes) -> list[Event]:
        """The events that the next part of the text determines.

        Raises ConstraintError for a text that is not a prefix of a text of the constraint. JSON documents, captures and
        tool calls are checked at once; everything else is checked by ``close``.
        """
        if not isinstance(data, bytes):
            if not isinstance(data, str):
                refuse("feed", "data", data, "str or bytes")
            data = utf8(data)
        self._parts.append(data)
        return self._read(data)

    @checked
    def rollback(self, parts: int = 1) -> None:
        """Undo the last ``parts`` parts, with their events and errors. The remaining text is parsed again."""
        if not 0 <= parts <= len(self._parts):
            refuse(
                "rollback", "parts", parts, f"a number of parts that were fed, from 0 to {len(self._parts)}"
            )
        del self._parts[len(self._parts) - parts :]
        self._begin()
        if self._parts:
            self._read(self.text)

    def fork(self) -> Self:
        """An independent copy of this stream. The text is parsed again."""
        return type(self)(self._constraint, json=self._is_json, parts=self._parts)

    def close(self) -> list[Event]:
        """The events that the end of the text determines. Raises ConstraintError if the text does not satisfy the
        constraint.
        """
        explained = self._constraint.explain(self.text)
        if not explained:
            raise ConstraintError(f"stream: {explained}")
        found = self._json.close() if self._json is not None else []
        return found if self._captures is None else found + self._captures.close()

    def _begin(self) -> None:
        """Return to the state before any text was read."""
        self._json = JsonEvents() if self._is_json else None
        reading = self._constraint.reading
        reads = reading is not None and (reading.names or reading.refusal)
        self._captures = (
            CaptureEvents(Reader(reading, self._constraint.budget)) if reading and reads else None
        )

    def _read(self, data: bytes) -> list[Event]:
        """Reads on."""
        found = self._json.feed(data) if self._json is not None else []
        return found if self._captures is None else found + self._captures.feed(data)


def utf8(part: str) -> bytes:
    """A part of a text as bytes. Raises ConstraintError for a lone surrogate, which is not valid text."""
    try:
        return part.encode()
    except UnicodeEncodeError as error:
        raise ConstraintError(f"character {error.start} of the part is a lone surrogate") from None


class Streamed(Captured):
    """A constraint whose texts can be parsed incrementally."""

    __slots__ = ()

    speaks_json: ClassVar[bool] = False
    """Whether the texts are known to be JSON documents."""

    @checked
    def stream(self, *, json: bool | None = None) -> Stream:
        """A text of this constraint that arrives in parts: ``feed(part)`` returns the events that are then determined.

        For JSON these are the starts and ends of values, keys, and pieces of strings; for a constraint with captures
        (``captures``), the starts and ends that all remaining parses share. ``json``: whether texts are JSON documents;
        by default, whether a JSON Schema made the constraint. Raises ConstraintError, also if captures are not defined.
        """
        return Stream(self, json=self.speaks_json if json is None else json)
