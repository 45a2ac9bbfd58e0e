"""Options that several commands share, and what they stand for: constraints, vocabularies, budgets."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tokenfst.automata.expression import Dfa
from tokenfst.automata.language import Language
from tokenfst.automata.regex import regex
from tokenfst.budget import Budget
from tokenfst.cli.terminal import UsageError, warn
from tokenfst.decoding import artifact
from tokenfst.decoding.token_automaton import TokenAutomaton, compile
from tokenfst.errors import ArtifactCorruptError, ConstraintError, TokenfstWarning
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


def command_help(function: Callable[..., int]) -> str:
    """A command's docstring as its help page: paragraphs, each on one line."""
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


# --- how they are written -----------------------------------------------------------------------------

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
PatternFile = Annotated[
    Path | None,
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        help="Take the pattern from a file (UTF-8; one newline at its end is dropped), instead of from the "
        "first argument.",
    ),
]
Flags = Annotated[
    str,
    typer.Option(
        metavar="LETTERS",
        help="Flags of the pattern, as in Python's re: i ignore case, m multi-line, s dot matches all, "
        "x verbose, a ASCII classes.",
    ),
]
VocabularySpec = Annotated[
    str | None,
    typer.Option(
        "--vocabulary",
        "-v",
        metavar="SPEC",
        help="mistral:NAME, hf:PATH_OR_NAME, tiktoken:NAME_OR_FILE, spm:FILE or tokens:FILE.json.",
    ),
]
VocabularySize = Annotated[
    int | None,
    typer.Option(
        "--vocab-size", metavar="N", min=1, help="Width of the model's logits, if wider than the tokenizer."
    ),
]
EndTokens = Annotated[
    list[int] | None,
    typer.Option(
        "--eos-token-id",
        metavar="ID",
        min=0,
        help="End token, in place of the tokenizer's own; may be repeated.",
    ),
]
BudgetStates = Annotated[
    int, typer.Option(metavar="N", min=1, help="Most states to make.", rich_help_panel="Budget")
]
BudgetBytes = Annotated[
    str,
    typer.Option(
        metavar="SIZE", help="Most memory for tables and masks, such as 500M or 2G.", rich_help_panel="Budget"
    ),
]
BudgetSeconds = Annotated[
    float, typer.Option(metavar="S", help="Most time for one step.", rich_help_panel="Budget")
]
BudgetPositions = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=1,
        help="Longest pattern, once its counted repetitions are written out.",
        rich_help_panel="Budget",
    ),
]

STATES, BYTES, SECONDS, POSITIONS = _DEFAULT.states, "2G", _DEFAULT.seconds, _DEFAULT.positions
"""The defaults of the budget's options."""


# --- what they stand for ------------------------------------------------------------------------------


def make_budget(states: int, memory: str, seconds: float, positions: int) -> Budget:
    """The budget of the four options."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKMGT]?)i?B?", memory)
    if match is None or float(match[1]) == 0:
        raise UsageError(f"--budget-bytes takes a size such as 500M or 2G, not {memory!r}")
    if not seconds > 0:
        raise UsageError(f"--budget-seconds takes a positive number, not {seconds:g}")
    size = int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))
    return Budget(states=states, bytes=max(size, 1), seconds=seconds, positions=positions)


def is_artifact(constraint: str) -> bool:
    """Whether a constraint is written as the name of an artifact, rather than as a pattern."""
    return constraint.endswith(SUFFIX)


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a CONSTRAINT argument stands for. ``language``: over bytes. ``path``: of the artifact it came
    from."""

    language: Language
    path: Path | None = None

    def token_automaton(self, vocabulary: Vocabulary, budget: Budget) -> TokenAutomaton:
        """The constraint over tokens: the artifact itself, or the pattern composed with the vocabulary,
        lazily."""
        if self.path is not None:
            return TokenAutomaton.load(self.path, vocabulary)
        automaton, messages = compile_warned(self.language, vocabulary, budget)
        for message in messages:
            warn(message)
        return automaton


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
    dfa = Dfa(arrays["classes"], arrays["table"], arrays["accepting"] != 0, arrays["start"])
    try:
        return Language.from_dfa(dfa, found.source).with_budget(budget)
    except ConstraintError as error:
        raise ArtifactCorruptError(f"{path} breaks a rule of the format: {error}") from error


def constraint_and_rest(
    words: list[str], file: Path | None, flags: str, budget: Budget
) -> tuple[Constraint, list[str]]:
    """The constraint that comes first in ``words``, or in ``file``, and the other words."""
    if file is not None:
        return Constraint(regex(read_pattern(file), _flags(flags), budget).with_budget(budget)), words
    if not words:
        raise UsageError("a CONSTRAINT is needed: a pattern, an artifact, or --file")
    return read_constraint(words[0], flags, budget), words[1:]


def one_constraint(word: str | None, file: Path | None, flags: str, budget: Budget) -> Constraint:
    """The constraint of a command that takes one, as an argument or in ``file``."""
    constraint, rest = constraint_and_rest([] if word is None else [word], file, flags, budget)
    if rest:
        raise UsageError(f"the pattern comes from {file}, so {rest[0]!r} is one argument too many")
    return constraint


def read_pattern(path: Path) -> str:
    """The pattern in a file, without the newline at its end."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConstraintError(
            f"{path} is not UTF-8 at byte {error.start}: save the pattern in UTF-8"
        ) from error
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")


def need_vocabulary(spec: str | None, size: int | None, end: list[int] | None, why: str) -> Vocabulary:
    """The vocabulary of the three options; ``why`` says what it is needed for."""
    if spec is None:
        raise UsageError(f"{why} needs --vocabulary SPEC, such as mistral:tekken_240911")
    return load_vocabulary(spec, size, eos_token_id=end or None)


def compile_warned(
    language: Language, vocabulary: Vocabulary, budget: Budget
) -> tuple[TokenAutomaton, list[str]]:
    """``compile``, and the warnings that it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TokenfstWarning)
        automaton = compile(language, vocabulary, budget)
    return automaton, [str(item.message) for item in caught]


def _flags(letters: str) -> int:
    flags = 0
    for letter in letters:
        if letter not in _FLAGS:
            raise UsageError(f"--flags takes the letters {''.join(_FLAGS)}, not {letter!r}")
        flags |= _FLAGS[letter]
    return int(flags)
