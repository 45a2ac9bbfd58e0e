"""Plain schemas, written at once, against the general way through value sets: the same masks, the same errors."""

from __future__ import annotations

import json
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.worlds.json_tokens import END, TOKENS, VOCABULARY

from tokenfst import allocate_token_bitmask, compile
from tokenfst.automata.json_schema.json_schema import SchemaGrammar, json_schema
from tokenfst.automata.json_schema.sets.objects import Object
from tokenfst.automata.json_schema.writing.plain import PlainSchemas
from tokenfst.errors import TokenfstError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def general_way() -> Iterator[None]:
    """Inside of it, no schema is plain."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlainSchemas, "text", lambda self, writer, level, formula: None)
        patch.setattr(Object, "held", lambda self: None)
        yield


def outcome(schema: Any, **options: Any) -> Any:
    """The constraint, or what the error says."""
    try:
        return json_schema(schema, **options)
    except TokenfstError as error:
        return type(error), str(error)


def masks_agree(left: Any, right: Any, seed: int, steps: int = 60) -> None:
    """Both have the same mask all along a random text."""
    rng = random.Random(seed)
    walks = [compile(each, VOCABULARY).matcher() for each in (left, right)]
    rows = [allocate_token_bitmask(1, len(VOCABULARY)) for _ in walks]
    for _ in range(steps):
        for walk, row in zip(walks, rows, strict=True):
            walk.fill_next_token_bitmask(row, 0)
        assert np.array_equal(*rows), (walks, left.source)
        allowed = np.flatnonzero(np.unpackbits(rows[0].view(np.uint8), bitorder="little"))
        closing = [token for token in allowed.tolist() if TOKENS[token][:1] in (b"}", b"]", b'"', b"")]
        token = rng.choice(closing if closing and rng.random() < 0.3 else allowed.tolist())
        for walk in walks:
            assert walk.accept_token(token)
        if token == END:
            return


def check(schema: Any, **options: Any) -> bool:
    """Whether the schema makes a constraint; it is the same both ways."""
    made = outcome(schema, **options)
    with general_way():
        wanted = outcome(schema, **options)
    if isinstance(made, tuple) or isinstance(wanted, tuple):
        assert made == wanted
        return False
    if isinstance(made, SchemaGrammar):
        # Whether a part has a value is never asked here: a rule is written of objects that there may be none of.
        assert isinstance(wanted, SchemaGrammar) or made.is_regular()
    else:
        assert not isinstance(wanted, SchemaGrammar)
    for seed in range(4):
        masks_agree(made, wanted, seed)
    return True


NAMES = st.sampled_from(["a", "ab", "b", "é", "x/y", "\ud800", ""])
SCALARS = st.sampled_from(["null", "boolean", "integer", "number", "string"])


def bodies(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members = {
        "properties": st.dictionaries(NAMES, inner, max_size=4),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "additionalProperties": inner,
        "description": st.just("..."),
    }
    items = {"items": inner, "minItems": st.integers(0, 2), "maxItems": st.integers(0, 3)}
    objects = st.fixed_dictionaries(
        {"type": st.sampled_from(["object", ["object", "null"]])}, optional=members
    )
    arrays = st.fixed_dictionaries({"type": st.sampled_from(["array", ["string", "array"]])}, optional=items)
    others = st.sampled_from(
        [{"minProperties": 1}, {"uniqueItems": False}, {"minLength": 1}, {"$id": "http://x/y"}]
    )
    return st.one_of(
        objects,
        arrays,
        st.fixed_dictionaries({}, optional=members),
        st.fixed_dictionaries({}, optional=items),
        st.tuples(objects, others).map(lambda both: {**both[0], **both[1]}),
        st.lists(inner, min_size=1, max_size=2).map(lambda each: {"anyOf": each}),
        st.lists(inner, min_size=1, max_size=2).map(lambda each: {"allOf": each}),
    )


LEAVES = st.one_of(
    SCALARS.map(lambda name: {"type": name}),
    st.lists(SCALARS, min_size=1, max_size=3).map(lambda names: {"type": names}),
    st.lists(NAMES, max_size=3).map(lambda words: {"enum": words}),
    st.lists(NAMES, min_size=1, max_size=3).map(lambda words: {"type": ["string", "null"], "enum": words}),
    st.sampled_from([True, False, {}, {"$ref": "#"}, {"$ref": "#/$defs/part"}, {"$ref": "#/$defs/none"}]),
    st.sampled_from(
        [{"type": "integer", "minimum": 3}, {"enum": [1, "a"]}, {"type": "text"}, {"required": "a"}]
    ),
)
SCHEMAS = st.recursive(LEAVES, bodies, max_leaves=6)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    bodies(SCHEMAS),
    SCHEMAS,
    st.sampled_from(["2020-12", "draft-07", "draft-04"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["schema", "any"]),
)
def test_random_schemas(schema: Any, part: Any, draft: str, distinct: bool, closed: bool, order: str) -> None:
    check(
        {"$defs": {"part": part}, **schema},
        draft=draft,
        property_order=order,
        repeated_names="forbid" if distinct else "allow",
        additional_properties="forbid" if closed else "schema",
    )


CASES: list[tuple[Any, bool]] = [
    ({"type": ["object", "null"], "properties": {"ab": {"enum": []}}, "required": ["ab"]}, True),
    ({"type": "object"}, True),
    ({"type": "object", "additionalProperties": False}, True),
    ({"type": "object", "properties": {"a": True, "b": {"type": "integer"}}, "required": ["b"]}, True),
    ({"type": "object", "required": ["z", "y"], "additionalProperties": {"type": "null"}}, True),
    ({"type": "object", "required": ["z"], "additionalProperties": False}, False),
    ({"type": "object", "properties": {"a": False}, "required": ["a"]}, False),
    ({"type": ["object", "string"], "properties": {"a": {"$ref": "#"}}, "additionalProperties": False}, True),
    ({"properties": {"a": {"type": "string"}}}, True),
    ({"items": {"type": "null"}, "minItems": 1}, True),
    ({"type": "array", "items": False}, True),
    ({"type": "array", "minItems": 3, "maxItems": 2}, False),
    ({"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}, "additionalProperties": 5}, False),
    ({"type": "object", "properties": {"a": {"$ref": 5}}}, False),
    ({"type": None, "properties": {}}, False),
    ({"type": "object", "properties": {str(n): {"enum": ["a", "b"]} for n in range(70)}}, True),
    (
        {
            "$defs": {"p": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/p"}, "b": {"allOf": [{"$ref": "#/$defs/p"}]}},
        },
        True,
    ),
]


@pytest.mark.parametrize(("schema", "has_values"), CASES)
def test_cases(schema: Any, has_values: bool) -> None:
    assert check(schema) is has_values
    assert check(json.loads(json.dumps(schema))) is has_values
    check(schema, additional_properties="forbid")
    assert check(schema, property_order="any") is has_values


def test_equal_objects_share_a_rule() -> None:
    made = json_schema(CASES[-1][0])
    assert isinstance(made, SchemaGrammar)
    assert len([name for name in made.rules if name != "any"]) == 3  # the start, the root and "p"


def test_annotations_make_no_other_rule() -> None:
    def object_of(text: str, **more: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {"a": {"type": ["string", "null"], "title": text}}, **more}

    schema = {"properties": {"x": object_of("1", description="one"), "y": object_of("1", description="two")}}
    made = json_schema({**schema, "additionalProperties": False})
    assert isinstance(made, SchemaGrammar)
    assert [name for name in made.rules if name.startswith("#/properties")] == ["#/properties/x"]
    schema["properties"]["y"]["required"] = ["a"]
    other = json_schema({**schema, "additionalProperties": False})
    assert isinstance(other, SchemaGrammar)
    assert len(other.rules) == len(made.rules) + 1
    assert other.accepts('{"x": {}}') and not other.accepts('{"y": {}}')


def test_texts_of_scalars_are_shared_by_schemas_that_mean_the_same_by_them() -> None:
    """Equal keywords are not enough: a draft knows other ones, and formats may be annotations."""

    def accepts(part: Any, text: str, **options: Any) -> bool:
        made = json_schema({"type": "object", "properties": {"a": part}}, **options)
        return made.accepts(f'{{"a": {text}}}')

    constant = {"type": "integer", "const": 3}
    assert not accepts(constant, "4", draft="draft-07")
    assert accepts(constant, "4", draft="draft-04")  # which has no const
    assert not accepts(constant, "4", draft="draft-07")
    whole = {"type": "integer", "maximum": 5}
    assert accepts(whole, "3.0", spelling="any")
    assert not accepts(whole, "3.0", spelling="any", draft="draft-04")
    assert not accepts(whole, "3.0", spelling="plain")
    date = {"type": "string", "format": "date"}
    assert accepts(date, '"today"', formats="annotate")
    assert not accepts(date, '"today"')
    assert accepts(date, '"today"', formats="annotate")
    assert not accepts({**date, "title": "of a day"}, '"today"')
