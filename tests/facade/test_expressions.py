"""``tokenfst.expressions``: what a program needs to make languages and grammars of expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tokenfst
from tokenfst import expressions
from tokenfst.errors import ArgumentTypeError, ArgumentValueError
from tokenfst.expressions import call, concat, literal, repeat, union, unordered


def test_every_operation_of_expressions_is_named() -> None:
    assert all(hasattr(expressions, name) for name in expressions.__all__)
    language = tokenfst.Language(
        expressions.intersect(
            repeat(expressions.byte_range(97, 99), 1), expressions.complement(literal(b"ab"))
        )
    )
    assert not language.accepts("ab") and language.accepts("abc") and not language.accepts("")
    assert tokenfst.Language(language.expr).equivalent(language)
    assert tokenfst.Language(expressions.machine(language.determinize())).equivalent(language)
    assert {node.op for node in expressions.below(language.expr)} >= {expressions.Op.INTERSECT}


def test_rules_of_a_grammar() -> None:
    pair = concat(literal(b"("), union(call("pair"), literal(b"x")), literal(b")"))
    grammar = tokenfst.Grammar.from_rules({"pair": pair}, "pair")
    assert grammar.accepts("((x))") and not grammar.accepts("((x)")
    members = unordered([literal(b"a"), literal(b"b")], literal(b","), required=1)
    assert tokenfst.Language(members).equivalent(tokenfst.regex("a(,b)?|b,a"))


A = literal(b"a")
BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "text": (lambda: literal("a"), r"literal: data must be bytes, not 'a' .*: text.encode\(\)"),  # type: ignore[arg-type]
    "negative set": (lambda: expressions.byte_set(-1), "byte_set: bits must be an integer from 0"),
    "set of letters": (lambda: expressions.byte_set("a"), "byte_set: bits must be an integer"),  # type: ignore[arg-type]
    "range": (lambda: expressions.byte_range(0, 256), "byte_range: last must be at most 255"),
    "range upside down": (lambda: expressions.byte_range(5, 3), "byte_range: last must be at least 5"),
    "name": (lambda: call(3), "call: name must be text"),  # type: ignore[arg-type]
    "letters": (
        lambda: concat(A, "b"),
        r"concat: parts\[1\] must be an Expr, .*: tokenfst.expressions.literal",
    ),  # type: ignore[arg-type]
    "language": (
        lambda: union(tokenfst.regex("a"), A),  # type: ignore[arg-type]
        r"union: parts\[0\] must be an Expr, not a Language: language\.expr",
    ),
    "no parts": (lambda: expressions.intersect(), "intersect: parts must be at least one Expr"),
    "negative": (lambda: repeat(A, -1), "repeat: low must be at least 0"),
    "upside down": (lambda: repeat(A, 3, 2), "repeat: high must be at least 3"),
    "no bound": (lambda: repeat(A, 0, -1), "repeat: high must be at least 0"),
    "many": (lambda: repeat(A, 0, 2**40), "repeat: high must be at most 2,147,483,647"),
    "one member": (lambda: unordered("ab"), "unordered: options must be a sequence of Expr objects"),  # type: ignore[arg-type]
    "required": (lambda: unordered([A], required=2), "unordered: required must be at most 1"),
    "no body": (lambda: expressions.recursive(A), "recursive: body must be a function"),  # type: ignore[arg-type]
    "body": (lambda: expressions.recursive(lambda x: "a"), "what body returns must be an Expr"),  # type: ignore[arg-type,return-value]
    "no machine": (lambda: expressions.machine(3), "machine: dfa must be a Dfa"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", BAD)
def test_arguments_are_checked(name: str) -> None:
    made, said = BAD[name]
    with pytest.raises((ArgumentTypeError, ArgumentValueError), match=said):
        made()


def test_numbers_beyond_those_of_the_core_are_refused() -> None:
    """``expression`` does not check: a bound of 2^32 + 1 was read as 1."""
    unchecked = expressions.expression.repeat(A, 0, 2**32 + 1)
    with pytest.raises(tokenfst.errors.ConstraintError, match="counts to 4294967297"):
        tokenfst.Language(unchecked).accepts("aa")
