"""Random grammars over the bytes a and b, with rules s, t and u that call each other in any way."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from tokenfst.automata.expressions.expression import (
    EPSILON,
    Expr,
    call,
    concat,
    literal,
    optional,
    repeat,
    union,
)
from tokenfst.automata.grammars.grammar import Grammar

_LEAVES = literal(b"a"), literal(b"b"), literal(b"ab"), EPSILON


def all_words(longest: int) -> list[bytes]:
    """Every word of a and b of at most so many bytes, shorter ones first."""
    return [bytes(word) for n in range(longest + 1) for word in itertools.product(b"ab", repeat=n)]


def random_body(rng: random.Random, names: list[str], depth: int, leaves: Sequence[Expr] = _LEAVES) -> Expr:
    """A body that calls ``names``; what stands at its ends beside calls is one of ``leaves``."""
    if depth == 0:
        return rng.choice([*leaves, *map(call, names), *map(call, names)])
    parts = [random_body(rng, names, depth - 1, leaves) for _ in range(rng.randint(2, 3))]
    kind = rng.randrange(8)
    if kind < 3:
        return concat(*parts)
    if kind < 6:
        return union(*parts)
    return optional(parts[0]) if kind == 6 else repeat(parts[0], rng.randint(0, 2), rng.choice([None, 2, 3]))


def random_grammar(rng: random.Random) -> Grammar:
    names = ["s", "t", "u"][: rng.randint(1, 3)]
    return Grammar.from_rules({name: random_body(rng, names, rng.randint(1, 3)) for name in names}, "s")
