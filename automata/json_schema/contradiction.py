"""A minimal set of keywords that together leave a schema without values.

It is found by delta debugging (Zeller and Hildebrandt, 2002), top-down: a keyword, a branch or a member of a table is
removed, and if the schema is still empty it stays removed. No remaining keyword can be removed, so they are a minimal
contradictory set; there may be others. Branches of ``anyOf`` and ``oneOf`` become ``true``, which satisfies them, so
relevant ones are kept. Parts under ``not`` and ``if`` are not changed.

Cost: one compilation for each keyword that is tried, up to a total number of parts; beyond it, no result is reported.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tokenfst.automata.json_schema.documents.keywords import KEYWORDS
from tokenfst.automata.json_schema.documents.source import LISTS, ONE, TABLES, escape

_MOST_PARTS = 500_000
"""Maximum total number of parts of the compiled schemas: about 3 µs each."""
_PARTS = 100
"""The overhead of a compilation, in parts."""
_WHOLE = {"not", "if"}
_CONNECTING = ("type", "required")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class _TooLong(Exception):
    pass


def contradiction(schema: Any, parts: int, is_empty: Callable[[Any], bool]) -> tuple[str, ...]:
    """JSON pointers of keywords of ``schema`` that leave no value; empty if they are not found quickly.

    ``parts``: the number of values in the schema's text. ``is_empty`` compiles a schema; it returns False if that
    fails.
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
    """Remove from the document, in place, everything that is not needed."""
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
    """The sub-schemas of a schema that may be needed."""
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
    """Replace a sub-schema by ``true`` if the schema is still empty then. Returns whether it was replaced."""
    value, holder[key] = holder[key], True
    if empty():
        return True
    holder[key] = value
    return False


def _left(schema: Any, pointer: str) -> Iterator[str]:
    """The pointers of the remaining keywords that contain no others, and of ``false``."""
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
