"""Masks of intersections and complements do not depend on what was computed before.

What may follow is read off the parts of an expression: for an intersection that is a superset of the letters that lead
on. Which moves of a part are known by then depends on the texts before, and on the thread.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import regex
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask
from tokenfst.decoding.matchers.matcher import Matcher
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

LONG = [b"ab", b"ba", b"xa", b"aa", b"ya", b"bc"]
TOKENS = [bytes([byte]) for byte in range(256)] + LONG + [b""]
VOCABULARY = Vocabulary(TOKENS, [len(TOKENS) - 1])
PART = regex("[ab]") & regex("a|bc")
"""Of the letters that both sides can read, "b" leads nowhere."""
LANGUAGES = {
    "a loop": regex("x") + PART + regex("y") + PART.star(),
    "a choice": regex("x") + (PART + regex("y") + PART.star() | regex("zq")),
    "a difference": regex("x")
    + (regex("[ab]c?") - regex("b.*"))
    + regex("y")
    + (regex("[ab]c?") - regex("b.*")).star(),
}
PIECES = ["a", "b", "[ab]", "c", "ab", "[abc]", "a?b", "(a|bc)", "[a-c]{2,5}", "(ab|bca)"]


def mask(matcher: Matcher) -> set[int]:
    row = allocate_token_bitmask(1, len(VOCABULARY))
    matcher.fill_next_token_bitmask(row)
    return set(np.unpackbits(row.view(np.uint8), bitorder="little").nonzero()[0].tolist())


def after(automaton: TokenAutomaton, tokens: Sequence[int]) -> Matcher:
    matcher = automaton.matcher()
    for token in tokens:
        assert matcher.accept_token(token)
    return matcher


def accepted(language: Language, tokens: Sequence[int]) -> set[int]:
    """The slow twin: every token is tried by an automaton that made no mask."""
    automaton = compile(language, VOCABULARY)
    return {token for token in range(len(TOKENS)) if after(automaton, tokens).accept_token(token)}


def random_language(rng: random.Random, depth: int) -> Language:
    kind = rng.random()
    if depth == 0 or kind < 0.2:
        return regex(rng.choice(PIECES))
    first = random_language(rng, depth - 1)
    if kind < 0.6:
        return first.star() if kind < 0.3 else first + random_language(rng, depth - 1)
    second = random_language(rng, depth - 1)
    return first | second if kind < 0.7 else first & second if kind < 0.85 else first - second


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_a_mask_after_other_texts_is_the_mask_of_a_fresh_automaton(language: Language, shared: bool) -> None:
    automaton = compile(language, VOCABULARY)
    if shared:
        assert automaton._native.share()
    after(automaton, list(b"xayaa"))
    for text in (b"", b"x", b"xa", b"xay", b"xaya", b"x"):
        assert mask(after(automaton, list(text))) == accepted(language, list(text))


def check(seed: int) -> None:
    rng = random.Random(seed)
    part = random_language(rng, 2)
    language = regex("x") + part + (regex("y") + part.star() | random_language(rng, 2)) | random_language(
        rng, 2
    )
    if language.is_empty():
        return
    for shared in (False, True):
        automaton = compile(language, VOCABULARY)
        if shared and not automaton._native.share():
            continue
        for _ in range(4):
            matcher, tokens = automaton.matcher(), []
            for _ in range(5):
                order = [*range(256, len(TOKENS) - 1), *b"abcxy"]
                rng.shuffle(order)
                if rng.random() < 0.5:
                    assert mask(matcher) == accepted(language, tokens), (seed, tokens)
                token = next((token for token in order if matcher.accept_token(token)), None)
                if token is None:
                    break
                tokens.append(token)


@pytest.mark.parametrize("seed", [*range(40), 129])
def test_random_languages(seed: int) -> None:
    check(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 11000, 500))
def test_many_random_languages(seed: int) -> None:
    for each in range(seed, seed + 500):
        check(each)
