"""Validation of the form of every keyword against its draft's meta-schema, also in unused sub-schemas.

All positions of sub-schemas are traversed once, before anything is translated; shared objects are visited once. The
native core handles documents made by ``json.loads`` with common forms (``PlainForms``); the rest is traversed here.
Positions are computed only for errors. Spellings that are accepted in every draft (``keywords``) are not rejected, and
keywords that a draft does not know are annotations, which are not checked.

Cost: linear, about 0.2 µs for each keyword; a tenth of that in the native core.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tokenfst._native import PlainForms
from tokenfst.automata.json_schema.documents.keywords import KEYWORDS, wrong_form
from tokenfst.automata.json_schema.documents.schema_texts import MAPPINGS, escape
from tokenfst.automata.json_schema.documents.source import LISTS, ONE, TABLES, draft_of
from tokenfst.automata.json_schema.sets.work import Work

_LAST = 9999
_EACH = 256
"""The number of objects between two checks of the clock."""
_ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")


def _is_string(value: Any, draft: int) -> bool:
    return isinstance(value, str)


def _is_anchor(value: Any, draft: int) -> bool:
    return isinstance(value, str) and _ANCHOR.fullmatch(value) is not None


def _is_boolean(value: Any, draft: int) -> bool:
    return isinstance(value, bool)


def _is_list(value: Any, draft: int) -> bool:
    return isinstance(value, list)


def _is_vocabulary(value: Any, draft: int) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, bool) for each in value.values())


_SCHEMA, _TABLE = KEYWORDS["additionalProperties"][2], KEYWORDS["properties"][2]
_STRING = (_is_string, "a string")
_NAME = (_is_anchor, "a name of ASCII letters, digits and _-., which begins with a letter or _")
_BOOLEAN = (_is_boolean, "a boolean")
ANNOTATIONS: dict[str, tuple[int, int, tuple[Callable[[Any, int], bool], str]]] = {
    **dict.fromkeys(("title", "description", "$schema"), (4, _LAST, _STRING)),
    "id": (4, 4, _STRING),
    "$id": (6, _LAST, _STRING),
    **dict.fromkeys(("$comment", "contentMediaType", "contentEncoding"), (7, _LAST, _STRING)),
    **dict.fromkeys(("readOnly", "writeOnly"), (7, _LAST, _BOOLEAN)),
    "$anchor": (2019, _LAST, _NAME),
    "$dynamicAnchor": (2020, _LAST, _NAME),
    "$recursiveAnchor": (2019, 2019, _BOOLEAN),
    "deprecated": (2019, _LAST, _BOOLEAN),
    "examples": (6, _LAST, (_is_list, "an array")),
    "$vocabulary": (2019, _LAST, (_is_vocabulary, "an object of booleans")),
    "definitions": (4, _LAST, _TABLE),
    "$defs": (2019, _LAST, _TABLE),
    "contentSchema": (2019, _LAST, _SCHEMA),
}
"""Like ``KEYWORDS``, for keywords that constrain nothing."""
_PLAIN = {
    name: kind
    for name, (_, _, (_, form)) in (KEYWORDS | ANNOTATIONS).items()
    for kind, said in ((str, "a string"), (bool, "a boolean"))
    if form == said
}
"""For each keyword that accepts every value of one Python class, that class."""
_INNER = frozenset((*ONE, *LISTS, *TABLES))
_NATIVE = {
    name: number
    for number, names in enumerate(
        (
            *(
                ["_is_anything"],
                ["_is_string"],
                ["_is_boolean"],
                ["_is_schema"],
                ["_is_table"],
                ["_is_schemas"],
            ),
            *(["_is_items"], ["_is_types"], ["_is_count"], ["_is_names"], ["_is_enum", "_is_list"]),
            *(["_is_number", "_is_bound"], ["_is_positive"]),
        )
    )
    for name in names
}
"""For each check, by its function's name, the number of the native core's form (``PlainForms``), which accepts fewer
values.
"""
_FORMS = {
    draft: {
        name: (*check, _PLAIN.get(name), name in _INNER)
        for name, (first, last, check) in (KEYWORDS | ANNOTATIONS).items()
        if first <= draft <= last
    }
    for draft in (4, 6, 7, 2019, 2020)
}
"""For each draft and keyword: the check, the text that describes its form, the class in ``_PLAIN``, and whether its
value contains schemas.
"""
_NUMBERS = {
    draft: {name: _NATIVE.get(is_form.__name__, -1) for name, (is_form, *_) in forms.items()}
    for draft, forms in _FORMS.items()
}
"""For each draft and keyword, the number of the native core's form; -1 if it has none."""


class Forms:
    """Validates the documents of one schema, and remembers which objects it has seen."""

    def __init__(self, work: Work) -> None:
        self._seen: set[int] = set()
        self._plain = PlainForms()
        self._work = work

    def check(self, document: Any, draft: int, where: str, annotations: bool) -> None:
        """Raise SchemaError, with its position, for a keyword whose value has the wrong form.

        ``where``: the position of ``document``. ``annotations``: whether keywords that do not constrain values are
        checked too.
        """
        if self._plain.hold(document, _NUMBERS[draft]):
            return
        waiting = [(document, draft)]
        seen = self._seen
        while waiting:
            schema, draft = waiting.pop()
            if not isinstance(schema, MAPPINGS) or id(schema) in seen:
                continue
            seen.add(id(schema))
            if len(seen) % _EACH == 0:
                self._work.look()
            if "$schema" in schema and schema is not document and ("$id" in schema or "id" in schema):
                draft = draft_of(schema, draft) or draft
            forms = _FORMS[draft]
            for name, value in schema.items():
                found = forms.get(name)
                if found is None:
                    continue
                is_form, form, plain, inner = found
                if value.__class__ is plain:
                    continue
                if not is_form(value, draft):
                    if not annotations and name not in KEYWORDS:
                        continue
                    pointer = f"{_address(document, schema)}/{escape(name)}"
                    raise wrong_form(where + pointer, form, value)
                if inner:
                    waiting += [(each, draft) for each in _schemas(name, value)]


def _schemas(name: str, value: Any) -> Iterable[Any]:
    """The values under a keyword that can be schemas."""
    if isinstance(value, list):
        return value
    return value.values() if name in TABLES else (value,)


def _address(document: Any, schema: Any) -> str:
    """The JSON pointer of an object in a document, from there."""
    waiting = [(document, "")]
    seen: set[int] = set()
    while waiting:
        value, pointer = waiting.pop()
        if value is schema:
            return pointer
        if id(value) in seen:
            continue
        if isinstance(value, MAPPINGS):
            seen.add(id(value))
            waiting += [(each, f"{pointer}/{escape(name)}") for name, each in value.items()]
        elif isinstance(value, list):
            seen.add(id(value))
            waiting += [(each, f"{pointer}/{k}") for k, each in enumerate(value)]
    return ""
