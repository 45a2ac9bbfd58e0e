"""Grammars whose words a vocabulary spells, and walks within a budget of tokens."""

from __future__ import annotations

import random

from reference.grammars.pushdown import INFINITE, START, TokenModel
from reference.grammars.random_grammars_wide import GrammarGenerator
from tests.support.worlds.token_worlds import allowed, random_vocabulary
from tokenfst import Matcher, Vocabulary
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.decoding.compiling.missing_bytes import of_single_bytes
from tokenfst.errors import EmptyLanguageError


def follow(rng: random.Random, matcher: Matcher, size: int, model: TokenModel | None = None) -> None:
    """Random tokens out of the masks until there are none left. With a model, it is asked on the way."""
    place, left = START, matcher.max_tokens_left
    assert left is not None and matcher.distance() <= left
    while left and not matcher.is_terminated():
        mask = allowed(matcher, size)
        assert mask, "no way on before the text is a word"
        if model is not None:
            assert mask <= model.allowed(place, left), (place, left)
            assert (model.eos in mask) == model.is_word(place)
            assert matcher.distance() >= model.least(place), (place, left)
        # Long ways are taken on purpose: a budget is used up.
        token = rng.choice(sorted(mask - {model.eos} if model and rng.random() < 0.9 else mask) or [*mask])
        assert matcher.accept_token(token)
        left -= 1
        assert matcher.max_tokens_left == left
        if model is not None and token != model.eos:
            target = model.after(place, token)
            assert target is not None
            place = target
    assert matcher.is_accepting() or matcher.is_terminated()
    if left == 0 and not matcher.is_terminated():
        assert allowed(matcher, size) == set()
    if model is not None:
        assert model.is_word(place)


def random_case(
    rng: random.Random, tokens: list[bytes] | None = None
) -> tuple[Grammar, Vocabulary, TokenModel]:
    """A grammar of which the vocabulary spells some word, without bytes that no token has, as ``compile`` asks for."""
    while True:
        grammar = GrammarGenerator(rng).grammar()
        vocabulary = (
            random_vocabulary(rng, letters=True)
            if tokens is None
            else Vocabulary([*tokens, b""], len(tokens))
        )
        try:
            grammar = of_single_bytes(grammar, vocabulary)
        except EmptyLanguageError:
            continue
        model = TokenModel(grammar, vocabulary)
        if model.recognizer.first is not None and model.least(START) < INFINITE:
            return grammar, vocabulary, model
