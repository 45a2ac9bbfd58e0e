"""``tokenfst lint``: suspicious parts of a grammar, and rules that a vocabulary cannot spell.

A rule is *unspelled* if no token sequence spells a text that uses it: it is missing from the intersection of the
grammar with the texts of all token sequences. This is decided exactly. If every byte is a token, no rule is unspelled;
nor is one if all rules need only bytes that are tokens.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from tokenfst.automata.expressions.expression import (
    ALL_BYTES,
    Expr,
    Op,
    byte_set,
    concat,
    literal,
    optional,
    repeat,
    union,
)
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.language import Language
from tokenfst.automata.rules import product
from tokenfst.automata.rules.lint import FindingKind
from tokenfst.cli.constraints import options
from tokenfst.cli.constraints.grammars import read_text
from tokenfst.cli.constraints.rules import GrammarOptions
from tokenfst.cli.input import groups
from tokenfst.cli.input.budgets import BudgetOptions
from tokenfst.cli.input.tokens import VocabularyOptions
from tokenfst.cli.output.terminal import Exit, UsageError, counted, say, say_json
from tokenfst.common.printable import line_and_column
from tokenfst.errors import BudgetExceeded
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_CONFLICT = "conflict"
_USELESS = {FindingKind.UNREACHABLE.value, FindingKind.UNPRODUCTIVE.value}
_UNSPELLED = "unspelled"
_STRICT = "strict"
_UNKNOWN, _UNKNOWN_NOTE = "unknown-keyword", "other-keyword"
_INNOCENT = {FindingKind.LEFT_RECURSION.value, _CONFLICT, _UNKNOWN_NOTE}
"""The kinds of findings that are notes, not errors: the exit code stays 0."""


class Provider(enum.StrEnum):
    """Providers whose structured outputs accept schemas."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    groups.register(app, "lint", lint_command)


def lint_command(
    *,
    reading: GrammarOptions,
    tokenizing: VocabularyOptions,
    budgeting: BudgetOptions,
    strict: Annotated[
        Provider | None,
        typer.Option(
            help="With --json-schema: also report what this provider's structured outputs do not accept.",
            rich_help_panel="JSON Schema",
        ),
    ] = None,
    json: options.Json = False,
) -> int:
    """Report what is suspicious about a grammar or a JSON Schema: unreachable and unproductive rules, cycles, left
    recursion, conflicts (where one stack is not enough), and keywords that constrain nothing. With --vocabulary, also
    report rules that no token sequence can spell; with --strict, what OpenAI's, Anthropic's or Gemini's structured
    outputs do not accept.

    Exit code 0: nothing that needs a change (notes may be shown); 1: findings.
    """
    budget = budgeting.read()
    grammar = reading.read_grammar(budget)
    if grammar is None:
        schema = reading.read_schema(budget)
        if schema is None:
            raise UsageError(
                "lint needs --grammar FILE, or the name of a grammar that comes with tokenfst, or --json-schema FILE"
            )
        grammar = schema if isinstance(schema, Grammar) else _one_rule(schema)
    found = findings(grammar)
    if strict is not None and reading.json_schema is None:
        raise UsageError("--strict goes with --json-schema")
    if reading.json_schema is not None:
        found += _of_schema(read_text(reading.json_schema, "the schema"), strict)
    if tokenizing.vocabulary is not None:
        found += unspelled(
            grammar, tokenizing.need("lint"), {each.rule for each in found if each.kind in _USELESS}
        )
    found.sort(key=lambda each: (each.line, each.column))
    serious = sum(each.serious for each in found)
    if json:
        say_json(
            {
                "command": "lint",
                "source": grammar.source,
                "rules": len(grammar.rules),
                "clean": serious == 0,
                "findings": [each.as_json() for each in found],
            }
        )
    else:
        for each in found:
            say(str(each), "" if each.serious else "dim")
        say(f"{grammar.source}: {counted(len(grammar.rules), 'rule')}, {counted(serious, 'finding')}")
    return Exit.NO if serious else Exit.YES


def _of_schema(text: str, strict: Provider | None) -> list[Remark]:
    """The keywords of a schema that constrain nothing, and the parts that a provider does not accept."""
    from tokenfst.automata.json_schema.documents.schema_texts import read
    from tokenfst.automata.json_schema.providers import provider_findings
    from tokenfst.automata.json_schema.sets.work import Work
    from tokenfst.automata.json_schema.unknown_keywords import unknown_keywords

    schema = read(text, "#", Work(None))
    found = [
        Remark(_UNKNOWN if each.likely else _UNKNOWN_NOTE, each.pointer, str(each), (), 0, 0)
        for each in unknown_keywords(schema)
    ]
    if strict is not None:
        found += [
            Remark(_STRICT, each.pointer, str(each), (), 0, 0)
            for each in provider_findings(schema, strict.value)
        ]
    return found


