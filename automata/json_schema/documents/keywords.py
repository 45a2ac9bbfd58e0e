"""The keywords of JSON Schema: their drafts, and the form of their values.

A keyword that a draft does not know is an annotation and ignored, as the specifications say. Spellings with only one
possible meaning are accepted in every draft: a boolean ``exclusiveMinimum``, an array of ``items`` with
``additionalItems``, ``dependencies``, an ``enum`` that lists a value twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from tokenfst.automata.images.lengths import MAX_LENGTH
from tokenfst.automata.json_schema.documents.schema_texts import MAPPINGS
from tokenfst.automata.json_schema.documents.source import SCALARS, Place
from tokenfst.automata.json_values.bounds import is_finite
from tokenfst.errors import SchemaError, UnsupportedSchemaError

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

_LAST = 9999


def _is_schema(value: Any, draft: int) -> bool:
    return isinstance(value, (dict, bool, Mapping))


def _is_number(value: Any, draft: int) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and is_finite(value)


def _is_positive(value: Any, draft: int) -> bool:
    return _is_number(value, draft) and value > 0


def _is_bound(value: Any, draft: int) -> bool:
    return _is_number(value, draft) or (isinstance(value, bool) and draft in (4, 2020))


def _is_count(value: Any, draft: int) -> bool:
    return (
        _is_number(value, draft)
        and value >= 0
        and (isinstance(value, int) or value >= COUNTLESS or value == int(value))
    )


COUNTLESS = MAX_LENGTH + 1
"""All counts from this number on are equivalent, because no counted repetition is that long."""


def bounds(place: Place, keywords: Mapping[str, Any], low: str, high: str) -> tuple[int, int | None]:
    """The values of two keywords that bound a count from below and above; 0 and ``None`` if they are missing.

    An upper bound of ``COUNTLESS`` or more is ``None``, because no text has that many parts. Raises
    UnsupportedSchemaError for a lower bound of ``COUNTLESS`` or more.
    """
    least, most = (min(keywords.get(name, 0), COUNTLESS) for name in (low, high))
    if least == COUNTLESS:
        raise UnsupportedSchemaError(place.where(low), f"nothing is counted beyond {MAX_LENGTH:,}")
    return int(least), int(most) if high in keywords and most < COUNTLESS else None


def _is_boolean(value: Any, draft: int) -> bool:
    return isinstance(value, bool)


def _is_string(value: Any, draft: int) -> bool:
    return isinstance(value, str)


def _is_schemas(value: Any, draft: int) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_schema(each, draft) for each in value)


def _is_items(value: Any, draft: int) -> bool:
    return _is_schema(value, draft) or (
        isinstance(value, list)
        and bool(value or draft >= 2020)
        and all(_is_schema(each, draft) for each in value)
    )


def _is_table(value: Any, draft: int) -> bool:
    if not isinstance(value, MAPPINGS):
        return False
    for name, each in value.items():
        if not isinstance(name, str) or not (each.__class__ is dict or _is_schema(each, draft)):
            return False
    return True


def _is_names(value: Any, draft: int) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(each, str) for each in value)
        and len(set(value)) == len(value)
        and (draft > 4 or bool(value))
    )


def _is_name_table(value: Any, draft: int) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and _is_names(each, draft) for name, each in value.items()
    )


def _is_dependencies(value: Any, draft: int) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and (_is_schema(each, draft) or _is_names(each, draft))
        for name, each in value.items()
    )


def _is_types(value: Any, draft: int) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, str) and each in TYPES for each in value)
        and len(set(value)) == len(value)
    )


def _is_enum(value: Any, draft: int) -> bool:
    return isinstance(value, list) and (draft > 4 or bool(value))


def _is_anything(value: Any, draft: int) -> bool:
    return True


_Check = Callable[[Any, int], bool]
_SCHEMA: tuple[_Check, str] = (_is_schema, "a schema: an object or a boolean")
_COUNT: tuple[_Check, str] = (_is_count, "an integer that is not negative")
_STRING: tuple[_Check, str] = (_is_string, "a string")
_NUMBER: tuple[_Check, str] = (_is_number, "a number")
_LIST: tuple[_Check, str] = (_is_schemas, "an array of schemas that is not empty")
_TABLE: tuple[_Check, str] = (_is_table, "an object of schemas")
_NAMES: tuple[_Check, str] = (_is_names, "an array of strings, each once; in draft-04, at least one")
_BOUND: tuple[_Check, str] = (_is_bound, "a number")

KEYWORDS: dict[str, tuple[int, int, tuple[_Check, str]]] = {
    "type": (4, _LAST, (_is_types, f"one of {', '.join(TYPES)}, or an array of them, each once")),
    "enum": (4, _LAST, (_is_enum, "an array; in draft-04, of at least one value")),
    "const": (6, _LAST, (_is_anything, "")),
    "minimum": (4, _LAST, _NUMBER),
    "maximum": (4, _LAST, _NUMBER),
    "exclusiveMinimum": (4, _LAST, _BOUND),
    "exclusiveMaximum": (4, _LAST, _BOUND),
    "multipleOf": (4, _LAST, (_is_positive, "a number greater than 0")),
    "minLength": (4, _LAST, _COUNT),
    "maxLength": (4, _LAST, _COUNT),
    "pattern": (4, _LAST, _STRING),
    "format": (4, _LAST, _STRING),
    "items": (4, _LAST, (_is_items, "a schema")),
    "prefixItems": (2020, _LAST, _LIST),
    "additionalItems": (4, _LAST, _SCHEMA),
    "contains": (6, _LAST, _SCHEMA),
    "minContains": (2019, _LAST, _COUNT),
    "maxContains": (2019, _LAST, _COUNT),
    "minItems": (4, _LAST, _COUNT),
    "maxItems": (4, _LAST, _COUNT),
    "uniqueItems": (4, _LAST, (_is_boolean, "a boolean")),
    "unevaluatedItems": (2019, _LAST, _SCHEMA),
    "properties": (4, _LAST, _TABLE),
    "patternProperties": (4, _LAST, _TABLE),
    "additionalProperties": (4, _LAST, _SCHEMA),
    "propertyNames": (6, _LAST, _SCHEMA),
    "required": (4, _LAST, _NAMES),
    "minProperties": (4, _LAST, _COUNT),
    "maxProperties": (4, _LAST, _COUNT),
    "dependencies": (4, _LAST, (_is_dependencies, "an object of schemas or arrays of strings, each once")),
    "dependentRequired": (2019, _LAST, (_is_name_table, "an object of arrays of strings, each once")),
    "dependentSchemas": (2019, _LAST, _TABLE),
    "unevaluatedProperties": (2019, _LAST, _SCHEMA),
    "allOf": (4, _LAST, _LIST),
    "anyOf": (4, _LAST, _LIST),
    "oneOf": (4, _LAST, _LIST),
    "not": (4, _LAST, _SCHEMA),
    "if": (7, _LAST, _SCHEMA),
    "then": (7, _LAST, _SCHEMA),
    "else": (7, _LAST, _SCHEMA),
    "$ref": (4, _LAST, _STRING),
    "$recursiveRef": (2019, 2019, _STRING),
    "$dynamicRef": (2020, _LAST, _STRING),
}
"""For every keyword that constrains values: the first and the last draft that knows it, and the form of its value."""


_APPLICATORS = {
    *(
        "items",
        "prefixItems",
        "additionalItems",
        "contains",
        "properties",
        "patternProperties",
        "dependentSchemas",
    ),
    *("additionalProperties", "propertyNames", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
}
_UNEVALUATED = {"unevaluatedItems", "unevaluatedProperties"}


def scalar_types(named: Any) -> str | tuple[str, ...] | None:
    """The value of a ``type`` keyword in a hashable form if it names only types without parts; otherwise ``None``."""
    if named.__class__ is str:
        return named if named in SCALARS else None
    if named.__class__ is list and all(each.__class__ is str and each in SCALARS for each in named):
        return tuple(named)
    return None


def vocabulary(keyword: str, draft: int) -> str:
    """The vocabulary that a keyword belongs to: the last part of the vocabulary's URI."""
    if keyword.startswith("$"):
        return "core"
    if keyword in _UNEVALUATED:
        return "unevaluated" if draft >= 2020 else "applicator"
    return "applicator" if keyword in _APPLICATORS else "format" if keyword == "format" else "validation"


