"""Which keywords of a schema leave no value, as few of them as can be found.

The idea is delta debugging (Zeller and Hildebrandt, 2002), from the top down: a keyword, a branch or a member of a
table is left out, and if there still is no value it stays out. What remains in the end cannot be left out one by one,
so it is a minimal set that contradicts itself; there may be others. Branches of ``anyOf`` and ``oneOf`` become
``true``, which satisfies them, so those that matter stay. What stands under ``not`` and ``if`` is left as it is.

Cost: one compilation for each keyword that is looked at, as many as add up to so many parts; beyond, nothing is said.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tokenfst.automata.json_schema.reading.keywords import KEYWORDS
from tokenfst.automata.json_schema.reading.source import LISTS, ONE, TABLES, escape

_MOST_PARTS = 500_000
"""Parts of all schemas that are compiled: about 3 µs each."""
_PARTS = 100
"""What a compilation takes beside those of the schema."""
_WHOLE = {"not", "if"}
_CONNECTING = ("type", "required")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class _TooLong(Exception):
    pass


def contradiction(schema: Any, parts: int, is_empty: Callable[[Any], bool]) -> tuple[str, ...]:
    """JSON pointers of keywords of ``schema`` that leave no value; none if they are not found soon.

    ``parts``: how many values the schema has, as text. ``is_empty`` compiles a schema; it says false where that cannot
    be done.
    """
    cost = _PARTS + parts
    left = _MOST_PARTS
    if cost > left:
        return ()
    try:
        document = copy.deepcopy(schema)
    except RecursionError:
        return ()

    def empty() -> bool:
        nonlocal left
        left -= cost
        if left < 0:
            raise _TooLong
        return is_empty(document)

    try:
        _shrink(document, empty)
    except _TooLong:
        return ()
    found = list(_left(document, "#"))
    speaking = [
        pointer for pointer in found if pointer.rpartition("/")[2] not in (*_CONNECTING, *_REFERENCES)
    ]
    if not speaking:
        return tuple(found)
    return tuple(pointer for pointer in found if pointer.rpartition("/")[2] not in _REFERENCES)


def _shrink(document: Any, empty: Callable[[], bool]) -> None:
    """Leave out of the document, in place, all that can be."""
    level = [document]
    while level:
        below: list[Any] = []
        for schema in level:
            if isinstance(schema, dict):
                for name in [name for name in schema if name in KEYWORDS]:
                    _without(schema, name, empty)
                below += _parts(schema, empty)
        level = below


def _parts(schema: dict[str, Any], empty: Callable[[], bool]) -> list[Any]:
    """The sub-schemas of a schema that matter."""
    found: list[Any] = []
    for name, value in list(schema.items()):
        if name in _WHOLE:
            continue
        if name == "required" and isinstance(value, list):
            for each in list(value):
                _without_item(value, each, empty)
        elif name in TABLES and isinstance(value, dict):
            for member in list(value):
                if _as_true(value, member, empty):
                    _without(value, member, empty)
            found += value.values()
        elif name in LISTS and isinstance(value, list):
            for place in range(len(value)):
                _as_true(value, place, empty)
            found += value
        elif name in ONE:
            found.append(value)
    return found


def _without(table: dict[str, Any], name: str, empty: Callable[[], bool]) -> None:
    value = table.pop(name)
    kept = True
    try:
        kept = not empty()
    finally:
        if kept:
            table[name] = value


def _without_item(values: list[Any], value: Any, empty: Callable[[], bool]) -> None:
    place = values.index(value)
    del values[place]
    if not empty():
        values.insert(place, value)


def _as_true(holder: Any, key: Any, empty: Callable[[], bool]) -> bool:
    """Replace a sub-schema by ``true`` if nothing is gained by that. Whether it was done."""
    value, holder[key] = holder[key], True
    if empty():
        return True
    holder[key] = value
    return False


def _left(schema: Any, pointer: str) -> Iterator[str]:
    """The pointers of the keywords that are left and hold no others, and of ``false``."""
    if schema is False:
        yield pointer
    if not isinstance(schema, Mapping):
        return
    for name, value in schema.items():
        here = f"{pointer}/{escape(name)}"
        if name in TABLES and isinstance(value, Mapping):
            for member, each in value.items():
                yield from _left(each, f"{here}/{escape(member)}")
        elif name in LISTS and isinstance(value, list):
            for place, each in enumerate(value):
                yield from _left(each, f"{here}/{place}")
        elif name in ONE and name not in _WHOLE:
            yield from _left(value, here)
        elif name in KEYWORDS:
            yield here
