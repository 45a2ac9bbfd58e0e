"""Numbers of draft-04, where 1.0 is a number and no integer: against `jsonschema` on random schemas and spellings."""

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenfst
from tokenfst import errors

_URI = "http://json-schema.org/draft-04/schema#"
TEXTS = [
    "0",
    "0.0",
    "1",
    "1.0",
    "2",
    "2.0",
    "3",
    "3.0",
    "1.5",
    "4.5",
    "6",
    "6.0",
    "-1",
    "-1.0",
    "7",
    "7.0",
    "8000",
    "8000.0",
]
_values = st.sampled_from([0, 1, 2, 3, 1.5, 2.0, "a", None])
_plain = st.one_of(
    st.sampled_from(
        [{"type": "integer"}, {"type": "number"}, {"type": ["integer", "string"]}, {"type": "string"}]
    ),
    st.sampled_from(
        [{"multipleOf": 1}, {"multipleOf": 1.5}, {"multipleOf": 3}, {"maximum": 2}, {"minimum": 1}]
    ),
    st.lists(_values, min_size=1, max_size=3, unique_by=repr).map(lambda values: {"enum": values}),
    st.just({"minimum": 1, "exclusiveMinimum": True}),
    st.just({"type": "integer", "minimum": 1, "maximum": 6}),
)


def _combined(parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    several = st.lists(parts, min_size=1, max_size=3)
    named = st.sampled_from(["allOf", "anyOf", "oneOf"])
    return st.one_of(
        st.builds(lambda name, each: {name: each}, named, several), parts.map(lambda each: {"not": each})
    )


schemas = st.recursive(_plain, _combined, max_leaves=5)


def differences(schema: dict[str, Any], texts: list[str]) -> list[str]:
    """The texts on which the constraint and the library disagree."""
    document = {"$schema": _URI, **schema}
    validator = jsonschema.Draft4Validator(document)
    try:
        constraint = tokenfst.json_schema(document, spelling="any")
    except errors.EmptyLanguageError:
        return [text for text in texts if validator.is_valid(json.loads(text))]
    except errors.UnsupportedSchemaError:
        return []
    return [text for text in texts if constraint.accepts(text) is not validator.is_valid(json.loads(text))]


@given(schemas)
@settings(max_examples=300, deadline=None)
def test_numbers(schema: dict[str, Any]) -> None:
    assert differences(schema, TEXTS) == []


@given(schemas)
@settings(max_examples=100, deadline=None)
def test_numbers_as_parts(schema: dict[str, Any]) -> None:
    item = {"type": "array", "items": schema, "maxItems": 2}
    member = {"type": "object", "properties": {"a": schema}, "additionalProperties": False}
    assert differences(item, [f"[{text}]" for text in TEXTS]) == []
    assert differences(member, [f'{{"a": {text}}}' for text in TEXTS]) == []


@given(schemas, st.sampled_from(["draft-04", "2020-12"]))
@settings(max_examples=200, deadline=None)
def test_plain_numbers(schema: dict[str, Any], draft: str) -> None:
    """No text is plain that is not valid; digits are there wherever they are valid, and decimals."""
    try:
        every = tokenfst.json_schema(schema, draft=draft, spelling="any")
        plain = tokenfst.json_schema(schema, draft=draft)
    except (errors.EmptyLanguageError, errors.UnsupportedSchemaError) as error:
        with pytest.raises(type(error)):
            tokenfst.json_schema(schema, draft=draft)
        return
    for text in TEXTS:
        if text.endswith(".0"):
            assert every.accepts(text) or not plain.accepts(text), text
            if every.accepts(text) and not plain.accepts(text):
                assert plain.accepts(text[:-2]), text
        else:
            assert plain.accepts(text) is every.accepts(text), text


@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "2020-12"])
def test_fractions_of_zeros(draft: str) -> None:
    """A number may have one, whatever it must be a multiple of; an integer has none."""
    number = {"type": "number", "multipleOf": 1}
    for schema, there in (
        (number, True),
        ({**number, "type": ["number", "null"]}, True),
        ({"allOf": [number, {"minimum": 0, "maximum": 9999}]}, True),
        ({"type": "integer"}, False),
        ({"allOf": [number, {"type": "integer"}]}, False),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, False),
        ({"anyOf": [{"type": "integer"}, number]}, True),
        ({"not": {"not": {"type": "number"}}}, True),
        ({"enum": [8000, 8000.5]}, False),
        ({"enum": [8000.0, 8000.5]}, True),
        ({"type": "integer", "enum": [8000.0]}, False),
    ):
        constraint = tokenfst.json_schema(schema, draft=draft)
        assert constraint.accepts("8000")
        assert constraint.accepts("8000.0") is there, schema


