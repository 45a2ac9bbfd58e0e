"""Random automata for device tests, and matchers that walk beside them."""

from __future__ import annotations

import random

import numpy as np

from reference.expressions.random_expressions import random_expression
from tests.support.worlds.token_worlds import BUDGET, compose
from tokenfst import Budget, BudgetExceeded, Matcher, TokenAutomaton, Vocabulary, _native
from tokenfst.automata.expressions.program import linearize
from tokenfst.decoding.token_automata.token_automaton import UNREACHABLE


def has_words(native: _native.TokenAutomaton) -> bool:
    """Whether some word of it has tokens. False too where ``BUDGET`` does not allow all of its states, which distances
    take: a few random expressions have hundreds of thousands.
    """
    try:
        return not native.is_empty and native.spellable and bool(native.distance(native.start) != UNREACHABLE)
    except BudgetExceeded:
        return False


def random_automata(
    rng: random.Random, vocabulary: Vocabulary, count: int, depth: int = 4
) -> list[TokenAutomaton]:
    """Automata with some spelled word, lazy, expanded and expanded by fragments."""
    found: list[TokenAutomaton] = []
    while len(found) < count:
        expr = random_expression(rng, rng.randint(1, depth))
        native = compose(expr, vocabulary, rng.choice([0, 192]))
        if not has_words(native):
            continue
        made = TokenAutomaton(native, vocabulary, "random", Budget(*BUDGET[:2]), program=linearize(expr))
        found.append(made.expand() if rng.random() < 0.5 else made)
    return found


def allowed(matcher: Matcher, vocabulary: Vocabulary) -> set[int]:
    """The tokens of a matcher's mask; the end tokens where it has none."""
    mask = np.zeros((1, -(-len(vocabulary) // 32)), np.int32)
    matcher.fill_next_token_bitmask(mask, 0)
    return ids(mask[0], len(vocabulary)) or set(vocabulary.eos_token_ids)


def ids(words: np.ndarray, size: int) -> set[int]:
    """The tokens of a row of a bitmask."""
    return set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little", count=size)).tolist())


class Row:
    """What a row of a batch must do: a matcher, which stays where a token was refused or the text ended."""

    def __init__(self, automaton: TokenAutomaton, vocabulary: Vocabulary, left: int | None) -> None:
        self.matcher, self.vocabulary = automaton.matcher(left), vocabulary
        self.dead = False

    @property
    def left(self) -> int | None:
        """Tokens left, for a row that is still under way."""
        return self.matcher.max_tokens_left

    @property
    def over(self) -> bool:
        return self.dead or self.matcher.is_terminated()

    def allowed(self) -> set[int]:
        return set(self.vocabulary.eos_token_ids) if self.over else allowed(self.matcher, self.vocabulary)

    def accept(self, token: int, unbounded: bool = False) -> None:
        """Advance; ``unbounded``: by what the language allows, the budget notwithstanding."""
        if self.over:
            return
        left = self.left
        if unbounded and left is not None:
            self.matcher.max_tokens_left = None
        self.dead = not self.matcher.accept_token(token)
        if unbounded and left is not None and not self.dead:
            distance = 0 if self.matcher.is_terminated() else self.matcher.distance()
            self.matcher.max_tokens_left = max(left - 1, distance)
