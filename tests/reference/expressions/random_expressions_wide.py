"""Random expressions that ``random_expressions`` does not reach: letters at the borders of the words of a byte set,
machines, counters of counters, look-behind inside repetitions and nested scopes, recursion inside recursion and under
intersection with another recursion, shared subexpressions.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.expressions.expression import Dfa, Expr

BORDERS = bytes([0, 1, 62, 63, 64, 65, 127, 128, 129, 191, 192, 254, 255])


def letters_of(rng: random.Random) -> bytes:
    """Two or three letters, neighbours across a border more often than not."""
    if rng.random() < 0.5:
        low = rng.choice([63, 127, 191, 254])
        return bytes([low, low + 1])
    return bytes(rng.sample(BORDERS, rng.randint(2, 3)))


def random_dfa(rng: random.Random, letters: bytes) -> Dfa:
    """States that reach nothing, a start that reaches nothing, unused classes: all occur."""
    num_classes = rng.randint(2, 4)
    classes = np.zeros(256, np.uint8)
    for letter in letters:
        classes[letter] = rng.randrange(num_classes)
    states = rng.randint(2, 5)
    table = np.array([[rng.randrange(states) for _ in range(num_classes)] for _ in range(states)], np.uint32)
    table[0] = 0
    accepting = np.array([False, *(rng.random() < 0.4 for _ in range(states - 1))])
    return Dfa(classes, table, accepting, rng.randrange(states))


class Generator:
    """``expression(depth)`` makes one; ``shared`` subexpressions occur several times in it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.letters = letters_of(rng)
        self.shared: list[Expr] = []

    def word(self, longest: int) -> bytes:
        return bytes(self.rng.choice(self.letters) for _ in range(self.rng.randint(1, longest)))

    def leaf(self) -> Expr:
        rng = self.rng
        some = sum(1 << letter for letter in self.letters if rng.random() < 0.7)
        return rng.choice(
            [
                ex.EPSILON,
                ex.ANY_BYTE,
                ex.byte_set(some),
                ex.byte_set(ex.ALL_BYTES & ~some),
                ex.literal(self.word(3)),
                ex.literal(self.word(1)),
                ex.literal(self.word(1)),
                ex.UNIVERSE,
            ]
        )

    def bounds(self) -> tuple[int, int | None]:
        low = self.rng.choice([0, 0, 1, 1, 2, 3])
        return low, self.rng.choice([None, max(low, 1), low + 1, low + 2, low + 4, 255, 65_536, 2**31 - 1])

    def expression(self, depth: int) -> Expr:
        """A closed expression: its look-behinds have their scopes."""
        if depth == 0:
            return ex.machine(random_dfa(self.rng, self.letters)) if self.rng.random() < 0.15 else self.leaf()
        if self.shared and self.rng.random() < 0.15:
            return self.rng.choice(self.shared)
        made = self.rng.choice(_KINDS)(self, depth - 1)
        self.shared.append(made)
        return made

    def scoped(self, depth: int) -> Expr:
        return ex.scope(self.inside(depth))

    def inside(self, depth: int, variable: Expr | None = None) -> Expr:
        """A part of a scope, with look-behinds in any place; ``variable`` may stand at its end."""
        rng = self.rng
        if depth == 0:
            return rng.choice([self.leaf(), ex.behind(self.leaf()), variable or self.leaf()])
        kind = rng.choice(
            ["concat", "concat", "union", "and", "repeat", "not", "behind", "closed", "recursive"]
        )
        if kind == "concat":
            return ex.concat(self.inside(depth - 1), self.inside(depth - 1, variable))
        if kind == "union":
            return ex.union(self.inside(depth - 1, variable), self.inside(depth - 1))
        if kind == "and":
            return ex.intersect(self.inside(depth - 1, variable), self.inside(depth - 1))
        if kind == "repeat":
            return ex.repeat(self.inside(depth - 1), *self.bounds())
        if kind == "not":
            return ex.complement(self.inside(depth - 1))
        if kind == "behind":
            return ex.behind(self.inside(depth - 1) if rng.random() < 0.2 else self.expression(depth - 1))
        if kind == "recursive":
            return ex.recursive(
                lambda x: ex.union(self.inside(depth - 1), ex.concat(self.inside(depth - 1), x))
            )
        return self.expression(depth - 1)

    def tail(self, depth: int, variables: list[Expr]) -> Expr:
        """The body of a recursion: one of the variables around may stand last."""
        rng = self.rng
        if depth == 0:
            return rng.choice([*variables, self.leaf()])
        kind = rng.choice(["concat", "concat", "union", "and", "recursive"])
        if kind == "concat":
            return ex.concat(self.expression(depth - 1), self.tail(depth - 1, variables))
        if kind == "union":
            return ex.union(self.tail(depth - 1, variables), self.tail(depth - 1, variables))
        if kind == "and":
            return ex.intersect(self.tail(depth - 1, variables), self.tail(depth - 1, variables))
        return ex.recursive(lambda x: self.tail(depth - 1, [*variables, x]))

    def counter_tower(self, depth: int) -> Expr:
        body = self.expression(depth)
        for _ in range(self.rng.randint(1, 3)):
            body = ex.repeat(body, *self.bounds())
        return body

    def counters_side_by_side(self, depth: int) -> Expr:
        body, rest = self.expression(depth), self.leaf()
        return ex.union(
            *(ex.concat(ex.repeat(body, *self.bounds()), rest) for _ in range(self.rng.randint(2, 4)))
        )

    def fragment_like(self, depth: int) -> Expr:
        """Heads, a loop, a terminator that may overlap it, and a rest that may be nullable."""
        heads = [self.expression(0) for _ in range(self.rng.randint(0, 2))]
        loop = ex.repeat(self.expression(min(depth, 1)), *self.bounds())
        end = ex.byte_set(sum(1 << letter for letter in self.letters if self.rng.random() < 0.6))
        return ex.concat(*heads, loop, end, self.expression(min(depth, 1)))


_KINDS: list[Callable[[Generator, int], Expr]] = [
    lambda g, d: ex.concat(g.expression(d), g.expression(d)),
    lambda g, d: ex.concat(g.expression(d), g.expression(d)),
    lambda g, d: ex.union(g.expression(d), g.expression(d)),
    lambda g, d: ex.intersect(g.expression(d), g.expression(d)),
    lambda g, d: ex.complement(g.expression(d)),
    lambda g, d: ex.repeat(g.expression(d), *g.bounds()),
    Generator.counter_tower,
    Generator.counters_side_by_side,
    Generator.fragment_like,
    Generator.scoped,
    lambda g, d: ex.recursive(lambda x: g.tail(d + 1, [x])),
]
