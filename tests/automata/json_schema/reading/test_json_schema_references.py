"""References of every kind: anchors, embedded resources, dynamic and recursive references, dialects of one's own.

The official suite has more of draft 2020-12; the ``jsonschema`` library is the oracle for 2019-09.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import SchemaError, UnsupportedSchemaError

TREE = {
    "$id": "https://example.com/tree",
    "type": "object",
    "properties": {"data": True, "children": {"type": "array", "items": {"REF": "#"}}},
}
TREES = [
    {"data": 1},
    {"children": [{"data": 1}]},
    {"children": [{"daat": 1}]},
    {"daat": 1},
    {"children": [{"children": [{"daat": 1}]}]},
    {"children": [1]},
]


def strict(
    draft: str, anchor: dict[str, Any], reference: dict[str, Any], *, open_tree: bool
) -> dict[str, Any]:
    """A tree whose nodes have no other members, made by extending one that allows them."""
    text = json.dumps(TREE).replace('{"REF": "#"}', json.dumps(reference))
    tree = json.loads(text) | (anchor if open_tree else {})
    return {
        "$schema": f"https://json-schema.org/draft/{draft}/schema",
        "$id": "https://example.com/strict-tree",
        **anchor,
        "$ref": "tree",
        "unevaluatedProperties": False,
        "$defs": {"tree": tree},
    }


@pytest.mark.parametrize("open_tree", [True, False])
def test_recursive_references_of_2019_09(open_tree: bool) -> None:
    schema = strict("2019-09", {"$recursiveAnchor": True}, {"$recursiveRef": "#"}, open_tree=open_tree)
    validator = jsonschema.Draft201909Validator(schema)
    constraint = json_schema(schema)
    judged = [constraint.accepts(json.dumps(tree)) for tree in TREES]
    assert judged == [validator.is_valid(tree) for tree in TREES]
    assert len(set(judged)) == 2 and judged[2] is not open_tree


@pytest.mark.parametrize("open_tree", [True, False])
def test_dynamic_references_of_2020_12(open_tree: bool) -> None:
    anchor, reference = {"$dynamicAnchor": "node"}, {"$dynamicRef": "#node"}
    schema = strict("2020-12", anchor, reference, open_tree=open_tree)
    if not open_tree:
        schema["$defs"]["tree"]["$anchor"] = "node"
    validator = jsonschema.Draft202012Validator(schema)
    constraint = json_schema(schema)
    judged = [constraint.accepts(json.dumps(tree)) for tree in TREES]
    assert judged == [validator.is_valid(tree) for tree in TREES]
    assert judged[2] is not open_tree


def test_many_resources_without_dynamic_anchors_share_their_rules() -> None:
    """What evaluation came through counts only where something asks for it."""
    names = [f"r{k}" for k in range(24)]
    table = {
        name: {
            "$id": f"https://example.com/{name}",
            "type": "object",
            "properties": {other: {"$ref": other} for other in names},
        }
        for name in names
    }
    constraint = json_schema({"$id": "https://example.com/", "$defs": table, "$ref": "r0"})
    assert len(constraint.rules) < 3 * len(names)  # type: ignore[union-attr]
    assert constraint.accepts('{"r3": {"r5": {}}}') and not constraint.accepts('{"r3": {"r5": 1}}')


def test_anchors_and_pointers_into_resources() -> None:
    schema = {
        "$id": "https://example.com/root",
        "properties": {
            "a": {"$ref": "#positive"},
            "b": {"$ref": "inner#negative"},
            "c": {"$ref": "inner#/$defs/n"},
            "d": {"$ref": "#/$defs/in/$defs/n"},
            "e": {"$ref": "#/x~1y/z%25"},
        },
        "$defs": {
            "p": {"$anchor": "positive", "minimum": 1},
            "in": {"$id": "inner", "$defs": {"n": {"$anchor": "negative", "maximum": -1}}},
        },
        "x/y": {"z%": {"type": "null"}},
        "additionalProperties": False,
    }
    constraint = json_schema(schema)
    assert constraint.accepts('{"a": 1, "b": -1, "c": -1, "d": -1, "e": null}')
    for name, wrong in (("a", 0), ("b", 0), ("c", 0), ("d", 0), ("e", 0)):
        assert not constraint.accepts(json.dumps({name: wrong}))


META = "https://example.com/meta"


def dialect(vocabularies: dict[str, bool]) -> dict[str, Any]:
    home = "https://json-schema.org/draft/2020-12/"
    table = {name if ":" in name else f"{home}vocab/{name}": needed for name, needed in vocabularies.items()}
    return {"$schema": f"{home}schema", "$id": META, "$vocabulary": table}


@pytest.mark.parametrize(
    "vocabularies",
    [
        {"core": True, "applicator": True},
        {"core": True, "validation": True},
        {"core": True, "validation": True, "format-assertion": False},
    ],
)
def test_vocabularies_of_a_dialect_of_ones_own(vocabularies: dict[str, bool]) -> None:
    schema = {
        "$schema": META,
        "type": ["string", "object"],
        "format": "date",
        "properties": {"a": False},
    }
    constraint = json_schema(schema, resolver={META: dialect(vocabularies)}.get, formats="annotate")
    assert constraint.accepts('"2024-01-01"') and constraint.accepts("{}")
    assert constraint.accepts("1") is ("validation" not in vocabularies)
    assert constraint.accepts('{"a": 1}') is ("applicator" not in vocabularies)
    assert constraint.accepts('"x"') is ("format-assertion" not in vocabularies)


def test_unknown_dialects_are_refused() -> None:
    with pytest.raises(UnsupportedSchemaError, match="no known dialect") as caught:
        json_schema({"$schema": META})
    assert caught.value.pointer == "#/$schema"
    needed = dialect({"urn:my:vocabulary": True})
    with pytest.raises(UnsupportedSchemaError, match="'urn:my:vocabulary' is required and not known"):
        json_schema({"$schema": META}, resolver={META: needed}.get)
    assert json_schema({"$schema": META}, resolver={META: dialect({"urn:my:vocabulary": False})}.get)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"$ref": "#missing"}, "#/$ref"),
        ({"$dynamicRef": "#missing"}, "#/$dynamicRef"),
        ({"items": {"$ref": "#/a/b"}}, "#/items/$ref"),
        ({"items": {"$ref": "#/type"}, "type": "array"}, "#/items/$ref"),
        ({"items": {"$ref": 1}}, "#/items/$ref"),
        ({"$dynamicRef": 1}, "#/$dynamicRef"),
        ({"$schema": ""}, "#/$schema"),
    ],
)
def test_references_that_lead_nowhere_are_named(schema: Any, pointer: str) -> None:
    with pytest.raises(SchemaError) as caught:
        json_schema(schema)
    assert caught.value.pointer == pointer and not isinstance(caught.value, UnsupportedSchemaError)
