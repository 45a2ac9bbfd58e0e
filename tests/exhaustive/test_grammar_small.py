"""Small grammars on all short words: the slow twins against each other, then the push-down automaton against them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from reference.grammars import grammars as definitions
from reference.grammars.pushdown import INFINITE, BackusNaur, Recognizer, least_tokens
from reference.grammars.random_grammars import all_words
from reference.grammars.random_grammars_wide import GrammarGenerator, Patience
from tokenfst.automata.expressions.expression import EPSILON, Expr, call, concat, literal, union
from tokenfst.automata.grammars.grammar import Grammar

WORDS = all_words(7)
OUTSIDE = b"c\x00\xff"
"""Bytes that are in no word but those of complements."""


def random_grammars(seed: int, count: int) -> Iterator[Grammar]:
    rng = random.Random(seed)
    for _ in range(count):
        yield GrammarGenerator(rng).grammar()


def described(grammar: Grammar) -> str:
    """The rules, for a message that can be pasted."""
    return "\n".join(f"{name}: {shown(body)}" for name, body in grammar.rules.items())


def shown(node: Expr) -> str:
    inner = ", ".join(map(shown, node.args)) if node.op.name != "VARIABLE" else "..."
    return f"{node.op.name.lower()}({inner}{', ' if inner and node.value else ''}{node.value or ''})"


# --- the twins ----------------------------------------------------------------------------------------


def check_twins(grammar: Grammar, longest: int) -> None:
    """Earley's chart, the definitions as relations and Bar-Hillel's equations know nothing of each other's ways."""
    recognizer = Recognizer(grammar.rules, grammar.start)
    form = BackusNaur(grammar.rules, grammar.start)
    letters = [b"a", b"b", b"c"]
    assert (recognizer.first is None) == grammar.is_empty()
    for word in all_words(longest):
        assert recognizer.accepts(word) == definitions.accepts(grammar.rules, grammar.start, word), word
        least = least_tokens(form, word, letters)
        assert (least == 0) == recognizer.accepts(word), word
        assert (recognizer.viable_prefix(word) == len(word)) == (least < INFINITE), word
        if 0 < least < INFINITE:
            shorter = {least_tokens(form, word + letter, letters) for letter in letters}
            assert min(shorter) == least - 1, word


@pytest.mark.parametrize("seed", range(2))
def test_the_twins_agree(seed: int) -> None:
    for grammar in random_grammars(seed, 8):
        check_twins(grammar, 3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 130))
def test_the_twins_agree_at_length(seed: int) -> None:
    for grammar in random_grammars(seed, 30):
        check_twins(grammar, 5)


# --- the push-down automaton --------------------------------------------------------------------------


def check(grammar: Grammar, words: list[bytes]) -> int:
    """How many of the words are in the grammar."""
    slow, found = Recognizer(grammar.rules, grammar.start), 0
    for word in words:
        wanted = slow.next_bytes(word)
        found += wanted[1]
        assert grammar.next_bytes(word) == wanted, f"{word!r}\n{described(grammar)}"
        assert grammar.accepts(word) == wanted[1], f"{word!r}\n{described(grammar)}"
        assert grammar.viable_prefix(word) == slow.viable_prefix(word), f"{word!r}\n{described(grammar)}"
    for byte in OUTSIDE:
        word = bytes([byte]) + words[-1][:2]
        assert grammar.viable_prefix(word) == slow.viable_prefix(word), f"{word!r}\n{described(grammar)}"
    return found


@pytest.mark.parametrize("seed", range(8))
def test_random_grammars_on_all_words(seed: int) -> None:
    found = [check(grammar, WORDS) for grammar in random_grammars(1000 + seed, 15)]
    assert any(0 < count < len(WORDS) for count in found)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2000, 2100))
def test_many_random_grammars_on_all_words(seed: int) -> None:
    patience = Patience(3)
    for grammar in random_grammars(seed, 150):
        with patience():
            check(grammar, WORDS)


def sequences(parts: str, longest: int) -> list[Expr]:
    """All sequences of so many parts: capitals are rules, other letters bytes."""
    found = []
    for length in range(longest + 1):
        for chosen in itertools.product(parts, repeat=length):
            items = [call(part) if part.isupper() else literal(part.encode()) for part in chosen]
            found.append(concat(*items) if items else EPSILON)
    return found


def bodies(parts: str, longest: int, alternatives: int) -> list[Expr]:
    """All sets of so many sequences."""
    return [union(*chosen) for chosen in itertools.combinations(sequences(parts, longest), alternatives)]


def one_rule(alternatives: int) -> list[Grammar]:
    """Every grammar of one rule over a and b, with sequences of at most three parts."""
    return [Grammar({"S": body}, "S") for body in bodies("abS", 3, alternatives)]


def two_rules(longest: int) -> Iterator[Grammar]:
    """Every grammar of two rules over a and b, with two sequences of at most so many parts in each."""
    first, second = bodies("aST", longest, 2), bodies("bST", longest, 2)
    for body, other in itertools.product(first, second):
        yield Grammar({"S": body, "T": other}, "S")


def test_every_grammar_of_one_rule() -> None:
    for grammar in one_rule(2):
        check(grammar, WORDS[:63])


def test_one_in_thirty_of_the_grammars_of_two_rules() -> None:
    for grammar in itertools.islice(two_rules(2), 0, None, 30):
        check(grammar, WORDS[:63])


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_every_grammar_of_one_rule_with_three_alternatives(part: int) -> None:
    for grammar in one_rule(3)[part::10]:
        check(grammar, WORDS[:127])


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_every_grammar_of_two_rules(part: int) -> None:
    for grammar in itertools.islice(two_rules(2), part, None, 10):
        check(grammar, WORDS[:127])
