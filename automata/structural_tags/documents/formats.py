"""The formats of structural tags as values: the result of reading and checking a document.

Fields have the names of the format. ``pointer``: the position in the document, as a JSON pointer in a URI fragment.
``star``, ``plus``, ``optional`` and ``repeat`` are one format, and so are ``triggered_tags`` and ``dispatch``.
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
    """A token, by its id or by its name or spelling."""

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
    """The text of a grammar, or a constraint of any kind."""

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
    """A repetition. ``high``: the greatest number; ``None`` for no bound."""

    content: Format
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Tag(Format):
    """A tag. ``ends``: texts, or one token."""

    begin: Delimiter
    content: Format
    ends: tuple[Delimiter, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """What follows a trigger of ``Triggered``: the rest of a tag's beginning, its content and its ends; for
    ``dispatch`` only a content. ``trigger``: the index of the trigger.
    """

    trigger: int
    begin: Delimiter
    content: Format
    ends: tuple[Delimiter, ...] | None


@dataclass(frozen=True, slots=True)
class Triggered(Format):
    """``triggered_tags`` and ``dispatch``: free text, in which each trigger is followed by one of its rules.
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
    """``token_triggered_tags`` and ``token_dispatch``: the same over tokens."""

    triggers: tuple[TokenRef, ...]
    rules: tuple[Rule, ...]
    at_least_one: bool
    stop_after_first: bool
    excludes: tuple[TokenRef, ...]


@dataclass(frozen=True, slots=True)
class Separated(Format):
    """``tags_with_separator``."""

    tags: tuple[Tag, ...]
    separator: str
    at_least_one: bool
    stop_after_first: bool


@dataclass(frozen=True, slots=True)
class Token(Format):
    token: TokenRef


@dataclass(frozen=True, slots=True)
class AnyTokens(Format):
    """``any_tokens``, and ``exclude_token``, which is exactly one."""

    excludes: tuple[TokenRef, ...]
    low: int
    high: int | None


def needs_end(format: Format) -> bool:
    """Whether a format ends with free text that only an end can stop: it has no bound, and excludes nothing."""
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
