"""Random grammars that ``random_grammars`` does not reach often: every kind of recursion by name, hidden by rules
with the empty word or not, rules that derive themselves, ambiguity, counted calls, regular parts with ``&`` and ``~``,
rules without words.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reference.expressions.random_expressions import LETTERS, random_expression, random_word
from reference.grammars.random_grammars import random_body
from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    Expr,
    byte_set,
    call,
    concat,
    literal,
    optional,
    repeat,
    union,
)
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.errors import BudgetExceeded


class Patience:
    """Some random grammars are so ambiguous that they outgrow a budget, and the engine says so. They must be few."""

    def __init__(self, most: int) -> None:
        self.left = most

    @contextmanager
    def __call__(self) -> Iterator[None]:
        try:
            yield
        except BudgetExceeded:
            self.left -= 1
            assert self.left >= 0, "too many grammars are too ambiguous for the engine"


class GrammarGenerator:
    """``grammar()`` makes one; each rule takes a shape by chance."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = ["s", "t", "u", "v"][: rng.randint(1, 4)]

    def grammar(self) -> Grammar:
        rules = {name: self.rng.choice(SHAPES)(self, call(name)) for name in self.names}
        return Grammar.from_rules(rules, "s")

    def other(self) -> Expr:
        return call(self.rng.choice(self.names))

    def letter(self) -> Expr:
        return literal(bytes([self.rng.choice(LETTERS)]))

    def part(self) -> Expr:
        """Something small: a letter more often than not, so that words are not all of everything."""
        rng = self.rng
        return rng.choice(
            [
                self.letter,
                self.letter,
                self.letter,
                lambda: literal(random_word(rng, 3)),
                lambda: byte_set(sum(1 << letter for letter in LETTERS)),
                lambda: EPSILON,
                lambda: optional(self.letter()),
                self.other,
                lambda: concat(self.letter(), self.other()),
                lambda: concat(self.other(), self.letter()),
                lambda: random_expression(rng, rng.randint(1, 2)),
            ]
        )()

    def nullable(self) -> Expr:
        return self.rng.choice([optional(self.letter()), repeat(self.letter()), optional(self.other())])

    def bounds(self) -> tuple[int, int | None]:
        low = self.rng.randint(0, 3)
        return low, self.rng.choice([None, max(low, 1), low + 1, low + 3])

    def free(self, own: Expr) -> Expr:
        return random_body(self.rng, self.names, self.rng.randint(1, 3))

    def palindrome(self, own: Expr) -> Expr:
        sides = [concat(literal(bytes([letter])), own, literal(bytes([letter]))) for letter in LETTERS]
        return union(*sides, self.part())

    def counted(self, own: Expr) -> Expr:
        return union(repeat(concat(self.part(), self.other()), *self.bounds()), self.letter())

    def separated(self, own: Expr) -> Expr:
        """A list as people write them: ``"a" [item ("b" item)*] "b"``."""
        item = union(own, self.part())
        return concat(
            self.letter(), optional(concat(item, repeat(concat(self.letter(), item)))), self.letter()
        )


SHAPES: list[Callable[[GrammarGenerator, Expr], Expr]] = [
    GrammarGenerator.free,
    GrammarGenerator.free,
    GrammarGenerator.palindrome,
    GrammarGenerator.counted,
    GrammarGenerator.separated,
    lambda g, own: union(concat(own, g.part()), g.part()),
    lambda g, own: union(concat(g.part(), own), g.part()),
    lambda g, own: union(concat(g.letter(), own, g.letter()), g.part()),
    lambda g, own: union(concat(g.part(), own, g.part()), g.part()),
    lambda g, own: union(concat(g.nullable(), own, g.part()), g.part()),
    lambda g, own: union(concat(g.part(), own, g.nullable()), g.part()),
    lambda g, own: union(concat(g.other(), g.part()), g.part()),
    lambda g, own: union(concat(g.other(), g.other()), g.letter()),
    lambda g, own: union(concat(own, own), g.part()),
    lambda g, own: union(concat(own, g.part(), own), concat(own, own), g.part()),
    lambda g, own: union(concat(optional(own), optional(own)), g.part()),
    lambda g, own: union(own, g.other(), g.part()),
    lambda g, own: union(repeat(own), g.part()),
    lambda g, own: repeat(g.other(), *g.bounds()),
    lambda g, own: repeat(concat(g.letter(), g.other(), g.letter())),
    lambda g, own: union(concat(own, g.part()), EMPTY),
    lambda g, own: random_expression(g.rng, g.rng.randint(1, 3)),
]
