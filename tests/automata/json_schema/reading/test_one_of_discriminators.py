"""``oneOf`` whose branches differ in a member that they do not require, beside schemas that may require it."""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import random
from typing import Any

import jsonschema
import pytest

from tokenfst.automata.json_schema.json_schema import SchemaGrammar, SchemaLanguage, json_schema
from tokenfst.automata.json_schema.reading import meaning
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, EmptyLanguageError, UnsupportedSchemaError

REQUIRED = {"properties": {"type": {"type": "string"}}, "required": ["type", "way"]}
VALUES: list[Any] = [
    dict(zip(names, values, strict=True))
    for count in range(4)
    for names in itertools.combinations(["type", "way", "n", "m"], count)
    for values in itertools.product(["a", "b", 1], repeat=count)
]


def bindings(count: int) -> list[Any]:
    """Branches like those of the schema of Azure Functions: each has two types, and only one of them limits ``way``."""
    return [
        {
            "properties": {name: {"type": "string"} for name in (f"p{k}", f"q{k}", "path")},
            "oneOf": [
                {"properties": {"type": {"enum": [f"t{k}"]}, "way": {"enum": ["in"]}}},
                {"properties": {"type": {"enum": [f"u{k}"]}}},
            ],
        }
        for k in range(count)
    ]


def nested(count: int) -> list[Any]:
    """Another type, or one of the bindings."""
    known = [f"{letter}{k}" for k in range(count) for letter in "tu"]
    return [{"properties": {"type": {"not": {"enum": known}}}}, {"oneOf": bindings(count)}]


def compiled(schema: Any, **options: Any) -> SchemaLanguage | SchemaGrammar:
    return json_schema(schema, property_order="any", **options)


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [REQUIRED], "oneOf": nested(14)},
        {**REQUIRED, "oneOf": nested(14)},
        {"allOf": [REQUIRED, {"oneOf": bindings(14)}]},
        {**REQUIRED, "$ref": "#/$defs/bindings", "$defs": {"bindings": {"oneOf": bindings(14)}}},
        {**REQUIRED, "allOf": [{"oneOf": bindings(14)}]},
    ],
)  # fmt: skip
def test_branches_are_compared_among_objects_that_have_the_member(schema: Any) -> None:
    constraint, judge = compiled(schema), jsonschema.Draft202012Validator(schema)
    for kind, way, member in itertools.product(
        ["t0", "u0", "t13", "v", None], ["in", "out", None], ["p0", "p13"]
    ):
        for value in ("x", 1):
            found = {
                name: each
                for name, each in (("type", kind), ("way", way), (member, value))
                if each is not None
            }
            assert constraint.accepts(json.dumps(found)) == judge.is_valid(found), found


