"""Samples are words, end, repeat with the generator's state, and read well where they can."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import regex
from tokenfst.budget import Budget
from tokenfst.common.plurals import counted
from tokenfst.errors import ConstraintError, EmptyLanguageError

A, B = Language.literal("a"), Language.literal("b")
LANGUAGES = {
    "one word": A,
    "epsilon": Language.epsilon(),
    "any bytes": Language.any_bytes(),
    "any text": Language.any_text(),
    "invalid text": ~Language.any_text(),
    "uuid": regex(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
    "object": regex(r'\{"name": "([^"\\]|\\["\\/bfnrt])*", "tags": \[("\w*"(, "\w*")*)?\]\}'),
    "long": Language.literal("ab").repeat(300, 400),
    "not": ~(A | B).star() & Language.any_text(),
    "even": (A + A).star() & (A + A + A).star(),
    "controls": Language.byte_range(0, 31).repeat(3, 5),
    "wide": regex(r"[^\x00-\x7f]{5,9}"),
    "look-around": regex(r"(?!.*--)[\w-]{3,20}(?<!-)"),
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_samples_are_words(name: str) -> None:
    language = LANGUAGES[name]
    rng = random.Random(name)
    for _ in range(40):
        assert language.accepts(language.sample(rng))
    shortest = language.witness()
    assert shortest is not None
    for limit in (len(shortest), len(shortest) + 3, len(shortest) + 60):
        for _ in range(10):
            word = language.sample(rng, max_length=limit)
            assert language.accepts(word)
            assert len(word) <= limit
    if shortest:
        with pytest.raises(
            ConstraintError, match=f"has {counted(len(shortest), 'byte')}, more than {len(shortest) - 1}"
        ):
            language.sample(rng, max_length=len(shortest) - 1)


def test_generators() -> None:
    language = LANGUAGES["uuid"]
    assert language.sample(random.Random(5)) == language.sample(random.Random(5))
    assert language.sample(np.random.default_rng(5)) == language.sample(np.random.default_rng(5))
    assert len({language.sample() for _ in range(5)}) == 5


def test_samples_vary_and_read_well() -> None:
    rng = random.Random(0)
    assert {regex("red|green|blue").sample(rng) for _ in range(60)} == {b"red", b"green", b"blue"}
    uuids = [LANGUAGES["uuid"].sample(rng) for _ in range(20)]
    assert all(len({uuid[at] for uuid in uuids}) > 3 for at in (0, 7, 25, 30, 35))
    texts = [Language.any_text().sample(rng).decode() for _ in range(50)]
    texts += [Language.any_bytes().sample(rng).decode() for _ in range(50)]
    characters = "".join(texts)
    assert sum(map(str.isprintable, characters)) > 0.9 * len(characters)
    assert any(text.isascii() and len(text) > 5 for text in texts)
    assert any(not text.isascii() for text in texts)


def test_large_languages_can_be_sampled() -> None:
    """No table of all its 900,000 counts is made."""
    lazy = regex(r"(\w{1,300} ){1,3000}").with_budget(Budget(states=20_000))
    rng = random.Random(1)
    for _ in range(3):
        assert lazy.accepts(lazy.sample(rng))


def test_empty_language() -> None:
    with pytest.raises(EmptyLanguageError, match=r"\(literal\('a'\)\) & \(literal\('b'\)\)"):
        (A & B).sample()
