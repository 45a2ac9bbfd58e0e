"""Tool constraints: languages or grammars that can also parse their texts.

The parser is built from the same formats as the mask, by the same builder, when the first text is parsed. It differs
from the mask in two points: it has sentinels, and names of special tokens are text, because clients receive text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tokenfst.automata.events.event import Event
from tokenfst.automata.events.stream import Stream
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.writing.written import WrittenGrammar
from tokenfst.automata.languages.language import Language
from tokenfst.automata.structural_tags.assembling import PLAIN, Makers
from tokenfst.automata.structural_tags.building import Builder
from tokenfst.automata.structural_tags.documents.formats import Format
from tokenfst.automata.structural_tags.schemas import Schemas
from tokenfst.automata.structural_tags.sentinels import Sentinels
from tokenfst.automata.structural_tags.special_tokens import Delimiters
from tokenfst.automata.structural_tags.token_text import TokenText
from tokenfst.automata.tools.definitions.definitions import Tool
from tokenfst.automata.tools.definitions.formats import CallFormat
from tokenfst.automata.tools.definitions.sketches import Json, Role
from tokenfst.automata.tools.reading.reader import ToolParser
from tokenfst.automata.tools.reading.replies import TagWithSentinels, ToolReply
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, refuse


class About:
    """What a tool constraint knows besides its texts: its tools, its structural tag, the roles of the tag's parts."""

    def __init__(
        self,
        row: CallFormat,
        tools: tuple[Tool, ...],
        document: Json,
        format: Format,
        roles: Mapping[str, Role],
        schemas: Schemas,
        source: str,
    ) -> None:
        self.row, self.tools, self.document, self.format, self.roles = row, tools, document, format, roles
        self.schemas, self.source = schemas, source
        self._tag: TagWithSentinels | None = None

    @property
    def budget(self) -> Budget | None:
        """The bounds of every construction and query; ``None`` for the default."""
        return self.schemas.budget

    def build(
        self, delimiters: Delimiters, sentinels: Sentinels | None, makers: Makers
    ) -> Language | Grammar:
        """The constraint of the structural tag, with sentinels if they are given."""
        how = Schemas(self.schemas.whitespace, self.schemas.additional_properties, self.budget, sentinels)
        builder = Builder(delimiters, how, TokenText(delimiters, control_tokens=False), self.budget, makers)
        return builder.finish(builder.build(self.format), self.source)

    def tag(self) -> TagWithSentinels:
        """The automaton that parses texts, built on first use."""
        if self._tag is None:
            sentinels = Sentinels()
            automaton = self.build(Delimiters(None, "text"), sentinels, PLAIN).automaton
            kinds = {
                role.tool: sentinels.kinds.get(id(self._schema_at(pointer)), {})
                for pointer, role in self.roles.items()
                if role.tool is not None and role.form == "elements"
            }
            self._tag = TagWithSentinels(
                automaton, sentinels.meanings, self.roles, self.tools, self.row, self.source, kinds
            )
        return self._tag

    def _schema_at(self, pointer: str) -> Any:
        """The schema of the arguments in a tag."""
        found: Any = self.document
        for key in pointer.split("/")[1:]:
            found = found[int(key) if isinstance(found, list) else key]
        return found["content"]["json_schema"]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tag": None}


class Reads:
    """The methods that tool constraints have besides those of other constraints."""

    __slots__ = ()
    _about: About

    @property
    def structural_tag(self) -> Json:
        """The equivalent structural tag, as a dict."""
        return self._about.document

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, in the order in which they were given."""
        return self._about.tools

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of all tools, in the order in which they were given."""
        return tuple(tool.name for tool in self._about.tools)

    def parse(self, text: str | bytes) -> ToolReply:
        """The contents of a complete text: its content, its reasoning, and its calls with their arguments.

        In the text, special tokens are written by their spelling, and the end token is left out. Raises ParseError,
        with the position and what was expected there, for a text that does not satisfy this constraint.
        """
        parser = self.parser()
        parser.feed(text)
        return parser.finish()

    @checked
    def parser(self, *, tells: bool = False) -> ToolParser:
        """A parser for a text that arrives in arbitrary pieces. ``tells``: whether it also records events, as
        ``stream`` does.
        """
        return ToolParser(self._about.tag(), tells=tells)

    @checked
    def stream(self, *, json: bool | None = None) -> ToolStream:
        """A reader of a text that arrives in parts.

        ``feed(part)`` returns the events that the part determines: content, reasoning, calls and their arguments.
        ``json`` must not be true, because a text with calls is not a JSON document.
        """
        if json:
            refuse("stream", "json", json, "False or None: a text with calls is not a JSON document")
        return ToolStream(self)  # type: ignore[arg-type]  # each class of these is a constraint, too


class ToolStream(Stream):
    """A text with calls that arrives in parts.

    ``feed`` returns the events that a part determines, ``close`` those that the end determines. Both raise ParseError,
    as ``parse`` does.
    """

    _constraint: Reads  # type: ignore[assignment]  # as above

    @property
    def reply(self) -> ToolReply:
        """The contents of the complete text, as from ``parse``. Raises ParseError if the text ends too early."""
        return self._parser.finish()

    def feed(self, data: str | bytes) -> list[Event]:
        """The events that the next part of the text determines."""
        if not isinstance(data, bytes):
            return super().feed(data)
        self._parts.append(data)
        self._feed(data)
        found = self._found
        if not found:
            return []
        told = found[:]
        found.clear()
        return told

    def close(self) -> list[Event]:
        """The events that the end of the text determines."""
        self._parser.finish()
        return self._events.take()

    def _begin(self) -> None:
        self._parser = self._constraint.parser(tells=True)
        events = self._parser.events
        assert events is not None, "this parser tells"
        self._events = events
        self._feed, self._found = self._parser.feed, events.found

    def _read(self, data: bytes) -> list[Event]:
        self._parser.feed(data)
        return self._events.take()


class ToolLanguage(Reads, Language):
    """Texts with tool calls, if all parts are regular: a ``Language`` whose ``parse`` returns the calls."""

    __slots__ = ("_about",)

    def __init__(self, about: About, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._about = about


class ToolGrammar(Reads, Grammar):
    """Texts with tool calls, if some part needs a stack: a ``Grammar`` whose ``parse`` returns the calls."""

    __slots__ = ("_about",)

    def __init__(self, about: About, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._about = about


class WrittenToolGrammar(Reads, WrittenGrammar):
    """A ``ToolGrammar`` all of whose rules come from JSON Schemas, so that it becomes a program in one traversal."""

    __slots__ = ("_about",)

    def __init__(self, about: About, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._about = about


ToolConstraint = ToolLanguage | ToolGrammar | WrittenToolGrammar


def makers(about: About) -> Makers:
    """The constructors of constraints that have the data ``about``."""
    return Makers(
        partial(ToolLanguage, about), partial(ToolGrammar, about), partial(WrittenToolGrammar, about)
    )
