"""The native core against its slow twins, on expressions and vocabularies made to reach the corners of both."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from reference.expressions.expressions import matches
from reference.expressions.random_expressions_wide import Generator
from reference.tokens.token_automaton import INFINITE
from tests.support.worlds.token_worlds import brute_force, compose, walk
from tokenfst import _native
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.expressions.program import linearize
from tokenfst.errors import BudgetExceeded, EmptyLanguageError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

EVERY_BYTE = [bytes([byte]) for byte in range(256)]
MOST_STATES = 400


def byte_automaton(expr: ex.Expr, states: int = MOST_STATES) -> _native.ByteAutomaton:
    return _native.ByteAutomaton(linearize(expr).native(), states, 1 << 28, 5.0)


def check_meaning(seed: int, count: int) -> None:
    rng = random.Random(seed)
    for number in range(count):
        generator = Generator(rng)
        expr = generator.expression(rng.randint(1, 3))
        letters = [*generator.letters, (generator.letters[0] + 100) % 256]
        longest = 4 if len(letters) == 3 else 3
        words = [bytes(word) for n in range(longest + 1) for word in itertools.product(letters, repeat=n)]
        try:
            built = byte_automaton(expr, 20_000)
            found = {word for word in words if built.accepts(word)}
            shortest = built.shortest()
        except BudgetExceeded:
            continue
        language = {word for word in words if matches(expr, word)}
        assert found == language, (seed, number)
        assert (shortest is None) == (built.viable_prefix(b"") == -1), (seed, number)
        if shortest is None:
            assert not language, (seed, number)
        elif len(shortest) < 12:
            assert matches(expr, shortest), (seed, number)
            assert len(shortest) <= min(map(len, language), default=len(shortest)), (seed, number)


@pytest.mark.parametrize("seed", range(4))
def test_wide_expressions_mean_what_they_say(seed: int) -> None:
    check_meaning(seed, 60)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3000, 3100))
def test_many_wide_expressions(seed: int) -> None:
    check_meaning(seed, 300)


def wide_vocabulary(rng: random.Random, generator: Generator) -> Vocabulary:
    """Long runs of one letter among the tokens, so that counts matter; sometimes more of them than a mask's list of
    exceptions holds; sometimes every byte.
    """
    tokens = [generator.word(6) for _ in range(rng.randint(2, 14))]
    tokens += [bytes([rng.choice(generator.letters)]) * rng.choice([2, 3, 9, 300]) for _ in range(4)]
    if rng.random() < 0.2:
        tokens += [generator.word(8) for _ in range(700)]
    if rng.random() < 0.7:
        tokens += EVERY_BYTE
    tokens += [b"", b""]
    rng.shuffle(tokens)
    initial = None
    if rng.random() < 0.25:
        initial = [text[1:] if rng.random() < 0.4 else text for text in tokens]
    return Vocabulary(tokens, tokens.index(b""), initial_tokens=initial, start_absorbs=rng.random() < 0.5)


def check_masks(seed: int, count: int, shared: bool = False) -> None:
    """Several automata over one vocabulary where ``shared``, so that fragments of one are used by the next."""
    rng = random.Random(seed)
    vocabulary = None
    for number in range(count):
        if vocabulary is None or not shared:
            generator = Generator(rng)
            vocabulary = wide_vocabulary(rng, generator)
        expr = generator.fragment_like(2) if rng.random() < 0.5 else generator.expression(rng.randint(1, 3))
        try:
            byte_automaton(expr).determinize()
            slow = brute_force(expr, vocabulary)
        except BudgetExceeded:
            continue
        lazy, by_fragments = compose(expr, vocabulary), compose(expr, vocabulary, narrow=0)
        try:
            by_fragments.distance(by_fragments.start)
        except BudgetExceeded:
            continue  # the members of a union can be many more states than the union
        assert lazy.is_empty == by_fragments.is_empty == (slow is None), (seed, number)
        if slow is None:
            continue
        if slow.distances[slow.start] == INFINITE:
            with pytest.raises(EmptyLanguageError):
                _native.Matcher(by_fragments)
            continue
        for automaton in (by_fragments, lazy, compose(expr, vocabulary, narrow=0)):
            walk(rng, automaton, slow, None)
            walk(rng, automaton, slow, slow.distances[slow.start] + rng.randint(0, 2))


@pytest.mark.parametrize("seed", range(4))
def test_wide_masks(seed: int) -> None:
    check_masks(seed, 6)


@pytest.mark.parametrize("seed", range(4))
def test_wide_masks_over_one_vocabulary(seed: int) -> None:
    check_masks(seed, 6, shared=True)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4000, 4100))
def test_many_wide_masks(seed: int) -> None:
    check_masks(seed, 60, shared=seed % 2 == 0)


@pytest.mark.parametrize("low", [0, 1, 2, 7])
@pytest.mark.parametrize("high", [7, 254, 255, 256, 300, 65_535, 65_536])
def test_counts_around_the_widths_of_their_counters(low: int, high: int) -> None:
    """Tokens with more iterations than a byte holds, and one with as many as a token can have."""
    runs = [1, 2, 6, 7, 8, 254, 255, 256, 257, 300, 65_534, 65_535]
    tokens = [b"a" * run for run in runs] + [b"a" * run + b";" for run in runs[:-1]] + EVERY_BYTE + [b""]
    vocabulary = Vocabulary(tokens, len(tokens) - 1)
    body = ex.union(ex.byte_range(97, 122), ex.literal(b"\\x"))
    expr = ex.concat(ex.repeat(body, low, high), ex.literal(b";"), ex.repeat(ex.literal(b"a"), 0, 3))
    automaton = compose(expr, vocabulary, narrow=0)
    matcher = _native.Matcher(automaton)
    for taken in (0, 1, 6):
        mask = np.zeros((1, (len(tokens) + 31) // 32), np.int32)
        matcher.fill_next_token_bitmask(mask)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
        for token, text in enumerate(tokens[: 2 * len(runs) - 1]):
            letters = taken + text.count(b"a")
            assert bits[token] == (letters <= high and (text[-1:] != b";" or letters >= low)), (
                taken,
                len(text),
            )
        matcher = _native.Matcher(automaton)
        assert matcher.accept_tokens([tokens.index(b"a")] * {0: 1, 1: 6, 6: 0}[taken])
