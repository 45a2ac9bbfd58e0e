"""Expressions, of which languages and the rules of grammars are made: ``from tokenfst import expressions``.

An ``Expr`` is a node of a graph; the functions make nodes of nodes (docs/research/tables.md has an example).
``Language(expr)`` is the language of an expression, and ``language.expr`` the expression of a language.
``Grammar.from_rules`` takes bodies with ``call``, which stands for the words of a rule.
"""

from __future__ import annotations

from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    EMPTY,
    EPSILON,
    UNIVERSE,
    Expr,
    Op,
    below,
    byte_range,
    byte_set,
    call,
    complement,
    concat,
    intersect,
    literal,
    machine,
    optional,
    recursive,
    repeat,
    union,
    unordered,
)

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
