"""The objects of structural tags: fields by name, ``model_dump`` and ``model_dump_json``.

The classes, their fields and defaults are xgrammar's. ``tokenfst.structural_tag``
(docs/constraints/structural-tags.md) decides what a document means and whether it is valid. pydantic is not used: an
object is its fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tokenfst.compat.xgrammar.exception import InvalidJSONError, InvalidStructuralTagError


class _Fields:
    """Named fields. ``fields``: the required ones; ``defaults``: the others; ``kind``: the value of "type"."""

    kind: ClassVar[str | None] = None
    fields: ClassVar[tuple[str, ...]] = ()
    defaults: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, **given: Any) -> None:
        name = type(self).__name__
        if given.pop("type", self.kind) != self.kind:
            raise InvalidStructuralTagError(f"{name}: its type is {self.kind!r}")
        if unknown := sorted(given.keys() - {*self.fields, *self.defaults}):
            raise InvalidStructuralTagError(f"{name} has no field {unknown[0]!r}")
        if missing := [field for field in self.fields if field not in given]:
            raise InvalidStructuralTagError(f"{name} needs the field {missing[0]!r}")
        for field in (*self.fields, *self.defaults):
            setattr(self, field, given[field] if field in given else _copied(self.defaults[field]))
        self.type = self.kind

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in vars(self).items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # fields can be set

    def model_dump(self) -> dict[str, Any]:
        """The fields as a dict, including nested objects."""
        head = {} if self.kind is None else {"type": self.kind}
        return head | {field: _plain(getattr(self, field)) for field in (*self.fields, *self.defaults)}

    def model_dump_json(self) -> str:
        """The fields as JSON."""
        return json.dumps(self.model_dump(), ensure_ascii=False)


def _copied(default: Any) -> Any:
    return list(default) if isinstance(default, list) else default


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _format(name: str, kind: str, fields: str, about: str, **defaults: Any) -> type[_Fields]:
    body = {"kind": kind, "fields": tuple(fields.split()), "defaults": defaults, "__doc__": about}
    return type(name, (_Fields,), body | {"__module__": __name__})


_once = {"at_least_one": False, "stop_after_first": False}
ConstStringFormat = _format("ConstStringFormat", "const_string", "value", "The text ``value``.")
JSONSchemaFormat = _format(
    "JSONSchemaFormat",
    "json_schema",
    "json_schema",
    "The texts of a JSON Schema, written in a ``style``.",
    style="json",
    any_order=False,
    max_whitespace_cnt=None,
    excludes=[],
)
QwenXMLParameterFormat = _format(
    "QwenXMLParameterFormat", "qwen_xml_parameter", "json_schema", "A JSON Schema in Qwen's style."
)
AnyTextFormat = _format(
    "AnyTextFormat",
    "any_text",
    "",
    "Any text that contains none of ``excludes``.",
    excludes=[],
    max_tokens=None,
    max_chars=None,
)
TokenFormat = _format("TokenFormat", "token", "token", "The token ``token``.")
ExcludeTokenFormat = _format(
    "ExcludeTokenFormat",
    "exclude_token",
    "",
    "One token that is not in ``exclude_tokens``.",
    exclude_tokens=[],
)
AnyTokensFormat = _format(
    "AnyTokensFormat",
    "any_tokens",
    "",
    "Tokens that are not in ``exclude_tokens``.",
    exclude_tokens=[],
    max_tokens=None,
)
GrammarFormat = _format("GrammarFormat", "grammar", "grammar", "The texts of a grammar.")
RegexFormat = _format("RegexFormat", "regex", "pattern", "The texts of a pattern.")
SequenceFormat = _format("SequenceFormat", "sequence", "elements", "The ``elements``, one after another.")
OrFormat = _format("OrFormat", "or", "elements", "One of the ``elements``.")
OptionalFormat = _format("OptionalFormat", "optional", "content", "The ``content``, or nothing.")
PlusFormat = _format("PlusFormat", "plus", "content", "The ``content``, once or more often.")
StarFormat = _format("StarFormat", "star", "content", "The ``content``, any number of times.")
RepeatFormat = _format(
    "RepeatFormat", "repeat", "min max content", "The ``content``, from ``min`` to ``max`` times."
)
TagFormat = _format("TagFormat", "tag", "begin content end", "The ``content`` between ``begin`` and ``end``.")
TriggeredTagsFormat = _format(
    "TriggeredTagsFormat",
    "triggered_tags",
    "triggers tags",
    "Free text in which each of ``triggers`` begins one of ``tags``.",
    **_once,
    excludes=[],
)
TokenTriggeredTagsFormat = _format(
    "TokenTriggeredTagsFormat",
    "token_triggered_tags",
    "trigger_tokens tags",
    "Free tokens in which each of ``trigger_tokens`` begins one of ``tags``.",
    exclude_tokens=[],
    **_once,
)
TagsWithSeparatorFormat = _format(
    "TagsWithSeparatorFormat",
    "tags_with_separator",
    "tags separator",
    "Some of ``tags``, with the text ``separator`` between them.",
    **_once,
)
DispatchFormat = _format(
    "DispatchFormat",
    "dispatch",
    "rules",
    "Free text in which the text of a rule begins the rule's content.",
    loop=True,
    excludes=[],
)
TokenDispatchFormat = _format(
    "TokenDispatchFormat",
    "token_dispatch",
    "rules",
    "Free tokens in which the token of a rule begins the rule's content.",
    loop=True,
    exclude_tokens=[],
)
Format = _Fields


class StructuralTagItem(_Fields):
    """A tag of the deprecated form: a text of the JSON Schema ``schema`` between ``begin`` and ``end``."""

    fields = ("begin", "schema", "end")
    schema: Any
    begin: str
    end: str


class StructuralTag(_Fields):
    """A complete structural tag, whose texts are those of its ``format``."""

    kind = "structural_tag"
    fields = ("format",)
    defaults: ClassVar[Mapping[str, Any]] = {"control_tokens": False}
    """Whether free text may contain special tokens (``exclude_special_tokens=False``). No document of xgrammar has
    this field.
    """

    def model_dump(self) -> dict[str, Any]:
        """The fields as a dict, including nested objects."""
        made = super().model_dump()
        if not made["control_tokens"]:
            del made["control_tokens"]
        return made

    @staticmethod
    def from_legacy_structural_tag(tags: Sequence[Any], triggers: Sequence[str]) -> StructuralTag:
        """Make a structural tag from tags with one schema each, and the triggers that begin them in free text."""
        made = []
        for tag in tags:
            schema = tag.schema if isinstance(tag, StructuralTagItem) else tag.schema_
            if isinstance(schema, str):
                schema = _json(schema)
            elif hasattr(schema, "model_json_schema"):
                schema = schema.model_json_schema()
            made.append(TagFormat(begin=tag.begin, content=JSONSchemaFormat(json_schema=schema), end=tag.end))
        return StructuralTag(format=TriggeredTagsFormat(triggers=list(triggers), tags=made))

    @staticmethod
    def from_json(json_str: str | Mapping[str, Any]) -> StructuralTag:
        """Make a structural tag from a document."""
        document = _json(json_str) if isinstance(json_str, str) else json_str
        if not isinstance(document, Mapping):
            raise InvalidStructuralTagError(f"a structural tag is an object, not {type(document).__name__}")
        return StructuralTag(**document)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidJSONError(f"this is not JSON: {error}") from None
