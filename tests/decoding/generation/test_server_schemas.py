"""The schema that a server gets for the calls of tools: it allows the arguments that each tool's own schema allows."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tokenfst.decoding.generation.tool_calls import tool_target
from tokenfst.errors import TokenfstError

jsonschema = pytest.importorskip("jsonschema", reason="the oracle is jsonschema")
VALUES: tuple[Any, ...] = (
    *(None, 1, "x", {"$ref": "#/$defs/a"}, {"a": 1}, {"a": "x"}, {"a": {"a": 1}}, {"b": None}, {"$ref": 1}),
    *(
        {"a": {"$ref": "#/$defs/a"}},
        {"b": [1]},
        {"b": [{"a": 1}]},
        {"a": {"a": {"a": "x"}}},
        {},
        {"$ref": "#"},
    ),
    *({"$ref": {"a": 1}}, {"a": {"b": None}}, {"b": ["x", {}]}),
)


def random_schema(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(9) if depth else rng.randrange(4)
    if kind == 0:
        return rng.choice([{"type": "integer"}, {"type": "string"}, {"type": "null"}, True, False])
    if kind == 1:
        return {"enum": rng.sample(VALUES, 3)}
    if kind == 2:
        return {"const": rng.choice(VALUES), "default": {"$ref": "#/$defs/a"}}
    if kind == 3:
        places = ("#", "#/$defs/a", "#/$defs/b~1c", "#/definitions/d", "#/properties/a", "#/properties/$ref")
        return {"$ref": rng.choice(places)}
    if kind == 4:
        return {"type": "array", "items": random_schema(rng, depth - 1)}
    if kind == 5:
        return {"anyOf": [random_schema(rng, depth - 1), random_schema(rng, depth - 1)]}
    if kind == 6:
        return {"not": random_schema(rng, depth - 1)}
    names = rng.sample(["a", "b", "$ref"], 2)
    return {"type": "object", "properties": {name: random_schema(rng, depth - 1) for name in names}}


def random_tool(rng: random.Random, name: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {name: random_schema(rng, 2) for name in ("a", "b", "$ref")},
        "$defs": {"a": random_schema(rng, 1), "b/c": random_schema(rng, 1)},
        "definitions": {"d": random_schema(rng, 1)},
    }
    if rng.random() < 0.3:
        schema["$id"] = f"https://example.org/{name}"
    return {"type": "function", "name": name, "parameters": schema}


def valid(schema: Any, value: Any) -> bool | None:
    """Whether a value is valid; None for a schema whose references go round in circles."""
    try:
        return bool(jsonschema.Draft202012Validator(schema).is_valid(value))
    except RecursionError:
        return None


@pytest.mark.parametrize("seed", range(4))
def test_references_find_the_same_schemas(seed: int) -> None:
    """``#``, ``#/properties/...`` and ``#/definitions/...`` too, and never in a constant, which is no schema."""
    rng, compared = random.Random(seed), 0
    while compared < 300:
        defined = [random_tool(rng, "f"), random_tool(rng, "g")]
        try:
            target = tool_target(defined, "json", None)
        except TokenfstError:  # no value fits, or references go round in circles
            continue
        assert target.for_server is not None
        for tool in defined:
            for value in VALUES:
                wanted = valid({**tool["parameters"]}, value)
                if wanted is None:
                    continue
                call = {"name": tool["name"], "arguments": value}
                assert valid(target.for_server.value, call) == wanted, (defined, call)
                compared += 1
