"""JSON values that grow while their text arrives: ``stream_json``.

The idea: the events of a document, put into Python's own lists and dictionaries as they come. A string is there from
its beginning and becomes longer; a number and a constant are there when they are whole; objects and arrays get
members.

Invariant: nothing that was there changes but by growing. So a name that stands twice in one object is refused: the
second value would have to replace the first. Cost: linear in the text; the strings that grow are copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tokenfst.arguments import refuse
from tokenfst.automata.events.event import Event
from tokenfst.automata.events.json_events import JsonEvents
from tokenfst.automata.events.stream import Streamed, utf8
from tokenfst.errors import ConstraintError

_NOTHING = object()


class Partial:
    """A value that grows by events. ``value``: what there is so far; ``has_value``: whether there is anything."""

    def __init__(self) -> None:
        self.value: Any = _NOTHING
        self._above: list[Any] = []
        self._kind = ""

    @property
    def has_value(self) -> bool:
        """Whether there is anything yet."""
        return self.value is not _NOTHING

    def apply(self, events: Iterable[Event]) -> bool:
        """Grow by events; whether anything did. ConstraintError for a name that stands twice."""
        grown = False
        for kind, path, value in events:
            if kind == "start":
                self._kind = value
                if value == "string":
                    self._put(path, "")
                elif value == "object" or value == "array":
                    made: Any = {} if value == "object" else []
                    self._put(path, made)
                    self._above.append(made)
                else:
                    continue
            elif kind == "piece" and self._kind == "string":
                if path:
                    self._above[-1][path[-1]] += value
                else:
                    self.value += value
            elif kind == "end" and len(path) < len(self._above):
                self._above.pop()
                continue
            elif kind == "end" and self._kind != "string":
                self._put(path, value)
            else:
                continue
            grown = True
        return grown

    def _put(self, path: tuple[Any, ...], value: Any) -> None:
        if not path:
            self.value = value
            return
        around = self._above[-1]
        if isinstance(around, list):
            around.append(value)
        elif path[-1] in around:
            raise ConstraintError(
                f"the name {path[-1]!r} stands twice in an object, so its value would not grow"
            )
        else:
            around[path[-1]] = value


def stream_json(parts: Iterable[str | bytes], constraint: Streamed | None = None) -> Iterator[Any]:
    """The values that a JSON text stands for while it arrives: one for each of the parts that made it grow; the last is
    what ``json.loads`` makes of all.

    Strings grow piece by piece, objects and arrays member by member; numbers, true, false and null come when they are
    whole. It is one value that grows: copy it (``copy.deepcopy``) to keep what it was. ``constraint``: the text must be
    one of it. Raises ConstraintError for a text that is none, or no JSON, and for an object with a name that stands
    twice. Linear in the text.
    """
    if isinstance(parts, str | bytes) or not isinstance(parts, Iterable):
        refuse("stream_json", "parts", parts, "parts of a text, as they come: an iterable of str or bytes")
    if constraint is not None and not isinstance(constraint, Streamed):
        refuse("stream_json", "constraint", constraint, "a Language or Grammar")
    return _stream(parts, constraint)


def _stream(parts: Iterable[str | bytes], constraint: Streamed | None) -> Iterator[Any]:
    document, partial = JsonEvents(), Partial()
    kept: list[bytes] = []
    for part in parts:
        if not isinstance(part, str | bytes):
            refuse("stream_json", "parts", part, "str or bytes")
        if constraint is not None:
            kept.append(utf8(part) if isinstance(part, str) else part)
        if partial.apply(document.feed(part)):
            yield partial.value
    if partial.apply(document.close()):
        yield partial.value
    if constraint is not None and not (explained := constraint.explain(b"".join(kept))):
        raise ConstraintError(f"stream_json: {explained}")
