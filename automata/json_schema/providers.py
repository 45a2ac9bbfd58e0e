"""Checks of schemas against the structured outputs of OpenAI, Anthropic and Gemini: findings with JSON pointers.

Each provider documents a subset of JSON Schema. The subsets are data, ``providers.json``, with the page and month of
their source; this module checks them. All positions of sub-schemas in a document are checked, including unused
definitions, because providers read the whole document.

Limitation: a schema without findings may still be rejected by a provider, for its size or for undocumented reasons.
Cost: linear in the schema.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args
from urllib.parse import unquote

from tokenfst.automata.json_schema.documents.keywords import KEYWORDS
from tokenfst.automata.json_schema.documents.schema_texts import MAPPINGS, escape
from tokenfst.automata.json_schema.documents.source import LISTS, ONE, TABLES
from tokenfst.automata.rules.graph import components
from tokenfst.errors import ConstraintError

Provider = Literal["openai", "anthropic", "gemini"]
PROVIDERS: tuple[str, ...] = get_args(Provider)
_FILE = importlib.resources.files("tokenfst.automata.json_schema").joinpath("providers.json")
_INNER = frozenset((*ONE, *LISTS, *TABLES))
_ENUM = {type(None): "null", bool: "boolean", str: "string", list: "array", dict: "object"}


@dataclass(frozen=True, slots=True)
class ProviderFinding:
    """A part of a schema that a provider does not accept: its JSON pointer, and a message."""

    provider: str
    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}"


@dataclass(frozen=True, slots=True)
class _Profile:
    """The rules that one provider documents.

    ``values``: the only values of a keyword. ``enum``: the types of listed values. ``closed``: objects must have
    ``additionalProperties: false``. ``most``: limits for the whole schema.
    """

    name: str
    source: str
    date: str
    keywords: tuple[str, ...]
    formats: tuple[str, ...] | None = None
    values: Mapping[str, list[Any]] | None = None
    enum: tuple[str, ...] | None = None
    closed: bool = False
    all_required: bool = False
    root_object: bool = False
    recursion: bool = True
    reference_alone: bool = False
    most: Mapping[str, int] | None = None


@cache
def _profile(provider: str) -> _Profile:
    return _Profile(**json.loads(_FILE.read_text("utf-8"))[provider])


def provider_findings(schema: Any, provider: str) -> list[ProviderFinding]:
    """The parts of a schema (a JSON value) that a provider's structured outputs do not accept.

    ``provider``: ``"openai"``, ``"anthropic"`` or ``"gemini"``. Raises ConstraintError for any other.
    """
    if provider not in PROVIDERS:
        raise ConstraintError(f"strict must be one of {', '.join(map(repr, PROVIDERS))}, not {provider!r}")
    profile = _profile(provider)
    all_places = list(places(schema))
    found = [
        ProviderFinding(provider, pointer, message)
        for pointer, value in all_places
        for pointer, message in _of_schema(value, pointer, profile)
    ]
    if profile.root_object and isinstance(schema, MAPPINGS):
        if "anyOf" in schema:
            found.append(ProviderFinding(provider, "#/anyOf", f"{profile.name} takes no anyOf at the root"))
        elif schema.get("type") != "object" and "$ref" not in schema:
            found.append(ProviderFinding(provider, "#", f"{profile.name} takes objects only at the root"))
    if not profile.recursion:
        found += [
            ProviderFinding(provider, f"{pointer}/$ref", f"{profile.name} takes no recursive schemas")
            for pointer in _recursive(dict(all_places))
        ]
    for kind, (count, what) in _counts([value for _, value in all_places]).items():
        most = (profile.most or {}).get(kind)
        if most is not None and count > most:
            message = f"{profile.name} takes at most {most:,} {what} in all, and there are {count:,}"
            found.append(ProviderFinding(provider, "#", message))
    return found


def places(schema: Any) -> Iterator[tuple[str, Any]]:
    """The JSON pointers and values of all schemas in a schema that are objects, outer ones first."""
    waiting: list[tuple[str, Any]] = [("#", schema)]
    while waiting:
        pointer, value = waiting.pop()
        if not isinstance(value, MAPPINGS):
            continue
        yield pointer, value
        inner: list[tuple[str, Any]] = []
        for name in value:
            each = value[name]
            if name not in _INNER:
                continue
            if isinstance(each, list):
                inner += [(f"{pointer}/{name}/{k}", one) for k, one in enumerate(each)]
            elif name in TABLES and isinstance(each, MAPPINGS):
                inner += [(f"{pointer}/{name}/{escape(key)}", one) for key, one in each.items()]
            elif name in ONE:
                inner.append((f"{pointer}/{name}", each))
        waiting += reversed(inner)


def _of_schema(  # noqa: C901  # one rule after the other
    schema: Mapping[str, Any], pointer: str, profile: _Profile
) -> Iterator[tuple[str, str]]:
    """The places and messages for one schema, without those of its sub-schemas."""
    name = profile.name
    for keyword, value in schema.items():
        where = f"{pointer}/{escape(keyword)}"
        if keyword in KEYWORDS and keyword not in profile.keywords:
            yield where, f"{name} does not take {keyword}"
        elif keyword == "format" and profile.formats is not None and value not in profile.formats:
            yield where, f"{name} does not take the format {value!r}"
        elif keyword == "enum" and profile.enum is not None and isinstance(value, list):
            for k, each in enumerate(value):
                if _ENUM.get(type(each), "number") not in profile.enum:
                    yield f"{where}/{k}", f"{name} takes {', '.join(profile.enum)} only in enum"
        elif keyword == "$ref" and not str(value).startswith("#"):
            yield where, f"{name} takes references within the schema only"
        elif profile.values is not None and value not in profile.values.get(keyword, [value]):
            yield where, f"{name} takes {' and '.join(map(str, profile.values[keyword]))} only"
    if profile.reference_alone and "$ref" in schema:
        others = [each for each in schema if not each.startswith("$")]
        if others:
            yield f"{pointer}/{escape(others[0])}", f"{name} takes no keyword beside $ref that has no $"
    types = schema.get("type")
    if not ("properties" in schema or types == "object" or (isinstance(types, list) and "object" in types)):
        return
    if profile.closed and schema.get("additionalProperties") is not False:
        where = f"{pointer}/additionalProperties" if "additionalProperties" in schema else pointer
        yield where, f"{name} takes objects with additionalProperties: false only"
    properties, required = schema.get("properties"), schema.get("required")
    if profile.all_required and isinstance(properties, MAPPINGS):
        for key in properties:
            if not isinstance(required, list) or key not in required:
                yield (
                    f"{pointer}/properties/{escape(key)}",
                    f"{name} takes objects that require all properties only",
                )


def _recursive(places: Mapping[str, Any]) -> list[str]:
    """The places of references that lead to an enclosing schema, directly or through others."""
    leads: dict[str, list[str]] = {pointer: [] for pointer in places}
    references = []
    for pointer, schema in places.items():
        target = schema.get("$ref")
        if isinstance(target, str) and target.startswith("#"):
            leads[pointer].append(f"#{unquote(target[1:])}".rstrip("/"))
            references.append(pointer)
        above = pointer
        while "/" in above:
            above = above.rpartition("/")[0]
            if above in places:
                leads[above].append(pointer)
                break
    circles = {pointer: k for k, each in enumerate(components(leads)) if len(each) > 1 for pointer in each}
    return [
        pointer
        for pointer in references
        if any(
            target == pointer or (pointer in circles and circles.get(target) == circles[pointer])
            for target in leads[pointer][:1]
        )
    ]


def _counts(schemas: list[Any]) -> dict[str, tuple[int, str]]:
    """For everything that providers limit, the number in the whole schema, and its name."""
    names: list[str] = []
    listed: list[Any] = []
    properties = 0
    for schema in schemas:
        for table in ("properties", "$defs", "definitions"):
            value = schema.get(table)
            if isinstance(value, MAPPINGS):
                names += value
                properties += len(value) if table == "properties" else 0
        values = schema.get("enum")
        listed += values if isinstance(values, list) else []
        names += [schema["const"]] if isinstance(schema.get("const"), str) else []
    characters = sum(map(len, names)) + sum(len(each) for each in listed if isinstance(each, str))
    return {
        "properties": (properties, "properties"),
        "enum_values": (len(listed), "values in enums"),
        "characters": (characters, "characters of names and constants"),
    }
