"""What learning must not change: masks of an automaton that took something up, beside those of one made anew."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tokenfst.errors import EmptyLanguageError, TokenLimitError


def masks_along(automaton: Any, rng: random.Random, steps: int, limit: int | None = None) -> list[Any]:
    """Masks and what else a matcher says, along tokens that are drawn from its masks."""
    size = len(automaton.vocabulary)
    mask, found = np.zeros((1, (size + 31) // 32), np.int32), []
    try:
        matcher = automaton.matcher(limit)
    except (EmptyLanguageError, TokenLimitError) as error:
        return [type(error)]
    for _ in range(steps):
        matcher.fill_next_token_bitmask(mask)
        found += [mask.tobytes(), matcher.is_accepting(), matcher.forced_tokens()]
        tokens = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        if matcher.is_terminated() or not len(tokens):
            break
        assert matcher.accept_token(int(rng.choice(tokens)))
    return found


def every_mask(automaton: Any, depth: int) -> dict[tuple[int, ...], bytes]:
    """The mask after each sequence of at most so many allowed tokens."""
    size = len(automaton.vocabulary)
    mask, found = np.zeros((1, (size + 31) // 32), np.int32), {}
    matcher = automaton.matcher()

    def visit(before: tuple[int, ...]) -> None:
        matcher.fill_next_token_bitmask(mask)
        found[before] = mask.tobytes()
        if len(before) == depth or matcher.is_terminated():
            return
        for token in np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist():
            assert matcher.accept_token(token)
            visit((*before, token))
            matcher.rollback(1)

    visit(())
    return found
