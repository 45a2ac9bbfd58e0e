"""Schemas as people write them, smaller, and documents that are near to them; the ``jsonschema`` library judges."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "name", "é", "x-1")
WORDS = ("", "a", "b", "ab", "é", "2024-02-29", "2023-02-29", "10.0.0.1", "😀", 'q"\\', "a\nb", "name")
_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_PATTERNS = ("^a", "b$", "^[a-z]*$", "^.$", "[0-9]", "^(?!a)", "^é?$")


def documents() -> st.SearchStrategy[Any]:
    """Schemas with definitions that refer to each other, through parts."""
    inner = schemas()
    return st.builds(
        lambda first, second, root: {
            **(root if isinstance(root, dict) else {}),
            "$defs": {"p": first, "q": second},
        },
        inner,
        inner,
        inner,
    )


def schemas() -> st.SearchStrategy[Any]:
    """Schemas that may refer to ``#/$defs/p``, ``#/$defs/q`` and ``#`` from parts of values."""
    return st.recursive(_leaves(), _combined, max_leaves=6)


def _leaves() -> st.SearchStrategy[Any]:
    counts = st.integers(0, 3)
    return st.one_of(
        st.sampled_from(_TYPES).map(lambda kind: {"type": kind}),
        st.lists(st.sampled_from(_TYPES), min_size=1, max_size=3, unique=True).map(
            lambda kinds: {"type": kinds}
        ),
        st.lists(
            st.sampled_from([*WORDS, 0, 1, 2.5, None, True, [], [1], {"a": 1}]), min_size=1, max_size=4
        ).map(lambda values: {"enum": values}),
        st.fixed_dictionaries(
            {"type": st.sampled_from(["integer", "number"])},
            optional={
                "minimum": st.sampled_from([-10, -0.5, 0, 1, 2.5]),
                "exclusiveMaximum": st.sampled_from([1, 3.25, 100]),
                "multipleOf": st.sampled_from([1, 2, 0.5, 0.25, 7]),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("string")},
            optional={"minLength": counts, "maxLength": counts, "pattern": st.sampled_from(_PATTERNS)},
        ),
        st.sampled_from(["date", "ipv4", "ipv6"]).map(lambda name: {"type": "string", "format": name}),
        st.booleans(),
    )


def _combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    part = st.one_of(inner, st.sampled_from(["#", "#/$defs/p", "#/$defs/q"]).map(lambda uri: {"$ref": uri}))
    names = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
    counts = st.integers(0, 3)
    branches = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from(NAMES), part, max_size=3),
            },
            optional={
                "required": names,
                "additionalProperties": st.one_of(st.just(False), part),
                "patternProperties": st.dictionaries(st.sampled_from(_PATTERNS), part, max_size=1),
                "propertyNames": st.sampled_from([{"maxLength": 1}, {"pattern": "^[a-z]*$"}]),
                "minProperties": counts,
                "maxProperties": counts,
                "dependentRequired": st.dictionaries(st.sampled_from(NAMES), names, max_size=1),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("array")},
            optional={
                "items": part,
                "prefixItems": st.lists(part, min_size=1, max_size=2),
                "contains": inner,
                "minItems": counts,
                "maxItems": counts,
            },
        ),
        st.fixed_dictionaries(
            {},
            optional={
                "anyOf": branches,
                "oneOf": branches,
                "allOf": branches,
                "not": inner,
                "if": inner,
                "then": inner,
                "else": inner,
            },
        ),
    )


def instances() -> st.SearchStrategy[Any]:
    """Documents of the same names and constants."""
    scalars = st.sampled_from([None, True, False, 0, 1, 2, -1, 7, 2.5, 0.25, 99, *WORDS])
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
        ),
        max_leaves=6,
    )


def near(rng: random.Random, value: Any) -> Any:
    """The value with one part changed, added or taken away."""
    other = rng.choice([None, True, 0, 1, 2.5, "", "a", "2024-02-29", [], {}])
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        kind = rng.random()
        if kind < 0.25:
            return [*value[:place], *value[place + 1 :]]
        return [
            *value[:place],
            near(rng, value[place]) if kind < 0.75 else other,
            *value[place + (kind < 0.75) :],
        ]
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice(list(value))
        kind = rng.random()
        if kind < 0.25:
            return {key: each for key, each in value.items() if key != name}
        if kind < 0.5:
            return {**value, rng.choice(NAMES): other}
        return {key: near(rng, each) if key == name else each for key, each in value.items()}
    return other
