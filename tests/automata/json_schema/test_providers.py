"""What structured outputs of other providers take, by what their pages say."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tokenfst import ProviderSchemaError, json_schema
from tokenfst.automata.json_schema.documents.keywords import KEYWORDS
from tokenfst.automata.json_schema.providers import PROVIDERS, provider_findings
from tokenfst.cli.questions.linting import Provider
from tokenfst.errors import ConstraintError, SchemaError

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": ["integer", "null"]}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
ITEM = {"type": "array", "items": {"$ref": "#/$defs/node"}}
TREE = {**PERSON, "properties": {"name": ITEM, "age": {"type": "integer"}}}


def inside(name: str, schema: Any) -> dict[str, Any]:
    return {**PERSON, "properties": {**PERSON["properties"], name: schema}, "required": ["name", "age", name]}


CASES = [
    ("openai", inside("x", {"type": "string", "minLength": 1}), "#/properties/x/minLength"),
    ("openai", inside("x", {"oneOf": [{"type": "null"}]}), "#/properties/x/oneOf"),
    ("openai", inside("x", {"type": "string", "format": "iri"}), "#/properties/x/format"),
    ("openai", {**PERSON, "required": ["name"]}, "#/properties/age"),
    ("openai", {**PERSON, "additionalProperties": True}, "#/additionalProperties"),
    ("openai", {"anyOf": [PERSON]}, "#/anyOf"),
    ("openai", {"type": "string"}, "#"),
    ("openai", inside("x", {"$ref": "https://example.com/x"}), "#/properties/x/$ref"),
    ("openai", inside("x", {"enum": list(range(1001))}), "#"),
    (
        "openai",
        {**PERSON, "$defs": {"a/b": {"type": "array", "uniqueItems": True}}},
        "#/$defs/a~1b/uniqueItems",
    ),
    ("anthropic", inside("x", {"type": "integer", "minimum": 1}), "#/properties/x/minimum"),
    ("anthropic", inside("x", {"type": "array", "minItems": 2}), "#/properties/x/minItems"),
    ("anthropic", inside("x", {"enum": ["a", {}]}), "#/properties/x/enum/1"),
    ("anthropic", {"items": {"type": "object"}}, "#/items"),
    ("anthropic", {**TREE, "$defs": {"node": TREE}}, "#/$defs/node/properties/name/items/$ref"),
    ("anthropic", {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "#/anyOf/0/$ref"),
    ("gemini", inside("x", {"enum": ["a", None]}), "#/properties/x/enum/1"),
    ("gemini", {"$ref": "#/$defs/a", "minItems": 1, "$defs": {"a": {"type": "array"}}}, "#/minItems"),
    ("gemini", inside("x", {"allOf": [{"type": "string"}]}), "#/properties/x/allOf"),
]


@pytest.mark.parametrize(("provider", "schema", "pointer"), CASES)
def test_what_is_not_taken_is_named_by_its_place(provider: Any, schema: Any, pointer: str) -> None:
    found = provider_findings(schema, provider)
    assert [each.pointer for each in found] == [pointer]
    assert found[0].provider == provider and str(found[0]).startswith(f"{pointer}: ")
    with pytest.raises(ProviderSchemaError) as caught:
        json_schema(schema, strict=provider)
    assert caught.value.pointer == pointer and isinstance(caught.value, SchemaError)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_is_taken_is_compiled(provider: Any) -> None:
    schema = inside(
        "x", {"anyOf": [{"type": "string", "format": "date"}, {"type": "array", "items": {"enum": ["a"]}}]}
    )
    assert provider_findings(schema, provider) == []
    constraint = json_schema(json.dumps(schema), strict=provider)
    assert constraint.accepts('{"name": "Ada", "age": null, "x": ["a"]}')
    assert json_schema({"type": "object", "title": "minLength", "properties": {}}).accepts("{}")
    if provider != "anthropic":
        tree = {**TREE, "$defs": {"node": TREE}}
        assert provider_findings(tree, provider) == []


def test_providers_are_checked() -> None:
    with pytest.raises(
        ConstraintError, match="strict must be one of 'openai', 'anthropic', 'gemini', not 'mistral'"
    ):
        json_schema(PERSON, strict="mistral")  # type: ignore[arg-type]
    assert tuple(each.value for each in Provider) == PROVIDERS
    assert provider_findings(True, "gemini") == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_keyword_is_taken_or_found(provider: str) -> None:
    others = {"minLength", "uniqueItems", "not", "if", "contains", "patternProperties", "dependentRequired"}
    assert others <= KEYWORDS.keys()
    for keyword in others:
        assert f"#/items/{keyword}" in {
            each.pointer for each in provider_findings({"items": {keyword: {}}}, provider)
        }


def test_looking_is_linear() -> None:
    """Many references that all lead to each other."""
    many = {f"d{k}": {"anyOf": [{"$ref": f"#/$defs/d{(k + 1) % 5_000}"}]} for k in range(5_000)}
    begin = time.process_time()
    assert len(provider_findings({"$defs": many}, "anthropic")) == 5_000
    assert time.process_time() - begin < 5
