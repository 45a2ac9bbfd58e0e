"""Where sub-schemas are: documents, their drafts, identifiers and references.

The idea: a ``Place`` is a sub-schema with its address and the *resource* it belongs to, the innermost schema above it
that has an identifier; references are resolved against that (draft 2020-12, core, sections 8.2 and 9). A reference
within its resource by JSON pointer is followed directly; only anchors and URIs need an index, which is made when the
first of them is met, by one walk over all places where a schema can stand.

Nothing is ever fetched: a URI that is in none of the known documents goes to the caller's ``resolver``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from tokenfst.errors import SchemaError, UnsupportedSchemaError

Resolver = Callable[[str], Mapping[str, Any] | bool | str | None]
"""From a URI without a fragment to the schema document there; ``None`` if there is none."""

DRAFTS = {
    "draft-04": 4,
    "draft-06": 6,
    "draft-07": 7,
    "2019-09": 2019,
    "2020-12": 2020,
}
"""The drafts that are understood, by the part of ``$schema`` that names them."""

MAPPINGS = (dict, Mapping)
"""For ``isinstance``: what is a JSON object. The first saves asking an abstract class."""
_ONE = (
    *("additionalItems", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"),
    *("items", "unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_TABLES = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")


@dataclass(slots=True, eq=False)
class Resource:
    """A schema with an identifier, or a document."""

    uri: str
    root: Any
    pointer: str
    draft: int
    document: str
    anchors: dict[str, tuple[Any, str]] | None = None
    dynamic: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Place:
    """One sub-schema: its ``value``, its ``pointer`` in the document (``#/...``), its resource."""

    # Final and not frozen: see `expression.Expr`.
    value: Final[Any]
    pointer: Final[str]
    resource: Final[Resource]

    @property
    def draft(self) -> int:
        """The draft by whose rules it is read: 4, 6, 7, 2019 or 2020."""
        return self.resource.draft

    def where(self, *tokens: str | int) -> str:
        """The address of something below, for messages."""
        return self.resource.document + self._pointer(tokens)

    def below(self, value: Any, *tokens: str | int) -> Place:
        """The sub-schema ``value`` that ``tokens`` lead to."""
        return _placed(value, self._pointer(tokens), self.resource)

    def _pointer(self, tokens: tuple[str | int, ...]) -> str:
        pointer = self.pointer
        for token in tokens:
            pointer += "/" + escape(token)
        return pointer


def escape(token: str | int) -> str:
    """A member's name or an index as a part of a JSON pointer."""
    part = str(token)
    return part.replace("~", "~0").replace("/", "~1") if "~" in part or "/" in part else part


class Source:
    """All documents of one schema."""

    def __init__(
        self, schema: Mapping[str, Any] | bool | str, draft: str | None, resolver: Resolver | None
    ) -> None:
        """Raises SchemaError for text that is no JSON and for a draft that is not known."""
        self._resolver = resolver
        self._resources: dict[str, Resource] = {}
        self._missing: set[str] = set()
        if draft is not None and draft not in DRAFTS:
            raise SchemaError("#", f"draft={draft!r} is none of {', '.join(DRAFTS)}")
        self._draft = DRAFTS[draft] if draft is not None else 2020
        value = read(schema, "#")
        fixed = draft is not None
        self.root = self._add("", value, "", self._draft if fixed else draft_of(value, self._draft, "#"))

    def resolve(self, place: Place, reference: str, keyword: str) -> Place:
        """The sub-schema that a reference at ``place`` leads to. SchemaError if there is none."""
        where = place.where(keyword)
        if reference == "#" or reference.startswith("#/"):
            return self._descend(place.resource, unquote(reference[1:]), where, reference)
        target = reference if not reference.startswith("#") else place.resource.uri + reference
        uri, fragment = urldefrag(urljoin(place.resource.uri, target))
        resource = self._resource(uri, place.resource, where)
        fragment = unquote(fragment)
        if fragment == "" or fragment.startswith("/"):
            return self._descend(resource, fragment, where, reference)
        found = self._anchors(resource).get(fragment)
        if found is None:
            raise SchemaError(where, f"{reference!r} names an anchor that is not there")
        return Place(found[0], found[1], resource)

    def dynamic_anchor(self, place: Place, reference: str) -> bool | None:
        """Whether a ``$dynamicRef`` leads through a dynamic anchor: ``None`` if it may depend on the path taken."""
        target = self.resolve(place, reference, "$dynamicRef")
        fragment = urldefrag(reference)[1]
        self._anchors(target.resource)
        if fragment not in target.resource.dynamic:
            return False
        for resource in list(self._resources.values()):
            self._anchors(resource)
        holders = [each for each in dict.fromkeys(self._resources.values()) if fragment in each.dynamic]
        return None if len(holders) > 1 else True

    # --- details --------------------------------------------------------------------------------------

    def _add(self, uri: str, value: Any, document: str, draft: int) -> Place:
        resource = Resource(uri, value, "#", draft, document)
        self._resources[uri] = resource
        place = _placed(value, "#", resource, root=True)
        if resource.uri != uri:
            self._resources.setdefault(resource.uri, resource)
        return place

    def _resource(self, uri: str, near: Resource, where: str) -> Resource:
        if uri == near.uri:
            return near
        for known in (uri, uri + "#"):
            if known in self._resources:
                return self._resources[known]
        for resource in list(self._resources.values()):
            self._anchors(resource)
        if uri in self._resources:
            return self._resources[uri]
        value = self._resolver(uri) if self._resolver is not None else None
        if value is None:
            remedy = "pass resolver=" if self._resolver is None else "the resolver knows no such document"
            raise SchemaError(where, f"{uri!r} is not in this document, and nothing is fetched: {remedy}")
        document = read(value, where)
        place = self._add(uri, document, uri, draft_of(document, near.draft, f"{uri}#"))
        return place.resource

    def _anchors(self, resource: Resource) -> dict[str, tuple[Any, str]]:
        """The anchors of a resource; the resources inside of it become known."""
        if resource.anchors is None:
            resource.anchors = {}
            for value, pointer in self._walk(resource):
                old = resource.draft < 2019
                identifier = value.get("$id", value.get("id") if resource.draft == 4 else None)
                if old and isinstance(identifier, str) and identifier.startswith("#") and len(identifier) > 1:
                    resource.anchors[identifier[1:]] = (value, pointer)
                for keyword in () if old else ("$anchor", "$dynamicAnchor"):
                    if isinstance(value.get(keyword), str):
                        resource.anchors[value[keyword]] = (value, pointer)
                        if keyword == "$dynamicAnchor":
                            resource.dynamic.add(value[keyword])
        return resource.anchors

    def _walk(self, resource: Resource) -> Iterator[tuple[Any, str]]:
        stack: list[tuple[Any, str]] = [(resource.root, resource.pointer)]
        while stack:
            value, pointer = stack.pop()
            if not isinstance(value, Mapping):
                continue
            if value is not resource.root:
                place = _placed(value, pointer, resource)
                if place.resource is not resource:
                    known = self._resources.setdefault(place.resource.uri, place.resource)
                    self._anchors(known)
                    continue
            yield value, pointer
            if "$ref" in value and resource.draft < 2019:
                continue
            stack += [(value.get(keyword), f"{pointer}/{keyword}") for keyword in _ONE]
            for keyword in _LISTS:
                members = value.get(keyword)
                if isinstance(members, list):
                    stack += [(each, f"{pointer}/{keyword}/{k}") for k, each in enumerate(members)]
            for keyword in _TABLES:
                table = value.get(keyword)
                if isinstance(table, Mapping):
                    stack += [(each, f"{pointer}/{keyword}/{escape(name)}") for name, each in table.items()]

    def _descend(self, resource: Resource, fragment: str, where: str, reference: str) -> Place:
        place = Place(resource.root, resource.pointer, resource)
        value = resource.root
        for token in fragment.split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, Mapping) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            else:
                raise SchemaError(where, f"{reference!r} leads nowhere: there is no {name!r} on the way")
            place = place.below(value, name)
        if not isinstance(value, Mapping | bool):
            raise SchemaError(where, f"{reference!r} leads to {type(value).__name__}, which is no schema")
        return place


