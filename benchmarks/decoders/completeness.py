"""How many texts are complete when the tokens run out.

A stand-in for a model draws the logits of each step at random. The allowed token with the largest logit is taken, for
at most ``TOKENS`` tokens. A text counts as complete if the pattern then matches all of it. tokenfst gets the limit
(``matcher(max_new_tokens=...)``); the other libraries have no parameter for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

import tokenfst
from benchmarks.measuring.libraries import Walk, World
from benchmarks.measuring.measure import OURS, Figure
from tokenfst import Vocabulary

PATTERN = r'\{"name": "[^"\\]*", "active": (true|false)\}'
TOKENS, TEXTS, SEED = 32, 50, 7


def completeness(world: World) -> Iterator[Figure]:
    """The number of complete texts among ``TEXTS``, for each library."""
    what = f"texts of an object with a string, complete within {TOKENS} tokens, of {TEXTS}"
    matcher = world.ours.compile(PATTERN).matcher(max_new_tokens=TOKENS)
    bitmask = tokenfst.allocate_token_bitmask(1, len(world.vocabulary))

    def fill() -> object:
        return matcher.fill_next_token_bitmask(bitmask, 0)

    ours = Walk(fill, matcher.accept_token, bitmask, matcher.reset)
    yield Figure(what, OURS, _complete(ours, world.vocabulary), unit="count", runs=TEXTS)
    for peer in world.peers("xgrammar", "llguidance", "outlines-core"):
        walk = peer.walk(peer.compile(PATTERN))
        yield Figure(what, peer.name, _complete(walk, world.vocabulary), unit="count", runs=TEXTS)


def _complete(walk: Walk, vocabulary: Vocabulary) -> int:
    """The number of texts that are complete when they end, or after ``TOKENS`` tokens."""
    rng = np.random.default_rng(SEED)
    found = 0
    for _ in range(TEXTS):
        walk.restart()
        tokens: list[int] = []
        while len(tokens) < TOKENS:
            walk.fill()
            allowed = np.flatnonzero(np.unpackbits(walk.bitmask.view(np.uint8), bitorder="little"))
            token = int(allowed[rng.random(len(allowed)).argmax()])
            if token in vocabulary.eos_token_ids:
                break
            walk.accept(token)
            tokens.append(token)
        found += re.fullmatch(PATTERN.encode(), vocabulary.decode(tokens), re.DOTALL) is not None
    return found
