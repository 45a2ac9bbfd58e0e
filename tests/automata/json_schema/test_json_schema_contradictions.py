"""Schemas without values: the keywords that contradict each other are named, and none of them too many."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import EmptyLanguageError

WIDE = {f"p{k}": {"type": "string", "minLength": 3} for k in range(40)}
DEEP = {
    "type": "object",
    "properties": {
        "x": {
            "type": "object",
            "properties": {"y": {"$ref": "#/$defs/y"}, "z": {}},
            "required": ["y", "z"],
        }
    },
    "required": ["x"],
    "$defs": {"y": {"type": "string", "minLength": 5, "maxLength": 4, "pattern": "a"}},
}

CASES: list[tuple[Any, str]] = [
    (False, "# alone allows none"),
    ({"enum": [], "title": "x"}, "#/enum alone allows none"),
    ({"minimum": 2, "maximum": 1, "type": "integer"}, "#/minimum and #/maximum contradict each other, given #/type"),
    (DEEP, "#/$defs/y/minLength and #/$defs/y/maxLength contradict each other, given "),
    (
        {"type": "object", "required": ["b", "a"], "properties": {"a": False, "b": {}}},
        "#/required and #/properties/a contradict",
    ),
    ({"const": 1, "not": {"type": "integer"}}, "#/const and #/not contradict"),
    ({"type": "integer", "anyOf": [{"type": "string"}, {"type": "null"}]}, "#/type, #/anyOf/0/type and #/anyOf/1/type"),
    (
        {"allOf": [{"properties": {"a": {}}, "additionalProperties": False}, {"required": ["b"], "type": "object"}]},
        "#/allOf/0/additionalProperties and #/allOf/1/required contradict",
    ),
    ({"enum": ["a", "b"], "pattern": "^c", "minLength": 1}, "#/enum and #/pattern contradict each other"),
    ({"oneOf": [{"type": "string"}, {"type": "string"}]}, "#/oneOf/0/type and #/oneOf/1/type contradict"),
    (
        {"type": "object", "properties": WIDE, "required": ["p3"], "maxProperties": 0},
        "#/required and #/maxProperties contradict each other, given #/type",
    ),
    ({"type": "string", "format": "date", "pattern": "^a"}, "#/format and #/pattern contradict each other, given"),
]  # fmt: skip


def without(schema: Any, pointer: str) -> Any:
    """The schema without the keyword, or sub-schema, at a pointer."""
    if pointer == "#":
        return True
    made = copy.deepcopy(schema)
    *path, last = pointer[2:].split("/")
    holder = made
    for token in path:
        holder = holder[int(token)] if isinstance(holder, list) else holder[token]
    del holder[last]
    return made


@pytest.mark.parametrize(("schema", "message"), CASES, ids=[case[1][:40] for case in CASES])
def test_the_keywords_that_contradict_are_named(schema: Any, message: str) -> None:
    before = copy.deepcopy(schema)
    with pytest.raises(EmptyLanguageError) as caught:
        json_schema(schema)
    assert schema == before
    told = {part for part in str(caught.value).replace(",", " ").split() if part.startswith("#")}
    assert told == set(caught.value.pointers)
    assert all(part in told for part in message.replace(",", " ").split() if part.startswith("#"))
    assert message.partition(" contradict")[2] in str(caught.value)
    for pointer in caught.value.pointers:
        json_schema(without(schema, pointer))


NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}, "required": ["next"]}
ENDLESS: list[tuple[Any, str]] = [
    (
        {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}},
        "#/required and #/properties/a/$ref, given #/type",
    ),
    (
        {"$ref": "#/$defs/n", "$defs": {"n": NODE}},
        "#/$defs/n/properties/next/$ref and #/$ref, given #/$defs/n/",
    ),
    ({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, "#/type and #/minItems"),
    (
        {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}, "b": {"enum": []}}},
        "#/required and #/properties/a/$ref, given #/type",
    ),
]


@pytest.mark.parametrize(("schema", "message"), ENDLESS, ids=[case[1][:40] for case in ENDLESS])
def test_recursion_without_an_end_is_called_so(schema: Any, message: str) -> None:
    with pytest.raises(EmptyLanguageError) as caught:
        json_schema(schema)
    said = str(caught.value)
    assert f"without end; allow null there, or leave a member out of 'required': {message}" in said
    for pointer in caught.value.pointers:
        json_schema(without(schema, pointer))


def test_a_contradiction_inside_of_a_recursion_is_a_contradiction() -> None:
    for broken in ({"type": "string", "enum": [1]}, {"minimum": 2, "maximum": 1, "type": "integer"}):
        node = {"type": "object", "properties": {"next": {"$ref": "#"}, "v": broken}, "required": ["v"]}
        with pytest.raises(EmptyLanguageError, match="contradict each other, given") as caught:
            json_schema(node)
        assert all("next" not in pointer for pointer in caught.value.pointers)


def test_errors_keep_their_pointers() -> None:
    with pytest.raises(EmptyLanguageError) as caught:
        json_schema(False)
    assert pickle.loads(pickle.dumps(caught.value)).pointers == ("#",)
