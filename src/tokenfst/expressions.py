"""Expressions, of which languages and the rules of grammars are made: ``from tokenfst import expressions``.

An ``Expr`` is a node of a graph; the functions make nodes of nodes (docs/research/tables.md has an example).
``Language(expr)`` is the language of an expression, and ``language.expr`` the expression of a language.
``Grammar.from_rules`` takes bodies with ``call``, which stands for the words of a rule.

The functions here check their arguments, which those of ``automata.expressions`` do not: these make every node of every
constraint. Raises ``ArgumentTypeError`` for an argument of another type, ``ArgumentValueError`` for a byte or a number
of repetitions that cannot be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tokenfst.automata.expressions import expression
from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    EMPTY,
    EPSILON,
    UNIVERSE,
    Dfa,
    Expr,
    Op,
)
from tokenfst.common.arguments import checked, refuse, whole
from tokenfst.errors import ArgumentValueError

__all__ = [
    "ANY_BYTE",
    "EMPTY",
    "EPSILON",
    "UNIVERSE",
    "Expr",
    "Op",
    "below",
    "byte_range",
    "byte_set",
    "call",
    "complement",
    "concat",
    "intersect",
    "literal",
    "machine",
    "optional",
    "recursive",
    "repeat",
    "union",
    "unordered",
]
_MOST = 2**31 - 1
"""The greatest number that the core counts to."""


@checked
def literal(data: bytes) -> Expr:
    """The one word ``data``."""
    return expression.literal(data)


def byte_set(bits: int) -> Expr:
    """One byte out of the set ``bits`` (bit b: byte b)."""
    if isinstance(bits, bool) or not isinstance(bits, int):
        refuse("byte_set", "bits", bits, "an integer")
    if not 0 <= bits < 1 << 256:
        refuse("byte_set", "bits", bits, "an integer from 0 to 2^256 - 1", ArgumentValueError)
    return expression.byte_set(bits)


def byte_range(first: int, last: int) -> Expr:
    """One byte from ``first`` to ``last``, both included."""
    first = whole("byte_range", "first", first, 0, 255)
    return expression.byte_range(first, whole("byte_range", "last", last, first, 255))


@checked
def call(name: str) -> Expr:
    """The words of the rule ``name``. Only for the rules of a ``Grammar``."""
    return expression.call(name)


def concat(*parts: Expr) -> Expr:
    """The parts one after another."""
    return expression.concat(*_nodes("concat", parts))


def union(*parts: Expr) -> Expr:
    """The words of any part."""
    return expression.union(*_nodes("union", parts))


def intersect(*parts: Expr) -> Expr:
    """The words that are in every part. There must be at least one part."""
    if not parts:
        refuse("intersect", "parts", parts, "at least one Expr", ArgumentValueError)
    return expression.intersect(*_nodes("intersect", parts))


@checked
def complement(part: Expr) -> Expr:
    """Every word that is not in ``part``."""
    return expression.complement(part)


@checked
def repeat(part: Expr, low: int = 0, high: int | None = None, source: str | None = None) -> Expr:
    """``low`` to ``high`` words of ``part`` in sequence; a ``high`` of ``None`` means no upper bound."""
    whole("repeat", "low", low, 0, _MOST)
    if high is not None:
        whole("repeat", "high", high, low, _MOST)
    return expression.repeat(part, low, high, source)


@checked
def optional(part: Expr) -> Expr:
    """``part`` or the empty word."""
    return expression.optional(part)


@checked
def machine(dfa: Dfa, source: str | None = None) -> Expr:
    """The language of a deterministic automaton."""
    return expression.machine(dfa, source)


@checked
def recursive(body: Callable[[Expr], Expr]) -> Expr:
    """The least language X with X = body(X); X must stand in tail position."""

    def inner(variable: Expr) -> Expr:
        (made,) = _nodes("recursive", (body(variable),), "what body returns")
        return made

    return expression.recursive(inner)


@checked
def unordered(
    options: Sequence[Expr],
    separator: Expr = EPSILON,
    *,
    required: int = 0,
    other: Expr = EMPTY,
    counts: bool = True,
    low: int = 0,
    high: int | None = None,
    source: str | None = None,
) -> Expr:
    """``low`` to ``high`` members in any order, with separators between them.

    Each of the ``options`` occurs at most once, the first ``required`` of them exactly once, ``other`` any number
    of times; unless it ``counts``, ``low`` is a number of options. No member may have the empty word or refer to a
    variable of ``recursive`` from outside.
    """
    whole("unordered", "required", required, 0, len(options))
    whole("unordered", "low", low, 0, _MOST)
    if high is not None:
        whole("unordered", "high", high, low, _MOST)
    return expression.unordered(
        options,
        separator,
        required=required,
        other=other,
        counts=counts,
        low=low,
        high=high,
        source=source,
    )


def below(*roots: Expr, inner: Callable[[Expr], bool] | None = None) -> list[Expr]:
    """The nodes of the graph below ``roots``, each once, operands first.

    ``inner`` decides whose operands are included; by default those of all nodes.
    """
    return expression.below(*_nodes("below", roots, "roots"), inner=inner)


def _nodes(call: str, parts: tuple[Expr, ...], name: str = "parts") -> tuple[Expr, ...]:
    """The operands, all of which must be expressions."""
    for place, part in enumerate(parts):
        if not isinstance(part, Expr):
            refuse(call, f"{name}[{place}]" if len(parts) > 1 else name, part, "an Expr")
    return parts
