"""What is told of a text that is still being written."""

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
"""``event(Event, (kind, path, value))`` makes an event in half the time of ``Event(kind, path, value)``."""


class Event(NamedTuple):
    """One thing that is decided: no rest of the text can change it. ``path``: where in the document, the keys and
    indices from the outside in; of a capture, its name; of a call and its arguments, first the call's number.
    ``value``, by ``kind``:

    - ``"start"``: ``"object"``, ``"array"``, ``"string"``, ``"number"`` or ``"constant"`` (true, false, null)
    - ``"key"``: a key of the object at ``path``, whole
    - ``"piece"``: what a string goes on with, or the next characters of a number
    - ``"end"``: the value of a string, number or constant; ``None`` for objects and arrays
    - ``"capture begun"``: at which byte
    - ``"capture ended"``: the ``Capture``
    - ``"content"``, ``"reasoning"``: what the text beside calls goes on with
    - ``"tool call begun"``: the tool's name
    - ``"tool call ended"``: the ``ToolCall``
    """

    kind: Kind
    path: tuple[Any, ...]
    value: Any
