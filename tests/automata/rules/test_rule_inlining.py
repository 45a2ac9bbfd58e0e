"""Replacement of calls in the native core, against the same in plain Python: hard calls, heads and expressions."""

from __future__ import annotations

import random

import pytest

from tests.automata.rules.test_rule_bodies import A, B, rules_of
from tests.reference.grammars import rule_inlining as slow
from tests.reference.grammars.random_grammars import random_body
from tests.support.worlds.same_grammars import assert_same
from tokenfst import Budget, BudgetExceeded, bundled_grammar, bundled_grammars
from tokenfst.automata.expressions.expression import (
    EPSILON,
    Expr,
    Op,
    call,
    concat,
    literal,
    repeat,
    union,
)
from tokenfst.automata.rules.inlining import Inliner
from tokenfst.automata.rules.left_recursion import Rewritten, rewrite_left_recursion
from tokenfst.automata.rules.pushdown import pushdown_rules


def check(plain: Rewritten, start: str, rng: random.Random) -> int:
    """All answers by both ways; the number of rules that are called."""
    budget = Budget()
    fast, twin = Inliner(plain, start, budget), slow.SlowInliner(plain, start, budget)
    assert list(fast.hard.items()) == list(twin.hard.items())
    assert list(fast.heads().items()) == list(twin.heads().items())
    for name in fast.hard:
        hard = {each: rng.choice((A, B, call(each))) for each in fast.hard[name]}
        assert_all_same(fast.expressions(name, hard), twin.expressions(name, hard))
    called = 0
    for large, doublings in ((20_000, 8), (rng.randint(1, 30), 8), (20_000, rng.randint(1, 3)), (5, 1)):
        made = fast.called(large, doublings)
        assert_all_same(made, slow.pushdown_rules(plain, start, budget, large, doublings))
        called = max(called, len(made))
    return called


def assert_all_same(made: dict[str, Expr], wanted: dict[str, Expr]) -> None:
    assert list(made) == list(wanted)
    names = Expr(Op.UNION, tuple(made.values())), Expr(Op.UNION, tuple(wanted.values()))
    assert_same(*names)


def large_rules(rng: random.Random) -> dict[str, Expr]:
    """Up to twelve rules with long chains, families and counted repetitions; none begins with itself."""
    names = [f"r{k}" for k in range(rng.randint(2, 12))]
    leaves = (A, B, literal(b"ab"), EPSILON)
    found: dict[str, Expr] = {}
    for k, name in enumerate(names):
        body = random_body(rng, names[k:] if rng.random() < 0.7 else names, rng.randint(0, 3), leaves)
        kind = rng.randrange(5)
        if kind == 0:
            body = repeat(body, rng.randint(0, 3), rng.choice([None, 3, 50]))
        elif kind == 1:
            again = call(rng.choice(names))
            body = concat(again, union(again, B), body)
        elif kind == 2:
            body = union(body, concat(A, call(rng.choice(names))))
        found[name] = concat(A, body)
    return found


def test_random_rules() -> None:
    rng = random.Random(2)
    most = 0
    for _ in range(1_500):
        rules = {**dict.fromkeys(("s", "t", "u", "v"), A), **rules_of(rng)}
        rng.random()
        if not any(node.op is Op.UNORDERED for body in rules.values() for node in body.walk()):
            check(rewrite_left_recursion(rules, "s", Budget()), "s", rng)
        most = max(most, check(rewrite_left_recursion(large_rules(rng), "r0", Budget()), "r0", rng))
    assert most >= 8


def test_bundled_grammars() -> None:
    pytest.importorskip("lark")
    rng = random.Random(3)
    for name in bundled_grammars():
        grammar = bundled_grammar(name)
        check(rewrite_left_recursion(grammar.rules, grammar.start, Budget()), grammar.start, rng)


def test_many_rules_take_time_by_their_number() -> None:
    """Pairs of recursive rules, one family of many rules, and a rule with many callees: none takes quadratic time."""
    count = 20_000
    pairs = {
        "s": union(*(call(f"a{k}") for k in range(count))),
        **{f"a{k}": concat(A, call(f"b{k}"), B) for k in range(count)},
        **{f"b{k}": union(A, concat(B, call(f"a{k}"), A)) for k in range(count)},
    }
    assert len(pushdown_rules(pairs, "s", Budget(positions=1 << 40))) == count + 1
    family = {f"s{k}": union(A, concat(B, call(f"s{(k + 1) % count}"))) for k in range(count)}
    assert len(pushdown_rules(family, "s0", Budget(positions=1 << 40))) == 1


def test_budgets_name_the_rule() -> None:
    rules = {"s": concat(A, call("t"), B), "t": union(A, concat(B, call("s"), A))}
    with pytest.raises(BudgetExceeded, match="the rule 's'"):
        pushdown_rules(rules, "s", Budget(positions=100))
    with pytest.raises(BudgetExceeded, match="seconds"):
        pushdown_rules(rules, "s", Budget(seconds=1e-9))
