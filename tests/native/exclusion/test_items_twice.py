"""Arrays with an item that comes twice (not ``uniqueItems``), against ``jsonschema`` on all small arrays."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import UnsupportedSchemaError

VALUES: list[Any] = [0, 1, True, None, "a", {}]
ARRAYS = [list(items) for length in range(4) for items in itertools.product(VALUES, repeat=length)]
UNIQUE = {"type": "array", "uniqueItems": True}
FEW = {"enum": [0, 1, True, "a"]}
NOT_UNIQUE = {"type": "array", "items": FEW, "not": {"uniqueItems": True}}

SCHEMAS: list[Any] = [
    NOT_UNIQUE,
    {**NOT_UNIQUE, "maxItems": 3},
    {**NOT_UNIQUE, "prefixItems": [{"const": 1}, {"type": ["null", "boolean"]}]},
    {**NOT_UNIQUE, "contains": {"const": "a"}, "maxContains": 1},
    {
        "type": "array",
        "not": {"items": FEW, "uniqueItems": True, "minItems": 2},
        "items": {"enum": [0, True, None]},
    },
    {"type": "array", "not": {"anyOf": [UNIQUE, {"maxItems": 2}]}, "items": FEW, "maxItems": 3},
    {"not": {"not": UNIQUE}, "type": "array"},
    {"oneOf": [{**UNIQUE, "items": FEW}, {"type": "array", "minItems": 2, "items": FEW}]},
    # What needs no memory: both sides differ, or too few items to be equal.
    {
        "oneOf": [
            {**UNIQUE, "items": {"type": ["integer", "object"]}},
            {**UNIQUE, "items": {"type": "object"}, "minItems": 1},
        ]
    },
    {"oneOf": [{**UNIQUE, "minItems": 1}, {**UNIQUE, "items": {"type": "string"}}, {"type": "string"}]},
    {"type": "array", "maxItems": 1, "not": {"uniqueItems": True}},
    {"if": UNIQUE, "then": {"maxItems": 2}, "else": {"maxItems": 1}, "type": "array"},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_some_item_comes_twice(schema: Any) -> None:
    valid = Draft202012Validator(schema)
    expected = [valid.is_valid(each) for each in ARRAYS]
    if not any(expected):
        with pytest.raises(Exception, match=r"(?i)no value|empty|contradict"):
            json_schema(schema)
        return
    constraint = json_schema(schema)
    for each, there in zip(ARRAYS, expected, strict=True):
        assert constraint.accepts(json.dumps(each)) is there, each


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "array", "not": {"uniqueItems": True}}, "#/not/uniqueItems"),
        ({"type": "array", "items": {"type": "string"}, "not": {"uniqueItems": True}}, "#/not/uniqueItems"),
        (
            {"type": "array", "items": {"enum": [*range(65)]}, "not": {"uniqueItems": True}},
            "#/not/uniqueItems",
        ),
    ],
)
def test_items_that_are_not_listed_need_memory(schema: Any, pointer: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match="needs memory for all items") as found:
        json_schema(schema)
    assert found.value.pointer == pointer


def test_an_integer_and_a_number_of_the_same_value_are_not_told_apart() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "array",
        "items": [{"enum": [1], "type": "integer"}, {"enum": [1]}],
        "additionalItems": False,
        "not": {"uniqueItems": True},
    }
    with pytest.raises(UnsupportedSchemaError, match="needs memory"):
        json_schema(schema)
