"""From a document to formats: every field must be known and have the right type; otherwise the error has its JSON
pointer.

The fields of each object are taken out one by one (``fields``). The legacy form is converted to the ``triggered_tags``
that it means.

Cost: linear in the document. ``_DEEPEST`` bounds its nesting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.structural_tags.documents.fields import (
    Fields,
    filled,
    parsed,
    refuse_unknown,
    text_of,
    whole,
)
from tokenfst.automata.structural_tags.documents.formats import (
    AnyText,
    AnyTokens,
    ConstString,
    Delimiter,
    Format,
    GrammarText,
    JsonSchema,
    Or,
    Pattern,
    Repeat,
    Rule,
    Separated,
    Sequence,
    Tag,
    Token,
    TokenRef,
    TokenTriggered,
    Triggered,
)
from tokenfst.automata.structural_tags.documents.xml_styles import STYLES
from tokenfst.common.arguments import shown
from tokenfst.errors import StructuralTagError

_DEEPEST = 100
"""Maximum nesting depth of formats."""


def read_document(spec: Any) -> Format:
    """The format of a structural tag.

    ``spec``: a mapping, JSON text, or an object with ``model_dump``. Raises StructuralTagError.
    """
    if hasattr(spec, "model_dump"):
        spec = spec.model_dump(by_alias=True)
    if isinstance(spec, str):
        spec = parsed(spec)
    if not isinstance(spec, Mapping):
        raise StructuralTagError("#", f"a structural tag must be an object, not {shown(spec)}")
    kind = spec.get("type")
    if isinstance(kind, str) and kind in _READERS:
        return read_format(spec, "#", 0)
    document = Fields(spec, "#")
    kind = document.text("type", "structural_tag" if "format" in spec or "structures" in spec else None)
    if kind != "structural_tag":
        refuse_unknown(
            "#/type", kind, ("structural_tag", *_READERS), "a type of structural tag or of a format"
        )
    if "format" in spec:
        found = read_format(document.take("format"), document.at("format"), 0)
    elif "structures" in spec:
        found = _legacy(document)
    else:
        raise StructuralTagError("#", "the field 'format' is missing")
    document.close("structural_tag")
    return found


def read_format(value: Any, pointer: str, depth: int, only: str | None = None) -> Format:
    """One format with everything inside of it.

    ``only``: the one type that is allowed here, so that the field ``type`` may be missing.
    """
    if depth > _DEEPEST:
        raise StructuralTagError(pointer, f"formats are nested more than {_DEEPEST} levels deep")
    fields = Fields(value, pointer)
    kind = fields.text("type", only)
    read = _READERS.get(kind)
    if read is None:
        refuse_unknown(f"{pointer}/type", kind, _READERS, "a format")
    made = read(fields, depth + 1)
    fields.close(kind)
    return made


def token_of(value: Any, pointer: str) -> TokenRef:
    """The reference to a token, which is given by its id or by its text."""
    if isinstance(value, str):
        return TokenRef(pointer, filled(value, pointer))
    return TokenRef(pointer, whole(value, pointer, 0))


def _delimiter(value: Any, pointer: str) -> Delimiter:
    if isinstance(value, str):
        return text_of(value, pointer)
    made = read_format(value, pointer, 0, "token")
    if not isinstance(made, Token):
        raise StructuralTagError(pointer, "must be a string or a format of type 'token'")
    return made.token


# --- formats ------------------------------------------------------------------------------------------


def _content(fields: Fields, depth: int) -> Format:
    return read_format(fields.take("content"), fields.at("content"), depth)


def _tag(fields: Fields, depth: int) -> Tag:
    begin = _delimiter(fields.take("begin"), fields.at("begin"))
    content = _content(fields, depth)
    end = fields.take("end")
    if isinstance(end, (list, tuple)):
        fields.left["end"] = end
        ends: tuple[Delimiter, ...] = fields.items("end", text_of, required=True)
    else:
        ends = (_delimiter(end, fields.at("end")),)
    return Tag(fields.pointer, begin, content, ends)


def _tags(fields: Fields, depth: int) -> tuple[Tag, ...]:
    def read(value: Any, pointer: str) -> Tag:
        made = read_format(value, pointer, depth, "tag")
        if not isinstance(made, Tag):
            raise StructuralTagError(pointer, "must be a format of type 'tag'")
        return made

    return fields.items("tags", read, required=True)


def _triggered(fields: Fields, depth: int) -> Triggered:
    triggers = fields.items("triggers", filled, required=True)
    tags = _tags(fields, depth)
    return Triggered(
        fields.pointer,
        triggers,
        tuple(fields.at("triggers", number) for number in range(len(triggers))),
        _by_prefix(triggers, tags, fields),
        fields.flag("at_least_one", False),
        fields.flag("stop_after_first", False),
        fields.excludes(),
    )


def _by_prefix(triggers: tuple[str, ...], tags: tuple[Tag, ...], fields: Fields) -> tuple[Rule, ...]:
    """The rules of tags; each belongs to the one trigger that is a prefix of its beginning."""
    found = []
    for number, trigger in enumerate(triggers):
        if trigger in triggers[:number]:
            raise StructuralTagError(
                fields.at("triggers", number), f"{trigger!r} is listed twice: remove one"
            )
    for tag in tags:
        if isinstance(tag.begin, TokenRef):
            raise StructuralTagError(
                f"{tag.pointer}/begin",
                "a tag of 'triggered_tags' must begin with a string: write one, or use 'token_triggered_tags'",
            )
        fitting = [number for number, trigger in enumerate(triggers) if tag.begin.startswith(trigger)]
        if not fitting:
            raise StructuralTagError(
                f"{tag.pointer}/begin",
                f"no trigger reaches this tag: none of {', '.join(map(repr, triggers))} is a prefix of "
                f"{tag.begin!r}. Add a trigger that is",
            )
        if len(fitting) > 1:
            raise StructuralTagError(
                f"{tag.pointer}/begin",
                f"{len(fitting)} triggers are prefixes of {tag.begin!r}: "
                f"{', '.join(repr(triggers[number]) for number in fitting)}. Remove all but one",
            )
        found.append(Rule(fitting[0], tag.begin[len(triggers[fitting[0]]) :], tag.content, tag.ends))
    unused = set(range(len(triggers))) - {rule.trigger for rule in found}
    if unused:
        raise StructuralTagError(
            fields.at("triggers", min(unused)),
            f"no tag begins with the trigger {triggers[min(unused)]!r}: remove it, add its tag, or put it into "
            "'excludes'",
        )
    return tuple(found)


def _dispatch(fields: Fields, depth: int) -> Triggered:
    def read(value: Any, pointer: str) -> tuple[str, Format]:
        first, second = _pair(value, pointer)
        return filled(first, f"{pointer}/0"), read_format(second, f"{pointer}/1", depth)

    rules = fields.items("rules", read, required=True)
    triggers = tuple(dict.fromkeys(pattern for pattern, _ in rules))
    first = {pattern: fields.at("rules", number, 0) for number, (pattern, _) in reversed([*enumerate(rules)])}
    return Triggered(
        fields.pointer,
        triggers,
        tuple(first[trigger] for trigger in triggers),
        tuple(Rule(triggers.index(pattern), "", content, None) for pattern, content in rules),
        False,
        not fields.flag("loop", True),
        fields.excludes(),
    )


def _pair(value: Any, pointer: str) -> tuple[Any, Any]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise StructuralTagError(pointer, f"must be a pair of a pattern and a format, not {shown(value)}")
    return value[0], value[1]


def _token_triggered(fields: Fields, depth: int) -> TokenTriggered:
    triggers = fields.items("trigger_tokens", token_of, required=True)
    tags = _tags(fields, depth)
    rules = []
    names = [each.token for each in triggers]
    for tag in tags:
        if not isinstance(tag.begin, TokenRef):
            raise StructuralTagError(
                f"{tag.pointer}/begin",
                "a tag of 'token_triggered_tags' must begin with a 'token': write one, or use 'triggered_tags'",
            )
        if tag.begin.token not in names:
            raise StructuralTagError(
                f"{tag.pointer}/begin",
                f"no trigger reaches this tag: the token {tag.begin.token!r} is not one of {names}. Add it to "
                "'trigger_tokens'",
            )
        rules.append(Rule(names.index(tag.begin.token), "", tag.content, tag.ends))
    used = {rule.trigger for rule in rules}
    for number in range(len(triggers)):
        if number not in used:
            why = "listed twice" if names[number] in names[:number] else "the beginning of no tag"
            raise StructuralTagError(
                triggers[number].pointer, f"the token {names[number]!r} is {why}: remove it"
            )
    return TokenTriggered(
        fields.pointer,
        triggers,
        tuple(rules),
        fields.flag("at_least_one", False),
        fields.flag("stop_after_first", False),
        fields.items("exclude_tokens", token_of),
    )


def _token_dispatch(fields: Fields, depth: int) -> TokenTriggered:
    def read(value: Any, pointer: str) -> tuple[TokenRef, Format]:
        first, second = _pair(value, pointer)
        return token_of(first, f"{pointer}/0"), read_format(second, f"{pointer}/1", depth)

    rules = fields.items("rules", read, required=True)
    triggers: dict[int | str, TokenRef] = {}
    for reference, _ in rules:
        triggers.setdefault(reference.token, reference)
    order = list(triggers)
    return TokenTriggered(
        fields.pointer,
        tuple(triggers.values()),
        tuple(Rule(order.index(reference.token), "", content, None) for reference, content in rules),
        False,
        not fields.flag("loop", True),
        fields.items("exclude_tokens", token_of),
    )


def _separated(fields: Fields, depth: int) -> Separated:
    return Separated(
        fields.pointer,
        _tags(fields, depth),
        fields.text("separator"),
        fields.flag("at_least_one", False),
        fields.flag("stop_after_first", False),
    )


def _schema(fields: Fields, depth: int) -> JsonSchema:
    schema = _schema_value(fields, "json_schema")
    style = fields.text("style", "json")
    if style != "json" and style not in STYLES:
        refuse_unknown(fields.at("style"), style, ("json", *STYLES), "a style")
    return JsonSchema(
        fields.pointer,
        schema,
        fields.at("json_schema"),
        style,
        fields.flag("any_order", False),
        fields.bound("max_whitespace_cnt"),
        fields.excludes(),
    )


def _schema_value(fields: Fields, name: str) -> Any:
    schema = fields.take(name)
    if not isinstance(schema, (Mapping, bool)):
        raise StructuralTagError(
            fields.at(name), f"a schema must be an object or a boolean, not {shown(schema)}"
        )
    return schema


def _grammar(fields: Fields) -> str | Constraint:
    found = fields.take("grammar")
    return found if isinstance(found, Constraint) else text_of(found, fields.at("grammar"))


def _qwen(fields: Fields, depth: int) -> JsonSchema:
    schema = _schema_value(fields, "json_schema")
    return JsonSchema(fields.pointer, schema, fields.at("json_schema"), "qwen_xml", False, None, ())


def _repeat(fields: Fields, depth: int) -> Repeat:
    low = whole(fields.take("min"), fields.at("min"), 0)
    high = whole(fields.take("max"), fields.at("max"), -1)
    if 0 <= high < low:
        raise StructuralTagError(
            fields.at("max"), f"must be at least min, which is {low}, or -1 for no bound"
        )
    return Repeat(fields.pointer, _content(fields, depth), low, None if high < 0 else high)


def _repeated(low: int, high: int | None) -> Callable[[Fields, int], Repeat]:
    return lambda fields, depth: Repeat(fields.pointer, _content(fields, depth), low, high)


def _elements(fields: Fields, depth: int) -> tuple[Format, ...]:
    return fields.items("elements", lambda value, pointer: read_format(value, pointer, depth), required=True)


_READERS: dict[str, Callable[[Fields, int], Format]] = {
    "const_string": lambda fields, depth: ConstString(fields.pointer, fields.text("value")),
    "json_schema": _schema,
    "qwen_xml_parameter": _qwen,
    "grammar": lambda fields, depth: GrammarText(fields.pointer, _grammar(fields)),
    "regex": lambda fields, depth: Pattern(fields.pointer, fields.text("pattern")),
    "any_text": lambda fields, depth: AnyText(
        fields.pointer, fields.excludes(), fields.bound("max_tokens"), fields.bound("max_chars")
    ),
    "sequence": lambda fields, depth: Sequence(fields.pointer, _elements(fields, depth)),
    "or": lambda fields, depth: Or(fields.pointer, _elements(fields, depth)),
    "optional": _repeated(0, 1),
    "plus": _repeated(1, None),
    "star": _repeated(0, None),
    "repeat": _repeat,
    "tag": _tag,
    "triggered_tags": _triggered,
    "tags_with_separator": _separated,
    "dispatch": _dispatch,
    "token": lambda fields, depth: Token(fields.pointer, token_of(fields.take("token"), fields.at("token"))),
    "exclude_token": lambda fields, depth: AnyTokens(
        fields.pointer, fields.items("exclude_tokens", token_of), 1, 1
    ),
    "any_tokens": lambda fields, depth: AnyTokens(
        fields.pointer, fields.items("exclude_tokens", token_of), 0, fields.bound("max_tokens")
    ),
    "token_triggered_tags": _token_triggered,
    "token_dispatch": _token_dispatch,
}


# --- the legacy form ----------------------------------------------------------------------------------


def _legacy(document: Fields) -> Triggered:
    def read(value: Any, pointer: str) -> Tag:
        fields = Fields(value, pointer)
        begin, end = fields.text("begin"), fields.text("end")
        schema = fields.take("schema")
        if isinstance(schema, str):
            schema = parsed(schema)
        if not isinstance(schema, (Mapping, bool)):
            raise StructuralTagError(
                fields.at("schema"), f"a schema must be an object or a boolean, not {shown(schema)}"
            )
        fields.close("structures")
        content = JsonSchema(pointer, schema, fields.at("schema"), "json", False, None, ())
        return Tag(pointer, begin, content, (end,))

    tags = document.items("structures", read, required=True)
    triggers = document.items("triggers", filled, required=True)
    return Triggered(
        "#",
        triggers,
        tuple(document.at("triggers", number) for number in range(len(triggers))),
        _by_prefix(triggers, tags, document),
        document.flag("at_least_one", False),
        document.flag("stop_after_first", False),
        (),
    )
