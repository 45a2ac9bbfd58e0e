"""A minimal set of keywords that together leave a schema without values.

The set is found by delta debugging (Zeller and Hildebrandt, 2002), top-down: a keyword, a branch or a member of a table
is removed, and stays removed if the schema is still empty. In the end no remaining keyword can be removed, so the
remaining keywords are a minimal contradictory set; there may be others. Branches of ``anyOf`` and ``oneOf`` are
replaced by ``true``, which satisfies them, so relevant ones are kept. Parts under ``not`` and ``if`` are not changed.

Cost: one compilation for each keyword that is tried, up to a total number of parts; beyond it, no result is reported.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

from tokenfst.automata.json_schema.documents.keywords import KEYWORDS
from tokenfst.automata.json_schema.documents.schema_texts import escape
from tokenfst.automata.json_schema.documents.source import LISTS, ONE, TABLES
from tokenfst.errors import EmptyLanguageError

_MOST_PARTS = 500_000
"""Maximum total number of parts of the compiled schemas: about 3 µs each."""
_PARTS = 100
"""The overhead of a compilation, in parts."""
_WHOLE = {"not", "if"}
_CONNECTING = ("type", "required")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class Emptiness(Enum):
    """Why a schema has no value."""

    NONE = "it has values, or they are not known"
    LOCAL = "some place of a value allows nothing"
    ENDLESS = "each value would have to contain another one"


class _TooLong(Exception):
    pass


def contradiction(schema: Any, parts: int, emptiness: Callable[[Any], Emptiness]) -> EmptyLanguageError:
    """The EmptyLanguageError for a schema without values, for the caller to raise.

    If they are found quickly, it has the JSON pointers of keywords that leave no value: first those that contradict
    each other or whose recursion has no end, then those that only require a type or that a member is present.

    ``parts``: the number of values in the schema's text. ``emptiness`` compiles a schema and says why it is empty; it
    returns NONE if the compilation fails.
    """
    pointers, why = _found(schema, parts, emptiness)

    def without(*names: str) -> list[str]:
        return [each for each in pointers if each.rpartition("/")[2] not in names]

    kept = (without("type", "required"), without("type"), list(pointers))
    main = next((each for each in kept if len(each) > 1), list(pointers))
    rest = [each for each in pointers if each not in main]
    given = f", given {_listed(rest)}" if rest else ""
    if not main:
        reason = "its keywords contradict each other"
    elif why is Emptiness.ENDLESS:
        reason = (
            "each value would have to contain another one, without end; allow null there, or leave a member out of "
            f"'required': {_listed(main)}{given}"
        )
    elif len(main) == 1:
        reason = f"{main[0]} alone allows none"
    else:
        reason = f"{_listed(main)} contradict each other{given}"
    return EmptyLanguageError(f"no JSON value satisfies the schema: {reason}", (*main, *rest))


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _found(
    schema: Any, parts: int, emptiness: Callable[[Any], Emptiness]
) -> tuple[tuple[str, ...], Emptiness]:
    """The pointers, and why these keywords alone leave no value; no pointers if they are not found quickly."""
    cost = _PARTS + parts
    left = _MOST_PARTS
    if cost > left:
        return (), Emptiness.LOCAL
    try:
        document = copy.deepcopy(schema)
    except RecursionError:
        return (), Emptiness.LOCAL

    def empty() -> bool:
        nonlocal left
        left -= cost
        if left < 0:
            raise _TooLong
        return emptiness(document) is not Emptiness.NONE

    try:
        _shrink(document, empty)
    except _TooLong:
        return (), Emptiness.LOCAL
    why = emptiness(document)
    found = list(_left(document, "#"))
    speaking = [
        pointer for pointer in found if pointer.rpartition("/")[2] not in (*_CONNECTING, *_REFERENCES)
    ]
    if not speaking:
        return tuple(found), why
    return tuple(pointer for pointer in found if pointer.rpartition("/")[2] not in _REFERENCES), why


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
