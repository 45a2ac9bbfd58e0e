"""Members in any order and items that differ: against ``jsonschema`` on all orders of small instances."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from reference.json.json_schema_worlds import INSTANCES, schemas
from tokenfst import Budget
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import BudgetExceeded, ConstraintError, EmptyLanguageError, UnsupportedSchemaError

NAMES = ("a", "b", "c", "d")
OBJECTS: tuple[Any, ...] = (
    {"properties": {"a": {}, "b": {"type": "integer"}}, "required": ["b"]},
    {
        "properties": {"a": {}, "b": {}},
        "required": ["c", "d"],
        "propertyNames": {"enum": ["a", "b", "c", "d"]},
    },
    {"properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": False, "minProperties": 2},
    {"properties": {"a": {}, "b": {}, "c": {}}, "required": ["a"], "minProperties": 2, "maxProperties": 3},
    {"properties": {"a": {}, "b": {}, "c": {}}, "required": ["c"], "maxProperties": 2},
    {"properties": {"a": {}, "b": {}, "c": {}}, "required": ["d", "b", "a"], "minProperties": 4},
    {"properties": {"a": {}}, "not": {"additionalProperties": {"type": "integer"}}, "maxProperties": 2},
    {"properties": {"a": {}, "c": {"const": 2}}, "not": {"propertyNames": {"maxLength": 1}}},
    {"dependentRequired": {"a": ["b", "c"]}, "properties": {"a": {"const": 1}}},
    {"const": {"a": {"c": 1, "b": [{"d": 1, "a": 2}]}, "b": 2}},
    {"oneOf": [{"required": ["a"]}, {"required": ["b", "c"]}]},
)
"""The number of free names that these demand is one at most, so that nothing sound is rejected."""


def objects() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"a": {"c": 1, "b": [{"d": 1, "a": 2}]}, "b": 2},
        {"ab": 1},
        {"ab": "", "a": 1},
    ]
    for count in range(5):
        for names in itertools.combinations(NAMES, count):
            found += [dict.fromkeys(names, 2), {name: number for number, name in enumerate(names)}]
            found += [{name: str(name) for name in names}]
    return found


def orders(value: Any) -> list[Any]:
    """The value with the members of all of its objects in all orders."""
    if isinstance(value, list):
        return [list(items) for items in itertools.product(*map(orders, value))]
    if not isinstance(value, dict):
        return [value]
    found = []
    for names in itertools.permutations(value):
        found += [
            dict(zip(names, values, strict=True))
            for values in itertools.product(*(orders(value[name]) for name in names))
        ]
    return found


@pytest.mark.parametrize("schema", OBJECTS, ids=json.dumps)
@pytest.mark.parametrize("more", [{}, {"type": "object"}], ids=str)
def test_all_orders_are_judged_as_the_library_does(schema: Any, more: Any) -> None:
    schema = {**schema, **more}
    validator = jsonschema.Draft202012Validator(schema)
    constraint = json_schema(schema, property_order="any", whitespace="compact")
    for instance in objects():
        wanted = validator.is_valid(instance)
        for order in orders(instance):
            text = json.dumps(order, separators=(",", ":"))
            assert constraint.accepts(text) is wanted, (schema, text)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schema=schemas())
def test_random_schemas_in_any_order(schema: Any) -> None:
    validator = jsonschema.Draft202012Validator(schema)
    try:
        constraint = json_schema(schema, property_order="any")
    except (EmptyLanguageError, UnsupportedSchemaError, BudgetExceeded):
        return
    for instance in INSTANCES:
        for order in orders(instance)[:24]:
            text = json.dumps(order, ensure_ascii=False)
            accepted, wanted = constraint.accepts(text), validator.is_valid(instance)
            assert accepted is wanted, (schema, order)


def test_listed_names_never_repeat_and_required_only_ones_come_in_any_order() -> None:
    required = [f"r{number}" for number in range(9)]
    schema = {"type": "object", "properties": {"b": {}, "a": {}}, "required": required}
    rng = random.Random(0)
    for order in ("schema", "any"):
        constraint = json_schema(schema, property_order=order)  # type: ignore[arg-type]
        rng.shuffle(required)
        members = [f'"{name}": 1' for name in required]
        assert constraint.accepts("{" + ", ".join(['"b": 1', '"a": 1', *members, '"free": 1']) + "}")
        assert constraint.accepts("{" + ", ".join(['"a": 1', '"b": 1', *members]) + "}") is (order == "any")
        assert not constraint.accepts("{" + ", ".join([*members, members[2]]) + "}")
        assert not constraint.accepts("{" + ", ".join(members[1:]) + "}")
        assert not constraint.accepts("{" + ", ".join(['"b": 1', *members, '"\\u0062": 1']) + "}")
    with pytest.raises(ConstraintError, match="property_order"):
        json_schema(True, property_order="sorted")  # type: ignore[arg-type]


@pytest.mark.parametrize("order", ["schema", "any"])
def test_a_repeated_free_name_does_not_help_to_reach_the_least_number(order: Any) -> None:
    broken = {"not": {"additionalProperties": {"type": "string"}}}
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"minProperties": 1}, '{"x": 1, "y": 1}', "{}"),
        ({"minProperties": 2}, '{"x": 1, "y": 1}', '{"x": 1, "x": 1}'),
        ({"properties": {"a": {}}, "required": ["a"], "minProperties": 2}, '{"a": 1, "x": 1}', '{"a": 1}'),
        (
            {"properties": {"a": {}}, "required": ["b", "c"], "minProperties": 3},
            '{"a": 1, "b": 1, "c": 1}',
            '{"c": 1, "b": 1}',
        ),
        (
            {"properties": {"a": {}, "b": {}}, "required": ["a", "b"], "minProperties": 3, **broken},
            '{"a": 1, "b": 1, "x": 1}',
            '{"a": 1, "b": 1}',
        ),
    ]
    for schema, good, bad in cases:
        constraint = json_schema({"type": "object", **schema}, property_order=order)
        assert constraint.accepts(good) and not constraint.accepts(bad), schema
    for properties in ({"a": {}}, {"a": {}, "b": {}, "c": {}}):
        schema = {"type": "object", "properties": properties, "minProperties": 3}
        assert json_schema(schema, property_order=order).accepts('{"a": 1, "x": 1, "y": 1}')
        with pytest.raises(UnsupportedSchemaError, match="only one of these members counts"):
            json_schema(schema, property_order=order, repeated_names="allow")


def test_a_thousand_optional_members_in_any_order() -> None:
    names = [f"prop_{number}" for number in range(1000)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "additionalProperties": False,
        "minProperties": 20,
        "maxProperties": 500,
    }
    constraint = json_schema(schema, property_order="any", budget=Budget(bytes=400 << 20))
    rng = random.Random(0)
    for count, good in ((19, False), (20, True), (60, True)):
        chosen = rng.sample(names, count)
        assert constraint.accepts(json.dumps(dict.fromkeys(chosen, 1))) is good
    text = json.dumps(dict.fromkeys(chosen, 1))
    assert not constraint.accepts(f'{text[:-1]}, "{chosen[7]}": 2}}')


# --- uniqueItems --------------------------------------------------------------------------------------

VALUES = (0, 1, "a", "b", None, True, False, 2.5)
ARRAYS: tuple[Any, ...] = (
    {"items": {"enum": [0, 1, 1.0, "a", None]}, "uniqueItems": True},
    {"items": {"enum": list(VALUES)}, "uniqueItems": True, "minItems": 2, "maxItems": 3},
    {"prefixItems": [{"enum": [0, "a"]}, {"enum": ["a", "b"]}], "items": {"enum": list(VALUES)}, "uniqueItems": True},
    {"prefixItems": [{"const": 0}, {"enum": [0, 1]}], "items": False, "uniqueItems": True, "minItems": 2},
    {"prefixItems": [{"const": 0}, {"const": 0}], "items": {"type": "boolean"}, "uniqueItems": True},
    {"items": {"type": ["boolean", "null"]}, "uniqueItems": True, "minItems": 3},
)  # fmt: skip


@pytest.mark.parametrize("schema", ARRAYS, ids=json.dumps)
def test_items_that_differ_are_judged_as_the_library_does(schema: Any) -> None:
    schema = {"type": "array", **schema}
    validator = jsonschema.Draft202012Validator(schema)
    constraint = json_schema(schema)
    for length in range(4):
        for items in itertools.product(VALUES, repeat=length):
            assert constraint.accepts(json.dumps(items)) is validator.is_valid(list(items)), (schema, items)


def test_hundreds_of_values_that_differ() -> None:
    values = [f"value {number}" for number in range(600)]
    schema = {"type": "array", "items": {"enum": values}, "uniqueItems": True, "minItems": 5}
    constraint = json_schema(schema, budget=Budget(bytes=400 << 20))
    chosen = random.Random(0).sample(values, 40)
    assert constraint.accepts(json.dumps(chosen))
    assert not constraint.accepts(json.dumps([*chosen, chosen[0]]))
    assert not constraint.accepts(json.dumps(chosen[:4]))
    assert constraint.accepts(json.dumps(chosen[:5]))


def test_items_of_infinitely_many_values_that_differ() -> None:
    for schema in ({"items": {"type": "number"}}, {"items": {"enum": [1, 2]}, "contains": {"const": 1}}):
        constraint = json_schema({"type": "array", "uniqueItems": True, **schema})
        assert constraint.accepts("[2, 1]") and not constraint.accepts("[1, 2, 1]")
