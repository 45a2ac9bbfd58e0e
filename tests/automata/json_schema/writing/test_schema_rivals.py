"""``oneOf`` of many branches, told apart by constants or not, against the ``jsonschema`` library."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import EmptyLanguageError

CONSTANTS: tuple[Any, ...] = (None, True, False, 0, 1, 2.5, "", "a", "b", [1], {"k": 1}, {"k": "a", "x": 0})
TYPES = ("null", "boolean", "integer", "number", "string", "array")


def branch(rng: random.Random, *, inside: bool = False) -> dict[str, Any]:
    """A branch that lists constants, of the value or of a member, more often than not."""
    kind = rng.random()
    if kind < 0.3:
        return {"const": rng.choice(CONSTANTS)}
    if kind < 0.5:
        return {"enum": rng.sample(CONSTANTS, 2), "type": rng.sample(TYPES, 4)}
    if kind < 0.6 or inside:
        return {"type": rng.choice(TYPES), "minimum": 1, "minLength": 1}
    names = rng.sample(("k", "k", "x"), 2)
    return {
        "type": "object",
        "properties": {name: branch(rng, inside=True) for name in names},
        "required": list(dict.fromkeys(names[: rng.randrange(3)])),
        "maxProperties": 2,
    }


@pytest.mark.parametrize("seed", range(12))
def test_exactly_one_of_many_branches(seed: int) -> None:
    rng = random.Random(seed)
    schema = {"oneOf": [branch(rng) for _ in range(13 + seed)]}
    validator = jsonschema.Draft202012Validator(schema)
    members = [{"k": each, "x": other} for each in CONSTANTS for other in CONSTANTS]
    values = [
        *CONSTANTS,
        {},
        *({"k": each} for each in CONSTANTS),
        *({"x": each} for each in CONSTANTS),
        *members,
    ]
    valid = [value for value in values if validator.is_valid(value)]
    try:
        constraint = json_schema(schema, property_order="any")
    except EmptyLanguageError:
        assert not valid
        return
    assert [value for value in values if constraint.accepts(json.dumps(value))] == valid
