"""The Grammar value: what it checks, what it answers, what lint finds."""

from __future__ import annotations

import random

import pytest

from tokenfst import Language, regex
from tokenfst.automata.expressions.expression import (
    EMPTY,
    Expr,
    call,
    complement,
    concat,
    intersect,
    literal,
    repeat,
    scope,
    union,
)
from tokenfst.automata.expressions.program import linearize
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.automata.rules.lint import FindingKind
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, ConstraintError

A, B, X = literal(b"a"), literal(b"b"), literal(b"x")


def grammar(**rules: Expr | Language) -> Grammar:
    return Grammar.from_rules(rules, "s")


def kinds(found: Grammar) -> list[tuple[str, str]]:
    return [(finding.rule, finding.kind.value) for finding in found.lint()]


def test_any_language_is_a_terminal() -> None:
    vowels = regex("[a-z]+") & regex(".*[aeiou].*") - Language.literal("aha")
    found = grammar(s=union(concat(literal(b"("), call("s"), literal(b")")), call("v")), v=vowels)
    language = found.truncate(2)
    assert language.accepts("((hello))") and not language.accepts("((hll))") and not language.accepts("(aha)")
    assert not language.accepts("(((a)))") and found.truncate(3).accepts("(((a)))")
    assert list(found.rules) == ["s", "v"] and found.start == "s"


def test_values_are_checked() -> None:
    with pytest.raises(ConstraintError, match="'s' calls 't', and there is no such rule"):
        grammar(s=call("t"))
    with pytest.raises(ConstraintError, match="the start rule 's' is not defined; the rules are 't'"):
        grammar(t=A)
    for wrapped in (complement(call("s")), intersect(A, call("s")), scope(call("s"))):
        with pytest.raises(ConstraintError, match="only concatenation, union and repetition"):
            grammar(s=wrapped)
    with pytest.raises(ConstraintError, match="is a str, not an expression"):
        Grammar.from_rules({"s": "a"}, "s")  # type: ignore[dict-item]
    with pytest.raises(BudgetExceeded, match="'s'"):
        grammar(s=repeat(repeat(repeat(A, 1000, 1000), 1000, 1000), 1000, 1000))
    with pytest.raises(TypeError):
        grammar(s=A).rules["s"] = B  # type: ignore[index]


def test_calls_belong_to_grammars() -> None:
    with pytest.raises(ConstraintError, match="'s' is called outside of a Grammar"):
        linearize(concat(A, call("s")))


def test_recursion() -> None:
    flat = grammar(s=concat(call("t"), call("t")), t=A)
    assert not flat.is_recursive() and flat.is_regular()
    assert flat.to_language().equivalent(Language.literal("aa"))
    left = grammar(s=union(concat(call("s"), A), B))
    right = grammar(s=union(concat(A, call("t")), B), t=union(concat(X, call("s")), A))
    assert left.is_recursive() and left.is_regular() and right.is_recursive() and right.is_regular()
    assert left.to_language().equivalent(regex("ba*")) and right.to_language().equivalent(
        regex("(ax)*(b|aa)")
    )
    mutual = grammar(s=union(concat(call("t"), A), B), t=union(concat(call("s"), X), A))
    assert mutual.to_language().equivalent(regex("(b|aa)(xa)*"))
    unreached = grammar(s=A, t=union(concat(A, call("t"), A), B))
    assert not unreached.is_recursive() and unreached.is_regular()
    centre = grammar(s=union(concat(A, call("s"), B), X))
    assert centre.is_recursive() and not centre.is_regular()
    with pytest.raises(ConstraintError, match=r"is not regular: s → s needs a stack\. Use truncate"):
        centre.to_language()


def test_truncation_counts_nesting() -> None:
    centre = grammar(s=union(concat(A, call("s"), B), X))
    for depth in range(4):
        assert centre.truncate(depth).equivalent(
            Language.union_of(Language.literal("a" * n + "x" + "b" * n) for n in range(depth + 1))
        )
    with pytest.raises(ConstraintError, match="at least 0"):
        centre.truncate(-1)


def test_lists_and_signs_do_not_use_depth_up() -> None:
    text = """
    root ::= root "+" item | item
    item ::= "-" item | "(" root ")" | "a"
    """
    language = gbnf(text).truncate(1)
    assert language.accepts("+".join(["--a"] * 50)) and language.accepts("-(a+-a)+(a)")
    assert not language.accepts("((a))")


