"""Where a search for a word looks first: what it finds does not depend on it, but how many states it makes does."""

from __future__ import annotations

import itertools
import random

import pytest

from tokenfst import _native
from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    Expr,
    byte_set,
    complement,
    concat,
    intersect,
    literal,
    repeat,
)
from tokenfst.automata.expressions.program import linearize


def automaton(expr: Expr) -> _native.ByteAutomaton:
    return _native.ByteAutomaton(linearize(expr).native(), 1_000_000, 1 << 30, 60.0)


def holding(word: bytes) -> Expr:
    anything = repeat(ANY_BYTE)
    return concat(anything, literal(word), anything)


@pytest.mark.parametrize("length", [20, 60, 120])
def test_a_length_does_not_hide_what_a_text_must_hold(length: int) -> None:
    """The length is what most is missing of all the way. A search that looks at nothing else goes through the product
    of all words: 6,000 states and more for eight of them.
    """
    words = (b"abc", b"bcd", b"cde", b"def", b"efg", b"fgh", b"cab", b"dab")
    found = automaton(intersect(repeat(ANY_BYTE, length, length), *map(holding, words)))
    assert found.viable_prefix(b"") == 0
    assert found.num_states < 500


def test_the_order_of_a_search_decides_nothing() -> None:
    """Against all words of a length: whether one of them holds some words and lacks others."""
    rng = random.Random(20)
    outcomes = set()
    for _ in range(300):
        length = rng.randint(0, 6)
        held, lacked = (
            [bytes(rng.choices(b"ab", k=rng.randint(1, 3))) for _ in range(rng.randint(0, most))]
            for most in (3, 2)
        )
        letters = byte_set(1 << ord("a") | 1 << ord("b"))
        parts = [*map(holding, held), *(complement(holding(word)) for word in lacked)]
        found = automaton(intersect(repeat(letters, length, length), *parts))
        texts = map(bytes, itertools.product(b"ab", repeat=length))
        there = any(
            all(word in text for word in held) and not any(word in text for word in lacked) for text in texts
        )
        assert (found.viable_prefix(b"") == 0) is there, (length, held, lacked)
        outcomes.add(there)
    assert outcomes == {False, True}
