"""Budgets of tokens over push-down automata: whoever follows the masks ends inside the budget, at a word.

``distance()`` is an upper bound there, so three things are checked: it is never less than the true distance, it is
equal where tokens cannot cross the borders of rules, and every walk through the masks of a budget that it admits ends.
"""

from __future__ import annotations

import random
import time
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference.grammars.pushdown import START, TokenModel
from reference.grammars.random_grammars_wide import Patience
from tests.support.worlds.budget_worlds import follow, random_case
from tests.support.worlds.pushdown_worlds import CROSSING, compose, crossing
from tests.support.worlds.token_worlds import allowed
from tokenfst import Budget, Matcher, Vocabulary, _native, allocate_token_bitmask, compile, json_object
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.bundled import bundled_grammar, bundled_grammars
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.decoding.token_automata.token_automaton import UNREACHABLE
from tokenfst.errors import TokenLimitError, UnspellableWarning

LETTERS = [b"a", b"b"]
EVERY_BYTE = [bytes([byte]) for byte in range(256)]


def check(rng: random.Random, walks: int) -> None:
    grammar, vocabulary, model = random_case(rng)
    automaton = compose(grammar, vocabulary, rng.choice([0, 192]))
    bound, size = Matcher(automaton).distance(), len(vocabulary)
    assert bound >= model.least(START)
    if bound == UNREACHABLE:
        assert not model.complete  # tokens may finish the text, but none end where its parts end
        with pytest.raises(TokenLimitError):
            Matcher(automaton, 1000)
        return
    if bound:
        with pytest.raises(
            TokenLimitError,
            match=f"(enough|the least number) from here is {bound}",
        ):
            Matcher(automaton, bound - 1)
    for _ in range(walks):
        follow(rng, Matcher(automaton, bound + rng.choice([0, 0, 1, 2, 5])), size, model)


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_walk_ends_at_a_word(seed: int) -> None:
    with Patience(1)():
        check(random.Random(seed), 3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(400))
def test_every_walk_ends_at_a_word_at_length(seed: int) -> None:
    rng, patience = random.Random(7000 + seed), Patience(4)
    for _ in range(15):
        with patience():
            check(rng, 6)


# --- where the distance is exact ----------------------------------------------------------------------


def check_exact(
    grammar: Grammar, vocabulary: Vocabulary, model: TokenModel, rng: random.Random, walks: int
) -> None:
    automaton = compose(grammar, vocabulary, 192)
    for _ in range(walks):
        matcher, place = Matcher(automaton), START
        for _ in range(7):
            assert matcher.distance() == model.least(place), place
            choices = sorted(model.allowed(place) - {model.eos})
            if not choices:
                break
            token = rng.choice(choices)
            assert matcher.accept_token(token)
            place = model.after(place, token) or place


@pytest.mark.parametrize("seed", range(3))
def test_exact_where_every_token_is_a_byte(seed: int) -> None:
    """A token of one byte ends where parts end, so the sum over the stack is the distance."""
    rng, patience = random.Random(300 + seed), Patience(1)
    for _ in range(8):
        with patience():
            check_exact(*random_case(rng, LETTERS), rng, 3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(40))
def test_exact_where_every_token_is_a_byte_at_length(seed: int) -> None:
    rng, patience = random.Random(8000 + seed), Patience(5)
    for _ in range(40):
        with patience():
            check_exact(*random_case(rng, LETTERS), rng, 5)


@pytest.mark.parametrize("seed", range(2))
def test_exact_where_the_grammar_is_regular(seed: int) -> None:
    """There are no stacks then, whatever tokens cross."""
    rng, done = random.Random(400 + seed), 0
    while done < 8:
        grammar, vocabulary, model = random_case(rng)
        if grammar.is_regular():
            check_exact(grammar, vocabulary, model, rng, 2)
            done += 1


