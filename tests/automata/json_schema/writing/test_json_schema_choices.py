"""Complements that ask for members, names out of finite sets, and counts of names: against ``jsonschema`` on all small
objects, in every order, and walked under masks.
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
from tokenfst.errors import EmptyLanguageError, UnsupportedSchemaError

NAMES = ("a", "b", "ab", "ba", "c", "bc")
OBJECTS: list[dict[str, Any]] = [
    dict(zip(names, values, strict=True))
    for count in range(4)
    for names in itertools.combinations(NAMES, count)
    for values in itertools.product((1, "a"), repeat=count)
]
PATTERNS = ("a", "b", "^.$", "c", "^[ab]+$", "^..$")
VALUES: tuple[Any, ...] = (False, False, {"type": "integer"}, {"const": "a"})


def some(rng: random.Random) -> dict[str, Any]:
    """The complement of what is said of all members with such names: one of them is otherwise."""
    kind = rng.randrange(4)
    if kind == 0:
        return {"not": {"patternProperties": {rng.choice(PATTERNS): rng.choice(VALUES)}}}
    if kind == 1:
        return {"not": {"propertyNames": {"not": {"pattern": rng.choice(PATTERNS)}}}}
    names = rng.sample(NAMES, rng.randrange(1, 5))
    if kind == 2:
        return {"not": {"properties": dict.fromkeys(names, True), "additionalProperties": rng.choice(VALUES)}}
    return {"not": {"propertyNames": {"enum": names}}}


def schema(rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "allOf": [some(rng) for _ in range(rng.randrange(1, 5))]}
    if rng.random() < 0.7:
        names = rng.sample(NAMES, rng.randrange(1, 6))
        found |= {"properties": {name: rng.choice(({}, {"type": "integer"})) for name in names}}
        found |= rng.choice(({}, {"additionalProperties": False}, {"required": names[:1]}))
    if rng.random() < 0.4:
        found["propertyNames"] = rng.choice(({"pattern": "^.{1,2}$"}, {"enum": list(NAMES)}))
    found |= rng.choice(({}, {"maxProperties": rng.randrange(1, 4)}, {"minProperties": rng.randrange(1, 4)}))
    return found


@pytest.mark.parametrize("order", ["any", "schema"])
@pytest.mark.parametrize("seed", range(60))
def test_what_complements_ask_of_members(seed: int, order: Any) -> None:
    rng = random.Random(seed)
    asked = schema(rng)
    validator = jsonschema.Draft202012Validator(asked)
    valid = [each for each in OBJECTS if validator.is_valid(each)]
    try:
        constraint = json_schema(asked, property_order=order)
    except EmptyLanguageError:
        assert not valid, asked
        return
    except UnsupportedSchemaError as error:
        assert "finitely many" in error.reason or "not known how many" in error.reason, asked
        return
    for each in OBJECTS:
        orders = list(itertools.permutations(each.items()))
        texts = [json.dumps(dict(members)) for members in orders]
        accepted = [constraint.accepts(text) for text in texts]
        if each not in valid:
            assert not any(accepted), (asked, each)
        else:
            assert any(accepted) and (order == "schema" or all(accepted)), (asked, each)
    for _ in range(2):
        text = walk(constraint, rng)
        assert validator.is_valid(json.loads(text)), (asked, text)


def test_few_choices_where_the_product_has_many() -> None:
    """Each of many demands is met by all names but one: two names meet all."""
    names = [f"n{k}" for k in range(12)]
    asked = {
        "type": "object",
        "properties": dict.fromkeys(names, True),
        "additionalProperties": False,
        "allOf": [{"not": {"properties": {name: {}}, "additionalProperties": False}} for name in names],
    }
    for order in ("any", "schema"):
        constraint = json_schema(asked, property_order=order)
        assert not constraint.accepts("{}") and not constraint.accepts('{"n3": 1}')
        assert constraint.accepts('{"n3": 1, "n7": 1}')


RECURSION = {"type": "array", "items": {"$ref": "#/$defs/r"}, "minItems": 1}


@pytest.mark.parametrize("order", ["any", "schema"])
def test_members_of_which_it_is_not_plain_that_they_have_a_value(order: Any) -> None:
    held = {"type": "object", "required": ["x"], "properties": {"x": {"required": ["y"], "type": "object"}}}
    constraint = json_schema({"additionalProperties": held, "minProperties": 2}, property_order=order)
    one = '{"x": {"y": 1}}'
    assert constraint.accepts(f'{{"a": {one}, "b": {one}}}') and not constraint.accepts(f'{{"a": {one}}}')
    named = {"additionalProperties": False, "patternProperties": {"^[xy]$": held}, "minProperties": 2}
    constraint = json_schema(named | {"type": "object"}, property_order=order)
    assert constraint.accepts(f'{{"x": {one}, "y": {one}}}') and not constraint.accepts("{}")
    with pytest.raises(EmptyLanguageError):
        json_schema(named | {"type": "object", "minProperties": 3}, property_order=order)
    without = {"additionalProperties": {"$ref": "#/$defs/r"}, "$defs": {"r": RECURSION}, "type": "object"}
    with pytest.raises(EmptyLanguageError):
        json_schema(without | {"minProperties": 2, "properties": {"a": {}}}, property_order=order)
    both = {
        "anyOf": [{"minProperties": 2, **without}, {"additionalProperties": {"const": 2}, "maxProperties": 1}]
    }
    constraint = json_schema({**both, "type": "object", "$defs": {"r": RECURSION}}, property_order=order)
    rng = random.Random(3)
    assert {len(json.loads(walk(constraint, rng))) for _ in range(6)} <= {0, 1}
