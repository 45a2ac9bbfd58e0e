"""Expressions and grammars that two ways of reading must make in the same way, node by node."""

from __future__ import annotations

from collections.abc import Iterable

from tokenfst import Grammar
from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.expressions.tables import Dfa


def assert_same(one: Expr, other: Expr) -> None:
    """The same graph, node by node."""
    waiting = [(one, other)]
    seen = set()
    while waiting:
        left, right = waiting.pop()
        if left is right or (id(left), id(right)) in seen:
            continue
        seen.add((id(left), id(right)))
        assert (left.op, left.source) == (right.op, right.source)
        assert left.value.equals(right.value) if isinstance(left.value, Dfa) else left.value == right.value
        assert (left.size, left.nullable, len(left.args)) == (right.size, right.nullable, len(right.args))
        waiting += zip(left.args, right.args, strict=True)


def assert_same_grammars(made: Iterable[Grammar | str], others: Iterable[Grammar | str]) -> int:
    """The same rules, or the same message of why there is no grammar. Returns how many are grammars."""
    compared = 0
    for one, other in zip(made, others, strict=True):
        if isinstance(one, str) or isinstance(other, str):
            assert one == other
            continue
        compared += 1
        assert list(one.rules) == list(other.rules)
        for name, body in one.rules.items():
            assert_same(body, other.rules[name])
    return compared
