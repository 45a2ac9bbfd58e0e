"""Intersections and wide unions against all words of a length: each beginning of a word is viable, and nothing else is.

What a search for a word finds is kept for the states on its way, so beginnings come in random order.
"""

from __future__ import annotations

import itertools
import random

import pytest

from reference.expressions.expressions import matches
from tokenfst import _native
from tokenfst.automata.expressions.expression import (
    EPSILON,
    UNIVERSE,
    Expr,
    byte_set,
    complement,
    concat,
    intersect,
    literal,
    repeat,
    union,
)
from tokenfst.automata.expressions.program import linearize

LETTERS = b"abc"
LENGTH = 5
WORDS = [bytes(word) for word in itertools.product(LETTERS, repeat=LENGTH)]
ANY_LETTER = byte_set(sum(1 << letter for letter in LETTERS))


def word(rng: random.Random, most: int = 4) -> bytes:
    return bytes(rng.choices(LETTERS, k=rng.randint(1, most)))


def random_part(rng: random.Random, depth: int) -> Expr:
    kind = rng.random()
    if depth == 0 or kind < 0.15:
        return literal(word(rng))
    if kind < 0.45:
        count = rng.choice([2, 3, 4, 17, 40])
        return union(*(random_part(rng, rng.randint(0, depth - 1)) for _ in range(count)))
    if kind < 0.65:
        return concat(random_part(rng, depth - 1), random_part(rng, depth - 1))
    if kind < 0.8:
        return repeat(random_part(rng, depth - 1), rng.randint(0, 2), rng.choice([None, 3]))
    if kind < 0.9:
        return complement(concat(UNIVERSE, literal(word(rng)), rng.choice([UNIVERSE, EPSILON])))
    return intersect(
        concat(random_part(rng, depth - 1), UNIVERSE), concat(UNIVERSE, random_part(rng, 0), UNIVERSE)
    )


def check(seed: int, count: int) -> None:
    rng = random.Random(seed)
    for number in range(count):
        parts = [random_part(rng, rng.randint(1, 3)) for _ in range(rng.randint(1, 3))]
        rests = [concat(part, UNIVERSE) if rng.random() < 0.6 else part for part in parts]
        expr = intersect(repeat(ANY_LETTER, LENGTH, LENGTH), *rests)
        language = [text for text in WORDS if all(matches(rest, text) for rest in rests)]
        beginnings = {text[:end] for text in language for end in range(LENGTH + 1)}
        built = _native.ByteAutomaton(linearize(expr).native(), 100_000, 1 << 28, 20.0)
        tried = [text[: rng.randint(0, LENGTH)] for text in rng.sample(WORDS, 60)]
        for text in [*tried, *rng.sample(sorted(beginnings), min(20, len(beginnings)))]:
            there = built.viable_prefix(text) == len(text)
            assert there is (text in beginnings), (seed, number, text)
        for text in rng.sample(WORDS, 60):
            assert built.accepts(text) is (text in language), (seed, number, text)


@pytest.mark.parametrize("seed", range(8))
def test_beginnings_of_words_are_viable(seed: int) -> None:
    check(seed, 4)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1040))
def test_many_beginnings(seed: int) -> None:
    check(seed, 100)