def test_truncation_is_linear_in_depth() -> None:
    found = gbnf('root ::= "[" (root ("," root)*)? "]" | "{" root "}" | [0-9]+')
    sizes = [sum(1 for _ in found.truncate(depth).expr.walk()) for depth in (10, 20, 40)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0]) < 1000


def test_budget_names_the_rule() -> None:
    found = gbnf('root ::= "[" root root "]" | "x"').with_budget(Budget(positions=2000))
    with pytest.raises(BudgetExceeded, match="the rule 'root'"):
        found.truncate(1000)
    assert found.truncate(2).accepts("[[xx]x]")


def test_lint() -> None:
    found = grammar(
        s=union(concat(call("e"), call("s"), A), call("c"), concat(A, call("dead"))),
        e=repeat(A),
        c=union(call("d"), B),
        d=concat(call("e"), call("c")),
        dead=concat(A, call("dead")),
        never=concat(A, complement(complement(intersect(A, B)))),
    )
    assert kinds(found) == [
        ("s", "left-recursion"),
        ("c", "left-recursion"),
        ("c", "cycle"),
        ("dead", "unproductive"),
        ("never", "unproductive"),
        ("never", "unreachable"),
    ]
    cycle = next(finding for finding in found.lint() if finding.kind is FindingKind.CYCLE)
    assert cycle.path == ("c", "d", "c") and "c → d → c" in str(cycle)
    assert kinds(grammar(s=concat(A, call("s"), B)))[0] == ("s", "unproductive")
    assert kinds(grammar(s=union(call("s"), A))) == [("s", "left-recursion"), ("s", "cycle")]
    assert kinds(grammar(s=union(concat(A, call("s")), B))) == []


def test_lint_tells_places() -> None:
    found = gbnf('root ::= "a"\n  lost ::= root "b"').lint()
    assert [str(finding) for finding in found] == [
        "2:3: the rule 'lost' is not used: no way leads to it from 'root' [unreachable]"
    ]


def test_empty_grammars() -> None:
    found = grammar(s=concat(A, call("s")), t=A)
    assert found.is_empty() and found.truncate(3).is_empty() and found.to_language().is_empty()
    half = grammar(s=union(A, concat(call("t"), B)), t=union(call("t"), EMPTY))
    assert not half.is_empty() and half.is_regular() and half.to_language().equivalent(Language.literal("a"))


def test_deep_and_wide_graphs_need_no_stack() -> None:
    size = 4_000
    rules = {
        f"r{k}": union(concat(A, call(f"r{k + 1}"), B), concat(call(f"r{k + 1}"), X)) for k in range(size)
    }
    chain = Grammar.from_rules({**rules, f"r{size}": A}, "r0")
    assert not chain.is_recursive() and chain.is_regular() and chain.lint() == []
    chain.truncate(0)
    ring = Grammar.from_rules({**rules, f"r{size}": union(call("r0"), A)}, "r0", Budget(seconds=2))
    assert ring.is_recursive()
    with pytest.raises(BudgetExceeded):
        ring.truncate(1000)
    body = A
    for _ in range(size):
        body = union(concat(B, body), concat(call("s"), X))
    assert Grammar.from_rules({"s": body}, "s").lint()


def test_same_grammar_same_expression() -> None:
    rng = random.Random(0)
    words = [bytes(rng.choices(b"ab[]{},1", k=5)) for _ in range(300)]
    found = gbnf('root ::= "[" (root ("," root)*)? "]" | "{" root "}" | [0-9]+')
    first, second = found.truncate(2), found.truncate(2)
    first_program, second_program = linearize(first.expr), linearize(second.expr)
    assert (first_program.code == second_program.code).all() and first_program.blob == second_program.blob
    assert [first.accepts(word) for word in words] == [second.accepts(word) for word in words]


def test_the_rules_around_a_place_before_many_choices() -> None:
    """Forty choices on the way to the end of a rule are 3 ** 40 ways, all inside of the same rules."""
    choices = " ".join(['("ab" | "cd" | y)'] * 40)
    grammar = gbnf(f'root ::= "(" root ")" | "[" x "]"\nx ::= {choices}\ny ::= "(" y ")" | "z"')
    assert grammar.rule_stack(b"(([a") == ("root", "x")
