"""Small schemas and small instances for tests of ``json_schema``; the ``jsonschema`` library says which are valid."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "ab", "c")
SCALARS: tuple[Any, ...] = (None, True, False, 0, 1, 2, -1, 1.5, 10, "", "a", "ab", "b", "éa", "aaa")
INSTANCES: tuple[Any, ...] = (
    *SCALARS,
    *(
        [],
        [0],
        [1],
        [1, 1],
        [0, 1],
        ["a"],
        ["a", "b"],
        [None, 1, "a"],
        [[]],
        [[1], [1]],
        [{"a": 1}],
        [2, 2, 2],
    ),
    *({}, {"a": 1}, {"a": "a"}, {"b": 1}, {"a": 1, "b": 1}, {"b": "a", "c": 0}, {"ab": 2}, {"a": {"a": 1}}),
    *({"a": []}, {"a": [1]}, {"c": None}, {"a": 1, "b": 2, "ab": 3}, {"a": {}}, {"a": None, "c": {"b": 2}}),
)


def schemas() -> st.SearchStrategy[Any]:
    """Schemas of every keyword but references, over few names and constants."""
    leaves = st.one_of(
        st.booleans(),
        st.just({}),
        st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"]).map(
            lambda t: {"type": t}
        ),
        st.lists(
            st.sampled_from(["null", "integer", "string", "array", "object"]),
            min_size=1,
            max_size=3,
            unique=True,
        ).map(lambda types: {"type": types}),
        st.sampled_from(INSTANCES).map(lambda value: {"const": value}),
        st.lists(st.sampled_from(INSTANCES), min_size=1, max_size=3).map(lambda values: {"enum": values}),
        st.fixed_dictionaries(
            {}, optional={"minimum": _small(), "exclusiveMaximum": _small(), "multipleOf": _steps()}
        ),
        st.fixed_dictionaries(
            {}, optional={"minLength": _counts(), "maxLength": _counts(), "pattern": _patterns()}
        ),
    )
    return st.recursive(leaves, _combined, max_leaves=5)


def _combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    table = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    names = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
    return st.one_of(
        st.fixed_dictionaries(
            {},
            optional={
                "properties": table,
                "required": names,
                "additionalProperties": inner,
                "patternProperties": st.dictionaries(_patterns(), inner, max_size=2),
                "propertyNames": inner,
                "minProperties": _counts(),
                "maxProperties": _counts(),
            },
        ),
        st.fixed_dictionaries(
            {},
            optional={
                "prefixItems": several,
                "items": inner,
                "contains": inner,
                "minContains": _counts(),
                "maxContains": _counts(),
                "minItems": _counts(),
                "maxItems": _counts(),
                "uniqueItems": st.booleans(),
            },
        ),
        st.fixed_dictionaries(
            {},
            optional={
                "properties": table,
                "type": st.sampled_from(["object", "array", "integer"]),
                "allOf": several,
                "anyOf": several,
                "oneOf": several,
                "not": inner,
                "dependentRequired": st.dictionaries(st.sampled_from(NAMES), names, max_size=2),
                "dependentSchemas": table,
                "unevaluatedProperties": inner,
                "unevaluatedItems": inner,
            },
        ),
        st.fixed_dictionaries({"if": inner}, optional={"then": inner, "else": inner}),
    )


def _small() -> st.SearchStrategy[Any]:
    return st.sampled_from([-1, 0, 1, 1.5, 2])


def _steps() -> st.SearchStrategy[Any]:
    return st.sampled_from([1, 2, 0.5, 3])


def _counts() -> st.SearchStrategy[int]:
    return st.integers(0, 3)


def _patterns() -> st.SearchStrategy[str]:
    return st.sampled_from(["a", "^a", "b$", "^[ab]*$", "^.$", "^(?!a)"])
