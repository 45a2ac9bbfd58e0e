"""The analyses of rules in the native core, against the same in plain Python: answers and their orders."""

from __future__ import annotations

import random

import pytest

from tests.reference.grammars import rule_graphs as slow
from tests.reference.grammars.random_grammars import random_body
from tokenfst import Budget, bundled_grammar, bundled_grammars, regex
from tokenfst._native import (
    Inlining,
    RuleBody,
    are_within,
    first_fault,
    has_calls,
    left_edges,
    nodes_below,
    operators,
    with_words,
)
from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    MOST_POSITIONS,
    Expr,
    Op,
    below,
    call,
    complement,
    concat,
    intersect,
    literal,
    optional,
    recursive,
    repeat,
    union,
    unordered,
)
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.expressions.rebuilding import rebuilt
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.rules.graph import Rules, components, least_true, reachable
from tokenfst.errors import ConstraintError

A, B = literal(b"a"), literal(b"b")
NAMES = ["s", "t", "u", "v"]
LEAVES = (A, B, EPSILON, EMPTY, optional(A), intersect(A, B), complement(A), literal(b"ab"))


def rules_of(rng: random.Random) -> dict[str, Expr]:
    """Rules that share bodies and nodes, with counts, and members in any order."""
    found: dict[str, Expr] = {}
    for name in NAMES[: rng.randint(1, 4)]:
        body = random_body(rng, NAMES[:3], rng.randint(0, 3), LEAVES)
        kind = rng.randrange(6)
        if kind == 0:
            body = repeat(body, rng.randint(0, 3), rng.choice([None, 3, 1_000]), "counted")
        elif kind == 1:
            members = [random_body(rng, NAMES[:3], 1, LEAVES) for _ in range(rng.randint(2, 4))]
            some = {"required": rng.randint(0, 2), "low": rng.randint(0, 3), "counts": rng.random() < 0.5}
            body = unordered(
                members, rng.choice([A, call("t"), EPSILON]), **some, other=rng.choice([EMPTY, call("u")])
            )
        elif kind == 2:
            body = concat(body, A, body, union(body, call("s")))
        elif kind == 3 and found:
            body = rng.choice(list(found.values()))
        found[name] = body
    return found


def check(rules: dict[str, Expr]) -> None:
    """Every question about rules, by both ways."""
    own = Rules(rules)
    for name, body in rules.items():
        fast, nodes = own.bodies[name], slow.outer_nodes(body)
        assert fast.length == len(nodes)
        assert [*map(id, fast.nodes())] == [*map(id, nodes)]
        assert fast.size == min(slow.size(nodes), MOST_POSITIONS)
        assert fast.calls() == slow.called(nodes)
        assert operators({name: fast}) == sum(1 << op for op in {node.op for node in nodes})
        assert fast.leaves() == [node for node in nodes if not node.size and not slow.is_composed(node)]
        for names in (rules, dict(list(rules.items())[:1])):
            assert fast.calls_only(names) == slow.calls_only(nodes, names)
    for nullable in (False, True):

        def leaf(node: Expr, nullable: bool = nullable) -> bool:
            return bool(node.op is Op.COMPLEMENT and not nullable)

        def decided(node: Expr, nullable: bool = nullable) -> bool:
            return (node.nullable if nullable else True) if node.size else leaf(node, nullable)

        fast_ids = least_true(own, leaf, Deadline(Budget(), "a test"), nullable=nullable)
        slow_ids = slow.least_true(rules, decided)
        assert fast_ids == slow_ids
        for name, body in rules.items():
            assert own.bodies[name].left_edge(fast_ids) == slow.left_edge(body, slow_ids)
            assert are_within({name: own.bodies[name]}, fast_ids) == all(
                id(node) in fast_ids for node in own.nodes(name)
            )
        edges = {name: slow.left_edge(body, slow_ids) for name, body in rules.items()}
        assert left_edges(own.bodies, fast_ids) == edges
        assert are_within(own.bodies, fast_ids) == all(
            id(node) in fast_ids for name in rules for node in own.nodes(name)
        )
        families = [
            recursive(lambda again, body=body: union(body, concat(A, again))) for body in rules.values()
        ]
        roots = [*rules.values(), *families]
        wanted = slow.with_words(rules.values(), roots, fast_ids)
        assert with_words(own.bodies, roots, fast_ids) == wanted
        for root in roots:
            assert has_calls([root]) == any(node.op is Op.CALL for node in nodes_below([root], False))
    assert operators(own.bodies) == sum(
        1 << op for op in {node.op for body in rules.values() for node in slow.outer_nodes(body)}
    )
    for most in (1, 10, 1 << 62):
        faults = [
            name
            for name, body in rules.items()
            if not slow.calls_only(slow.outer_nodes(body), rules) or own.bodies[name].size > most
        ]
        assert first_fault(own.bodies, most) == (faults[0] if faults else None)
    assert components(own.graph) == slow.components(own.graph)
    whole = {name: [each for each in calls if each in own] for name, calls in own.graph.items()}
    for name in rules:
        assert reachable(whole, name) == slow.reachable(whole, name)
    roots = list(rules.values())
    assert [*map(id, nodes_below(roots, True))] == [*map(id, below(*roots, inner=lambda node: True))]
    assert [*map(id, nodes_below(roots, False))] == [
        *map(id, below(*roots, inner=lambda node: not node.size))
    ]