def read(schema: Mapping[str, Any] | bool | str, where: str) -> Any:
    """A schema document as Python values; numbers in text stay exact."""
    if isinstance(schema, str):
        problem = ""
        try:
            return json.loads(schema, parse_float=Decimal)
        except RecursionError:
            problem = "the schema is nested too deeply"
        except ValueError as error:
            problem = f"the schema is no JSON text: {error}"
        raise SchemaError(where, problem)
    if not isinstance(schema, Mapping | bool):
        raise SchemaError(where, f"a schema is an object or a boolean, not {type(schema).__name__}")
    with suppress(RecursionError):  # what is nested so deeply is refused where it is read
        _ENCODER.encode(schema)
    return schema


def _number(value: Any) -> str:
    """A Decimal is JSON; nothing else that ``json`` does not know is."""
    if isinstance(value, Decimal):
        return str(value)
    raise SchemaError("#", f"{value!r} is no JSON value")


_ENCODER = json.JSONEncoder(default=_number)


def draft_of(value: Any, default: int, document: str) -> int:
    """The draft that ``$schema`` names. SchemaError if it names none that is known."""
    named = value.get("$schema") if isinstance(value, Mapping) else None
    if named is None:
        return default
    if not isinstance(named, str):
        raise SchemaError(f"{document}/$schema", "must be a string")
    for part, draft in DRAFTS.items():
        if f"json-schema.org/{part}/" in named or f"json-schema.org/draft/{part}/" in named:
            return draft
    if named.startswith(("http://json-schema.org/schema", "https://json-schema.org/schema")):
        return default
    raise UnsupportedSchemaError(
        f"{document}/$schema", f"{named!r} is no known dialect; pass draft= one of {', '.join(DRAFTS)}"
    )


def _placed(value: Any, pointer: str, resource: Resource, *, root: bool = False) -> Place:
    """The place of ``value``, in a resource of its own if it has an identifier."""
    if isinstance(value, MAPPINGS):
        keyword = "id" if resource.draft == 4 else "$id"
        identifier = value.get(keyword)
        if isinstance(identifier, str) and not (resource.draft < 2019 and "$ref" in value):
            uri = urldefrag(urljoin(resource.uri, identifier))[0]
            if root:
                resource.uri = uri
            elif uri and uri != resource.uri:
                draft = draft_of(value, resource.draft, resource.document + pointer)
                inner = Resource(uri, value, pointer, draft, resource.document)
                return Place(value, pointer, inner)
    return Place(value, pointer, resource)
