"""``Event``: a fact about a text that is still being written."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

Kind = Literal[
    "start",
    "key",
    "piece",
    "end",
    "capture begun",
    "capture ended",
    "content",
    "reasoning",
    "tool call begun",
    "tool call ended",
]


event = tuple.__new__
"""``event(Event, (kind, path, value))`` is twice as fast as ``Event(kind, path, value)``."""


class Event(NamedTuple):
    """A fact that no continuation of the text can change.

    ``path``: the position in the document, as keys and indices from the outside in; for a capture, its name; for a call
    and its arguments, first the call's number. ``value`` depends on ``kind``:

    - ``"start"``: ``"object"``, ``"array"``, ``"string"``, ``"number"`` or ``"constant"`` (true, false, null)
    - ``"key"``: a complete key of the object at ``path``
    - ``"piece"``: the next piece of a string, or the next characters of a number
    - ``"end"``: the value of a string, number or constant; ``None`` for objects and arrays
    - ``"capture begun"``: the byte offset
    - ``"capture ended"``: the ``Capture``
    - ``"content"``, ``"reasoning"``: the next piece of the text outside calls
    - ``"tool call begun"``: the tool's name
    - ``"tool call ended"``: the ``ToolCall``
    """

    kind: Kind
    path: tuple[Any, ...]
    value: Any
