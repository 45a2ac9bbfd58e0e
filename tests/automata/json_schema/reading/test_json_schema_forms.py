"""What a draft's meta-schema rejects is refused, with its address; against the meta-schemas that `jsonschema` has."""

import json
from typing import Any

import jsonschema
import pytest

import tokenfst
from tokenfst import errors

_URIS = {
    "draft-04": ("http://json-schema.org/draft-04/schema#", jsonschema.Draft4Validator),
    "draft-06": ("http://json-schema.org/draft-06/schema#", jsonschema.Draft6Validator),
    "draft-07": ("http://json-schema.org/draft-07/schema#", jsonschema.Draft7Validator),
    "2019-09": ("https://json-schema.org/draft/2019-09/schema", jsonschema.Draft201909Validator),
    "2020-12": ("https://json-schema.org/draft/2020-12/schema", jsonschema.Draft202012Validator),
}
VALUES: list[Any] = [
    *(None, True, 5, -1, 1.5, 0, "x", "", "integer", {}, [], [5], [{}], ["a"], ["a", "a"]),
    *(
        ["integer"],
        ["integer", "integer"],
        {"a": 5},
        {"a": "x"},
        {"a": ["x", "x"]},
        {"a": []},
        {"type": "wrong"},
    ),
    *({"a": {"type": "wrong"}}, [{"type": "wrong"}]),
]
KEYWORDS = [
    *(
        "title",
        "description",
        "$comment",
        "id",
        "$id",
        "$anchor",
        "$dynamicAnchor",
        "$defs",
        "definitions",
        "examples",
    ),
    *(
        "readOnly",
        "writeOnly",
        "deprecated",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "$vocabulary",
    ),
    *("type", "enum", "required", "properties", "patternProperties", "additionalProperties", "propertyNames"),
    *(
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "items",
        "prefixItems",
        "additionalItems",
        "contains",
    ),
    *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "minimum", "multipleOf", "exclusiveMinimum"),
    *("minLength", "maxItems", "minContains", "uniqueItems", "pattern", "format", "unevaluatedItems", "$ref"),
]


def is_understood(draft: str, keyword: str, value: Any) -> bool:
    """What the meta-schema rejects, and what cannot mean anything else."""
    if draft == "draft-04" and value is True:
        return True  # a boolean schema, or a bound without the keyword that it belongs to
    if keyword == "enum" and draft == "draft-04":
        return value in (["a", "a"], ["integer", "integer"])
    if keyword == "exclusiveMinimum":
        return draft in ("draft-04", "2020-12") and isinstance(value, int | float)
    return draft == "2020-12" and keyword == "items" and value in ([], [{}])


@pytest.mark.parametrize("draft", _URIS)
@pytest.mark.parametrize("keyword", KEYWORDS)
def test_what_the_meta_schema_rejects(draft: str, keyword: str) -> None:
    uri, validator = _URIS[draft]
    meta = validator(validator.META_SCHEMA)
    definitions = "definitions" if draft.startswith("draft") else "$defs"
    for value in VALUES:
        for holder, pointer in (
            ({}, f"#/{keyword}"),
            ({"properties": {"p": {keyword: value}}}, f"#/properties/p/{keyword}"),
            ({definitions: {"p~q": {keyword: value}}}, f"#/{definitions}/p~0q/{keyword}"),
        ):
            schema = {"$schema": uri, **(holder or {keyword: value})}
            if meta.is_valid(schema) or is_understood(draft, keyword, value):
                continue
            with pytest.raises(errors.SchemaError) as caught:
                tokenfst.json_schema(schema)
            inner = json.dumps(value).find("wrong") >= 0  # of the sub-schema
            assert caught.value.pointer.startswith(pointer) if inner else caught.value.pointer == pointer


STRICTER = {("draft-07", "writeOnly"), ("2020-12", "additionalItems"), ("draft-04", "$ref")}
"""Of which the specification speaks and the meta-schema does not, or that we understand in all drafts."""


@pytest.mark.parametrize("draft", _URIS)
@pytest.mark.parametrize("keyword", KEYWORDS)
def test_what_the_meta_schema_takes(draft: str, keyword: str) -> None:
    if (draft, keyword) in STRICTER:
        return
    uri, validator = _URIS[draft]
    meta = validator(validator.META_SCHEMA)
    for value in VALUES:
        schema = {"$schema": uri, keyword: value}
        if meta.is_valid(schema):
            try:
                tokenfst.json_schema(schema)
            except errors.SchemaError as error:
                assert "must be" not in str(error)
            except errors.ConstraintError:
                pass


def test_shared_and_cyclic_objects() -> None:
    """An object is looked at once, wherever it stands."""
    shared: dict[str, Any] = {"type": "string"}
    for _ in range(8):
        shared = {"properties": {"a": shared, "b": shared}}
    with pytest.raises(errors.SchemaError, match="#/properties/x/title: must be a string"):
        tokenfst.json_schema({"properties": {"s": shared["properties"]["a"], "x": {"title": 1}}})


def test_a_reference_to_what_is_no_place_of_a_schema() -> None:
    schema = {"$ref": "#/elsewhere/0", "elsewhere": [{"title": "a", "properties": {"a": {"required": "a"}}}]}
    with pytest.raises(errors.SchemaError, match="#/elsewhere/0/properties/a/required: must be an array"):
        tokenfst.json_schema(schema)