# --- by hand ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CROSSING)
def test_crossing_tokens(name: str) -> None:
    grammar, vocabulary = crossing(name, complete=True)
    rng, automaton = random.Random(name), compose(grammar, vocabulary, 0)
    least = Matcher(automaton).distance()
    for extra in range(12):
        follow(rng, Matcher(automaton, least + extra), len(vocabulary))


def test_open_brackets_are_paid_for() -> None:
    grammar = gbnf('root ::= "(" root ")" | "x"')
    vocabulary = Vocabulary([b"(", b")", b"x", b"((", b"))", b"x)", b""], 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnspellableWarning)
        automaton = compile(grammar, vocabulary)
    assert automaton.distance() == 1
    matcher = automaton.matcher(max_new_tokens=7)
    assert allowed(matcher, 7) == {0, 2, 3}
    assert matcher.accept_tokens([3, 3])
    assert 2 <= matcher.distance() <= 4  # "x)", ")", "))" are 3 tokens, each bracket on its own 4
    assert {5} <= allowed(matcher, 7) <= {0, 2, 3, 5}
    assert matcher.accept_token(5) and 2 <= matcher.distance() <= 3 and allowed(matcher, 7) == {1, 4}
    assert matcher.accept_token(1) and matcher.max_tokens_left == 3
    with pytest.raises(TokenLimitError, match=r"enough from here is [23]"):
        matcher.max_tokens_left = 0
    matcher.max_tokens_left = 2
    assert matcher.accept_token(4) and matcher.is_accepting() and allowed(matcher, 7) == {6}


def test_left_recursion_behind_a_part_that_may_be_left_out() -> None:
    vocabulary = Vocabulary([b"b", b"abab", b"bab", b"baaba", b"baa", b"", b"a"], 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnspellableWarning)
        automaton = compile(gbnf('root ::= root? root "a" | "b"'), vocabulary)
    matcher = automaton.matcher(max_new_tokens=6)
    assert allowed(matcher, 7) and matcher.accept_tokens([3, 4]) and matcher.distance() == 0
    assert 5 in allowed(matcher, 7)


@pytest.mark.parametrize("name", bundled_grammars())
def test_bundled_grammars_over_a_real_vocabulary(name: str, tekken: Vocabulary) -> None:
    rng = random.Random(name)
    automaton = compile(bundled_grammar(name), tekken)
    least = automaton.distance()
    for extra in (0, 3, 9, 30):
        matcher = automaton.matcher(least + extra)
        follow(rng, matcher, len(tekken))
        text = tekken.decode([token for token in matcher.tokens if token not in tekken.eos_token_ids])
        assert bundled_grammar(name).accepts(text)


def test_seconds_are_those_of_one_call_however_long_an_automaton_is_in_use() -> None:
    """A server asks an automaton for masks for days; the clock of a budget begins anew with each call."""
    vocabulary = Vocabulary([*EVERY_BYTE, b"end"], [256])
    automaton = compile(json_object(), vocabulary, Budget(seconds=2))
    text = b"{" + b", ".join(b'"k%d": {"a": [1, 2]}' % number for number in range(60)) + b"}"

    def walk() -> None:
        matcher = automaton.matcher(len(text) + 9)
        row = allocate_token_bitmask(1, len(vocabulary))
        for byte in text:
            matcher.fill_next_token_bitmask(row, 0)
            assert matcher.accept_token(byte)

    walk()
    time.sleep(2.1)
    walk()
    walk()


def test_a_native_automaton_is_what_is_shared() -> None:
    """Matchers of one automaton with different budgets do not see each other's masks."""
    grammar, vocabulary = crossing("sum", complete=True)
    automaton: _native.TokenAutomaton = compose(grammar, vocabulary, 192)
    model = TokenModel(grammar, vocabulary)
    open_, tight = Matcher(automaton), Matcher(automaton, 1)
    for _ in range(2):
        assert allowed(tight, len(vocabulary)) < allowed(open_, len(vocabulary)) == model.allowed(START)
