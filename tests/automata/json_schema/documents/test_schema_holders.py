"""Objects of requests that hold a schema, given in its place: as schemas they would allow every value."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import SchemaError

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
FORM = {"name": "n", "strict": True, "schema": SCHEMA}
FUNCTION = {"name": "f", "description": "d", "parameters": SCHEMA}


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize(
    ("holder", "pointer"),
    [
        (FORM, "#/schema"),
        ({"type": "json_schema", "json_schema": FORM}, "#/json_schema"),
        ({"type": "json_schema", **FORM}, "#/schema"),
        (FUNCTION, "#/parameters"),
        ({"type": "function", **FUNCTION}, "#/parameters"),
        ({"type": "function", "function": FUNCTION}, "#/function"),
        ({"name": "f", "description": "d", "input_schema": SCHEMA}, "#/input_schema"),
    ],
)
def test_what_holds_a_schema_is_no_schema(holder: Any, pointer: str, text: bool) -> None:
    with pytest.raises(SchemaError, match="pass the schema alone") as caught:
        json_schema(json.dumps(holder) if text else holder)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize(
    ("schema", "allowed", "refused"),
    [
        ({"title": "t", "schema": SCHEMA}, "1", None),
        ({"schema": SCHEMA}, "1", None),
        ({"name": "n", "schema": "s"}, "1", None),
        ({**FORM, "type": "string"}, '"a"', "1"),
        ({**FORM, "minimum": 3}, "3", "2"),
        ({"properties": {"p": FORM}}, '{"p": 1}', None),
    ],
)
def test_unknown_keywords_constrain_nothing(schema: Any, allowed: str, refused: str | None) -> None:
    made = json_schema(schema)
    assert made.accepts(allowed) and (refused is None or not made.accepts(refused))
