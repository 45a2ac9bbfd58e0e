"""Budgets of at most n tokens on push-down automata, against enumeration: masks have what fits, and nothing else."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference.grammars.pushdown import INFINITE, START, TokenModel
from reference.grammars.random_grammars_wide import Patience
from tests.support.worlds.budget_worlds import random_case
from tests.support.worlds.pushdown_worlds import step
from tokenfst import Vocabulary, bundled_grammar, compile, gbnf, load_vocabulary
from tokenfst.budget import Budget
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, unpack_bitmask
from tokenfst.decoding.matchers.reach_matcher import ReachMatcher, start_matcher
from tokenfst.errors import BudgetExceeded, ConstraintError, TokenLimitError

NESTED = gbnf('root ::= "(" root ")" | "a"')
"""With "))" as a token, two frames close at once."""
PIECES = [*(bytes([byte]) for byte in range(256)), b"))", b")]", b"((", b""]


def mask_of(matcher, size: int) -> set[int]:
    found = allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(found, 0)
    return set(np.flatnonzero(unpack_bitmask(found[0], size)).tolist())


def walk(rng: random.Random, automaton, model: TokenModel, most: int) -> None:
    """Random tokens out of the masks of a budget; at each step they are those that the enumeration has."""
    size = len(model.tokens)
    if model.least(START) > most:
        least = model.least(START)
        named = rf"the least number (from here )?is {least}$" if least < INFINITE else ""
        with pytest.raises(TokenLimitError, match=named):
            start_matcher(automaton, most)
        return
    matcher, place = start_matcher(automaton, most), START
    for left in range(most, -1, -1):
        assert matcher.max_tokens_left == left
        wanted = model.allowed(place, left) if left else set()
        assert mask_of(matcher, size) == wanted, (place, left)
        for token in rng.sample(range(size), min(size, 4)):
            assert matcher.fork().accept_token(token) == (token in wanted)
        following = step(rng, matcher, model, place, wanted)
        if following is None:
            assert left == 0 or wanted == {model.eos}
            break
        place = following
    assert model.is_word(place)


def check(rng: random.Random, walks: int, most: int) -> None:
    grammar, vocabulary, model = random_case(rng)
    try:
        automaton = compile(grammar, vocabulary)
    except ConstraintError:  # bytes that are no token
        return
    for _ in range(walks):
        walk(rng, automaton, model, rng.randrange(most))


@pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")
@given(st.integers(0, 2**32))
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_masks_are_those_of_the_enumeration(seed: int) -> None:
    with Patience(1)():
        check(random.Random(seed), 2, 5)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")
@pytest.mark.parametrize("seed", range(50))
def test_masks_are_those_of_the_enumeration_at_length(seed: int) -> None:
    rng, patience = random.Random(9000 + seed), Patience(8)
    for _ in range(60):
        with patience():
            check(rng, 8, 8)


def texts_within(automaton, most: int, used: list[int]) -> set[tuple[int, ...]]:
    """Every accepted sequence of at most so many of the tokens."""
    found = set()
    for tokens in (each for n in range(most + 1) for each in itertools.product(used, repeat=n)):
        matcher = automaton.matcher()
        if matcher.accept_tokens(list(tokens)) and matcher.is_accepting():
            found.add(tokens)
    return found


@pytest.mark.parametrize(
    ("rules", "used"),
    [
        ('root ::= "(" root ")" | "a"', [40, 41, 97, 256, 258]),
        ('root ::= "(" root ")" | "[" root "]" | "a"', [40, 41, 91, 93, 97, 256, 257, 258]),
        ('root ::= "(" root ")" root | "a"', [40, 41, 97, 256, 258]),
    ],
)
def test_every_decoder_finds_every_text(rules: str, used: list[int]) -> None:
    torch = pytest.importorskip("torch")
    from tokenfst import automata_beam_search, exact_length_sample, generate

    vocabulary, end = Vocabulary(PIECES, len(PIECES) - 1), len(PIECES) - 1
    automaton = compile(gbnf(rules), vocabulary)

    def model(ids):
        return torch.zeros(len(ids), len(PIECES))

    draws = torch.Generator().manual_seed(0)
    for most in range(1, 5):
        exist = texts_within(automaton, most, used)

        def bare(tokens):
            return tuple(int(token) for token in tokens if token != end)

        (found,) = automata_beam_search(
            model, [[]], automaton, width=end + 1, num_beams=60, num_return_sequences=60, max_new_tokens=most
        )
        assert {bare(each.tokens) for each in found} == exist
        many = [[]] * 200
        drawn = exact_length_sample(
            model, many, automaton, width=end + 1, max_new_tokens=most, generator=draws
        )
        assert {bare(each.tokens) for each in drawn} == exist
        plain = generate(
            model, many, automaton, max_new_tokens=most, width=end + 1, do_sample=True, generator=draws
        )
        assert {bare(tokens) for tokens in plain.tokens} == exist


def test_matchers_of_one_budget_agree_with_each_other() -> None:
    """Forks, steps back and drafts of a matcher near the end of its budget are as if they had come there straight."""
    vocabulary = Vocabulary(PIECES, len(PIECES) - 1)
    automaton, size = compile(NESTED, vocabulary), len(PIECES)
    rng = random.Random(5)
    for most in range(1, 7):
        matcher = start_matcher(automaton, most)
        assert isinstance(matcher, ReachMatcher)
        for _ in range(200):
            straight = start_matcher(automaton, most)
            assert straight.accept_tokens(matcher.tokens)
            assert mask_of(matcher, size) == mask_of(straight, size)
            allowed = sorted(mask_of(matcher, size) - {size - 1})
            step = rng.random()
            if step < 0.25 and matcher.num_tokens:
                matcher.rollback(rng.randint(1, matcher.num_tokens))
            elif step < 0.4:
                matcher = matcher.fork()
            elif allowed and not matcher.is_terminated():
                assert matcher.accept_token(rng.choice(allowed))


def test_certain_bytes_are_those_of_matchers_without_a_budget() -> None:
    """Jump-forward by bytes goes on with grammars within a budget."""
    vocabulary = Vocabulary(PIECES, len(PIECES) - 1)
    rules = 'root ::= "(a)(" root ")a" | "[" root "]]]" | "a"'
    automaton, rng = compile(gbnf(rules), vocabulary), random.Random(2)
    matcher = start_matcher(automaton, 60)
    assert isinstance(matcher, ReachMatcher)
    seen = set()
    for _ in range(200):
        plain = automaton.matcher()
        assert plain.accept_tokens(matcher.tokens)
        assert matcher.forced_bytes() == plain.forced_bytes()
        seen.add(matcher.forced_bytes())
        allowed = sorted(mask_of(matcher, len(PIECES)) - {len(PIECES) - 1})
        if rng.random() < 0.3 or not allowed:
            matcher.rollback(rng.randint(0, matcher.num_tokens))
        else:
            assert matcher.accept_token(rng.choice(allowed))
    assert len(seen) > 5


def test_what_cannot_be_found_out_is_refused() -> None:
    """A search that is larger than the budget raises, and what is plenty goes on after it."""
    vocabulary = Vocabulary(PIECES, len(PIECES) - 1)
    tight = compile(NESTED, vocabulary, Budget(states=20))
    matcher = start_matcher(tight, 12)
    with pytest.raises(BudgetExceeded, match="the search for numbers of tokens"):
        while ord("(") in mask_of(matcher, len(PIECES)):
            assert matcher.accept_token(ord("("))
    assert start_matcher(tight, 200).accept_token(ord("("))


def test_long_texts_take_the_masks_that_are_there() -> None:
    """While the budget is plenty nothing is searched, so that no walk of the vocabulary is made for a configuration."""
    vocabulary = load_vocabulary("mistral:tekken_240911")
    automaton = compile(bundled_grammar("json"), vocabulary)
    matcher = start_matcher(automaton, 400)
    native = automaton.matcher()
    for token in vocabulary.encode_greedy(b'{"a": [[{"b": "c d e", "f": [1, 2.5e3, null, {'):
        assert mask_of(matcher, len(vocabulary)) == mask_of(native, len(vocabulary))
        assert matcher.accept_token(token) and native.accept_token(token)
    assert isinstance(matcher, ReachMatcher)
    assert not matcher.automaton._reach._successors


def test_budgets_of_real_vocabularies_close_in_time() -> None:
    """JSON that opens brackets as long as it may ends within its tokens, by tokens that close several."""
    vocabulary = load_vocabulary("mistral:tekken_240911")
    matcher = start_matcher(compile(bundled_grammar("json"), vocabulary), 12)
    (bracket,) = vocabulary.ids(b"[")
    taken = 0
    while bracket in mask_of(matcher, len(vocabulary)):
        assert matcher.accept_token(bracket)
        taken += 1
    assert taken > 12 // 2, "by the bound, which closes one bracket a token, no more than six"
    while matcher.max_tokens_left and not matcher.is_accepting():
        allowed = mask_of(matcher, len(vocabulary))
        assert matcher.accept_token(max(allowed, key=lambda token: vocabulary.tokens[token].count(b"]")))
    assert matcher.is_accepting()
