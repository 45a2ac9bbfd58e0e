"""Left recursion of every kind taken out, and the rules of a push-down automaton: words against the definitions."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import reduce
from itertools import pairwise

import pytest

from reference.grammars import grammars as slow
from reference.grammars.random_grammars import all_words, random_grammar
from reference.grammars.random_grammars_wide import GrammarGenerator
from tokenfst.automata.expressions.expression import (
    EPSILON,
    Expr,
    Op,
    call,
    complement,
    concat,
    intersect,
    literal,
    optional,
    repeat,
    union,
)
from tokenfst.automata.rules import graph as rule_graph
from tokenfst.automata.rules.graph import cycles, left_edge
from tokenfst.automata.rules.left_recursion import rewrite_left_recursion
from tokenfst.automata.rules.lint import nullable
from tokenfst.automata.rules.pushdown import pushdown_rules
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, ConstraintError

A, B = literal(b"a"), literal(b"b")
Rules = dict[str, Expr]
WORDS = all_words(6)


def beginnings(body: Expr, empty: set[str]) -> set[str]:
    """The rules that ``body`` can call with only empty words in front, read off the definition."""
    found: set[str] = set()
    seen: set[int] = set()

    def visit(node: Expr) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        if node.op is Op.CALL:
            found.add(str(node.value))
        elif node.op is Op.CONCAT:
            for arg in node.args:
                visit(arg)
                if not has_empty(arg, empty, frozenset()):
                    break
        elif node.op in (Op.UNION, Op.REPEAT, Op.VARIABLE):
            for arg in node.args:
                visit(arg)

    visit(body)
    return found


def has_empty(node: Expr, empty: set[str], around: frozenset[int]) -> bool:
    """Whether a node has the empty word, those of the rules being known; in the variables ``around`` it has not."""
    if node.op is Op.CALL:
        return node.value in empty
    if node.op is Op.VARIABLE:
        return id(node) not in around and has_empty(node.args[0], empty, around | {id(node)})
    if node.op in (Op.CONCAT, Op.UNION):
        quantifier = all if node.op is Op.CONCAT else any
        return quantifier(has_empty(arg, empty, around) for arg in node.args)
    if node.op is Op.REPEAT:
        assert isinstance(node.value, tuple)
        return node.value[0] == 0 or has_empty(node.args[0], empty, around)
    return slow.accepts({"s": node}, "s", b"")


def on_cycles(rules: Rules) -> list[str]:
    """The rules that reach themselves at their left edge."""
    empty: set[str] = set()
    while more := {name for name, body in rules.items() if has_empty(body, empty, frozenset())} - empty:
        empty |= more
    edges = {name: beginnings(body, empty) for name, body in rules.items()}
    found = []
    for name in rules:
        reached, new = set(), edges[name]
        while new:
            reached |= new
            new = {target for each in new for target in edges[each]} - reached
        if name in reached:
            found.append(name)
    return found


def check(rules: Rules, words: list[bytes], what: object) -> None:
    """All ways to rewrite ``rules``: the words, the left edges, and what must stay as it is."""
    plain = rewrite_left_recursion(rules, "s", Budget()).rules
    ways = {
        "plain": plain,
        "inlined": pushdown_rules(rules, "s", Budget()),
        "again": pushdown_rules(plain, "s", Budget()),
    }
    for way, found in ways.items():
        assert next(iter(found)) == "s" and on_cycles(found) == [], (what, way)
    for word in words:
        expected = slow.accepts(rules, "s", word)
        for way in ("plain", "inlined"):
            assert slow.accepts(ways[way], "s", word) == expected, (what, way, word)
    assert list(ways["again"]) == list(ways["inlined"])
    looping = on_cycles(rules)
    for name, body in plain.items():
        assert name not in rules or name in looping or body is rules[name], (what, name, "left as it is")


# --- random grammars ----------------------------------------------------------------------------------


@pytest.fixture(params=["all inlined", "callees kept"])
def small_rules(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once with bodies as large as they become, once with most calls left, as in large grammars."""
    if request.param == "callees kept":
        monkeypatch.setattr("tokenfst.automata.rules.pushdown._LARGE", 6)


@pytest.mark.usefixtures("small_rules")
@pytest.mark.parametrize("block", range(4))
def test_random_grammars(block: int) -> None:
    looping = 0
    for seed in range(block * 1000, block * 1000 + 10):
        rules = dict(GrammarGenerator(random.Random(seed)).grammar().rules)
        looping += bool(on_cycles(rules))
        check(rules, WORDS[:31] if seed % 5 else WORDS[:127], seed)
    assert looping > 3