def _listed(name: str, place: Place) -> bool:
    """Whether the vocabularies of a schema's dialect have a keyword."""
    vocabularies = place.resource.dialect.vocabularies
    if vocabularies is None:
        return True
    home = vocabulary(name, place.draft)
    return home == "core" or any(each == home or each.startswith(f"{home}-") for each in vocabularies)


def known(place: Place) -> dict[str, Any]:
    """The keywords of a schema that constrain values in its draft and dialect, in the schema's order, with their
    values. Before draft 2019-09, a ``$ref`` hides all others.

    Raises SchemaError for a value of the wrong form.
    """
    draft = place.draft
    if not isinstance(place.value, MAPPINGS):
        raise SchemaError(place.where(), "a schema is an object or a boolean")
    seen = place.resource.keywords.get(id(place.value))
    if seen is not None and seen[0] is place.value:
        return seen[1]
    alone = draft < 2019 and "$ref" in place.value
    names = ["$ref"] if alone else [name for name in place.value if name in KEYWORDS]
    found: dict[str, Any] = {}
    every = place.resource.dialect.vocabularies is None
    for name in names:
        first, last, (check, form) = KEYWORDS[name]
        if first <= draft <= last and (every or _listed(name, place)):
            value = place.value[name]
            if not check(value, draft):
                raise wrong_form(place.where(name), form, value)
            found[name] = value
    place.resource.keywords[id(place.value)] = place.value, found
    return found


def wrong_form(pointer: str, form: str, value: Any) -> SchemaError:
    """The error for a keyword's value that does not have its form."""
    return SchemaError(
        pointer, f"must be {form}{': write a list, not a tuple' if isinstance(value, tuple) else ''}"
    )
