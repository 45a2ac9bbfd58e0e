"""The constraint of tools: a language or grammar like any other, which also reads its texts back.

The idea: what reads texts is made from the same formats as the mask, when the first text is read, by the same builder;
only it has signs, and names of special tokens are text, since that is what a client has.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.writing.written import WrittenGrammar
from tokenfst.automata.languages.language import Language
from tokenfst.automata.structural_tags.assembling import PLAIN, Makers
from tokenfst.automata.structural_tags.building import Builder
from tokenfst.automata.structural_tags.formats import Format
from tokenfst.automata.structural_tags.marks import Marks
from tokenfst.automata.structural_tags.schemas import Schemas
from tokenfst.automata.structural_tags.signs import Signs
from tokenfst.automata.structural_tags.token_text import TokenText
from tokenfst.automata.tools.definitions import Tool
from tokenfst.automata.tools.formats import CallFormat
from tokenfst.automata.tools.reader import Signed, ToolParser, ToolReply
from tokenfst.automata.tools.sketches import Json, Role
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
            self._signed = Signed(automaton, signs.meanings, self.roles, self.tools, self.row, self.source)
        return self._signed

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

    def parser(self) -> ToolParser:
        """A parser for a text that comes in pieces, cut anywhere."""
        return ToolParser(self._about.signed())


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
