"""Ambiguous, cyclic and nullable grammars: masks against Earley's chart, and what they cost, counted and not timed.

The grammars are the worst for shared stacks: every rule is a few alternatives of very few symbols, so that rules derive
themselves, vanish, and read a text in exponentially many ways.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_engine_tokens import allowed

from reference.pushdown import START, TokenModel
from reference.random_grammars_wide import Patience
from tokenfst import Budget, Vocabulary, compile
from tokenfst.automata.expression import EPSILON, Expr, call, concat, literal, union
from tokenfst.automata.grammar import Grammar

EVERY_BYTE = [bytes([byte]) for byte in range(256)]
VOCABULARY = Vocabulary([*EVERY_BYTE, b""], 256)
LONGER = Vocabulary([*EVERY_BYTE, b"aa", b"ab", b"ba", b"bbb", b"abab", b"aaaaa", b""], 262)


def ambiguous_grammar(rng: random.Random) -> Grammar:
    """One to three rules of two to four alternatives, each of up to three symbols; one of them at least is a letter."""
    names = ["s", "t", "u"][: rng.randint(1, 3)]

    def alternative() -> Expr:
        symbols = [call(name) for name in names] * 2 + [literal(b"a"), literal(b"b")]
        return concat(EPSILON, *rng.choices(symbols, k=rng.choice([0, 1, 1, 2, 2, 2, 3])))

    rules = {
        name: union(*(alternative() for _ in range(rng.randint(1, 3))), literal(rng.choice([b"a", b"b"])))
        for name in names
    }
    return Grammar.from_rules(rules, "s")


def check(rng: random.Random, vocabulary: Vocabulary, steps: int) -> None:
    grammar, size = ambiguous_grammar(rng), len(vocabulary)
    model = TokenModel(grammar, vocabulary)
    matcher, place = compile(grammar, vocabulary, Budget(states=30_000, seconds=20)).matcher(), START
    for _ in range(steps):
        wanted = model.allowed(place)
        assert allowed(matcher, size) == wanted, (grammar.rules, place)
        choices = sorted(wanted - {model.eos})
        if not choices:
            break
        token = rng.choice(choices)
        assert matcher.accept_token(token)
        target = model.after(place, token)
        assert target is not None
        place = target


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_masks_of_ambiguous_grammars(seed: int) -> None:
    with Patience(1)():
        rng = random.Random(seed)
        check(rng, rng.choice([VOCABULARY, LONGER]), 12)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
def test_masks_of_ambiguous_grammars_at_length(seed: int) -> None:
    rng, patience = random.Random(9000 + seed), Patience(2)
    for _ in range(40):
        with patience():
            check(rng, rng.choice([VOCABULARY, LONGER]), 40)
