"""Masks of intersections and complements do not depend on what was computed before.

What may follow is read off the parts of an expression: for an intersection that is a superset of the letters that lead
on. Which moves of a part are known by then depends on the texts before, and on the thread.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from support.running.seeds import few_and_many_seeds, in_ranges

from tokenfst import Matcher, TokenAutomaton, Vocabulary, allocate_token_bitmask, compile, regex
from tokenfst.automata.languages.language import Language

LONG = [b"ab", b"ba", b"xa", b"aa", b"ya", b"bc"]
TOKENS = [bytes([byte]) for byte in range(256)] + LONG + [b""]
VOCABULARY = Vocabulary(TOKENS, [len(TOKENS) - 1])
BYTES = Vocabulary([*TOKENS[:256], b""], [256])
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
    row = allocate_token_bitmask(1, len(TOKENS))
    matcher.fill_next_token_bitmask(row)
    return set(np.unpackbits(row.view(np.uint8), bitorder="little").nonzero()[0].tolist())


def after(automaton: TokenAutomaton, tokens: Sequence[int]) -> Matcher:
    matcher = automaton.matcher()
    for token in tokens:
        assert matcher.accept_token(token)
    return matcher


def accepted(language: Language, tokens: Sequence[int], vocabulary: Vocabulary = VOCABULARY) -> set[int]:
    """The slow twin: every token is tried by an automaton that made no mask."""
    automaton = compile(language, vocabulary)
    return {token for token in range(len(vocabulary)) if after(automaton, tokens).accept_token(token)}


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
@pytest.mark.parametrize("text", [b"x", b"xay", b"xaya", b"xa", b""])
@pytest.mark.parametrize("vocabulary", [BYTES, VOCABULARY], ids=["bytes", "longer tokens"])
@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_a_mask_after_another_text_allows_what_is_accepted(
    language: Language, vocabulary: Vocabulary, text: bytes, shared: bool
) -> None:
    automaton = compile(language, vocabulary)
    if shared:
        assert automaton._native.share()
    after(automaton, b"xayaa")
    assert mask(after(automaton, text)) == accepted(language, text, vocabulary)


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


@few_and_many_seeds([*in_ranges(range(40), 1), range(129, 130)], in_ranges(range(1000, 11_000), 500))
def test_random_languages(seeds: range) -> None:
    for seed in seeds:
        check(seed)
