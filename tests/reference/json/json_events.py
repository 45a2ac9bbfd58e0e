"""The events of a JSON document from the value that ``json.loads`` makes of all of it: slow, and no text is looked at.

Numbers have no pieces here, since a value does not know its digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def events(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    """Start, key, piece and end, in the order of the text."""
    if isinstance(value, dict):
        yield "start", path, "object"
        for key, item in value.items():
            yield "key", path, key
            yield from events(item, (*path, key))
        yield "end", path, None
    elif isinstance(value, list):
        yield "start", path, "array"
        for index, item in enumerate(value):
            yield from events(item, (*path, index))
        yield "end", path, None
    elif isinstance(value, str):
        yield "start", path, "string"
        if value:
            yield "piece", path, value
        yield "end", path, value
    else:
        kind = "constant" if value is None or isinstance(value, bool) else "number"
        yield "start", path, kind
        yield "end", path, value
