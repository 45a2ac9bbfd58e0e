"""Options that several commands share, in groups, and what they stand for: constraints, vocabularies, budgets."""

from __future__ import annotations

import enum
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tokenfst.automata.expression import Dfa
from tokenfst.automata.grammar import Grammar
from tokenfst.automata.language import Language
from tokenfst.automata.ltlf import ltlf
from tokenfst.automata.regex import regex
from tokenfst.automata.symbols import SymbolAutomaton
from tokenfst.budget import Budget
from tokenfst.cli.concepts import ConceptOptions
from tokenfst.cli.grammars import Syntax, read_grammar, read_text
from tokenfst.cli.labels import LabelOptions
from tokenfst.cli.objects import ObjectOptions
from tokenfst.cli.schemas import SchemaOptions
from tokenfst.cli.terminal import UsageError, warn
from tokenfst.decoding import artifact
from tokenfst.decoding.canonical import CanonicalAutomaton
from tokenfst.decoding.token_automaton import TokenAutomaton, compile
from tokenfst.errors import ArtifactCorruptError, BudgetExceeded, ConstraintError, TokenfstWarning
from tokenfst.tokenizers.from_symbols import from_symbols, listed_symbols
from tokenfst.tokenizers.sources import load_vocabulary
from tokenfst.tokenizers.vocabulary import Vocabulary

SUFFIX = ".safetensors"
"""How the name of an artifact ends; this is what tells it from a pattern."""

_DEFAULT = Budget()
_FLAGS = {
    "i": re.IGNORECASE,
    "m": re.MULTILINE,
    "s": re.DOTALL,
    "x": re.VERBOSE,
    "a": re.ASCII,
}


class Tokenization(enum.StrEnum):
    """Which token sequences stand for a text."""

    ALL = "all"
    CANONICAL = "canonical"


# --- how they are written -----------------------------------------------------------------------------

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
Flags = Annotated[
    str,
    typer.Option(
        metavar="LETTERS",
        help="Flags of the pattern, as in Python's re: i ignore case, m multi-line, s dot matches all, "
        "x verbose, a ASCII classes.",
    ),
]


