"""Digests of programs: one for each language that is written in one way, whatever its order; never one for two."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys

import pytest

from reference.expressions import program_digests as slow
from reference.expressions.random_expressions import random_expression
from reference.grammars.random_grammars import random_body
from tokenfst import Grammar, Language, choices, json_schema, one_token, regex, special_token, unordered
from tokenfst.automata.expressions import digests
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.expressions.digests import digest
from tokenfst.automata.expressions.expression import Expr, Op
from tokenfst.automata.expressions.program import Program, linearize
from tokenfst.automata.expressions.rebuilding import rebuilt
from tokenfst.errors import ConstraintError

LEAVES = [ex.EPSILON, ex.literal(b"a"), ex.literal(b"b"), ex.byte_set(3 << 97), ex.literal(b"ab")]


def small_world() -> list[Expr]:
    """All expressions of two levels over a few leaves."""
    found = list(LEAVES)
    for level in (LEAVES, LEAVES[1:4]):
        inner = list(found) if level is LEAVES else found[len(LEAVES) :][::7]
        for one, other in itertools.product(inner, level):
            found += [ex.concat(one, other), ex.union(one, other), ex.intersect(one, other)]
        found += [
            made for one in inner for made in (ex.complement(one), ex.repeat(one), ex.repeat(one, 2, 3))
        ]
    return found


def of(expr: Expr) -> str:
    return digest(linearize(expr))


def shuffled(rng: random.Random, expr: Expr, names: dict[str, str] | None = None) -> Expr:
    """The same with the parts of unions and intersections in another order and nesting, and rules renamed."""
    if expr.op is Op.VARIABLE:
        return expr
    parts = [shuffled(rng, part, names) for part in expr.args]
    if expr.op is Op.CALL and names:
        return ex.call(names[str(expr.value)])
    if expr.op in (Op.UNION, Op.INTERSECT):
        mix = ex.union if expr.op is Op.UNION else ex.intersect
        rng.shuffle(parts)
        parts += rng.sample(parts, rng.randint(0, 1))
        while len(parts) > 2 and rng.random() < 0.6:
            parts[:2] = [mix(*parts[:2])]
        return mix(*parts)
    if expr.op is Op.CONCAT and len(parts) > 2 and rng.random() < 0.5:
        return ex.concat(parts[0], ex.concat(*parts[1:]))
    return rebuilt(expr, parts) if expr.op in (Op.CONCAT, Op.REPEAT) else expr


def test_equal_exactly_where_the_slow_description_is() -> None:
    by_digest: dict[str, set[str]] = {}
    by_text: dict[str, set[str]] = {}
    for expr in small_world():
        by_digest.setdefault(of(expr), set()).add(slow.of_expression(expr, {}))
        by_text.setdefault(slow.of_expression(expr, {}), set()).add(of(expr))
    assert len(by_digest) > 150
    assert all(len(each) == 1 for each in by_digest.values())
    assert all(len(each) == 1 for each in by_text.values())


def test_one_digest_one_language() -> None:
    by_digest: dict[str, list[Language]] = {}
    rng = random.Random(7)
    for _ in range(600):
        try:
            by_digest.setdefault(of(expr := random_expression(rng, rng.randint(1, 2))), []).append(
                Language(expr)
            )
        except ConstraintError:  # recursion out of tail position
            continue
    assert sum(len(each) > 1 for each in by_digest.values()) > 20
    for first, *others in by_digest.values():
        assert all(first.equivalent(other) for other in others[:3])


@pytest.mark.parametrize("seed", range(40))
def test_order_and_nesting_do_not_matter(seed: int) -> None:
    rng = random.Random(seed)
    expr = random_expression(rng, 4)
    assert of(shuffled(rng, expr)) == of(expr)


def rules_of(rng: random.Random) -> tuple[dict[str, Expr], dict[str, bool]]:
    names = ["s", "t", "u", "v"][: rng.randint(1, 4)]
    rules = {name: random_body(rng, names, rng.randint(1, 2)) for name in names}
    return rules, {name: rng.random() < 0.3 for name in names}


def of_rules(rules: dict[str, Expr], empty: dict[str, bool], start: str) -> str:
    return digest(linearize(ex.call(start), {name: (body, empty[name]) for name, body in rules.items()}))


def test_rules_in_any_order_by_any_names() -> None:
    rng = random.Random(3)
    by_digest: dict[str, set[str]] = {}
    by_text: dict[str, set[str]] = {}
    for _ in range(400):
        rules, empty = rules_of(rng)
        names = dict(zip(rules, rng.sample(["w", "x", "y", "z"], len(rules)), strict=True))
        order = rng.sample(list(rules), len(rules))
        other = {names[name]: shuffled(rng, rules[name], names) for name in order}
        found = of_rules(rules, empty, "s")
        assert of_rules(other, {names[name]: empty[name] for name in rules}, names["s"]) == found
        text = slow.of_rules(rules, empty, "s")
        by_digest.setdefault(found, set()).add(text)
        by_text.setdefault(text, set()).add(found)
    assert len(by_digest) > 200
    assert all(len(each) == 1 for each in (*by_digest.values(), *by_text.values()))


def test_rules_that_cannot_be_told_apart_are_one() -> None:
    a, s, t = ex.literal(b"a"), ex.call("s"), ex.call("t")
    one = {"r": ex.union(s, t, ex.EPSILON), "s": ex.concat(a, s, a), "t": ex.concat(a, s, a)}
    two = {"r": ex.union(ex.EPSILON, t), "t": ex.concat(a, t, a)}
    empty = dict.fromkeys("rst", False)
    assert of_rules(one, empty, "r") != of_rules({**one, "t": ex.concat(a, t)}, empty, "r")
    assert of_rules({**one, "r": ex.union(s, t)}, empty, "r") == of_rules(
        {**one, "r": ex.union(t, s)}, empty, "r"
    )
    assert of_rules(two, empty, "r") == of_rules({**two, "unused": a}, empty | {"unused": False}, "r")


def test_recursion() -> None:
    a, b = ex.literal(b"a"), ex.literal(b"b")
    one = ex.recursive(lambda x: ex.union(ex.concat(a, x), b))
    two = ex.recursive(lambda x: ex.union(b, ex.concat(a, x)))
    three = ex.recursive(lambda x: ex.union(ex.concat(b, x), a))
    assert of(one) == of(two) != of(three)
    assert of(ex.concat(one, one)) == of(ex.concat(one, two)) != of(ex.concat(one, three))


SAME = {
    "alternatives": (regex("ab|cd|e"), regex("e|cd|ab")),
    "operands": (regex("a*") & regex("b*"), regex("b*") & regex("a*")),
    "sums": ((regex("a") | regex("b+")) | regex("c"), regex("c") | (regex("b+") | regex("a"))),
    "choices": (choices(["one", "two"]), choices(["two", "one"])),
    "members": (unordered([regex("a"), regex("b")]), unordered([regex("b"), regex("a")])),
    "tokens": (special_token("x") | regex("a"), regex("a") | special_token("x")),
}
DIFFERENT = {
    "order": (regex("ab"), regex("ba")),
    "bounds": (regex("(ab){2,3}"), regex("(ab){2,4}")),
    "choices": (choices(["one", "two"]), choices(["one", "tw"])),
    "words": (choices(["ab", "c"]), choices(["a", "bc"])),
    "members": (
        unordered([regex("a"), regex("b")]),
        unordered([regex("a"), regex("b")], required=[regex("c")]),
    ),
    "tokens": (special_token("x"), special_token("y")),
    "a token": (regex("ab"), one_token(regex("ab"))),
    "a difference": (regex("[ab]*") - regex("a"), regex("[ab]*") - regex("b")),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same(name: str) -> None:
    one, other = (digest(each.program()) for each in SAME[name])
    assert one == other


@pytest.mark.parametrize("name", DIFFERENT)
def test_different(name: str) -> None:
    one, other = (digest(each.program()) for each in DIFFERENT[name])
    assert one != other


def test_what_authors_wrote_is_left_out() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#"}}}}
    one, other = json_schema(schema), json_schema({"title": "x", **schema, "$comment": "y"})
    assert digest(one.program()) == digest(other.program())
    rule = ex.concat(ex.literal(b"("), ex.optional(ex.call("s")), ex.literal(b")"))
    named = Grammar({"s": rule.named("brackets")}, "s", source="x")
    assert digest(named.program()) == digest(Grammar({"s": rule}, "s").program())


def test_the_same_in_every_process() -> None:
    code = (
        "from tokenfst import json_schema; from tokenfst.automata.expressions.digests import digest; "
        "schema = {'anyOf': [{'type': 'array', 'items': {'$ref': '#'}}, {'enum': [1, 'x']}]}; "
        "print(digest(json_schema(schema).program()))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1 and len(found.pop().strip()) == 64


def test_what_others_left_behind_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Descriptions are remembered, and forgotten when there are many: neither may show in a digest."""
    rng = random.Random(11)
    programs = [linearize(random_expression(rng, rng.randint(1, 3))) for _ in range(300)]
    programs += [json_schema({"enum": [k], "type": ["integer", "null"]}).program() for k in range(5)]
    programs.append(
        json_schema({"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "null"}]}).program()
    )
    remembered = digests._remembered

    def alone(program: Program) -> str:
        for each in remembered.values():
            each.clear()
        return digest(program)

    wanted = [alone(program) for program in programs]
    assert [digest(program) for program in programs] == wanted
    monkeypatch.setattr(digests, "_MOST_REMEMBERED", 20)
    for _ in range(3):
        order = rng.sample(range(len(programs)), len(programs))
        assert [digest(programs[k]) for k in order] == [wanted[k] for k in order]
        assert len(remembered[False]) < 2000


def test_a_long_union_is_not_quadratic() -> None:
    expr = ex.EMPTY
    for number in range(3000):
        expr = ex.union(expr, ex.literal(b"%d" % number))
    assert len(of(expr)) == 64


def test_shared_unions_are_looked_at_once() -> None:
    expr = ex.union(ex.call("s"), ex.literal(b"a"))
    for _ in range(200):
        expr = ex.union(expr, ex.union(expr, expr))
    assert of_rules({"s": expr}, {"s": False}, "s") == of_rules(
        {"s": ex.union(ex.literal(b"a"), ex.call("s"))}, {"s": False}, "s"
    )
