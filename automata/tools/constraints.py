"""The constraint of tools: a language or grammar like any other, which also reads its texts back.

The idea: what reads texts is made from the same formats as the mask, when the first text is read, by the same builder;
only it has signs, and names of special tokens are text, since that is what a client has.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tokenfst.arguments import checked, refuse
from tokenfst.automata.events.event import Event
from tokenfst.automata.events.stream import Stream
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.writing.written import WrittenGrammar
from tokenfst.automata.languages.language import Language
from tokenfst.automata.structural_tags.assembling import PLAIN, Makers
from tokenfst.automata.structural_tags.building import Builder
from tokenfst.automata.structural_tags.documents.formats import Format
from tokenfst.automata.structural_tags.schemas import Schemas
from tokenfst.automata.structural_tags.sentinels import Signs
from tokenfst.automata.structural_tags.special_tokens import Marks
from tokenfst.automata.structural_tags.token_text import TokenText
from tokenfst.automata.tools.definitions.definitions import Tool
from tokenfst.automata.tools.definitions.formats import CallFormat
from tokenfst.automata.tools.definitions.sketches import Json, Role
from tokenfst.automata.tools.reading.reader import ToolParser
from tokenfst.automata.tools.reading.replies import Signed, ToolReply
from tokenfst.budget import Budget


class About:
    """What a constraint of tools knows beyond its texts."""

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
        self._signed: Signed | None = None

    @property
    def budget(self) -> Budget | None:
        """That of all questions."""
        return self.schemas.budget

    def build(self, marks: Marks, signs: Signs | None, makers: Makers) -> Language | Grammar:
        """The constraint of the formats."""
        how = Schemas(self.schemas.whitespace, self.schemas.additional_properties, self.budget, signs)
        builder = Builder(marks, how, TokenText(marks, control_tokens=False), self.budget, makers)
        return builder.finish(builder.build(self.format), self.source)

    def signed(self) -> Signed:
        """What reads texts; made once."""
        if self._signed is None:
            signs = Signs()
            automaton = self.build(Marks(None, "text"), signs, PLAIN).automaton
            kinds = {
                role.tool: signs.kinds.get(id(self._schema_at(pointer)), {})
                for pointer, role in self.roles.items()
                if role.tool is not None and role.form == "elements"
            }
            self._signed = Signed(
                automaton, signs.meanings, self.roles, self.tools, self.row, self.source, kinds
            )
        return self._signed

    def _schema_at(self, pointer: str) -> Any:
        """The schema of the arguments in a tag."""
        found: Any = self.document
        for key in pointer.split("/")[1:]:
            found = found[int(key) if isinstance(found, list) else key]
        return found["content"]["json_schema"]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_signed": None}


class Reads:
    """What constraints of tools have beside the rest."""

    __slots__ = ()
    _about: About

    @property
    def structural_tag(self) -> Json:
        """The structural tag that this is, as a dict."""
        return self._about.document

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, in their order."""
        return self._about.tools

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of all tools, in their order."""
        return tuple(tool.name for tool in self._about.tools)

    def parse(self, text: str | bytes) -> ToolReply:
        """What a text says: its content, its reasoning, and its calls with their arguments.

        The text has special tokens as they are spelled, and no end token. ParseError, with the place and what was
        expected there, for a text that is none of this constraint.
        """
        parser = self.parser()
        parser.feed(text)
        return parser.finish()

    @checked
    def parser(self, *, tells: bool = False) -> ToolParser:
        """A parser for a text that comes in pieces, cut anywhere. ``tells``: it has ``events``, as ``stream``."""
        return ToolParser(self._about.signed(), tells=tells)

    @checked
    def stream(self, *, json: bool | None = None) -> ToolStream:
        """A text that arrives part by part: ``feed(part)`` gives the events that are decided then, of content,
        reasoning, calls and their arguments. ``json`` must not be true: a text with calls is no JSON document."""
        if json:
            refuse("stream", "json", json, "False or None: a text with calls is no JSON document")
        return ToolStream(self)  # type: ignore[arg-type]  # each class of these is a constraint, too


class ToolStream(Stream):
    """A text with calls, part by part: ``feed`` gives the events that a part decides, ``close`` those that the end
    decides. Both raise ParseError, as ``parse`` does."""

    _constraint: Reads  # type: ignore[assignment]  # as above

    @property
    def reply(self) -> ToolReply:
        """What the text says, once it is closed."""
        return self._parser.finish()

    def feed(self, data: str | bytes) -> list[Event]:
        """What the next part of the text decides."""
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
        """What the end of the text decides."""
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
    """Texts with calls of tools, where all parts are regular. ``parse`` reads them back."""

    __slots__ = ("_about",)

    def __init__(self, about: About, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._about = about


class ToolGrammar(Reads, Grammar):
    """Texts with calls of tools. ``parse`` reads them back."""

    __slots__ = ("_about",)

    def __init__(self, about: About, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._about = about


class WrittenToolGrammar(Reads, WrittenGrammar):
    """The same, where JSON Schema made all rules. ``parse`` reads texts back."""

    __slots__ = ("_about",)

    def __init__(self, about: About, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._about = about


ToolConstraint = ToolLanguage | ToolGrammar | WrittenToolGrammar


def makers(about: About) -> Makers:
    """Makes constraints that know ``about``."""
    return Makers(
        partial(ToolLanguage, about), partial(ToolGrammar, about), partial(WrittenToolGrammar, about)
    )