def _one_rule(language: Language) -> Grammar:
    """A language as a grammar of one rule."""
    return Grammar({"value": language.expr}, "value", source=language.source, budget=language.budget)


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding about a rule, with the line of its definition (0: none), or about a part of a schema, with its JSON
    pointer. ``path``: rules that show it.
    """

    kind: str
    rule: str
    message: str
    path: tuple[str, ...]
    line: int
    column: int

    @property
    def serious(self) -> bool:
        """Whether the grammar should be changed."""
        return self.kind not in _INNOCENT

    def as_json(self) -> dict[str, Any]:
        """The remark in JSON."""
        return {
            "kind": self.kind,
            "note": not self.serious,
            "rule": self.rule,
            "message": self.message,
            "path": list(self.path),
            "line": self.line,
            "column": self.column,
        }

    def __str__(self) -> str:
        where = f"{self.line}:{self.column}: " if self.line else ""
        return f"{where}{'' if self.serious else 'note: '}{self.message} [{self.kind}]"


def findings(grammar: Grammar) -> list[Remark]:
    """The findings about a grammar without a vocabulary."""
    found = [
        Remark(each.kind.value, each.rule, each.message, each.path, each.line, each.column)
        for each in grammar.lint()
    ]
    try:
        conflict = grammar.conflict()
    except BudgetExceeded as error:
        return [
            *found,
            Remark(
                _CONFLICT, grammar.start, f"it is not known whether one stack is enough: {error}", (), 0, 0
            ),
        ]
    if conflict is not None:
        line, column = conflict.places[0]
        found.append(
            Remark(
                _CONFLICT, conflict.rules[0], f"not deterministic: {conflict}", conflict.rules, line, column
            )
        )
    return found


# --- with a vocabulary --------------------------------------------------------------------------------


def unspelled(grammar: Grammar, vocabulary: Vocabulary, known: set[str]) -> list[Remark]:
    """The unspelled rules, except those in ``known``, which are useless anyway. If the start rule is unspelled, it is
    the only one reported. Raises BudgetExceeded.
    """
    single = _single_bytes(vocabulary.tokens) & _single_bytes(vocabulary.initial_tokens or vocabulary.tokens)
    if single == ALL_BYTES:
        return []
    missing = set(grammar.rules) - known - _used(grammar, repeat(byte_set(single)))
    if missing:
        missing -= _used(grammar, spelled(vocabulary, single))
    message = "the rule {!r} takes part in no text that the vocabulary can spell"
    if grammar.start in missing:
        missing = {grammar.start}
        message = "no text of the rule {!r}, where the grammar starts, can be spelled with the vocabulary"
    remarks = []
    for name in grammar.rules:
        if name in missing:
            at = grammar.positions.get(name)
            line, column = (0, 0) if at is None else line_and_column(grammar.text, at)
            remarks.append(Remark(_UNSPELLED, name, message.format(name), (), line, column))
    return remarks


def spelled(vocabulary: Vocabulary, single: int) -> Expr:
    """The texts of all token sequences. ``single``: the bytes that are tokens at every position; tokens of only these
    bytes add nothing.
    """
    longer = {data for data in vocabulary.tokens if any(not single >> byte & 1 for byte in data)}
    rest = repeat(union(byte_set(single), *map(literal, sorted(longer))))
    if vocabulary.initial_tokens is None:
        return rest
    first = {
        data
        for token, data in enumerate(vocabulary.initial_tokens)
        if token not in vocabulary.special_token_ids and (data or not vocabulary.start_absorbs)
    }
    return optional(concat(union(*map(literal, sorted(first))), rest))


def _single_bytes(tokens: tuple[bytes, ...]) -> int:
    return sum(1 << byte for byte in {data[0] for data in tokens if len(data) == 1})


def _used(grammar: Grammar, texts: Expr) -> set[str]:
    """The rules in derivations of those words of the grammar that are in ``texts``."""
    dfa = Language(texts, budget=grammar.budget).determinize()
    found = product.intersect(grammar.rules, grammar.start, dfa, grammar.budget)
    return set() if found.rules[grammar.start].op is Op.EMPTY else set(found.origins.values())
