"""Random expressions over the bytes a and b, with every operator of ``tokenfst.automata.expressions.expression``."""

from __future__ import annotations

import random

from tokenfst._native import Lexicon
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.expressions.expression import Expr

LETTERS = b"ab"


def random_word(rng: random.Random, longest: int) -> bytes:
    return bytes(rng.choice(LETTERS) for _ in range(rng.randint(1, longest)))


def random_lexicon(rng: random.Random) -> Lexicon:
    return Lexicon([random_word(rng, 3) for _ in range(rng.randint(1, 4))])


def random_selection(rng: random.Random) -> Expr:
    separator = ex.union(*(ex.literal(random_word(rng, 2)) for _ in range(rng.randint(1, 2))))
    lexicon = Lexicon([random_word(rng, 2) for _ in range(rng.randint(1, 3))])
    low = rng.randint(1, 2)
    return ex.selection(lexicon, separator, low, rng.choice([None, low, low + 1]))


def random_expression(rng: random.Random, depth: int, variable: Expr | None = None) -> Expr:
    """``variable``, if given, may stand at the end: the body of a recursion (see ``expression.recursive``)."""
    if depth == 0:
        leaves = [
            ex.EPSILON,
            ex.byte_set(1 << 97 | 1 << 98),
            ex.literal(random_word(rng, 3)),
            ex.literal(b"a"),
            ex.literal(b"b"),
            ex.words(random_lexicon(rng)),
            random_selection(rng),
        ]
        return rng.choice([*leaves, variable] if variable is not None else leaves)

    def part() -> Expr:
        return random_expression(rng, depth - 1)

    def tail() -> Expr:
        return random_expression(rng, depth - 1, variable)

    kinds = [
        "concat",
        "concat",
        "concat",
        "union",
        "intersect",
        "repeat",
        "star",
        "complement",
        "recursive",
        "behind",
    ]
    kind = rng.choice(kinds if variable is None else kinds[:5])
    if kind == "concat":
        return ex.concat(part(), tail())
    if kind == "union":
        return ex.union(tail(), tail())
    if kind == "intersect":
        return ex.intersect(part(), tail())
    if kind == "complement":
        return ex.complement(part())
    if kind == "repeat":
        low = rng.randint(0, 3)
        return ex.repeat(part(), low, rng.choice([None, low, low + 1, low + 3]))
    if kind == "star":
        return ex.repeat(part())
    if kind == "recursive":
        return ex.recursive(lambda x: ex.union(part(), random_expression(rng, depth - 1, x)))
    return ex.scope(ex.concat(part(), ex.behind(part()), part()))
