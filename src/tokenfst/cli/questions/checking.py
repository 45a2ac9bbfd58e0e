"""``tokenfst check``: whether texts or token sequences satisfy a constraint; if not, where they violate it, and what is
allowed there.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

from tokenfst._native import Matcher
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.display.explanation import Explanation, Following
from tokenfst.automata.languages.language import Language
from tokenfst.cli.constraints import options
from tokenfst.cli.constraints.symbols import SymbolResult, check_symbols
from tokenfst.cli.input import groups
from tokenfst.cli.input.budgets import BudgetOptions
from tokenfst.cli.input.tokens import VocabularyOptions
from tokenfst.cli.output.terminal import (
    Exit,
    UsageError,
    counted,
    json_bytes,
    note,
    pointed,
    quoted,
    say,
    say_json,
    warn,
)
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.canonical.matcher import CanonicalMatcher
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask
from tokenfst.decoding.matchers.prefixes import AnyMatcher
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import EmptyLanguageError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_SHOWN_TEXT = 60
_SHOWN_RULES = 8
"""The number of open rules that are shown at each end of a deep nesting."""
_NOTHING = Following(False, (), b"")
"""What may follow in the empty language: nothing, not even the end. This occurs in no other language, since every live
state can reach acceptance.
"""


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    groups.register(app, "check", check_command)


def check_command(
    *,
    constraining: options.ConstraintOptions,
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT",
            show_default=False,
            help="Texts to check. Without any, or with -: the lines of stdin.",
        ),
    ] = None,
    tokens: Annotated[
        list[str] | None,
        typer.Option(
            "--tokens", "-t", metavar="IDS", help="Check token ids, such as 1,2,3, with --vocabulary."
        ),
    ] = None,
    show: Annotated[
        int, typer.Option(metavar="N", min=0, help="How many of the allowed tokens to list.")
    ] = 8,
    tokenizing: VocabularyOptions,
    budgeting: BudgetOptions,
    json: options.Json = False,
) -> int:
    """Check whether texts or token ids satisfy a constraint.

    For a text that does not, show the position where it leaves the constraint, what would have been allowed
    there, and, for a grammar, the rules that are open there. Exit code 0: all satisfy it; 1: some do not.
    """
    budget = budgeting.read()
    given, texts = constraining.first(texts or [], budget)
    results: Iterator[TextResult] | Iterator[TokenResult] | Iterator[SymbolResult]
    if tokens:
        if texts:
            raise UsageError(f"check either --tokens or texts, not both ({texts[0]!r})")
        sequences = [_token_ids(each) for each in tokens]
        table = given.tokens(tokenizing, "--tokens")
        automaton = given.token_automaton(table, budget, tokenizing)
        results = (check_tokens(automaton, ids, show) for ids in sequences)
    else:
        if tokenizing.vocabulary is not None:
            raise UsageError("--vocabulary goes with --tokens; texts are checked without one")
        if given.automaton is not None:
            machine = given.automaton
            results = (check_symbols(machine, os.fsdecode(text)) for text in texts_given(texts))
        else:
            results = (check_text(given.value, text, given.grammar) for text in texts_given(texts))
    every, number = True, 0
    collected = []
    for result in results:
        every, number = every and result.accepted, number + 1
        if json:
            collected.append(result.as_json())
        else:
            result.show()
    if not number:
        warn("stdin is empty, so nothing was checked: give texts as arguments, or one on each line of stdin")
    if json:
        answer = {
            "command": "check",
            "source": given.source,
            "accepted": every,
            "results": collected,
        }
        say_json(answer)
    return Exit.YES if every else Exit.NO


def texts_given(arguments: list[str]) -> Iterator[bytes]:
    """The texts from the arguments, or else from the lines of stdin."""
    if arguments and arguments != ["-"]:
        yield from map(os.fsencode, arguments)
        return
    if sys.stdin.isatty():
        note("reading texts from the terminal, one a line; Ctrl-D ends")
    for line in sys.stdin.buffer:
        yield line.removesuffix(b"\n")


def _token_ids(text: str) -> list[int]:
    words = re.split(r"[\s,]+", text.strip().removeprefix("[").removesuffix("]").strip())
    try:
        return [int(word) for word in words if word]
    except ValueError:
        raise UsageError(f"--tokens takes ids such as 1,2,3, not {text!r}") from None


# --- texts --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextResult:
    """The result of checking one text. ``rules``: the rules of the grammar that are open where the text violates it,
    the outermost first; also for a regular grammar.
    """

    found: Explanation
    rules: tuple[str, ...] | None = None

    @property
    def accepted(self) -> bool:
        """Whether it satisfies the constraint."""
        return self.found.accepted

    def as_json(self) -> dict[str, Any]:
        """The answer for ``--json``."""
        found = self.found
        answer: dict[str, Any] = json_bytes(found.text) | {"accepted": found.accepted}
        if not found.accepted:
            answer |= {
                "byte": found.place,
                "character": found.character,
                "stops_early": found.place == len(found.text),
                "expected": (found.expected or _NOTHING).as_json(),
                "ending": None if found.ending is None else json_bytes(found.ending),
            }
        if self.rules is not None:
            answer["rules"] = list(self.rules)
        return answer

    def show(self) -> None:
        """Print the answer for people."""
        found = self.found
        if found.accepted:
            say(f"yes  {quoted(found.text, _SHOWN_TEXT)}", "green")
            return
        say(f"no   {quoted(found.text, _SHOWN_TEXT)}", "red")
        if found.expected is None:
            say("     no text is accepted: the language is empty")
            return
        early = found.place == len(found.text)
        where = f"byte {found.place:,}"
        if found.character != found.place:
            where += f" (character {found.character:,})"
        line, mark = pointed(found.text, found.place)
        if line:
            say(f"       {line}")
        say(f"       {mark} {'the text stops too early, at' if early else 'not allowed here, at'} {where}")
        if self.rules:
            say(f"     in {_nested(self.rules)}")
        say(f"     expected {found.expected}")
        if found.ending:
            say(f"     a shortest way on: {quoted(found.ending, _SHOWN_TEXT)}")


def _nested(rules: tuple[str, ...]) -> str:
    """The open rules, the outermost first; of very many only those at both ends."""
    if len(rules) > 2 * _SHOWN_RULES:
        left_out = len(rules) - 2 * _SHOWN_RULES
        rules = (*rules[:_SHOWN_RULES], f"… ({left_out:,} more)", *rules[-_SHOWN_RULES:])
    return " → ".join(rules)


def check_text(language: Language | Grammar, text: bytes, grammar: Grammar | None = None) -> TextResult:
    """Check one text. Linear in its length, plus the search for an ending. ``grammar``: the grammar whose rules are
    reported.
    """
    found = language.explain(text)
    if found.accepted or found.expected is None or grammar is None:
        return TextResult(found)
    rules = found.rules if found.rules is not None else grammar.open_rules(text[: found.place])
    return TextResult(found, rules)


# --- tokens -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TokenResult:
    """The result of checking one token sequence. If it is not accepted: ``place`` is the number of allowed tokens,
    ``allowed`` has the ids that could come next, end tokens included.
    """

    vocabulary: Vocabulary
    ids: list[int]
    accepted: bool
    place: int
    ended: bool
    allowed: list[int]
    shown: int

    def as_json(self) -> dict[str, Any]:
        """The answer for ``--json``."""
        answer: dict[str, Any] = {
            "tokens": self.ids,
            **json_bytes(self.vocabulary.shown(self.ids)),
            "accepted": self.accepted,
        }
        if not self.accepted:
            answer |= {
                "token": self.place,
                "stops_early": self.place == len(self.ids),
                "before": json_bytes(self.vocabulary.shown(self.ids[: self.place])),
                "allowed": {
                    "count": len(self.allowed),
                    "tokens": [
                        {"id": each, **json_bytes(self._bytes(each))} for each in self.allowed[: self.shown]
                    ],
                },
            }
        return answer

    def show(self) -> None:
        """Print the answer for people."""
        text = quoted(self.vocabulary.shown(self.ids), _SHOWN_TEXT)
        if self.accepted:
            say(f"yes  {counted(len(self.ids), 'token')}: {text}", "green")
            return
        say(f"no   {counted(len(self.ids), 'token')}: {text}", "red")
        before = quoted(self.vocabulary.shown(self.ids[: self.place]), _SHOWN_TEXT)
        if self.place == len(self.ids):
            say(f"     the tokens stop too early, after {before}")
        elif self.ended:
            say(f"     token {self.place} ({self._named(self.ids[self.place])}) comes after the end token")
            return
        else:
            say(
                f"     token {self.place} ({self._named(self.ids[self.place])}) is not allowed after {before}"
            )
        some = ", ".join(self._named(each) for each in self.allowed[: self.shown])
        more = ", …" if len(self.allowed) > self.shown else ""
        say(f"     {counted(len(self.allowed), 'token')} allowed there{': ' if some else ''}{some}{more}")

    def _bytes(self, token: int) -> bytes:
        if self.vocabulary.symbols is not None:
            return self.vocabulary.shown([token])
        first = not any(each not in self.vocabulary.special_token_ids for each in self.ids[: self.place])
        return self.vocabulary.initial_bytes(token) if first else self.vocabulary.token_bytes(token)

    def _named(self, token: int) -> str:
        if token not in self.vocabulary.special_token_ids:
            return f"{token} {quoted(self._bytes(token), _SHOWN_TEXT)}"
        names = [name for name, each in self.vocabulary.special_tokens.items() if each == token]
        return f"{token} {names[0] if names else 'special'}"


def check_tokens(automaton: TokenAutomaton | CanonicalAutomaton, ids: list[int], shown: int) -> TokenResult:
    """Check one token sequence. Raises ``TokenIdError`` for ids outside of the vocabulary."""
    vocabulary = automaton.vocabulary
    for token in ids:
        vocabulary.token_bytes(token)
    matcher: Matcher | CanonicalMatcher
    try:
        matcher = automaton.matcher()
    except EmptyLanguageError:
        return TokenResult(vocabulary, ids, False, 0, False, [], shown)
    place = matcher.validate_tokens(ids)
    matcher.accept_tokens(ids[:place])
    ended = matcher.is_terminated()
    if place == len(ids) and (ended or matcher.is_accepting()):
        return TokenResult(vocabulary, ids, True, place, ended, [], shown)
    return TokenResult(
        vocabulary, ids, False, place, ended, [] if ended else allowed_tokens(matcher, vocabulary), shown
    )


def allowed_tokens(matcher: AnyMatcher, vocabulary: Vocabulary) -> list[int]:
    """The token ids that a matcher allows next, ascending."""
    mask = allocate_token_bitmask(1, len(vocabulary))
    matcher.fill_next_token_bitmask(mask, 0)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little", count=len(vocabulary))
    ids: list[int] = np.flatnonzero(bits).tolist()
    return ids
