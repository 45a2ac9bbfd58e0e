"""The formats of structural tags as values: the result of reading and checking a document.

Fields have the names that they have in documents. ``pointer``: the position in the document, as a JSON pointer in a URI
fragment. ``star``, ``plus``, ``optional`` and ``repeat`` are one format here, and so are ``triggered_tags`` and
``dispatch``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokenfst.automata.languages.constraint import Constraint


@dataclass(frozen=True, slots=True)
class Format:
    """One format of the document."""

    pointer: str


@dataclass(frozen=True, slots=True)
class TokenRef:
    """A reference to a token: its id, the name of a special token, or the text of another token."""

    pointer: str
    token: int | str


Delimiter = str | TokenRef
"""The beginning or end of a tag."""


@dataclass(frozen=True, slots=True)
class ConstString(Format):
    value: str


@dataclass(frozen=True, slots=True)
class JsonSchema(Format):
    """A JSON Schema. ``place``: the position of the schema itself."""

    json_schema: Any
    place: str
    style: str
    any_order: bool
    max_whitespace: int | None
    excludes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GrammarText(Format):
    """A grammar: its text in EBNF, or a constraint of any kind."""

    grammar: str | Constraint


@dataclass(frozen=True, slots=True)
class Pattern(Format):
    pattern: str


@dataclass(frozen=True, slots=True)
class AnyText(Format):
    excludes: tuple[str, ...]
    max_tokens: int | None
    max_chars: int | None


@dataclass(frozen=True, slots=True)
class Sequence(Format):
    elements: tuple[Format, ...]


@dataclass(frozen=True, slots=True)
class Or(Format):
    elements: tuple[Format, ...]


@dataclass(frozen=True, slots=True)
class Repeat(Format):
    """``low`` to ``high`` repetitions of a format; ``high`` is ``None`` for no bound."""

    content: Format
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Tag(Format):
    """A tag: ``begin``, a content, and one of ``ends``, which are texts, or a single token."""

    begin: Delimiter
    content: Format
    ends: tuple[Delimiter, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """What follows a trigger of ``Triggered`` or ``TokenTriggered``.

    ``trigger``: the index of the trigger. ``begin``: the rest of a tag's beginning. ``content``, ``ends``: those of the
    tag; for ``dispatch``, ``ends`` is ``None``.
    """

    trigger: int
    begin: Delimiter
    content: Format
    ends: tuple[Delimiter, ...] | None


@dataclass(frozen=True, slots=True)
class Triggered(Format):
    """``triggered_tags`` and ``dispatch``: free text in which one of its rules follows each trigger.

    ``places``: the positions of the triggers.
    """

    triggers: tuple[str, ...]
    places: tuple[str, ...]
    rules: tuple[Rule, ...]
    at_least_one: bool
    stop_after_first: bool
    excludes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenTriggered(Format):
    """``token_triggered_tags`` and ``token_dispatch``: as ``Triggered``, with tokens as triggers."""

    triggers: tuple[TokenRef, ...]
    rules: tuple[Rule, ...]
    at_least_one: bool
    stop_after_first: bool
    excludes: tuple[TokenRef, ...]


@dataclass(frozen=True, slots=True)
class Separated(Format):
    """``tags_with_separator``: tags with a separator between any two."""

    tags: tuple[Tag, ...]
    separator: str
    at_least_one: bool
    stop_after_first: bool


@dataclass(frozen=True, slots=True)
class Token(Format):
    token: TokenRef


@dataclass(frozen=True, slots=True)
class AnyTokens(Format):
    """``any_tokens``: ``low`` to ``high`` tokens; and ``exclude_token``, which is exactly one token."""

    excludes: tuple[TokenRef, ...]
    low: int
    high: int | None


def needs_end(format: Format) -> bool:
    """Whether a format ends with free text that only an end can stop, because it has no bound and excludes nothing."""
    if isinstance(format, AnyText):
        return format.max_tokens is None and format.max_chars is None and not format.excludes
    if isinstance(format, AnyTokens):
        return format.high is None and not format.excludes
    if isinstance(format, Sequence):
        return needs_end(format.elements[-1])
    if isinstance(format, Or):
        return any(map(needs_end, format.elements))
    if isinstance(format, Repeat):
        return needs_end(format.content)
    return isinstance(format, (Triggered, TokenTriggered)) and not format.excludes
