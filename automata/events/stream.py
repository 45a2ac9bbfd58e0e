"""A text that arrives part by part, and what it decides: ``constraint.stream()``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Self

from tokenfst.arguments import checked, refuse
from tokenfst.automata.captures.captured import Captured
from tokenfst.automata.captures.reader import Reader
from tokenfst.automata.events.capture_events import CaptureEvents
from tokenfst.automata.events.event import Event
from tokenfst.automata.events.json_events import JsonEvents
from tokenfst.errors import ConstraintError


class Stream:
    """One text, part by part: ``feed`` gives the events that a part decides, ``close`` those that the end decides.

    ``text``: the bytes so far. Parts may be cut anywhere, also inside of a character. Not for several threads at once.
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
        """What the next part of the text decides. Raises ConstraintError where it is no beginning of a text: at once
        where it is no JSON, where captures are followed and where tools are called, else at ``close``."""
        if not isinstance(data, bytes):
            if not isinstance(data, str):
                refuse("feed", "data", data, "str or bytes")
            data = utf8(data)
        self._parts.append(data)
        return self._read(data)

    @checked
    def rollback(self, parts: int = 1) -> None:
        """Take back the last parts that were fed, with all that they decided; what was raised for one of them, too.
        What is left is read once more."""
        if not 0 <= parts <= len(self._parts):
            refuse(
                "rollback", "parts", parts, f"a number of parts that were fed, from 0 to {len(self._parts)}"
            )
        del self._parts[len(self._parts) - parts :]
        self._begin()
        if self._parts:
            self._read(self.text)

    def fork(self) -> Self:
        """Another stream that stands where this one does; neither sees what is fed to the other. The text is read once
        more."""
        return type(self)(self._constraint, json=self._is_json, parts=self._parts)

    def close(self) -> list[Event]:
        """What the end of the text decides. Raises ConstraintError if the text is none of the constraint."""
        explained = self._constraint.explain(self.text)
        if not explained:
            raise ConstraintError(f"stream: {explained}")
        found = self._json.close() if self._json is not None else []
        return found if self._captures is None else found + self._captures.close()

    def _begin(self) -> None:
        """Stands where no text was read."""
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
    """A part of a text as bytes. ConstraintError for half of a surrogate pair, which no text has."""
    try:
        return part.encode()
    except UnicodeEncodeError as error:
        raise ConstraintError(f"character {error.start} of the part is half of a surrogate pair") from None


class Streamed(Captured):
    """A constraint whose texts can be followed as they arrive."""

    __slots__ = ()

    speaks_json: ClassVar[bool] = False
    """Whether the texts are known to be JSON documents."""

    @checked
    def stream(self, *, json: bool | None = None) -> Stream:
        """A text of this constraint that arrives part by part: ``feed(part)`` gives the events that are decided then.

        Of JSON they are the starts and ends of values, keys, and the pieces of strings; of a constraint that captures
        (``captures``) what has begun and ended in all ways that are left to read the text. ``json``: whether texts are
        JSON documents; without, they are if a JSON Schema made the constraint. Raises ConstraintError, also where
        captures cannot be told.
        """
        return Stream(self, json=self.speaks_json if json is None else json)
