"""``rebuilt``: a copy of a node with other operands, the basic step of every transformation of expressions."""

from __future__ import annotations

from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    Expr,
    Op,
    Unordered,
    bounds_of,
    concat,
    repeat,
    union,
    unordered,
)


def rebuilt(node: Expr, args: list[Expr]) -> Expr:
    """A node of the same kind with other operands."""
    if node.op is Op.CONCAT:
        return concat(*args)
    if node.op is Op.UNION:
        return union(*args)
    if isinstance(node.value, Unordered):
        return _unordered(node.value, args, node.source)
    low, high = bounds_of(node)
    if args[0] is EMPTY:
        return EMPTY if low else EPSILON
    return repeat(args[0], low, high, node.source)


def _unordered(value: Unordered, args: list[Expr], source: str | None) -> Expr:
    separator, *options = args
    other = options.pop() if value.repeats else EMPTY
    counts = value.repeats != 2
    high = None if value.high < 0 else value.high
    return unordered(
        options,
        separator,
        required=value.required,
        other=other,
        counts=counts,
        low=value.low,
        high=high,
        source=source,
    )
