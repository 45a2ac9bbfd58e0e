"""Unions, complements and "exactly one" of objects, decided name by name: against ``jsonschema`` on all small objects,
and against the product of cells.
"""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import pytest

from tests.automata.json_schema.test_json_schema_differential import walk
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.automata.json_schema.sets import value_sets
from tokenfst.errors import EmptyLanguageError, UnsupportedSchemaError

NAMES = ("a", "b", "c", "d")
VALUES = (1, 2, "x", {}, {"a": 1}, [])
OBJECTS: list[Any] = [
    *(
        dict(zip(names, values, strict=True))
        for count in range(3)
        for names in itertools.combinations(NAMES, count)
        for values in itertools.product(VALUES, repeat=count)
    ),
    *(dict.fromkeys(names, value) for names in itertools.combinations(NAMES, 3) for value in VALUES),
    *(1, "x", []),
]
MEMBERS: tuple[Any, ...] = (
    *({"type": "integer"}, {"const": 1}, {"const": 2}, {"enum": [1, "x"]}, {"type": "string"}, False),
    *({"type": "object"}, {"required": ["a"]}, {"type": "object", "properties": {"a": {"const": 1}}}, {}),
)


def branch(rng: random.Random) -> dict[str, Any]:
    names = rng.sample(NAMES, rng.randrange(1, 4))
    found: dict[str, Any] = {"properties": {name: rng.choice(MEMBERS) for name in names}}
    if rng.random() < 0.5:
        found["required"] = rng.sample(NAMES, rng.randrange(1, 3))
    found |= rng.choice(
        ({}, {}, {"additionalProperties": False}, {"additionalProperties": {"type": "integer"}})
    )
    found |= rng.choice(
        ({}, {}, {}, {"maxProperties": 1}, {"minProperties": 2}, {"propertyNames": {"maxLength": 1}})
    )
    found |= rng.choice(({}, {}, {}, {"patternProperties": {"[ab]": rng.choice(MEMBERS)}}))
    found |= rng.choice(({}, {"type": "object"}))
    return found if rng.random() < 0.8 else {"not": found}


def schema(rng: random.Random) -> dict[str, Any]:
    branches = [branch(rng) for _ in range(rng.randrange(2, 6))]
    keyword = rng.choice(("oneOf", "oneOf", "allOf", "not"))
    if keyword == "not":
        return {"not": {"anyOf": branches}}
    if keyword == "allOf":
        return {"allOf": [{"anyOf": branches[:2]}, {"oneOf": branches[1:]}]}
    return {"oneOf": branches} | rng.choice(
        ({}, {"properties": {"a": {"type": "integer"}}, "required": ["b"]})
    )


@pytest.fixture
def name_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever can be decided name by name, is."""
    monkeypatch.setattr(value_sets, "_MANY", 0)
    monkeypatch.setattr(value_sets, "_MOST_PAIRS", 0)


def judged(asked: Any) -> list[bool] | None:
    """Which of the objects are allowed, with their members in any order; ``None`` if the schema is refused."""
    try:
        constraint = json_schema(asked, property_order="any")
    except EmptyLanguageError:
        return [False] * len(OBJECTS)
    except UnsupportedSchemaError as error:
        assert "finitely many" in error.reason or "not known how many" in error.reason, asked
        return None
    found = [constraint.accepts(json.dumps(each)) for each in OBJECTS]
    text = walk(constraint, random.Random(7))
    assert jsonschema.Draft202012Validator(asked).is_valid(json.loads(text)), (asked, text)
    return found


@pytest.mark.usefixtures("name_by_name")
@pytest.mark.parametrize("seed", range(80))
def test_objects_are_decided_as_the_library_does(seed: int) -> None:
    asked = schema(random.Random(seed))
    found = judged(asked)
    validator = jsonschema.Draft202012Validator(asked)
    expected = [validator.is_valid(each) for each in OBJECTS]
    wrong = [
        each
        for each, one, other in zip(OBJECTS, found or expected, expected, strict=True)
        if one is not other
    ]
    assert not wrong, (asked, wrong)


def test_most_questions_are_answered(name_by_name: None) -> None:
    refused = sum(judged(schema(random.Random(seed))) is None for seed in range(20))
    assert refused <= 2


def exactly_one(count: int) -> dict[str, Any]:
    """Branches that no member tells apart for sure: each may lack its kind."""
    return {
        "type": "object",
        "oneOf": [
            {
                "properties": {
                    "kind": {"enum": [f"k{k}"]},
                    "size": {"type": "integer"},
                    f"own{k}": {"type": "string"},
                    "more": {"properties": {"x": {"const": k}}, "required": ["x"]},
                }
            }
            for k in range(count)
        ],
    }


@pytest.mark.parametrize("count", [3, 8, 30])
def test_many_branches_with_a_kind_that_may_be_missing(count: int) -> None:
    asked = exactly_one(count)
    validator = jsonschema.Draft202012Validator(asked)
    constraint = json_schema(asked, property_order="any")
    for kind, more, size in itertools.product(
        (None, "k0", "k1", "k2", "no"), (None, 0, 2, 77), (None, 1, "x")
    ):
        value = {"kind": kind, "size": size, "more": None if more is None else {"x": more}, "own1": 3}
        for keys in (("kind", "size", "more"), ("more", "own1", "kind"), ("size", "own1")):
            each = {key: value[key] for key in keys if value[key] is not None}
            assert constraint.accepts(json.dumps(each)) is validator.is_valid(each), each
