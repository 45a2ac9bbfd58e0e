"""The laws of the algebra of constraints on random grammars and languages; counts, order, explanations among them."""

from __future__ import annotations

import itertools
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from reference.expressions.random_expressions import random_expression
from reference.grammars.random_grammars import all_words, random_grammar
from tokenfst.automata.expressions.expression import byte_set, repeat
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language

WORDS = all_words(5)
LETTERS = Language(repeat(byte_set(1 << 97 | 1 << 98)))
few = settings(max_examples=25, deadline=None, derandomize=True)  # a rare product takes minutes to read

seeds = st.integers(0, 10**6)
languages = seeds.map(lambda seed: Language(random_expression(random.Random(seed), 1)) & LETTERS)
grammars = seeds.map(lambda seed: random_grammar(random.Random(seed)))
constraints = st.one_of(languages, grammars)


def short(constraint: Constraint) -> set[bytes]:
    return {word for word in WORDS if constraint.accepts(word)}


@few
@given(constraints, constraints, constraints)
def test_laws_of_union_and_concatenation(a: Constraint, b: Constraint, c: Constraint) -> None:
    assert short(a | b) == short(b | a)
    assert short((a | b) | c) == short(a | (b | c))
    assert short((a + b) + c) == short(a + (b + c))
    assert short(a + (b | c)) == short((a + b) | (a + c))
    assert short((a | b) + c) == short((a + c) | (b + c))
    assert short((a + b).reverse()) == short(b.reverse() + a.reverse())
    assert short((a | b).star()) == short((a.star() + b.star()).star())
    assert short(a.plus()) == short(a + a.star())


@few
@given(grammars, languages, languages)
def test_laws_of_a_grammar_and_languages(g: Grammar, a: Language, b: Language) -> None:
    small = [each for each in (a, b) if each.size().states <= 12]
    for x, y in itertools.product(small, small):
        assert short(g - (x | y)) == short((g - x) - y)  # de Morgan
        assert short(g - (x & y)) == short((g - x) | (g - y))
        assert short(g & (x | y)) == short((g & x) | (g & y))
        assert short((g & x) | (g - x)) == short(g)
        assert (g & x & ~x).is_empty()


@few
@given(constraints, st.permutations(list(b"abc")))
def test_bytes_are_mapped_back(a: Constraint, letters: list[int]) -> None:
    table = bytes.maketrans(b"abc", bytes(letters))
    back = bytes.maketrans(bytes(letters), b"abc")
    assert short(a.map_bytes(table).map_bytes(back)) == short(a)
    assert a.map_bytes(table).count(5) == a.count(5) == a.reverse().count(5)


@few
@given(constraints, languages)
def test_counts_add_up(a: Constraint, b: Language) -> None:
    longest = 5
    every = a.count(longest)
    assert every.total == sum(every.by_length)
    if b.size().states <= 12:
        inside, outside = (a & b).count(longest), (a - b).count(longest)
        assert inside.total + outside.total == every.total
        assert (a | b).count(longest).total == every.total + b.count(longest).total - inside.total
    assert (a + Language.literal("c")).count(longest + 1).by_length == (0, *every.by_length)


@few
@given(constraints, seeds)
def test_samples_are_among_the_texts_and_in_order(a: Constraint, seed: int) -> None:
    texts = list(itertools.takewhile(lambda text: len(text) <= 5, itertools.islice(a, 200)))
    assert texts == sorted(texts, key=lambda text: (len(text), text)) and len(set(texts)) == len(texts)
    for length in {len(text) for text in texts}:
        assert a.sample(random.Random(seed), length=length) in a


@few
@given(constraints, st.binary(max_size=5).map(lambda data: bytes(97 + byte % 3 for byte in data)))
def test_explanations_agree(a: Constraint, text: bytes) -> None:
    found = a.explain(text)
    assert bool(found) == a.accepts(text)
    if found.expected is not None:
        assert a.viable_prefix(text) == found.place
        if found.place < len(text):
            left = text[found.place]
            assert not any(low <= left <= high for low, high in found.expected.characters)
        else:
            assert not found.expected.ends
        assert found.ending is not None and a.accepts(text[: found.place] + found.ending)