@dataclass(frozen=True, slots=True)
class BudgetOptions:
    """What bounds every construction."""

    budget_states: Annotated[
        int, typer.Option(metavar="N", min=1, help="Most states to make.", rich_help_panel="Budget")
    ] = _DEFAULT.states
    budget_bytes: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Most memory for tables and masks, such as 500M or 2G.",
            rich_help_panel="Budget",
        ),
    ] = "2G"
    budget_seconds: Annotated[
        float, typer.Option(metavar="S", help="Most time for one step.", rich_help_panel="Budget")
    ] = _DEFAULT.seconds
    budget_positions: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Longest pattern, once its counted repetitions are written out.",
            rich_help_panel="Budget",
        ),
    ] = _DEFAULT.positions

    def read(self) -> Budget:
        """The budget of the four options."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKMGT]?)i?B?", self.budget_bytes)
        if match is None or float(match[1]) == 0:
            raise UsageError(f"--budget-bytes takes a size such as 500M or 2G, not {self.budget_bytes!r}")
        if not self.budget_seconds > 0:
            raise UsageError(f"--budget-seconds takes a positive number, not {self.budget_seconds:g}")
        size = int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))
        return Budget(
            states=self.budget_states,
            bytes=max(size, 1),
            seconds=self.budget_seconds,
            positions=self.budget_positions,
        )


@dataclass(frozen=True)
class WidthOptions:
    """What a model makes of a vocabulary."""

    vocab_size: Annotated[
        int | None,
        typer.Option(
            "--vocab-size",
            metavar="N",
            min=1,
            help="Width of the model's logits, if wider than the tokenizer.",
        ),
    ] = None
    eos_token_id: Annotated[
        list[int] | None,
        typer.Option(
            "--eos-token-id",
            metavar="ID",
            min=0,
            help="End token, in place of the tokenizer's own; may be repeated.",
        ),
    ] = None

    def load(self, spec: str) -> Vocabulary:
        """The vocabulary that ``spec`` names."""
        return load_vocabulary(spec, self.vocab_size, eos_token_id=self.eos_token_id or None)


@dataclass(frozen=True)
class _Spec:
    vocabulary: Annotated[
        str | None,
        typer.Option(
            "--vocabulary",
            "-v",
            metavar="SPEC",
            help="mistral:NAME, hf:PATH_OR_NAME, tiktoken:NAME_OR_FILE, spm:FILE, tokens:FILE.json or symbols:A,B,C.",
        ),
    ] = None


@dataclass(frozen=True)
class _Tokens:
    token_class: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ID,ID",
            help="The tokens of a class that the constraint names, such as IMAGE in (?P<IMAGE>); may be repeated.",
        ),
    ] = None
    tokenization: Annotated[
        Tokenization,
        typer.Option(help="Token sequences: all that spell a text, or only the tokenizer's own (canonical)."),
    ] = Tokenization.ALL


@dataclass(frozen=True)
class VocabularyOptions(_Tokens, WidthOptions, _Spec):
    """A vocabulary that a command may do without, and what is meant by its tokens."""

    def need(self, why: str) -> Vocabulary:
        """The vocabulary; ``why`` says what it is needed for."""
        if self.vocabulary is None:
            raise UsageError(f"{why} needs --vocabulary SPEC, such as mistral:tekken_240911")
        return self.load(self.vocabulary)

    def classes(self) -> dict[str, list[int]]:
        """The classes of tokens by name. UsageError for other forms than NAME=ID,ID and for a name given twice."""
        found: dict[str, list[int]] = {}
        for given in self.token_class or ():
            name, sign, ids = given.partition("=")
            try:
                members = [int(each) for each in ids.split(",")]
            except ValueError:
                sign = ""
            if not (name and sign) or name in found:
                raise UsageError(f"--token-class takes NAME=ID,ID, each name once, not {given!r}")
            found[name] = members
        return found

    def need_all(self, why: str) -> None:
        """UsageError where canonical sequences are asked for of what knows all."""
        if self.tokenization is not Tokenization.ALL:
            raise UsageError(
                f"{why} takes --tokenization all only: canonical sequences have no finished automaton"
            )


@dataclass(frozen=True, slots=True)
class GrammarOptions(SchemaOptions):
    """Rules: a grammar, or a JSON Schema."""

    grammar: Annotated[
        str | None,
        typer.Option(
            "--grammar",
            "-g",
            metavar="FILE|NAME",
            help="A grammar: a file, or the name of one that comes with tokenfst, such as json.",
            rich_help_panel="Grammar",
        ),
    ] = None
    start: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="The rule whose words count; if not given, start (Lark) or root (GBNF, EBNF).",
            rich_help_panel="Grammar",
        ),
    ] = None
    syntax: Annotated[
        Syntax | None,
        typer.Option(
            help="The file's notation; if not given, its suffix says it, and Lark's is the default.",
            rich_help_panel="Grammar",
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


@dataclass(frozen=True, slots=True)
class SymbolOptions(GrammarOptions):
    """Temporal formulas over symbols."""

    ltlf: Annotated[
        list[str] | None,
        typer.Option(
            "--ltlf",
            metavar="FORMULA",
            help="A formula of linear temporal logic on finite traces; may be repeated, and all must hold.",
            rich_help_panel="Symbols",
        ),
    ] = None
    symbols: Annotated[
        str | None,
        typer.Option(
            "--symbols",
            metavar="A,B,C|@FILE",
            help="The symbols, or a file of them, one a line; if not given, those that the formulas name.",
            rich_help_panel="Symbols",
        ),
    ] = None

    def read_formulas(self, budget: Budget) -> Constraint | None:
        """The constraint of the formulas, if some are given."""
        if self.ltlf:
            names = None if self.symbols is None else listed_symbols(self.symbols)
            automaton = ltlf(self.ltlf, names, budget)
            return Constraint(automaton.language(budget=budget), automaton=automaton)
        if self.symbols is not None:
            raise UsageError("--symbols goes with --ltlf")
        return None


@dataclass(frozen=True, slots=True)
class ConstraintOptions(SymbolOptions, LabelOptions, ConceptOptions, ObjectOptions):
    """A constraint: the first argument, or what stands in for it."""

    constraint: Annotated[
        str | None,
        typer.Argument(
            metavar="CONSTRAINT",
            show_default=False,
            help="A regular expression in Python's syntax, or an artifact (*.safetensors).",
        ),
    ] = None
    depth: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Take the part of the grammar (or schema) in which no rule is nested in itself more than N "
            "times: a regular language.",
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

    def first(self, rest: list[str], budget: Budget) -> tuple[Constraint, list[str]]:
        """The constraint, and the arguments that are not part of it; ``rest``: those after the first."""
        words = rest if self.constraint is None else [self.constraint, *rest]
        given = [
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
            )
            if value
        ]
        if len(given) > 1:
            raise UsageError(f"{given[0]} and {given[1]} are two constraints: give one")
        if given and (self.file is not None or self.flags):
            raise UsageError(f"--file and --flags are for patterns, not for {given[0]}")
        found = self.read_concepts(self.ltlf, self.symbols, budget)
        temporal = None if found else self.read_formulas(budget)
        labels = self.read_labels(budget)
        grammar, value = self.read_grammar(budget), self.read_object(budget)
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
        if (language := labels or found) is not None:
            return Constraint(language), words
        if value is not None:
            return Constraint(value), words
        if self.file is not None:
            return pattern_in(self.file, self.flags, budget), words
        if not words:
            raise UsageError(
                "a CONSTRAINT is needed: a pattern, an artifact, --file, --grammar, --json-schema, --ltlf, --choices, "
                "--hierarchy, --concepts, --python or --template"
            )
        return read_constraint(words[0], self.flags, budget), words[1:]

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
            if self.python is not None or self.template is not None:
                given = f"constraint is {constraint.source}"
            raise UsageError(f"the {given}, so {rest[0]!r} is one argument too many")
        return constraint


# --- what they stand for ------------------------------------------------------------------------------


def is_artifact(constraint: str) -> bool:
    """Whether a constraint is written as the name of an artifact, rather than as a pattern."""
    return constraint.endswith(SUFFIX)


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a CONSTRAINT stands for. ``value``: its words; a grammar only where they are no regular language.
    ``path``: the artifact that it came from; ``grammar``: the grammar, with nothing left out; ``automaton``: the
    automaton over symbols, where ``value`` is its language over their codes."""

    value: Language | Grammar
    path: Path | None = None
    grammar: Grammar | None = None
    automaton: SymbolAutomaton | None = None

    @property
    def source(self) -> str:
        """What the constraint was made from."""
        return self.value.source

    @property
    def language(self) -> Language:
        """The words as a language, for questions that need one. UsageError where they are none."""
        if isinstance(self.value, Grammar):
            raise UsageError(
                f"{self.source} is not regular, and this asks for a finite machine: add --depth N for the part "
                "of it that is nested at most so deeply"
            )
        return self.value

    def token_automaton(
        self, vocabulary: Vocabulary, budget: Budget, given: VocabularyOptions
    ) -> TokenAutomaton:
        """The constraint over tokens: the artifact itself, or the value composed with the vocabulary,
        lazily."""
        if self.path is not None:
            return TokenAutomaton.load(self.path, vocabulary)
        automaton, messages = self.compiled(vocabulary, budget, given)
        for message in messages:
            warn(message)
        return automaton

    def matchers(
        self, vocabulary: Vocabulary, budget: Budget, given: VocabularyOptions
    ) -> TokenAutomaton | CanonicalAutomaton:
        """The same, or its canonical sequences, as ``given`` says."""
        if given.tokenization is Tokenization.ALL:
            return self.token_automaton(vocabulary, budget, given)
        value = self.automaton or self.value
        return compile(value, vocabulary, budget, tokenization="canonical", token_classes=given.classes())

    def compiled(
        self, vocabulary: Vocabulary, budget: Budget, given: VocabularyOptions
    ) -> tuple[TokenAutomaton, list[str]]:
        """``compile``, and the warnings that it gave."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TokenfstWarning)
            value = self.automaton or self.value
            automaton = compile(value, vocabulary, budget, token_classes=given.classes())
        return automaton, [str(item.message) for item in caught]

    def tokens(self, given: VocabularyOptions, why: str) -> Vocabulary:
        """The vocabulary that is given, or else that of the constraint's own symbols."""
        if self.automaton is None or given.vocabulary is not None:
            return given.need(why)
        return from_symbols(
            self.automaton.symbols, size=given.vocab_size, eos_token_id=given.eos_token_id or None
        )


