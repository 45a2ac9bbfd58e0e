"""Structural tags under construction, with the roles of their parts.

A document is made of dicts, as in a request. The role of each tag, and the origin of each schema, are stored separately
from the document: during construction by the identity of the dict, in the end by its JSON pointer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tokenfst.automata.json_schema.documents.schema_texts import escape

Json = dict[str, Any]
"""A format of a structural tag."""


Kind = Literal["frame", "call", "arguments", "reasoning", "content"]
Form = Literal["json", "python", "elements", "text", "json string", "python string"]
"""How arguments are written. The last three are forms of a custom tool's input: as it is, or as the content of a string
of JSON or Python.
"""


@dataclass(frozen=True, slots=True)
class Role:
    """What a tag is for.

    ``kind``: ``"frame"``: its text is ignored, except for tags inside of it; ``"call"``: its text is that of a call;
    ``"arguments"``: the arguments of the enclosing call; ``"reasoning"`` and ``"content"``: such text. ``begin`` and
    ``ends``: those of the tag. ``tool``: the index of the called tool; ``None`` if a tag inside says it. ``form``: if
    the content is the tool's arguments, how they are written. ``lead``: the length of the part of ``begin`` that
    precedes the call's own text.
    """

    kind: Kind
    begin: bytes
    ends: tuple[bytes, ...]
    tool: int | None = None
    form: Form | None = None
    lead: int = 0


@dataclass(slots=True)
class Sketch:
    """The roles and origins of the parts of one document. ``origins``: the positions of schemas, by the ``id()`` of
    each.
    """

    origins: dict[int, str] = field(default_factory=dict)
    roles: dict[int, Role] = field(default_factory=dict)
    """The roles of tags, by the ``id()`` of each."""
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
        """A tag whose role is recorded. ``shown``: the beginning of a call, if that is not the tag's beginning."""
        made = {"type": "tag", "begin": begin, "content": content, "end": end}
        ends = tuple(each.encode() for each in ([end] if isinstance(end, str) else end))
        self.roles[id(made)] = Role(
            kind, (begin if shown is None else shown).encode(), ends, tool, form, lead
        )
        self._kept.append(made)
        return made

    def frame(self, text: str) -> Json:
        """A tag of one text that parsing ignores."""
        return self.tag(text, constant(""), "")

    def finish(self, format: Json) -> tuple[Json, dict[str, Role], dict[str, str]]:
        """The document of a format, the roles of its tags by pointer, and the origins of its schemas by pointer."""
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
    """The format of one text."""
    return {"type": "const_string", "value": text}


def any_text(*excludes: str) -> Json:
    """Free text that does not contain these texts."""
    return {"type": "any_text", "excludes": [*filter(None, excludes)]}


def sequence(*elements: Json) -> Json:
    """A sequence of formats."""
    return elements[0] if len(elements) == 1 else {"type": "sequence", "elements": list(elements)}


def either(*elements: Json) -> Json:
    """One of several formats."""
    return elements[0] if len(elements) == 1 else {"type": "or", "elements": list(elements)}


def wrapped(kind: Literal["optional", "star"], content: Json) -> Json:
    """An ``optional`` or repeated (``star``) format."""
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
