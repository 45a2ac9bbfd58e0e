"""``stream_json``: JSON values that grow while their text arrives.

The events of a document are applied to Python lists and dictionaries as they arrive. A string exists from its beginning
and grows; a number or constant appears when it is complete; objects and arrays gain members.

Invariant: values only grow. So a name that occurs twice in one object is rejected, because the second value would
replace the first. Cost: linear in the text; growing strings are copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tokenfst.automata.events.event import Event
from tokenfst.automata.events.json_events import JsonEvents
from tokenfst.automata.events.stream import Streamed, utf8
from tokenfst.common.arguments import refuse
from tokenfst.errors import ConstraintError

_NOTHING = object()


class Partial:
    """A value that grows by events. ``value``: the value so far; ``has_value``: whether there is one."""

    def __init__(self) -> None:
        self.value: Any = _NOTHING
        self._above: list[Any] = []
        self._kind = ""

    @property
    def has_value(self) -> bool:
        """Whether there is a value yet."""
        return self.value is not _NOTHING

    def apply(self, events: Iterable[Event]) -> bool:
        """Apply events; returns whether the value changed. Raises ConstraintError for a name that occurs twice."""
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
                f"the name {path[-1]!r} occurs twice in an object, so its value would not grow"
            )
        else:
            around[path[-1]] = value


def stream_json(parts: Iterable[str | bytes], constraint: Streamed | None = None) -> Iterator[Any]:
    """The growing value of a JSON text that arrives in parts: one value for each part that changed it.

    The last value is the result of ``json.loads`` for the complete text. Strings grow piece by piece, objects and
    arrays member by member; numbers, true, false and null appear when they are complete. The same object is yielded
    each time: copy it (``copy.deepcopy``) to keep a snapshot. ``constraint``: the text must satisfy it. Raises
    ConstraintError for a text that does not satisfy it, or is not JSON, and for an object with a repeated name. Linear
    in the text.
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