@pytest.mark.parametrize(
    "items",
    [
        {"type": "integer", "enum": [1, 2, 3]},
        {"enum": [1, 2.5]},
        {"anyOf": [{"type": "integer", "enum": [1, 2]}, {"enum": [2.5, 3]}]},
        {"allOf": [{"enum": [1, 2]}, {"not": {"type": "integer"}}]},
    ],
    ids=str,
)
def test_items_that_differ(items: dict[str, Any]) -> None:
    texts = [f"[{one}, {other}]" for one in TEXTS for other in TEXTS]
    schema = {"type": "array", "items": items, "uniqueItems": True, "maxItems": 2}
    assert differences(schema, texts) == []
    tokenfst.json_schema({"$schema": _URI, **schema})


def test_one_value_in_two_forms_is_refused() -> None:
    """[1, 1] must not be taken for different items."""
    items = [{"type": "integer", "enum": [1]}, {"enum": [1, 2]}]
    schema = {"$schema": _URI, "type": "array", "items": items, "additionalItems": False, "uniqueItems": True}
    with pytest.raises(errors.UnsupportedSchemaError, match="not distinguished"):
        tokenfst.json_schema(schema)


def test_drafts_within_one_document() -> None:
    """An integer is what the draft of its own schema says."""
    inner = {"$id": "http://x/inner", "id": "http://x/inner", "$schema": _URI, "type": "integer"}
    made = tokenfst.json_schema(
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": inner, "c": {"type": "integer"}}},
        spelling="any",
    )
    assert made.accepts('{"a": 1.0, "b": 1, "c": 1.0}')
    assert not made.accepts('{"a": 1.0, "b": 1.0, "c": 1.0}')


def test_null_is_no_schema() -> None:
    with pytest.raises(errors.SchemaError, match="not null"):
        tokenfst.json_schema(None)
    assert tokenfst.json_schema(type(None)).accepts("null")


def test_a_number_that_is_no_integer_keeps_its_fraction() -> None:
    draft = {"$schema": "http://json-schema.org/draft-04/schema#"}
    constraint = tokenfst.json_schema({**draft, "oneOf": [{"type": "integer"}, {"enum": [0]}]})
    assert constraint.accepts("0.0") and constraint.accepts("7")
    assert not constraint.accepts("0") and not constraint.accepts("7.0")


def test_a_list_with_a_fraction_lists_numbers() -> None:
    """1.0 is an instance of draft-04's enum of 1 and 2.0, as jsonschema has it; of integers alone it is none."""
    draft = {"$schema": "http://json-schema.org/draft-04/schema#"}
    mixed = tokenfst.json_schema({**draft, "enum": [1, 2.0]})
    for text, expected in (
        ("1", True),
        ("1.0", True),
        ("2", True),
        ("2.0", True),
        ("1.00", False),
        ("3", False),
    ):
        assert mixed.accepts(text) is expected, text
    assert not tokenfst.json_schema({**draft, "enum": [1, 2.0], "type": "integer"}).accepts("1.0")
    assert not tokenfst.json_schema({**draft, "enum": [1, 2]}).accepts("1.0")
