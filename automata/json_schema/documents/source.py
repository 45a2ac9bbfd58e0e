"""Where sub-schemas are: documents, their drafts, identifiers and references.

The idea: a ``Place`` is a sub-schema with its address and its *resource*, which is the innermost enclosing schema with
an identifier. References are resolved against the resource (draft 2020-12, core, sections 8.2 and 9). A reference by
JSON pointer within its resource is followed directly. Only anchors and URIs need an index. The first such reference
builds it, in one walk over all places where a schema can be.

Nothing is ever fetched: if a URI is in none of the known documents, it is a draft's meta-schema (``metaschemas``), or
the caller's ``resolver`` is asked.

A document has the meaning of its JSON text, in which nothing is shared: a Python object that occurs in several places
is several sub-schemas, each with its own address. ``Budget.positions`` bounds their number, which is counted in time
linear in the objects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from tokenfst.automata.json_schema.documents.metaschemas import metaschema
from tokenfst.automata.json_schema.documents.schema_texts import (
    MAPPINGS,
    escape,
    json_type,
    read,
    refuse_holder,
)
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.common.digits import natural
from tokenfst.errors import SchemaError, UnsupportedSchemaError

Resolver = Callable[[str], Mapping[str, Any] | bool | str | None]
"""A function from a URI without a fragment to the schema document with that URI; it returns ``None`` if there is none.
"""

Check = Callable[[Any, int, str, bool], None]
"""Raises SchemaError if a value is not a schema. The arguments: the value, its draft, its address, and whether
annotations are checked too. They are checked in complete documents, but not in the targets of references.
"""

DRAFTS = {
    "draft-04": 4,
    "draft-06": 6,
    "draft-07": 7,
    "2019-09": 2019,
    "2020-12": 2020,
}
"""The supported drafts, by the part of ``$schema`` that names them, and the number that stands for each here."""

VOCABULARY = re.compile(r"https://json-schema\.org/draft/(?:2019-09|2020-12)/vocab/([a-z-]+)")
"""The URIs of the drafts' own vocabularies."""

SCALARS = frozenset(("null", "boolean", "number", "integer", "string"))
"""The types whose values have no parts."""

_INDEX = re.compile("0|[1-9][0-9]*")
"""An array index in a JSON pointer (RFC 6901, section 4)."""
_DEEPEST = 4_000
"""Maximum number of parts of a JSON pointer. Every sub-schema has its own pointer, so their total length grows with the
square of the depth.
"""
_LONG_POINTER = 1_000
"""The parts of a pointer are counted only if it is longer than this number of characters."""
NESTED = "nested"
"""``Place.closed`` if names are forbidden in the values below a place, but not at the place itself."""

RECURSIVE = "$recursiveAnchor"
"""The name under which a resource's ``$recursiveAnchor`` is stored; no anchor's name has a dollar sign."""

