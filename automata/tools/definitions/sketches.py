"""Structural tags in the making, and what their parts are for.

The idea: a document is dicts, as anyone would send it. What a tag in it is for (a role) and where a schema in it came
from are kept beside, first by the dict itself, in the end by its JSON pointer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tokenfst.automata.json_schema.reading.source import escape

Json = dict[str, Any]
"""A format of a structural tag."""


Kind = Literal["frame", "call", "arguments", "reasoning", "content"]
Form = Literal["json", "python", "elements", "text", "json string", "python string"]
"""How arguments are written. The last three are the input of a custom tool: as it is, and as the content of a
string."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a tag is for. ``"frame"``: what is in it and in no other tag counts for nothing. ``"call"``: a call, whose
    text this is; ``"arguments"``: those of the call around it. ``begin`` and ``ends`` are those of the tag. ``tool``:
    whose call this is, or begins with; ``None``: what is in the tag says it. ``form``: the content is the tool's
    arguments, so written. ``lead``: how much of ``begin`` comes before the call's own text."""

    kind: Kind
    begin: bytes
    ends: tuple[bytes, ...]
    tool: int | None = None
    form: Form | None = None
    lead: int = 0


@dataclass(slots=True)
class Sketch:
    """The parts of one document. ``origins``: where each schema is written, by its id."""

    origins: dict[int, str] = field(default_factory=dict)
    roles: dict[int, Role] = field(default_factory=dict)
    """By the ids of tags."""
    _kept: list[Json] = field(default_factory=list)

    def tag(
        self,
        begin: str,
        content: Json,
        end: str | list[str],
        kind: Kind = "frame",
        tool: int | None = None,
        form: Form | None = None,
        shown: str | None = None,
        lead: int = 0,
    ) -> Json:
        """A tag with a role. ``shown``: what a call begins with, where that is not the tag's beginning."""
        made = {"type": "tag", "begin": begin, "content": content, "end": end}
        ends = tuple(each.encode() for each in ([end] if isinstance(end, str) else end))
        self.roles[id(made)] = Role(
            kind, (begin if shown is None else shown).encode(), ends, tool, form, lead
        )
        self._kept.append(made)
        return made

    def frame(self, text: str) -> Json:
        """A text that counts for nothing."""
        return self.tag(text, constant(""), "")

    def finish(self, format: Json) -> tuple[Json, dict[str, Role], dict[str, str]]:
        """The document of a format; the roles of its tags by their pointers; of the pointers of its schemas, where they
        came from."""
        document: Json = {"type": "structural_tag", "format": format}
        roles, places = {}, {}
        for pointer, part in _parts(document, "#"):
            if id(part) in self.roles:
                roles[pointer] = self.roles[id(part)]
            schema = part.get("json_schema")
            if id(schema) in self.origins:
                places[f"{pointer}/json_schema"] = self.origins[id(schema)]
        return document, roles, places


def constant(text: str) -> Json:
    """One text."""
    return {"type": "const_string", "value": text}


def any_text(*excludes: str) -> Json:
    """Free text without these."""
    return {"type": "any_text", "excludes": [*filter(None, excludes)]}


def sequence(*elements: Json) -> Json:
    """One after the other."""
    return elements[0] if len(elements) == 1 else {"type": "sequence", "elements": list(elements)}


def either(*elements: Json) -> Json:
    """One of these."""
    return elements[0] if len(elements) == 1 else {"type": "or", "elements": list(elements)}


def wrapped(kind: Literal["optional", "star"], content: Json) -> Json:
    """None, or one, or more."""
    return {"type": kind, "content": content}


def _parts(value: Any, pointer: str) -> Iterator[tuple[str, Json]]:
    """The formats of a document, with their pointers."""
    if isinstance(value, Mapping):
        if isinstance(value, dict):
            yield pointer, value
        for name, each in value.items():
            if name != "json_schema":
                yield from _parts(each, f"{pointer}/{escape(name)}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _parts(each, f"{pointer}/{number}")
