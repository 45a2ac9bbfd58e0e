"""Members of schemas that constrain nothing: which are likely mistakes, which are notes, and which are neither."""

from __future__ import annotations

from typing import Any

import pytest

from tokenfst.automata.json_schema.documents.forms import ANNOTATIONS
from tokenfst.automata.json_schema.documents.keywords import KEYWORDS
from tokenfst.automata.json_schema.unknown_keywords import unknown_keywords

INNER = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "pointer", "said"),
    [
        ({"propertes": {}}, "#/propertes", "did you mean properties?"),
        ({"type": "object", "addtionalProperties": False}, "#/addtionalProperties", "additionalProperties?"),
        ({"properties": {"a": {"minimun": 1}}}, "#/properties/a/minimun", "did you mean minimum?"),
        ({"items": {"anyOf": [True, {"min_length": 1}]}}, "#/items/anyOf/1/min_length", "minLength?"),
        ({"$defs": {"a/b": {"enums": [1]}}}, "#/$defs/a~1b/enums", "did you mean enum?"),
        ({"item": INNER}, "#/item", "did you mean items?"),
        ({"oneof": [INNER]}, "#/oneof", "did you mean oneOf?"),
        ({"Required": ["a"]}, "#/Required", "did you mean required?"),
        ({"type": "object", "name": INNER}, "#/name", "a property stands under properties"),
        (
            {"properties": {"a": {"type": "string", "nullable": True}}},
            "#/properties/a/nullable",
            "OpenAPI 3.0",
        ),
        ({"type": "string", "choices": ["a"]}, "#/choices", "enum"),
        ({"type": "integer", "min": 3}, "#/min", "minimum"),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [INNER]},
            "#/prefixItems",
            "is a keyword of 2020-12, and the schema is of draft-07",
        ),
    ],
)
def test_a_likely_mistake(schema: Any, pointer: str, said: str) -> None:
    (found,) = unknown_keywords(schema)
    assert found.likely and found.pointer == pointer and said in found.message


@pytest.mark.parametrize("name", ["form", "note", "weight", "readonly", "propertyOrder", "options"])
def test_a_member_that_somebody_added_is_a_note(name: str) -> None:
    (found,) = unknown_keywords({"type": "string", name: "x"})
    assert not found.likely and str(found) == f"#/{name}: {name} is no keyword and constrains nothing"


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"x-order": 1, "_id": 2, "@type": "t", "js:x": 1, "a.b": 1, "$note": 1},
        {"example": 1, "discriminator": {}, "default": {"propertes": 1}, "examples": [{"propertes": 1}]},
        {"const": {"propertes": 1}, "enum": [{"propertes": 1}]},
        {"properties": {"propertes": INNER, "min": INNER}},
        {"type": "object", "address": INNER, "allOf": [{"$ref": "#/address"}]},
        {"shared": {"person": INNER}, "items": {"$ref": "#/shared/person"}},
        dict.fromkeys(ANNOTATIONS),
        {"$schema": "https://json-schema.org/draft/2020-12/schema"},
    ],
)
def test_what_is_no_finding(schema: Any) -> None:
    assert unknown_keywords(schema) == []


def test_every_keyword_misspelled_by_one_letter_is_found() -> None:
    for name in KEYWORDS:
        if len(name) < 6 or name.startswith("$"):
            continue
        for wrong in {name[:at] + name[at + 1 :] for at in range(1, len(name))} - KEYWORDS.keys():
            (found,) = unknown_keywords({wrong: 3})
            assert found.likely and "did you mean" in found.message, wrong
