"""Probabilities by enumeration: of hidden Markov models over every hidden path, of constraints over every sequence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from tokenfst import TokenAutomaton

Table = list[list[float]]
Tokens = tuple[int, ...]


def path_probability(
    initial: list[float], transition: Table, emission: Table, tokens: Sequence[int]
) -> float:
    """p(tokens): the sum over all paths of hidden states of what the path and the tokens have together."""
    if not tokens:
        return 1.0
    return math.fsum(
        initial[path[0]]
        * math.prod(transition[h][g] for h, g in itertools.pairwise(path))
        * math.prod(emission[h][x] for h, x in zip(path, tokens, strict=True))
        for path in itertools.product(range(len(initial)), repeat=len(tokens))
    )


def accepted_sequences(automaton: TokenAutomaton, max_new_tokens: int, exact: bool) -> Iterator[Tokens]:
    """The sequences that a decoder may end with: texts of exactly so many tokens; or texts of as many, and shorter ones
    followed by an end token. Asks a matcher about every sequence over the whole vocabulary.
    """
    ends = automaton.vocabulary.eos_token_ids
    plain = [token for token in range(len(automaton.vocabulary)) if token not in ends]
    for length in [max_new_tokens] if exact else range(max_new_tokens + 1):
        for tokens in itertools.product(plain, repeat=length):
            matcher = automaton.matcher()
            if not matcher.accept_tokens(tokens) or not matcher.is_accepting():
                continue
            if length == max_new_tokens:
                yield tokens
            else:
                for end in ends:
                    yield (*tokens, end)


def posterior(
    sequences: Sequence[Tokens], probability: Callable[[Tokens], float]
) -> tuple[dict[Tokens, float], float]:
    """The distribution over the sequences in proportion to their probabilities, and the sum of those."""
    each = {tokens: probability(tokens) for tokens in sequences}
    total = math.fsum(each.values())
    return {tokens: value / total for tokens, value in each.items()}, total


def total_variation(left: dict[Tokens, float], right: dict[Tokens, float]) -> float:
    """Half the sum of absolute differences: 0 for equal distributions, 1 for ones without a common sequence."""
    return math.fsum(abs(left.get(key, 0.0) - right.get(key, 0.0)) for key in left.keys() | right.keys()) / 2


def path_counts(
    initial: list[float], transition: Table, emission: Table, rows: Sequence[Sequence[int]]
) -> tuple[Table, Table, Table]:
    """How often each state comes first (one row), each state follows each, and each state emits each token, expected
    given the rows: by every hidden path of every row.
    """
    states = range(len(initial))
    first, follows = [[0.0 for _ in states]], [[0.0 for _ in states] for _ in states]
    emits = [[0.0 for _ in emission[0]] for _ in states]
    for tokens in rows:
        whole = path_probability(initial, transition, emission, tokens)
        for path in itertools.product(states, repeat=len(tokens)):
            share = initial[path[0]] / whole
            share *= math.prod(transition[h][g] for h, g in itertools.pairwise(path))
            share *= math.prod(emission[h][x] for h, x in zip(path, tokens, strict=True))
            first[0][path[0]] += share
            for h, g in itertools.pairwise(path):
                follows[h][g] += share
            for h, x in zip(path, tokens, strict=True):
                emits[h][x] += share
    return first, follows, emits