# Keywords whose values are a schema, a list of schemas, and an object of schemas.
ONE = (
    *("additionalItems", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"),
    *("items", "unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
TABLES = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The meaning of ``$schema``.

    ``vocabularies``: those that a user's meta-schema lists; ``None`` for the draft's own ones. ``asserts``: whether
    ``format`` constrains values, whatever the options are.
    """

    draft: int
    vocabularies: frozenset[str] | None = None
    asserts: bool = False


@dataclass(slots=True, eq=False)
class Resource:
    """A complete document, or a schema in it with its own identifier."""

    uri: str
    root: Any
    pointer: str
    draft: int
    document: str
    dialect: Dialect
    anchors: dict[str, tuple[Any, str]] | None = None
    dynamic: set[str] = field(default_factory=set)
    keywords: dict[int, tuple[Any, dict[str, Any]]] = field(default_factory=dict)
    """For each schema, by its ``id()``: the schema, and the result of ``keywords.known`` for it."""


@dataclass(slots=True, eq=False)
class Place:
    """One sub-schema: its ``value``, its ``pointer`` in the document (``#/...``) and its ``resource``.

    ``scope``: the dynamic scope (core, section 7.1): the URIs of the resources through which evaluation has come,
    outermost first, without the first document. ``closed``: what ``additional_properties="forbid"`` does there
    (``reading.closing``): ``None`` if nothing; ``NESTED`` if it forbids names only in the values below; otherwise the
    names that are allowed besides the schema's own.
    """

    # Final instead of frozen: mypy checks it, and a frozen dataclass takes three times as long to make.
    value: Final[Any]
    pointer: Final[str]
    resource: Final[Resource]
    scope: Final[tuple[str, ...]] = ()
    closed: Final[object] = None

    @property
    def draft(self) -> int:
        """The draft whose rules apply: 4, 6, 7, 2019 or 2020."""
        return self.resource.draft

    def where(self, *tokens: str | int) -> str:
        """The address of this place, or of the place below it that ``tokens`` lead to, for messages."""
        return self.resource.document + (self._pointer(tokens) if tokens else self.pointer)

    def below(self, value: Any, *tokens: str | int) -> Place:
        """The place of the sub-schema ``value``, to which ``tokens`` lead from here."""
        if value.__class__ is bool or (value.__class__ is dict and "$id" not in value and "id" not in value):
            closed = None if self.closed is None else NESTED
            return Place(value, self._pointer(tokens), self.resource, self.scope, closed)
        place = _placed(value, self._pointer(tokens), self.resource)
        if place.resource is self.resource and not self.scope and self.closed is None:
            return place
        closed = None if self.closed is None else NESTED
        return Place(
            place.value, place.pointer, place.resource, _longer(self.scope, place, self.resource), closed
        )

    def closing(self, closed: object) -> Place:
        """This place with another value of ``closed``."""
        if closed is self.closed:
            return self
        return Place(self.value, self.pointer, self.resource, self.scope, closed)

    def _pointer(self, tokens: tuple[str | int, ...]) -> str:
        pointer = self.pointer
        for token in tokens:
            part = token if token.__class__ is str else str(token)
            pointer += f"/{escape(part) if '~' in part or '/' in part else part}"
        if len(pointer) > _LONG_POINTER and pointer.count("/") > _DEEPEST:
            raise UnsupportedSchemaError(pointer, f"the schema is nested more than {_DEEPEST:,} parts deep")
        return pointer


def _come_from(place: Place, target: Place) -> Place:
    """The target of a reference, evaluated in place."""
    scope = _longer(place.scope, target, place.resource)
    if scope == target.scope and place.closed is target.closed:
        return target
    return Place(target.value, target.pointer, target.resource, scope, place.closed)


def _longer(scope: tuple[str, ...], place: Place, before: Resource) -> tuple[str, ...]:
    """A dynamic scope after ``place`` is entered."""
    uri = place.resource.uri
    return scope if uri == before.uri or uri in scope else (*scope, uri)


class Source:
    """All documents of one schema, and the resolution of references."""

    def __init__(
        self,
        schema: Mapping[str, Any] | bool | str,
        draft: str | None,
        resolver: Resolver | None,
        work: Work,
        check: Check | None = None,
    ) -> None:
        """Raises SchemaError for text that is not JSON and for an unknown draft, BudgetExceeded, and what ``check``
        raises.
        """
        self._check = check
        self._work = work
        self._resolver = resolver
        self._resources: dict[str, Resource] = {}
        self._missing: set[str] = set()
        if draft is not None and draft not in DRAFTS:
            raise SchemaError("#", f"draft must be one of {', '.join(DRAFTS)}, not {draft!r}")
        self._draft = DRAFTS[draft] if draft is not None else 2020
        value = read(schema, "#", work)
        refuse_holder(value)
        dialect = Dialect(self._draft) if draft is not None else self._dialect(value, self._draft, "#")
        self.root = self._add("", value, "", dialect)

    def resolve(self, place: Place, reference: str, keyword: str) -> Place:
        """The place that ``reference``, the value of ``keyword`` at ``place``, refers to. Raises SchemaError if there
        is none.
        """
        target = self._static(place, reference, keyword)
        self._resources.setdefault(target.resource.uri, target.resource)
        return _come_from(place, target)

    def resolve_dynamically(self, place: Place, reference: str, keyword: str) -> Place:
        """The target of a ``$dynamicRef`` or ``$recursiveRef``, which depends on how evaluation has reached ``place``.

        If the reference names a dynamic anchor, the target is in the outermost resource of the dynamic scope that has
        this anchor (core, section 8.2.3.2).
        """
        target = self._static(place, reference, keyword)
        name = urldefrag(reference)[1] if keyword == "$dynamicRef" else RECURSIVE
        self._anchors(target.resource)
        if name in target.resource.dynamic and (name != RECURSIVE or target.value is target.resource.root):
            for uri in (self.root.resource.uri, *place.scope):
                if name in self._dynamic(uri):
                    resource = self._resources[uri]
                    target = Place(*self._anchors(resource)[name], resource)
                    break
        return _come_from(place, target)

    def scoped(self, place: Place) -> Place:
        """The place with only that part of its scope that a dynamic reference may need, so that equal meanings have
        equal scopes.
        """
        if not place.scope:
            return place
        names = set(self._dynamic(self.root.resource.uri))
        kept = []
        for uri in place.scope:
            fresh = self._dynamic(uri) - names
            if fresh:
                names |= fresh
                kept.append(uri)
        return replace(place, scope=tuple(kept))

    # --- details --------------------------------------------------------------------------------------

    def _static(self, place: Place, reference: str, keyword: str) -> Place:
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

    def _dynamic(self, uri: str) -> set[str]:
        """The dynamic anchors of a resource."""
        if uri not in self._resources:
            for resource in list(self._resources.values()):
                self._anchors(resource)
        found = self._resources.get(uri)
        if found is None:  # inside of a part with the same name as a part of another document (``comparing``)
            return set()
        self._anchors(found)
        return found.dynamic

    def _add(self, uri: str, value: Any, document: str, dialect: Dialect) -> Place:
        if self._check is not None:
            self._check(value, dialect.draft, f"{document}#", True)
        resource = Resource(uri, value, "#", dialect.draft, document, dialect)
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
        value = metaschema(uri)
        if value is None and self._resolver is not None:
            value = self._resolver(uri)
        if value is None:
            remedy = (
                "pass resolver=, or --document URI=FILE on the command line"
                if self._resolver is None
                else "the resolver knows no such document"
            )
            raise SchemaError(where, f"{uri!r} is not in this document, and nothing is fetched: {remedy}")
        document = read(value, where, self._work)
        return self._add(uri, document, uri, self._dialect(document, near.draft, f"{uri}#")).resource

    def _dialect(self, value: Any, default: int, document: str) -> Dialect:
        """The dialect of a document's ``$schema``. A meta-schema that is not a draft's comes from the resolver and
        lists its vocabularies (core, section 8.1.2). Raises UnsupportedSchemaError for an unknown one.
        """
        draft = draft_of(value, default)
        if draft is not None:
            return Dialect(draft)
        uri = value["$schema"] if isinstance(value["$schema"], str) else ""
        where = f"{document}/$schema"
        if not uri:
            raise SchemaError(where, "must be a URI")
        made = self._resolver(uri) if self._resolver is not None else None
        meta = None if made is None else read(made, where, self._work)
        draft = draft_of(meta, default)
        if not isinstance(meta, Mapping) or draft is None:
            raise UnsupportedSchemaError(
                where, f"{uri!r} is no known dialect; pass draft= one of {', '.join(DRAFTS)}"
            )
        listed = meta.get("$vocabulary")
        if not isinstance(listed, Mapping):
            return Dialect(draft)
        found = set()
        for name, needed in listed.items():
            known = VOCABULARY.fullmatch(name)
            if known is not None:
                found.add(known[1])
            elif needed:
                raise UnsupportedSchemaError(where, f"the vocabulary {name!r} is required and not known")
        return Dialect(draft, frozenset(found), "format-assertion" in found)

    def _anchors(self, resource: Resource) -> dict[str, tuple[Any, str]]:
        """The anchors of a resource. This also records the resources inside of it."""
        if resource.anchors is None:
            resource.anchors = {}
            for value, pointer in self._walk(resource):
                old = resource.draft < 2019
                identifier = value.get("$id", value.get("id") if resource.draft == 4 else None)
                if old and isinstance(identifier, str) and identifier.startswith("#") and len(identifier) > 1:
                    resource.anchors[identifier[1:]] = (value, pointer)
                if (
                    resource.draft == 2019
                    and value is resource.root
                    and value.get("$recursiveAnchor") is True
                ):
                    resource.dynamic.add(RECURSIVE)
                    resource.anchors[RECURSIVE] = (value, pointer)
                for keyword in () if old else ("$anchor", "$dynamicAnchor"):
                    if isinstance(value.get(keyword), str):
                        resource.anchors[value[keyword]] = (value, pointer)
                        if keyword == "$dynamicAnchor":
                            resource.dynamic.add(value[keyword])
        return resource.anchors

    def _walk(self, resource: Resource) -> Iterator[tuple[Any, str]]:
        """The schemas of a resource, each object once: at one of the addresses that share it."""
        stack: list[tuple[Any, str]] = [(resource.root, resource.pointer)]
        seen: set[int] = set()
        while stack:
            value, pointer = stack.pop()
            if not isinstance(value, Mapping) or id(value) in seen:
                continue
            seen.add(id(value))
            self._work.look()
            if value is not resource.root:
                place = _placed(value, pointer, resource)
                if place.resource is not resource:
                    known = self._resources.setdefault(place.resource.uri, place.resource)
                    self._anchors(known)
                    continue
            yield value, pointer
            if "$ref" in value and resource.draft < 2019:
                continue
            stack += [(value.get(keyword), f"{pointer}/{keyword}") for keyword in ONE]
            for keyword in LISTS:
                members = value.get(keyword)
                if isinstance(members, list):
                    stack += [(each, f"{pointer}/{keyword}/{k}") for k, each in enumerate(members)]
            for keyword in TABLES:
                table = value.get(keyword)
                if isinstance(table, Mapping):
                    stack += [(each, f"{pointer}/{keyword}/{escape(name)}") for name, each in table.items()]

    def _descend(self, resource: Resource, fragment: str, where: str, reference: str) -> Place:
        place = Place(resource.root, resource.pointer, resource)
        value = resource.root
        for token in fragment.split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, MAPPINGS) and name in value:
                value = value[name]
            elif (
                isinstance(value, list) and _INDEX.fullmatch(name) and natural(name, len(value)) < len(value)
            ):
                value = value[int(name)]
            else:
                raise SchemaError(where, f"{reference!r} leads nowhere: there is no {name!r} on the way")
            place = place.below(value, name)
        if not isinstance(value, MAPPINGS) and not isinstance(value, bool):
            raise SchemaError(where, f"{reference!r} leads to {json_type(value)}, which is not a schema")
        if self._check is not None:
            self._check(value, place.draft, place.where(), False)
        return place


def draft_of(value: Any, default: int) -> int | None:
    """The draft that ``$schema`` names; ``default`` if there is no ``$schema``, ``None`` if it is not the URI of a
    draft.
    """
    named = value.get("$schema") if isinstance(value, MAPPINGS) else None
    if named is None:
        return default
    if not isinstance(named, str):
        return None
    for part, draft in DRAFTS.items():
        if f"json-schema.org/{part}/" in named or f"json-schema.org/draft/{part}/" in named:
            return draft
    latest = named.startswith(("http://json-schema.org/schema", "https://json-schema.org/schema"))
    return default if latest else None


def _placed(value: Any, pointer: str, resource: Resource, *, root: bool = False) -> Place:
    """The place of ``value``, in its own resource if it has an identifier."""
    if isinstance(value, MAPPINGS):
        keyword = "id" if resource.draft == 4 else "$id"
        identifier = value.get(keyword)
        if isinstance(identifier, str) and not (resource.draft < 2019 and "$ref" in value):
            uri = urldefrag(urljoin(resource.uri, identifier))[0]
            if root:
                resource.uri = uri
            elif uri and uri != resource.uri:
                draft = draft_of(value, resource.draft)
                if draft is None:
                    raise UnsupportedSchemaError(
                        f"{resource.document}{pointer}/$schema",
                        "a sub-schema's dialect must be one of the drafts",
                    )
                inner = Resource(
                    uri, value, pointer, draft, resource.document, replace(resource.dialect, draft=draft)
                )
                return Place(value, pointer, inner)
    return Place(value, pointer, resource)
