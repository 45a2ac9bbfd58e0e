"""Keywords of a schema that constrain nothing because no draft, or not the schema's own, knows them.

A JSON Schema may have any member, so ``propertes`` is no error, and all values stay allowed. Each such keyword is a
finding. It is *likely* a mistake if its name is almost that of a keyword, if its value is a schema and the object
around it has no ``properties``, if another draft knows it, or if another notation has it. What people add on purpose is
no finding: ``x-...``, ``_...``, names with ``$``, ``:``, ``@`` or ``.`` in them, definitions that a reference leads to,
and annotations. Linear in the schema.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tokenfst.automata.json_schema.documents.forms import ANNOTATIONS
from tokenfst.automata.json_schema.documents.keywords import KEYWORDS
from tokenfst.automata.json_schema.documents.schema_texts import MAPPINGS, escape
from tokenfst.automata.json_schema.documents.source import DRAFTS, draft_of
from tokenfst.automata.json_schema.providers import places

_DRAFT_NAMES = {number: name for name, number in DRAFTS.items()}
_HARMLESS = frozenset(
    {
        *ANNOTATIONS, "default",
        # OpenAPI's and editors' annotations
        "example", "externalDocs", "xml", "discriminator", "markdownDescription", "enumDescriptions",
        "markdownEnumDescriptions", "enumNames", "errorMessage", "defaultSnippets", "deprecationMessage",
        "doNotSuggest", "suggestSortText", "propertyOrdering",
    }
)  # fmt: skip
_MARKS = frozenset("$:@.")
_SHORT = 5
"""Shorter names are not compared with keywords, because short words are too similar to each other."""
_NUMBERS = (int, float, Decimal)
_LISTED = "the values that are allowed stand in enum"
_ADVICE: dict[str, tuple[tuple[type, ...], str]] = {
    "nullable": (
        (bool,),
        'it is OpenAPI 3.0\'s: write "type": [..., "null"], or anyOf with {"type": "null"}',
    ),
    "optional": ((bool,), 'a property is optional unless "required" of the object names it'),
    "values": ((list,), _LISTED),
    "options": ((list,), _LISTED),
    "choices": ((list,), _LISTED),
    "regex": ((str,), "a pattern stands in pattern"),
    "length": (_NUMBERS, "lengths are bounded by minLength and maxLength"),
    "min": (_NUMBERS, "numbers are bounded by minimum, texts by minLength, arrays by minItems"),
    "max": (_NUMBERS, "numbers are bounded by maximum, texts by maxLength, arrays by maxItems"),
}
"""Keywords of other notations: the types of a value that such a keyword has there, and what JSON Schema has instead."""
_ALIKE = 0.85
"""The least similarity (``difflib``) of a name to a keyword at which the keyword is probably meant: ``minimun``.

The other conditions of ``_nearest`` exclude ``form`` and ``note``.
"""


@dataclass(frozen=True, slots=True)
class UnknownKeyword:
    """A keyword that constrains nothing: its JSON pointer, a message, and whether it is likely a mistake."""

    pointer: str
    message: str
    likely: bool

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}"


def unknown_keywords(schema: Any) -> list[UnknownKeyword]:
    """The keywords of a schema (a JSON value) that constrain nothing, outer ones first."""
    draft = draft_of(schema, 2020) or 2020
    known = list(places(schema))
    referred = {each.get("$ref") for _, each in known if isinstance(each.get("$ref"), str)}
    found = [
        UnknownKeyword(f"{pointer}/{escape(name)}", message, likely)
        for pointer, value in known
        for name, message, likely in _of_schema(value, draft)
    ]
    return [each for each in found if not any(_is_below(target, each.pointer) for target in referred)]


def _of_schema(schema: Any, draft: int) -> Iterator[tuple[str, str, bool]]:
    for name, value in schema.items():
        if name in KEYWORDS:
            first, last, _ = KEYWORDS[name]
            if draft < first or draft > last:
                since = _DRAFT_NAMES[first]
                yield (
                    name,
                    f"{name} is a keyword of {since}, and the schema is of {_DRAFT_NAMES[draft]}",
                    True,
                )
        elif name not in _HARMLESS and not name.startswith(("x-", "_")) and _MARKS.isdisjoint(name):
            instead = _instead(name, value, schema)
            said = f"{name} is no keyword and constrains nothing"
            yield name, f"{said}: {instead}" if instead else said, bool(instead)


def _instead(name: str, value: Any, schema: Any) -> str:
    """What is likely meant by a name that is no keyword; empty if that is not known."""
    types, advice = _ADVICE.get(name, ((), ""))
    if isinstance(value, types):
        return advice
    if near := _nearest(name):
        return f"did you mean {near}?"
    if schema.get("type") == "object" and "properties" not in schema and _is_schema(value):
        return "a property stands under properties"
    return ""


def _is_below(target: str, pointer: str) -> bool:
    """Whether a reference leads to a place or into it: definitions may stand anywhere."""
    return target == pointer or target.startswith(f"{pointer}/")


def _nearest(name: str) -> str | None:
    """The keyword whose name is almost ``name``, whatever the case and the separators are."""
    plain = {each.lower(): each for each in KEYWORDS}
    given = name.lower().replace("_", "").replace("-", "")
    for plural in (given, f"{given}s", given.removesuffix("s")):
        if plural in plain:
            return plain[plural]
    found = difflib.get_close_matches(given, plain, 1, _ALIKE) if len(given) >= _SHORT else []
    return plain[found[0]] if found and found[0][0] == given[0] else None


def _is_schema(value: Any) -> bool:
    return isinstance(value, MAPPINGS) and any(name in KEYWORDS for name in value)
