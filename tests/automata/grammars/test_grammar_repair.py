"""The nearest text of a grammar that needs a stack: against all short texts and their weighted distances."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from reference.grammars.random_grammars import all_words, random_grammar
from tests.automata.images.test_repair import distance
from tokenfst import Budget, Grammar, json_schema, lark_grammar, regex, repair
from tokenfst.automata.expressions.expression import byte_set, call, concat, literal, optional, union
from tokenfst.automata.grammars import repairing
from tokenfst.automata.images.repair import Repair
from tokenfst.errors import BudgetExceeded, ConstraintError, EmptyLanguageError

COSTS = [(1, 1, 1), (1, 2, 3), (0.5, 0.25, 10), (2, 1, 0.5), (0, 1, 1), (math.inf, 1, 1), (1, math.inf, 2)]
NESTED = lark_grammar('start: "(" start ")" start | "x" |')


def check(text: str, found: Repair, cost: float) -> None:
    """The edits make the text, and cost what they should."""
    made, at = "", 0
    for edit in found.edits:
        assert text[edit.at : edit.at + len(edit.old)] == edit.old
        made += text[at : edit.at] + edit.new
        at = edit.at + len(edit.old)
    assert made + text[at:] == found.text
    assert found.cost == pytest.approx(cost)


def search(text: str, grammar: Grammar, costs: dict[str, float]) -> Repair:
    """Earley's search, also for grammars that are regular."""
    deadline = repairing.Deadline(grammar.budget, "a test")
    machine = repairing._Machine(grammar, text, repairing.prices_of(costs), deadline)
    return repairing._Search(text, machine, deadline).run()


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_nearer(seed: int) -> None:
    rng = random.Random(seed)
    grammar = random_grammar(rng)
    if grammar.is_empty():
        with pytest.raises(EmptyLanguageError):
            repair("a", grammar)
        return
    words = [word.decode() for word in all_words(6) if grammar.accepts(word)]
    for _ in range(3):
        text = "".join(rng.choices("abc", k=rng.randint(0, 5)))
        costs = dict(zip(("insert", "delete", "replace"), rng.choice(COSTS), strict=True))
        wanted = min((distance(text, word, *costs.values()) for word in words), default=math.inf)
        if math.inf in costs.values():
            # 0 * infinity is no distance: by the definition, over what is allowed.
            wanted = min((allowed(text, word, costs) for word in words), default=math.inf)
        try:
            found = search(text, grammar, costs)
        except ConstraintError:
            assert wanted == math.inf
            continue
        assert grammar.accepts(found.text)
        assert found.cost <= wanted
        check(text, found, allowed(text, found.text, costs))
        if grammar.is_regular():
            assert repair(text, grammar.to_language(), costs).cost == pytest.approx(found.cost)
        assert found == search(text, grammar, costs)


def allowed(one: str, other: str, costs: dict[str, float]) -> float:
    """The distance where an edit may be forbidden."""
    row = [0.0]
    for _ in other:
        row.append(row[-1] + costs["insert"])
    for a in one:
        above, row = row, [row[0] + costs["delete"]]
        for j, b in enumerate(other, 1):
            replaced = above[j - 1] + (0 if a == b else costs["replace"])
            row.append(min(above[j] + costs["delete"], row[j - 1] + costs["insert"], replaced))
    return row[-1]


def test_brackets() -> None:
    for text, cost in [("", 0), ("(x)", 0), ("((x)", 1), (")(", 2), ("(((", 2), ("(()x)y", 1), ("))))", 2)]:
        found = repair(text, NESTED)
        assert NESTED.accepts(found.text)
        check(text, found, cost)
    assert repair("(" * 40 + "x" + ")" * 39, NESTED).cost == 1


def test_recursive_json() -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name"],
        "additionalProperties": False,
    }
    constraint = json_schema(schema)
    assert not constraint.is_regular()
    broken = '{"name": "Ann", "kids": [{"name": "Bo}, {name": "C", "kids": [{"name": "D"}]}]'
    found = repair(broken, constraint)
    assert constraint.accepts(found.text)
    check(broken, found, 3)


def test_characters() -> None:
    grammar = lark_grammar('start: "é" start "日" | "–"')
    check("éé–日", repair("éé–日", grammar), 1)
    letter = byte_set(1 << 0xC3)
    cut = Grammar.from_rules(
        {
            "s": union(concat(letter, call("t")), concat(literal(b"("), call("s"), literal(b")"))),
            "t": literal(b"\xa9"),
        },
        "s",
    )
    with pytest.raises(ConstraintError, match="no UTF-8 by themselves"):
        repair("x", cut)


def test_left_recursion_and_rules_that_derive_themselves() -> None:
    body = union(
        concat(call("s"), call("s")), concat(literal(b"a"), call("s"), literal(b"b")), optional(call("s"))
    )
    found = search("abab", Grammar.from_rules({"s": body}, "s"), {})
    assert (found.text, found.cost) == ("abab", 0)


def test_what_cannot_be_repaired() -> None:
    with pytest.raises(EmptyLanguageError):
        repair("a", Grammar.from_rules({"s": concat(literal(b"a"), call("s"), literal(b"b"))}, "s"))
    with pytest.raises(ConstraintError, match="make no text"):
        repair("((", NESTED, {"insert": math.inf, "delete": math.inf, "replace": math.inf})
    with pytest.raises(ConstraintError, match="'swap'"):
        repair("(", NESTED, {"swap": 1})
    with pytest.raises(BudgetExceeded):
        repair("(" * 3000, NESTED, budget=Budget(bytes=500_000))
    with pytest.raises(TypeError, match="text must be text"):
        repair(1, NESTED)  # type: ignore[arg-type]
    with pytest.raises(ConstraintError):
        repair("x", regex("y"), {"replace": -1})


INTEGERS = json_schema(
    {"type": "array", "uniqueItems": True, "items": {"type": "integer"}}, whitespace="compact"
)
NESTED_ARRAYS = json_schema(
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "uniqueItems": True, "items": {
        "anyOf": [{"const": 1}, {"$ref": "#/$defs/a"}]}}}}, whitespace="compact")  # fmt: skip


@pytest.mark.parametrize("constraint", [INTEGERS, NESTED_ARRAYS], ids=["integers", "nested"])
def test_where_items_must_differ_nothing_is_nearer(constraint: Grammar) -> None:
    words = ["".join(word) for n in range(7) for word in itertools.product("[],1", repeat=n)]
    words = [word for word in words if constraint.accepts(word)]
    rng, refused = random.Random(0), 0
    for _ in range(120):
        text = "".join(rng.choices("[],1", k=rng.randint(0, 6)))
        costs = dict(zip(("insert", "delete", "replace"), rng.choice(COSTS[:4]), strict=True))
        try:
            found = repair(text, constraint, costs)
        except ConstraintError as error:
            assert "repeats a name or an item" in str(error)
            refused += 1
            continue
        assert constraint.accepts(found.text)
        assert found.cost <= min(distance(text, word, *costs.values()) for word in words) + 1e-9
        check(text, found, allowed(text, found.text, costs))
    assert refused < 40


def test_names_that_must_differ() -> None:
    constraint = json_schema({"type": "object", "properties": {"a": {"type": "integer"}}})
    check('{"a": 1,', repair('{"a": 1,', constraint), 1)
    assert repair('{"a": 1, "b": 2}', constraint).cost == 0
    with pytest.raises(ConstraintError, match="repeated_names"):
        repair('{"b": 1, "b": 2}', constraint)