def read_constraint(argument: str, flags: str, budget: Budget) -> Constraint:
    """A constraint written as a pattern, or as the name of an artifact."""
    if not is_artifact(argument):
        return Constraint(regex(argument, _flags(flags), budget).with_budget(budget))
    if flags:
        raise UsageError(f"--flags is for patterns, and {argument} is an artifact")
    return Constraint(artifact_language(artifact.read(argument), argument, budget), Path(argument))


def artifact_language(found: artifact.Artifact, path: str, budget: Budget) -> Language:
    """The language over bytes of an artifact, out of its own tables: exact, and without a vocabulary."""
    arrays = found.arrays
    if "stack_states" in arrays:
        raise UsageError(
            f"{path} is a push-down automaton, which is no regular language: use its grammar instead (--grammar)"
        )
    if "token_columns" in arrays:
        raise UsageError(
            f"{path} speaks of tokens as such, so it is no language of texts: load it in Python and use its matcher"
        )
    dfa = Dfa(arrays["classes"], arrays["table"], arrays["accepting"] != 0, arrays["start"])
    try:
        return Language.from_dfa(dfa, found.source).with_budget(budget)
    except ConstraintError as error:
        raise ArtifactCorruptError(f"{path} breaks a rule of the format: {error}") from error


def pattern_in(path: Path, flags: str, budget: Budget) -> Constraint:
    """The pattern in a file, without the newline at its end."""
    text = read_text(path, "the pattern")
    text = text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")
    return Constraint(regex(text, _flags(flags), budget).with_budget(budget))


def grammar_constraint(grammar: Grammar, depth: int | None, budget: Budget) -> Constraint:
    """A grammar, or its part of so much depth; as a language where it is regular."""
    if depth is not None:
        return Constraint(grammar.truncate(depth), grammar=grammar)
    if grammar.is_regular():
        return Constraint(Language(grammar.to_language().expr, grammar.source, budget), grammar=grammar)
    return Constraint(grammar, grammar=grammar)


def schema_constraint(schema: Language | Grammar, depth: int | None, budget: Budget) -> Constraint:
    """A schema's texts; as a language where they are regular and that language is not too long to be written out."""
    if not isinstance(schema, Grammar):
        return Constraint(schema)
    try:
        return grammar_constraint(schema, depth, budget)
    except BudgetExceeded:
        if depth is not None:
            raise
        return Constraint(schema, grammar=schema)


def _flags(letters: str) -> int:
    flags = 0
    for letter in letters:
        if letter not in _FLAGS:
            raise UsageError(f"--flags takes the letters {''.join(_FLAGS)}, not {letter!r}")
        flags |= _FLAGS[letter]
    return int(flags)
