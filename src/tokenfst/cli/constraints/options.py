"""The constraint of a command, as one group of options: the first argument, or an option that replaces it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget
from tokenfst.cli.constraints.concepts import ConceptOptions
from tokenfst.cli.constraints.constraints import (
    Constraint,
    grammar_constraint,
    of_words,
    pattern_in,
    read_constraint,
    schema_constraint,
)
from tokenfst.cli.constraints.labels import LabelOptions
from tokenfst.cli.constraints.objects import ObjectOptions
from tokenfst.cli.constraints.relations import RelationOptions
from tokenfst.cli.constraints.rules import GrammarOptions
from tokenfst.cli.constraints.symbols import SymbolOptions
from tokenfst.cli.constraints.tags import TagOptions
from tokenfst.cli.output.terminal import UsageError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
Flags = Annotated[
    str,
    typer.Option(
        metavar="LETTERS",
        help="Flags of the pattern, as in Python's re: i ignore case, m multi-line, s dot matches all, "
        "x verbose, a ASCII classes.",
    ),
]


@dataclass(frozen=True)
class ConstraintOptions(
    RelationOptions,
    TagOptions,
    ObjectOptions,
    ConceptOptions,
    LabelOptions,
    SymbolOptions,
    GrammarOptions,
):
    """A constraint: the first argument, or an option that replaces it."""

    constraint: Annotated[
        str | None,
        typer.Argument(
            metavar="CONSTRAINT",
            show_default=False,
            help="A regular expression in Python's syntax, or an artifact (*.safetensors). Instead of it, give one of "
            "--file, --json-schema, --grammar, --structural-tag, --choices, --hierarchy, --concepts, --ltlf, --python "
            "and --template.",
        ),
    ] = None
    depth: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Take the texts in which no rule of the grammar (or schema) is nested in itself "
            "more than N times; they are a regular language.",
            rich_help_panel="Grammar",
        ),
    ] = None
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="Take the pattern from a file (UTF-8; one newline at its end is dropped), instead of from "
            "the first argument.",
        ),
    ] = None
    flags: Flags = ""

    def is_given(self) -> bool:
        """Whether there is a constraint at all."""
        return self.constraint is not None or self.file is not None or bool(self._named())

    def first(self, rest: list[str], budget: Budget) -> tuple[Constraint, list[str]]:
        """The constraint, and the arguments that are not a part of it. ``rest``: the arguments after the first."""
        words = rest if self.constraint is None else [self.constraint, *rest]
        found, words = self._given(words, budget)
        return self.related(found, budget), words

    def _given(self, words: list[str], budget: Budget) -> tuple[Constraint, list[str]]:
        """The constraint as given, and the words that are not a part of it."""
        given = self._named()
        if len(given) > 1:
            raise UsageError(f"{given[0]} and {given[1]} are two constraints: give one")
        if given and (self.file is not None or self.flags):
            raise UsageError(f"--file and --flags cannot be combined with {given[0]}")
        found = self.read_concepts(self.ltlf, self.symbols, budget)
        temporal = None if found else self.read_formulas(budget)
        labels = self.read_labels(budget)
        grammar = self.read_grammar(budget)
        value: Language | Grammar | None = self.read_tag(budget) or self.read_object(budget)
        if temporal is not None:
            return temporal, words
        if isinstance(value, Grammar):
            grammar = value
        if grammar is not None:
            return grammar_constraint(grammar, self.depth, budget), words
        schema = self.read_schema(budget)
        if schema is not None:
            return schema_constraint(schema, self.depth, budget), words
        if self.depth is not None:
            raise UsageError("--depth goes with --grammar or --json-schema")
        if (language := labels or found or value) is not None:
            return of_words(language), words
        if self.file is not None:
            return pattern_in(self.file, self.flags, budget), words
        if not words:
            raise UsageError(
                "a CONSTRAINT is needed: a pattern, an artifact, --file, --grammar, --json-schema, --ltlf, --choices, "
                "--hierarchy, --concepts, --python, --template or --structural-tag"
            )
        return read_constraint(words[0], self.flags, budget), words[1:]

    def _named(self) -> list[str]:
        """The given options that define a constraint."""
        return [
            name
            for name, value in (
                ("--grammar", self.grammar),
                ("--json-schema", self.json_schema),
                ("--ltlf", self.ltlf if self.concepts is None else None),
                ("--choices", self.choices),
                ("--hierarchy", self.hierarchy),
                ("--concepts", self.concepts),
                ("--python", self.python),
                ("--template", self.template),
                ("--structural-tag", self.structural_tag),
            )
            if value
        ]

    def one(self, budget: Budget) -> Constraint:
        """The constraint of a command that takes no other arguments."""
        constraint, rest = self.first([], budget)
        if rest:
            given = f"pattern comes from {self.file}" if self.file else f"grammar is {self.grammar}"
            given = f"schema is {self.json_schema}" if self.json_schema else given
            given = "constraint is a formula" if self.ltlf else given
            labels = self.choices or self.hierarchy
            given = f"labels come from {labels}" if labels else given
            given = f"concepts come from {self.concepts}" if self.concepts else given
            if any(each is not None for each in (self.python, self.template, self.structural_tag)):
                given = f"constraint is {constraint.source}"
            raise UsageError(f"the {given}, so {rest[0]!r} is one argument too many")
        return constraint
