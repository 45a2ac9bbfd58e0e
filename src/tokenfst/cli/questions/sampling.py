"""``tokenfst sample``: random strings of a language, byte by byte or token by token."""

from __future__ import annotations

import random
from typing import Annotated, Any

import typer

from tokenfst.cli.constraints import options
from tokenfst.cli.input import groups
from tokenfst.cli.input.budgets import BudgetOptions
from tokenfst.cli.input.tokens import VocabularyOptions
from tokenfst.cli.output.terminal import Exit, UsageError, json_bytes, plain, say, say_json_list, warn
from tokenfst.cli.questions.checking import allowed_tokens
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton

_STOP = 0.15
"""The probability of ending a token sequence at a place where it may end."""
_MAX_TOKENS = 64


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    groups.register(app, "sample", sample_command)


def sample_command(
    *,
    constraining: options.ConstraintOptions,
    number: Annotated[int, typer.Option("--number", "-n", metavar="N", min=1, help="Number of strings.")] = 1,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", help="The same seed gives the same strings.", show_default=False),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Maximum length of a string, in bytes.", show_default=False),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Strings of N bytes, all equally probable.", show_default=False
        ),
    ] = None,
    tokenizing: VocabularyOptions,
    max_new_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help=f"With --vocabulary: maximum number of tokens ({_MAX_TOKENS} if not given).",
        ),
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(min=0, hidden=True)] = None,
    budgeting: BudgetOptions,
    json: options.Json = False,
) -> int:
    """Draw random strings that satisfy a constraint, one on each line.

    With --vocabulary, draw random token sequences: each token is drawn uniformly from those that are allowed, and
    where the text may end, it ends with probability 0.15. Line breaks, control characters and bytes that are not UTF-8
    are shown as escapes; --json prints the exact strings.

    Each string is printed as soon as it is drawn, so the number has no bound: Ctrl-C or a closed pipe ends the command.
    """
    if max_tokens is not None:
        if max_new_tokens is not None:
            raise UsageError("--max-tokens is the old name of --max-new-tokens: give --max-new-tokens alone")
        warn("--max-tokens is called --max-new-tokens now")
        max_new_tokens = max_tokens
    budget = budgeting.read()
    rng = random.Random(seed)
    given = constraining.one(budget)
    automaton: TokenAutomaton | CanonicalAutomaton | None = None
    if tokenizing.vocabulary is None and given.automaton is None:
        if length is not None and max_length is not None:
            raise UsageError("--length N says more than --max-length: give one of them")
        if max_new_tokens is not None:
            raise UsageError("--max-new-tokens goes with --vocabulary; --max-length bounds strings")
    else:
        if max_length is not None or length is not None:
            raise UsageError(
                "--max-length and --length are for strings; --max-new-tokens bounds token sequences"
            )
        table = given.tokens(tokenizing, "sample")
        automaton = given.token_automaton(table, budget, tokenizing)

    def draw() -> tuple[bytes, dict[str, Any]]:
        if automaton is None:
            return given.value.sample(rng, max_length, length=length), {}
        ids = sample_tokens(automaton, rng, _MAX_TOKENS if max_new_tokens is None else max_new_tokens)
        return automaton.vocabulary.shown(ids), {"tokens": ids}

    draws = (draw() for _ in range(number))
    if json:
        samples = (json_bytes(word) | extra for word, extra in draws)
        say_json_list({"command": "sample", "source": given.source}, "samples", samples)
    else:
        for word, _ in draws:
            say(plain(word))
    return Exit.YES


def sample_tokens(
    automaton: TokenAutomaton | CanonicalAutomaton, rng: random.Random, max_new_tokens: int
) -> list[int]:
    """A random accepted token sequence of at most ``max_new_tokens`` tokens, without the end token.

    Raises ``TokenLimitError`` if no sequence is that short, ``BudgetExceeded`` if this cannot be decided within the
    budget.
    """
    matcher = start_matcher(automaton, max_new_tokens)
    ends = automaton.vocabulary.eos_token_ids
    while True:
        ids = [token for token in allowed_tokens(matcher, automaton.vocabulary) if token not in ends]
        if not ids or (matcher.is_accepting() and rng.random() < _STOP):
            return list(matcher.tokens)
        matcher.accept_token(rng.choice(ids))
