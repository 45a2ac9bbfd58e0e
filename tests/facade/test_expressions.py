"""``tokenfst.expressions``: what a program needs to make languages and grammars of expressions."""

from __future__ import annotations

import tokenfst
from tokenfst import expressions
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