@pytest.mark.soak
@pytest.mark.usefixtures("small_rules")
@pytest.mark.parametrize("block", range(10))
def test_random_grammars_soak(block: int) -> None:
    for seed in range(100_000 + block * 1000, 100_000 + block * 1000 + 30):
        check(dict(GrammarGenerator(random.Random(seed)).grammar().rules), WORDS, seed)
        check(dict(random_grammar(random.Random(seed)).rules), WORDS, seed)


def test_regular_or_not_is_said_in_the_grammars_own_names() -> None:
    """Cycles through rules that were added are cycles of the rules that were written."""
    refused = 0
    for seed in range(300):
        grammar = random_grammar(random.Random(seed))
        if not grammar.is_regular():
            with pytest.raises(ConstraintError, match="needs a stack") as error:
                grammar.to_language()
            assert "⁺" not in str(error.value) and " up to " not in str(error.value)
            refused += 1
    assert refused > 50


# --- the kinds of left recursion, by hand -------------------------------------------------------------

S, T, U = call("s"), call("t"), call("u")

KINDS: dict[str, Rules] = {
    "plain": {"s": union(concat(S, A), B)},
    "list with nothing": {"s": union(EPSILON, concat(S, A))},
    "through another": {"s": union(concat(T, A), B), "t": union(concat(S, B), A)},
    "hidden by an optional part": {"s": union(concat(optional(T), S, A), B), "t": union(A, concat(A, T))},
    "hidden by a nullable rule": {"s": union(concat(T, S, A), B), "t": repeat(A)},
    "hidden by itself": {"s": union(concat(S, S, A), B, EPSILON)},
    "in a repetition": {"s": concat(repeat(concat(S, A)), B)},
    "in a counted repetition": {"s": concat(repeat(concat(optional(S), A), 0, 3), B)},
    "in a repetition of nullable rules": {"s": union(concat(repeat(T, 2, 3), B), A), "t": union(S, EPSILON)},
    "nullable cycle": {"s": union(concat(S, S), A, EPSILON)},
    "nullable step": {"s": union(concat(S, optional(A)), B)},
    "nullable steps in a circle": {
        "s": union(concat(T, optional(A)), B),
        "t": union(concat(U, repeat(B)), literal(b"aa")),
        "u": concat(S, optional(B)),
    },
    "only itself": {"s": union(S, A)},
    "no word": {"s": concat(S, A)},
    "no word on the way": {"s": union(concat(S, T), A), "t": concat(T, B)},
    "nullable regular part": {"s": union(concat(intersect(repeat(A), complement(A)), S, B), A)},
    "nested groups": {
        "s": union(concat(T, A), B),
        "t": union(concat(T, B, B), concat(U, A), S),
        "u": union(concat(T, B), concat(U, A, A), A),
    },
    "called in the middle as well": {"s": union(concat(S, T), A), "t": union(concat(S, B), concat(B, T, B))},
    "names that are taken": {
        "s": union(concat(T, A), B),
        "t": concat(S, U),
        "u": optional(B),
        "s up to s": A,
    },
}
WRITTEN: dict[str, str] = {
    "plain": "b a*",
    "list with nothing": "a*",
    "hidden by a nullable rule": "(t⁺ s a | b) a*",
    "in a repetition": "b (a (s a)* b)*",
    "nullable cycle": "(a s* | ε)",
    "nullable step": "b a*",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("small_rules")
def test_every_kind(kind: str) -> None:
    check(KINDS[kind], WORDS, kind)


@pytest.mark.parametrize("kind", WRITTEN)
def test_what_becomes_of_it(kind: str) -> None:
    def written(node: Expr) -> str:
        if node.op is Op.REPEAT:
            inside = written(node.args[0])
            return f"({inside})*" if " " in inside else f"{inside}*"
        if node.op is Op.UNION:
            return f"({' | '.join(map(written, node.args))})"
        if node.op is Op.CONCAT:
            return " ".join(map(written, node.args))
        return node.value.decode() if isinstance(node.value, bytes) else str(node.value or "ε")

    assert written(rewrite_left_recursion(KINDS[kind], "s", Budget()).rules["s"]) == WRITTEN[kind]


def test_other_rules_stay_the_same_objects() -> None:
    rules = {
        "s": concat(call("list"), call("flat")),
        "list": union(concat(call("list"), A), B),
        "flat": concat(repeat(A), call("right")),
        "right": union(concat(A, call("right")), B),
        "unused": A,
    }
    found = rewrite_left_recursion(rules, "s", Budget()).rules
    assert list(found) == ["s", "list", "flat", "right"]
    assert [name for name in found if found[name] is not rules[name]] == ["list"]
    assert rewrite_left_recursion(found, "s", Budget()).rules == found


def test_only_heads_are_rewritten() -> None:
    """A postfix expression: calls of the second rule stay, its body as well."""
    rules = {
        "s": union(concat(A, call("argument")), concat(S, B), call("postfix")),
        "postfix": concat(S, literal(b"("), call("argument"), literal(b")")),
        "argument": call("postfix"),
    }
    found, origins, *_ = rewrite_left_recursion(rules, "s", Budget())
    assert set(found) == {"s", "s up to s", "postfix", "argument"} and found["postfix"] is rules["postfix"]
    assert origins == {"s up to s": "s"}


# --- push-down rules ----------------------------------------------------------------------------------


def test_heads_are_rules_and_the_rest_is_inlined() -> None:
    value = union(call("array"), call("object"), call("number"))
    rules = {
        "s": concat(call("space"), call("value"), call("space")),
        "space": repeat(literal(b" ")),
        "value": value,
        "array": concat(literal(b"["), call("space"), call("value"), call("space"), literal(b"]")),
        "object": concat(literal(b"{"), call("value"), literal(b"}")),
        "number": union(A, concat(A, call("number"))),
    }
    found = pushdown_rules(rules, "s", Budget())
    assert list(found) == ["s", "value"]
    for body in found.values():
        assert {node.value for node in body.walk() if node.op is Op.CALL} == {"value"}
    assert sum(node.op is Op.VARIABLE for node in found["value"].walk()) == 1
    assert len({id(node) for body in found.values() for node in body.walk() if node.op is Op.REPEAT}) == 1
    assert list(rewrite_left_recursion(rules, "s", Budget()).rules) == ["s", *list(rules)[1:]]


def test_large_callees_stay_calls() -> None:
    digits = union(*(literal(b"%d" % number) for number in range(15_000)))
    rules = {
        "s": concat(call("t"), call("u")),
        "t": concat(A, call("u")),
        "u": concat(call("v"), digits),
        "v": B,
    }
    found = pushdown_rules(rules, "s", Budget())
    assert list(found) == ["s", "t"] and all(
        rule_graph.Rules(found).bodies[name].size <= 20_000 for name in found
    )


def chain(length: int, body: Callable[[Expr], Expr], last: Expr) -> Rules:
    """Rules each of which is made of a call of the next one."""
    names = ["s", *(f"r{number}" for number in range(1, length)), "last"]
    rules = {name: body(call(following)) for name, following in pairwise(names)}
    return {**rules, "last": last}


CHAINS: dict[str, Rules] = {
    "flat": chain(10_000, lambda following: concat(A, following, optional(following)), A),
    "left": chain(10_000, lambda following: union(concat(following, A), B), union(concat(S, B), A)),
    "hidden": chain(10_000, lambda following: union(concat(optional(A), following, A), B), union(S, A)),
    "nullable": chain(10_000, lambda following: union(concat(following, following), EPSILON), union(S, A)),
    "nullable steps": chain(10_000, lambda following: concat(following, optional(A)), union(S, B)),
    "right": chain(10_000, lambda following: union(concat(A, following), B), union(S, A)),
    "middle": chain(10_000, lambda following: union(concat(A, following, B), A), union(concat(A, S), A)),
    "wide body": {"s": union(concat(*[optional(A)] * 10_000, S, B), B)},
    "deep body": {"s": reduce(lambda body, _: union(concat(body, B), concat(S, A)), range(10_000), A)},
    "shared body": {
        "s": union(A, concat(reduce(lambda body, _: concat(body, body), range(60), optional(S)), B))
    },
}


@pytest.mark.parametrize("name", CHAINS)
def test_large_grammars(name: str) -> None:
    budget = Budget(seconds=30)
    found = rewrite_left_recursion(CHAINS[name], "s", budget).rules
    assert len(found) < 25_000 and len(pushdown_rules(found, "s", budget)) < 25_000
    empty = nullable(found, budget)
    assert not cycles({rule: left_edge(body, empty) for rule, body in found.items()})


def test_budget_names_the_rule() -> None:
    ways = chain(400, lambda following: union(concat(following, A), B), A)
    names = list(ways)
    for name, before in zip(names[1:-1], names, strict=False):
        ways[name] = union(ways[name], concat(call(before), B))
    with pytest.raises(BudgetExceeded, match="positions; it grew in the rule 'r"):
        rewrite_left_recursion(ways, "s", Budget(positions=500_000))
    with pytest.raises(BudgetExceeded, match="seconds; it grew in the rule"):
        rewrite_left_recursion(CHAINS["left"], "s", Budget(seconds=1e-9))