def random_schema(rng: random.Random, depth: int = 3) -> dict[str, Any]:
    """``oneOf``, ``allOf`` and ``$ref`` inside of each other, with members that are required at any of these levels."""
    schema: dict[str, Any] = {}
    if rng.random() < 0.6:
        values = [
            {"const": "a"},
            {"enum": ["a", "b"]},
            {"enum": ["b"]},
            {"type": "string"},
            {"not": {"const": "a"}},
        ]
        names = rng.sample(["type", "way", "n"], rng.randint(1, 2))
        schema["properties"] = {name: rng.choice(values) for name in names}
    if rng.random() < 0.3:
        schema["required"] = rng.sample(["type", "way"], rng.randint(1, 2))
    if depth > 0:
        for keyword, chance in (("oneOf", 0.6), ("allOf", 0.3), ("anyOf", 0.1)):
            if rng.random() < chance:
                schema[keyword] = [random_schema(rng, depth - 1) for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.2:
            schema["$ref"] = "#/$defs/shared"
    return schema


def check_random(rng: random.Random) -> None:
    schema = {
        **random_schema(rng),
        "$defs": {"shared": {**random_schema(rng, 1), "$ref": "#/$defs/last"}, "last": {}},
    }
    schema["$defs"]["last"] = {"oneOf": [random_schema(rng, 0) for _ in range(2)]}
    judge = jsonschema.Draft202012Validator(schema)
    try:
        constraint = compiled(schema)
    except EmptyLanguageError:
        assert not any(map(judge.is_valid, VALUES)), schema
        return
    for value in VALUES:
        assert constraint.accepts(json.dumps(value)) == judge.is_valid(value), (schema, value)


def test_random_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    asked = meaning.is_required
    monkeypatch.setattr(meaning, "is_required", lambda *args: answers.append(asked(*args)) or answers[-1])
    rng = random.Random(7)
    for _ in range(60):
        check_random(rng)
    assert answers.count(True) > 10 and answers.count(False) > 10


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_many_random_schemas(seed: int) -> None:
    rng = random.Random(700 + seed)
    for _ in range(200):
        check_random(rng)


# --- where the member may be missing ------------------------------------------------------------------


def test_an_error_says_which_member_to_require() -> None:
    with pytest.raises(
        UnsupportedSchemaError, match=r"differ in 'type', but do not require it: add it to the `required`"
    ):
        compiled({"oneOf": bindings(14)})
    schema = {"oneOf": [{**each, "required": ["type"]} for each in bindings(14)]}
    constraint = compiled(schema)
    assert constraint.accepts('{"type": "u3", "q3": "x"}') and not constraint.accepts(
        '{"type": "u3", "q3": 1}'
    )


def test_a_small_budget_gives_the_same_advice() -> None:
    with pytest.raises(
        BudgetExceeded, match=r"Budget\(positions=...\)\. The branches of this `oneOf` differ in 'type'"
    ) as found:
        compiled({"oneOf": bindings(14)}, budget=Budget(positions=100_000))
    assert found.value.advice.startswith("The branches")


def test_relaxed_branches_may_hold_together() -> None:
    schema = {"oneOf": bindings(14)}
    constraint, judge = compiled(schema, on_unsupported="relax"), jsonschema.Draft202012Validator(schema)
    assert [each.pointer for each in constraint.relaxed] == ["#/oneOf"]
    assert "'type'" in constraint.relaxed[0].reason
    both = {"way": "out"}
    assert constraint.accepts(json.dumps(both)) and not judge.is_valid(both)
    one = {"type": "u3", "q3": "x"}
    assert constraint.accepts(json.dumps(one)) and judge.is_valid(one)
    assert not constraint.accepts(json.dumps({"type": "u3", "q3": 1}))
    assert not constraint.accepts(json.dumps({"type": "nothing"}))


def test_relaxed_branches_leave_positions_for_the_rest() -> None:
    schema = {
        "oneOf": bindings(14),
        "properties": {f"n{k}": {"type": "array", "items": {"minimum": k}} for k in range(40)},
    }
    constraint = compiled(schema, on_unsupported="relax", budget=Budget(positions=400_000))
    assert [each.pointer for each in constraint.relaxed] == ["#/oneOf"]
    assert constraint.accepts('{"type": "u3", "n7": [7]}') and not constraint.accepts(
        '{"type": "u3", "n7": [6]}'
    )


@pytest.mark.parametrize("options", [{}, {"on_unsupported": "relax"}, {"budget": Budget(positions=100_000)}])
def test_nothing_is_left_to_the_garbage_collector(options: Any) -> None:
    """A full collection takes a tenth of a second in a large process, and the next mask waits for it."""
    for schema in (
        {"oneOf": bindings(14)},
        {"not": {"items": {"oneOf": [{"uniqueItems": True}, {"minItems": 1}]}}},
    ):
        left = []
        for _ in range(2):  # the first time, caches are filled
            gc.collect()
            gc.disable()
            try:
                with contextlib.suppress(UnsupportedSchemaError, BudgetExceeded):
                    compiled(schema, **options)
                left.append(gc.collect())
            finally:
                gc.enable()
        assert left[1] == 0, schema


def test_an_error_holds_little_of_what_was_made() -> None:
    """The collector would take it for long-lived objects, and soon traverse everything."""

    def held() -> int:
        gc.collect()
        before = len(gc.get_objects())
        with pytest.raises(BudgetExceeded) as raised:
            json_schema({"properties": {"x": {"oneOf": bindings(14)}}}, budget=Budget(positions=1_000_000))
        gc.collect()
        assert raised.value.resource == "positions"
        return len(gc.get_objects()) - before

    held()  # caches are filled
    assert held() < 1_000  # 9,700 if the frames of the traceback keep their variables


def test_variables_of_an_error_that_is_being_handled_are_kept() -> None:
    def fail() -> None:
        kept = "a variable"
        raise KeyError(kept)

    try:
        fail()
    except KeyError as error:
        with pytest.raises(BudgetExceeded):
            json_schema({"oneOf": bindings(14)}, budget=Budget(positions=1_000))
        assert error.__traceback__ is not None and error.__traceback__.tb_next is not None
        assert error.__traceback__.tb_next.tb_frame.f_locals == {"kept": "a variable"}
