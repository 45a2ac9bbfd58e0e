"""Rules, those of a grammar or those of a JSON Schema, as one group of options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.budget import Budget
from tokenfst.cli.constraints.grammars import Syntax, read_grammar
from tokenfst.cli.constraints.schemas import SchemaOptions
from tokenfst.cli.input import completion
from tokenfst.cli.output.terminal import UsageError

_PANEL = "Grammar"


@dataclass(frozen=True, slots=True)
class GrammarOptions(SchemaOptions):
    """Rules: a grammar, or a JSON Schema."""

    grammar: Annotated[
        str | None,
        typer.Option(
            "--grammar",
            "-g",
            metavar="FILE|NAME",
            autocompletion=completion.grammars,
            help="A grammar: a file, or the name of one that comes with tokenfst, such as json.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    start: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="The start rule; if not given, the rule named start (Lark) or root (GBNF, EBNF).",
            rich_help_panel=_PANEL,
        ),
    ] = None
    syntax: Annotated[
        Syntax | None,
        typer.Option(
            help="The file's notation. If not given, it follows from the suffix of the file's "
            "name, and is Lark's for other suffixes.",
            rich_help_panel=_PANEL,
        ),
    ] = None

    def read_grammar(self, budget: Budget) -> Grammar | None:
        """The grammar, if one is given."""
        if self.grammar is not None:
            if self.json_schema is not None:
                raise UsageError("give either --grammar or --json-schema")
            return read_grammar(self.grammar, self.start, self.syntax, budget)
        if self.start is not None or self.syntax is not None:
            raise UsageError("--start and --syntax go with --grammar")
        return None
