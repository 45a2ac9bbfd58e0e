"""What a CONSTRAINT stands for: a language, a grammar, an automaton over symbols, or an artifact.

An artifact is its own language, exactly, read from its tables without a vocabulary. Where it has a stack, or speaks of
tokens as such, it is none: then it can be walked by tokens, with its vocabulary, and whoever asks for its texts is told
what to give instead.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path

from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import regex
from tokenfst.automata.symbols.automaton import SymbolAutomaton
from tokenfst.budget import Budget
from tokenfst.cli.constraints.grammars import read_text
from tokenfst.cli.input.tokens import Tokenization, VocabularyOptions
from tokenfst.cli.output.terminal import UsageError, warn
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.token_automata import artifact
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ArtifactCorruptError, BudgetExceeded, ConstraintError, TokenfstWarning
from tokenfst.tokenizers.adapters.symbols import from_symbols
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

SUFFIX = ".safetensors"
"""How the name of an artifact ends; this is what tells it from a pattern."""

_MEANT = {
    ".json": "--json-schema",
    ".gbnf": "--grammar",
    ".ebnf": "--grammar",
    ".lark": "--grammar",
}
"""How the names of files end that are no patterns, and the option that reads them."""

_FLAGS = {
    "i": re.IGNORECASE,
    "m": re.MULTILINE,
    "s": re.DOTALL,
    "x": re.VERBOSE,
    "a": re.ASCII,
}


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a CONSTRAINT stands for.

    ``words``: its words; a grammar only where they are no regular language; None where only tokens can tell, of an
    artifact. ``source``: what it was made from. ``path``: the artifact that it came from; ``canonical``: whether that
    holds canonical token sequences alone. ``grammar``: the grammar, with nothing left out. ``automaton``: the automaton
    over symbols, where ``words`` is its language over their codes.
    """

    words: Language | Grammar | None
    source: str
    path: Path | None = None
    canonical: bool = False
    grammar: Grammar | None = None
    automaton: SymbolAutomaton | None = None

    @property
    def value(self) -> Language | Grammar:
        """The words, for what is asked of texts. UsageError for an artifact that only tokens walk."""
        if self.words is None:
            raise UsageError(
                f"{self.path} can only be walked by tokens: it has a stack or no tables, or constrains tokens. Use "
                "--vocabulary (check: --tokens), or give the constraint that it was compiled from"
            )
        return self.words

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
    ) -> TokenAutomaton | CanonicalAutomaton:
        """The constraint over tokens, or its canonical sequences, as ``given`` says: the artifact itself, or the value
        composed with the vocabulary, lazily."""
        if self.path is not None and self.canonical:
            return CanonicalAutomaton.load(self.path, vocabulary)
        if self.path is not None and given.tokenization is Tokenization.ALL:
            return TokenAutomaton.load(self.path, vocabulary)
        automaton, messages = self.compiled(vocabulary, budget, given)
        for message in messages:
            warn(message)
        return automaton

    def compiled(
        self, vocabulary: Vocabulary, budget: Budget, given: VocabularyOptions
    ) -> tuple[TokenAutomaton | CanonicalAutomaton, list[str]]:
        """``compile``, and the warnings that it gave."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TokenfstWarning)
            value, classes = self.automaton or self.value, given.classes()
            automaton: TokenAutomaton | CanonicalAutomaton
            if given.tokenization is Tokenization.CANONICAL:
                automaton = compile(
                    value, vocabulary, budget, tokenization="canonical", token_classes=classes
                )
            else:
                automaton = compile(value, vocabulary, budget, token_classes=classes)
        return automaton, [str(item.message) for item in caught]

    def tokens(self, given: VocabularyOptions, why: str) -> Vocabulary:
        """The vocabulary that is given, or else that of the constraint's own symbols."""
        if self.automaton is None or given.vocabulary is not None:
            return given.need(why)
        return from_symbols(
            self.automaton.symbols, size=given.vocab_size, eos_token_id=given.eos_token_id or None
        )


def of_words(words: Language | Grammar) -> Constraint:
    """The constraint of a language or of a grammar that is none."""
    return Constraint(words, words.source)


def is_artifact(constraint: str) -> bool:
    """Whether a constraint is written as the name of an artifact, rather than as a pattern."""
    return constraint.endswith(SUFFIX)


def read_constraint(argument: str, flags: str, budget: Budget) -> Constraint:
    """A constraint written as a pattern, or as the name of an artifact."""
    if not is_artifact(argument):
        _refuse_file(argument)
        return of_words(regex(argument, _flags(flags), budget).with_budget(budget))
    if flags:
        raise UsageError(f"--flags is for patterns, and {argument} is an artifact")
    found = artifact.read(argument)
    language = artifact_language(found, argument, budget)
    return Constraint(language, found.source, Path(argument), found.split_pattern is not None)


def _refuse_file(argument: str) -> None:
    """UsageError for a pattern that is the name of a file: its author most likely means what is in the file."""
    path = Path(argument)
    try:
        there = path.is_file()
    except (OSError, ValueError):  # too long for a name, or a NUL in it
        there = False
    meant = _MEANT.get(path.suffix.lower())
    if there:
        raise UsageError(
            f"{argument} is a file, and CONSTRAINT is a pattern: say {meant or '--file'} {argument} for what is in the "
            "file (--json-schema for a JSON Schema, --grammar for a grammar, --file for a pattern); the pattern itself "
            f"is written '({argument})'"
        )
    if meant is not None and path.stem and not any(letter in argument for letter in "()[]{}|*+?^$\\"):
        warn(f"there is no file {argument}: it is read as a pattern (for a file, say {meant} FILE)")


def artifact_language(found: artifact.Artifact, path: str, budget: Budget) -> Language | None:
    """The byte language of an artifact, read from its tables: exact, and without a vocabulary. None if the artifact has
    a stack, is token-level, or has no tables."""
    arrays = found.arrays
    if found.is_program or "stack_states" in arrays or "token_columns" in arrays:
        return None
    dfa = Dfa(arrays["classes"], arrays["table"], arrays["accepting"] != 0, arrays["start"])
    try:
        return Language.from_dfa(dfa, found.source).with_budget(budget)
    except ConstraintError as error:
        raise ArtifactCorruptError(f"{path} breaks a rule of the format: {error}") from error


def pattern_in(path: Path, flags: str, budget: Budget) -> Constraint:
    """The pattern in a file, without the newline at its end."""
    text = read_text(path, "the pattern")
    text = text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")
    return of_words(regex(text, _flags(flags), budget).with_budget(budget))


def grammar_constraint(grammar: Grammar, depth: int | None, budget: Budget) -> Constraint:
    """A grammar, or its part of so much depth; as a language where it is regular."""
    words: Language | Grammar = grammar
    if depth is not None:
        words = grammar.truncate(depth)
    elif grammar.is_regular():
        words = Language(grammar.to_language().expr, grammar.source, budget)
    return Constraint(words, words.source, grammar=grammar)


def schema_constraint(schema: Language | Grammar, depth: int | None, budget: Budget) -> Constraint:
    """A schema's texts; as a language where they are regular and that language is not too long to be written out."""
    if not isinstance(schema, Grammar):
        return of_words(schema)
    try:
        return grammar_constraint(schema, depth, budget)
    except BudgetExceeded:
        if depth is not None:
            raise
        return Constraint(schema, schema.source, grammar=schema)


def _flags(letters: str) -> int:
    flags = 0
    for letter in letters:
        if letter not in _FLAGS:
            raise UsageError(f"--flags takes the letters {''.join(_FLAGS)}, not {letter!r}")
        flags |= _FLAGS[letter]
    return int(flags)