def test_random_rules() -> None:
    rng = random.Random(0)
    for _ in range(3_000):
        check(rules_of(rng))


def test_bundled_grammars() -> None:
    pytest.importorskip("lark")
    for name in bundled_grammars():
        check(dict(bundled_grammar(name).rules))


@pytest.mark.parametrize("leaf", [intersect(concat(A, call("s")), B), complement(union(A, call("s")))])
def test_calls_that_no_grammar_has_are_found(leaf: Expr) -> None:
    body = concat(A, optional(leaf), call("s"))
    assert not RuleBody(body).calls_only({"s": A})
    assert not slow.calls_only(slow.outer_nodes(body), ["s"])
    with pytest.raises(ConstraintError, match="calls a rule under"):
        Grammar({"s": body}, "s")


def test_large_counts_have_a_bound() -> None:
    """Sizes and counts that exceed 2**62 are 2**62."""
    body = call("s")
    for _ in range(10):
        body = repeat(concat(body, body), 0, 1_000_000)
    check({"s": body})


def test_random_graphs() -> None:
    rng = random.Random(1)
    for _ in range(2_000):
        vertices = range(rng.randint(1, 9))
        graph = {k: [rng.choice([*vertices, 99]) for _ in range(rng.randrange(4))] for k in vertices}
        assert components(graph) == slow.components(graph)


def test_deep_bodies() -> None:
    """The passes over a body need no stack of Python or of the core."""
    body: Expr = call("s")
    for _ in range(100_000):
        body = concat(A, union(body, B))
    own = RuleBody(body)
    assert own.calls() == ["s"]
    inlining = Inlining({"r": own, "s": RuleBody(A)}, "r")
    assert inlining.hard == {"r": ["s"], "s": []}
    assert inlining.expressions("r", {"s": A}, rebuilt, lambda count, name: None)["r"].size > 0


def test_what_is_no_expression_is_refused() -> None:
    with pytest.raises(TypeError, match="must be an Expr"):
        RuleBody("s")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be an Expr"):
        nodes_below([A, None], True)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="must be an Expr"):
        RuleBody(Expr(Op.CONCAT, (call("s"), "t")))  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="no such rule"):
        Inlining({"s": RuleBody(call("t"))}, "s")
    with pytest.raises(KeyError):
        Inlining({"s": RuleBody(concat(call("t"), A)), "t": RuleBody(A)}, "s").expressions(
            "s", {}, rebuilt, lambda count, name: None
        )


def test_a_language_as_a_body() -> None:
    check({"s": regex("(a|b)*c").expr})
