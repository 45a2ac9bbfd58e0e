"""Policies: what becomes of members that no schema names, of formats, and of white space."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from reference.json.json_schema_worlds import INSTANCES, schemas
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import BudgetExceeded, ConstraintError, EmptyLanguageError, UnsupportedSchemaError

# --- additional properties ----------------------------------------------------------------------------

A = {"type": "object", "properties": {"a": {"type": "integer"}}}
B = {"type": "object", "properties": {"b": {"type": "integer"}}}
NAMES = ("a", "b", "c")
OBJECTS = [{name: 1 for k, name in enumerate(NAMES) if mask >> k & 1} for mask in range(8)]

FORBIDDING: list[tuple[Any, list[str]]] = [
    (A, ["", "a"]),
    ({"type": "object"}, ["", "a", "ab", "abc", "ac", "b", "bc", "c"]),
    ({"type": "object", "properties": {}}, [""]),
    ({"type": "object", "patternProperties": {}}, [""]),
    ({"type": "object", "properties": {}, "required": []}, [""]),
    ({"allOf": [{"type": "object"}, {"properties": {}}]}, [""]),
    ({"anyOf": [{"properties": {}, "type": "object"}, B]}, ["", "b"]),
    ({"anyOf": [{"type": "object"}, {"type": "null"}], "properties": {}}, [""]),
    ({"$ref": "#/$defs/none", "$defs": {"none": {"type": "object", "properties": {}}}}, [""]),
    ({**A, "additionalProperties": True}, ["", "a", "ab", "abc", "ac", "b", "bc", "c"]),
    ({**A, "unevaluatedProperties": {"type": "integer"}}, ["", "a", "ab", "abc", "ac", "b", "bc", "c"]),
    ({"type": "object", "patternProperties": {"^[ab]$": {}}}, ["", "a", "ab", "b"]),
    ({"allOf": [A, B]}, ["", "a", "ab", "b"]),
    ({"anyOf": [A, B]}, ["", "a", "b"]),
    ({"anyOf": [A, B], "properties": {"c": {}}}, ["", "a", "ac", "b", "bc", "c"]),
    ({"allOf": [{"anyOf": [A, B]}, {"properties": {"c": {}}}]}, ["", "a", "ac", "b", "bc", "c"]),
    ({"allOf": [{"anyOf": [A, B]}, {"anyOf": [A, {"type": "object"}]}]}, ["", "a", "ab", "b"]),
    ({"oneOf": [A | {"required": ["a"]}, B | {"required": ["b"]}]}, ["a", "b"]),
    ({"$ref": "#/$defs/a", "properties": {"c": {}}, "$defs": {"a": A}}, ["", "a", "ac", "c"]),
    ({**A, "not": {"properties": {"a": {}}, "required": ["a"]}}, [""]),
    ({"if": {"required": ["a"]}, "then": A, "else": B, "type": "object"}, ["", "a", "ab", "b"]),
    ({**A, "dependentSchemas": {"a": {"properties": {"b": {}}, "required": ["b"]}}}, ["", "ab", "b"]),
    ({"anyOf": [{"type": "null"}, {"$ref": "#/$defs/a"}], "$defs": {"a": A}}, ["", "a"]),
]


def written(constraint: Any) -> list[str]:
    """Which of the eight objects are in, in any order of their members."""
    found = []
    for value in OBJECTS:
        orders = [
            dict(sorted(value.items(), key=lambda item: item[0] in last))
            for last in ("", "a", "b", "c", "ab")
        ]
        if any(constraint.accepts(json.dumps(order)) for order in orders):
            found.append("".join(value))
    return sorted(found)


@pytest.mark.parametrize(("schema", "expected"), FORBIDDING, ids=lambda value: json.dumps(value)[:60])
@pytest.mark.parametrize("inside", [False, True])
def test_members_that_are_not_named_can_be_forbidden(schema: Any, expected: list[str], inside: bool) -> None:
    if inside:
        schema = {
            "$defs": {"of": schema, **schema.get("$defs", {})},
            "items": {"$ref": "#/$defs/of"},
            "type": "array",
        }
    constraint = json_schema(schema, additional_properties="forbid")
    if inside:
        outer = constraint

        class Item:
            def accepts(self, text: str) -> bool:
                return outer.accepts(f"[{text}]")

        assert written(Item()) == expected
    else:
        assert written(constraint) == expected


def test_forbidding_leaves_conditions_as_they_are() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"properties": {"x": {}}}},
        "if": {
            "properties": {"a": {"properties": {"y": {"const": 1}}, "required": ["y"]}},
            "required": ["a"],
        },
        "then": {"required": ["b"]},
    }
    constraint = json_schema(schema, additional_properties="forbid")
    assert constraint.accepts('{"a": {"x": 1}}') and not constraint.accepts('{"a": {"z": 1}}')
    counted = {"type": "array", "contains": {"properties": {"x": {"const": 1}}, "required": ["x"]}}
    assert json_schema(counted, additional_properties="forbid").accepts('[{"x": 1, "y": 2}]')


@given(schemas())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_forbidding_only_takes_values_away(schema: Any) -> None:
    validator = jsonschema.Draft202012Validator(schema)
    try:
        constraint: Any = json_schema(schema, additional_properties="forbid")
    except (EmptyLanguageError, UnsupportedSchemaError, BudgetExceeded):
        return
    for instance in INSTANCES:
        if constraint.accepts(json.dumps(instance)):
            assert validator.is_valid(instance), (schema, instance)


# --- formats ------------------------------------------------------------------------------------------


def test_formats_constrain_unless_they_are_annotations() -> None:
    date = {"type": "string", "format": "date"}
    assert not json_schema(date).accepts('"2023-02-29"') and json_schema(date).accepts('"2024-02-29"')
    assert json_schema(date, formats="annotate").accepts('"2023-02-29"')
    assert json_schema({"format": "idn-hostname"}, formats="annotate").accepts('"x"')
    for unknown in ("int32", "password", "x-mine", ""):
        assert json_schema({"type": "string", "format": unknown}).accepts('"anything"')


@pytest.mark.parametrize(
    ("option", "value"),
    [("formats", "maybe"), ("additional_properties", True), ("on_unsupported", "skip"), ("whitespace", " x")],
)
def test_unknown_policies_are_refused(option: str, value: Any) -> None:
    with pytest.raises(ConstraintError, match=option):
        json_schema(True, **{option: value})


# --- white space --------------------------------------------------------------------------------------

VALUES = [
    {},
    [],
    [1],
    {"a": 1},
    {"a": {}, "b": []},
    [[], [[]], {"a": [1, {"b": None}]}],
    1,
    "a",
    {"a": [[[[{"b": 1}]]]]},
]
COMPACT = {"separators": (",", ":")}
DUMPS: dict[str, list[dict[str, Any]]] = {
    "flexible": [
        COMPACT,
        {},
        {"indent": 2},
        {"indent": 4},
        {"indent": 0},
        {"indent": 2, "separators": (",", ":")},
    ],
    "compact": [COMPACT],
    "pretty": [{"indent": 2}, {"indent": 4}, {"indent": 0}],
    "[ ]?": [COMPACT, {}],
    r"[ \n\t]{0,40}": [COMPACT, {}, {"indent": 2}, {"indent": 4}, {"indent": "\t"}],
}


@pytest.mark.parametrize("whitespace", DUMPS)
def test_documents_of_json_dumps_are_there(whitespace: str) -> None:
    constraint = json_schema(True, whitespace=whitespace)
    for value in VALUES:
        for options in DUMPS[whitespace]:
            text = json.dumps(value, **options)
            assert constraint.accepts(text), text


@pytest.mark.parametrize(
    ("whitespace", "texts"),
    [
        ("flexible", ["[ ]", "[\n]", "{ }", '{"a" :1}', "[1 ,2]", "[1,  2]", "[1,\t2]", "1 ", f"[1,\n{' ' * 65}2]"]),
        ("compact", ["[1, 2]", '{"a": 1}', "[ ]", "[1 ]"]),
        ("pretty", ["[1]", "[1,2]", '{"a":1}', '{\n"a":1\n}', "[\n]", "{\n}", "[ ]", "[\n1, 2\n]"]),
        ("[ ]?", ["[  ]", "[\n]", " 1", "1 "]),
    ],
)  # fmt: skip
def test_other_white_space_is_not(whitespace: str, texts: list[str]) -> None:
    constraint = json_schema(True, whitespace=whitespace)
    assert [text for text in texts if constraint.accepts(text)] == []


@pytest.mark.parametrize("pattern", ["x", r"\s*", "[ \u00a0]?", r"[ \t]*#", ".?"])
def test_a_pattern_that_is_no_white_space_is_an_error(pattern: str) -> None:
    with pytest.raises(ConstraintError, match="a pattern of JSON white space"):
        json_schema(True, whitespace=pattern)
