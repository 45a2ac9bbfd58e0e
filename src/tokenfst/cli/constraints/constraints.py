"""The meaning of CONSTRAINT: a language, a grammar, an automaton over symbols, or an artifact.

The language of an artifact is exact, and is read from its tables without a vocabulary. An artifact with a stack or of a
token-level constraint has no such language: it can only be walked by tokens, with its vocabulary, and commands that
need its texts say what to give instead.
"""

from __future__ import annotations

import json
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
from tokenfst.decoding.artifacts import artifact
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ArtifactCorruptError, BudgetExceeded, ConstraintError, TokenfstWarning
from tokenfst.tokenizers.adapters.symbols import from_symbols
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

SUFFIX = ".safetensors"
"""The ending of an artifact's name; it distinguishes an artifact from a pattern."""

_MEANT = {
    ".json": "--json-schema",
    ".gbnf": "--grammar",
    ".ebnf": "--grammar",
    ".lark": "--grammar",
}
"""Endings of file names that are not patterns, and the option that reads such a file."""

_FLAGS = {
    "i": re.IGNORECASE,
    "m": re.MULTILINE,
    "s": re.DOTALL,
    "x": re.VERBOSE,
    "a": re.ASCII,
}


@dataclass(frozen=True, slots=True)
class Constraint:
    """A parsed CONSTRAINT.

    ``words``: the texts as a language, or as a grammar if they are not known to be regular; None for an artifact that
    only tokens can walk. ``source``: what the user wrote. ``path``: the file of an artifact; ``canonical``: whether the
    artifact has only canonical token sequences. ``grammar``: the complete grammar, if the constraint is one.
    ``automaton``: the automaton over symbols, for formulas; then ``words`` is its language over the codes of symbols.
    """

    words: Language | Grammar | None
    source: str
    path: Path | None = None
    canonical: bool = False
    grammar: Grammar | None = None
    automaton: SymbolAutomaton | None = None

    @property
    def value(self) -> Language | Grammar:
        """The words, for questions about texts. Raises UsageError for an artifact that only tokens can walk."""
        if self.words is None:
            raise UsageError(
                f"{self.path} can only be walked by tokens: it has a stack or no tables, or constrains tokens. Use "
                "--vocabulary (check: --tokens), or give the constraint that it was compiled from"
            )
        return self.words

    @property
    def language(self) -> Language:
        """The words as a language. Raises UsageError if they are not regular."""
        if isinstance(self.value, Grammar):
            raise UsageError(
                f"{self.source} is not regular, and this command needs a finite automaton: add --depth N to take only "
                "texts in which no rule is nested in itself more than N times"
            )
        return self.value

    def token_automaton(
        self, vocabulary: Vocabulary, budget: Budget, given: VocabularyOptions
    ) -> TokenAutomaton | CanonicalAutomaton:
        """The constraint over tokens, or over canonical sequences only, as ``given`` says: the loaded artifact, or the
        lazy composition of the value with the vocabulary.
        """
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
        """``compile``, and its warnings."""
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
        """The given vocabulary. For a constraint over symbols, the default is the vocabulary of these symbols; for any
        other, UsageError says that ``why`` needs a vocabulary.
        """
        if self.automaton is None or given.vocabulary is not None:
            return given.need(why)
        return from_symbols(
            self.automaton.symbols, size=given.vocab_size, eos_token_id=given.eos_token_id or None
        )


def of_words(words: Language | Grammar) -> Constraint:
    """The constraint of a language, or of a grammar that is not regular."""
    return Constraint(words, words.source)


def is_artifact(constraint: str) -> bool:
    """Whether a constraint is the name of an artifact, not a pattern."""
    return constraint.endswith(SUFFIX)


def read_constraint(argument: str, flags: str, budget: Budget) -> Constraint:
    """A constraint written as a pattern, or as the name of an artifact."""
    if not is_artifact(argument):
        _refuse_file(argument)
        return of_words(regex(argument, _flags(flags), budget).with_budget(budget))
    if flags:
        raise UsageError(f"--flags needs a pattern, but {argument} is an artifact")
    found = artifact.read(argument)
    language = artifact_language(found, argument, budget)
    return Constraint(language, found.source, Path(argument), found.encoding is not None)


def is_file(argument: str) -> bool:
    """Whether an argument is the name of a file."""
    try:
        return Path(argument).is_file()
    except (OSError, ValueError):  # too long for a name, or a NUL in it
        return False


def _refuse_file(argument: str) -> None:
    """Raise UsageError for a pattern that is the name of a file: most likely the content of the file was meant."""
    path = Path(argument)
    meant = _MEANT.get(path.suffix.lower())
    if is_file(argument):
        raise UsageError(
            f"{argument} is a file, and CONSTRAINT is a pattern: use {meant or '--file'} {argument} for the content of "
            "the file (--json-schema for a JSON Schema, --grammar for a grammar, --file for a pattern); the pattern "
            f"itself is written '({argument})'"
        )
    if meant is not None and path.stem and not any(letter in argument for letter in "()[]{}|*+?^$\\"):
        warn(f"there is no file {argument}: it is read as a pattern (for a file, use {meant} FILE)")


def artifact_language(found: artifact.Artifact, path: str, budget: Budget) -> Language | None:
    """The byte language of an artifact, read from its tables: exact, and without a vocabulary. None if the artifact has
    a stack, is token-level, or has no tables.
    """
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
    if _is_json_object(text):
        raise UsageError(
            f"{path} holds a JSON object, not a pattern: a JSON Schema is read by --json-schema FILE, and diff "
            "compares two of them if both names end in .json. A pattern for a text that begins with a brace is "
            "written \\{..."
        )
    return of_words(regex(text, _flags(flags), budget).with_budget(budget))


def _is_json_object(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def grammar_constraint(grammar: Grammar, depth: int | None, budget: Budget) -> Constraint:
    """A grammar, or its part up to a depth; as a language if it is regular."""
    words: Language | Grammar = grammar
    if depth is not None:
        words = grammar.truncate(depth)
    elif grammar.is_regular():
        words = Language(grammar.to_language().expr, grammar.source, budget)
    return Constraint(words, words.source, grammar=grammar)


def schema_constraint(schema: Language | Grammar, depth: int | None, budget: Budget) -> Constraint:
    """The texts of a schema; as a language if they are regular and the language is not too large to be written out."""
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
            raise UsageError(f"--flags must consist of the letters {''.join(_FLAGS)}, not {letter!r}")
        flags |= _FLAGS[letter]
    return int(flags)
