"""JSON Schema against the ``jsonschema`` library: small worlds, random schemas, and what is refused and how."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.running.parts import in_parts

from reference.json.json_schema_worlds import INSTANCES, schemas
from tokenfst.automata.json_schema.json_schema import json_object, json_schema, json_value
from tokenfst.automata.json_values.strings import SPELLINGS, Spelling
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
    SchemaError,
    TokenfstError,
    UnsupportedSchemaError,
)

LAYOUTS: tuple[dict[str, Any], ...] = ({}, {"separators": (",", ":")}, {"indent": 2}, {"indent": 4})


def accepted(constraint: Any, instance: Any, ascii_only: bool) -> bool:
    """Whether the texts of an instance, in all orders of its members at the top, are in; any one is enough."""
    if not isinstance(instance, dict):
        return bool(constraint.accepts(json.dumps(instance, ensure_ascii=ascii_only)))
    orders = itertools.permutations(instance.items())
    return any(constraint.accepts(json.dumps(dict(order), ensure_ascii=ascii_only)) for order in orders)


def members_of(pairs: list[tuple[str, Any]], repeated: list[str]) -> dict[str, Any]:
    """An object of ``pairs``; notes names that are repeated: such texts count as having both members."""
    names = [name for name, _ in pairs]
    repeated += [name for name in names if names.count(name) > 1]
    return dict(pairs)


def check(schema: Any, spelling: Spelling = "plain") -> None:
    """Every small instance is accepted if and only if the library calls it valid."""
    validator = jsonschema.Draft202012Validator(schema)
    try:
        constraint: Any = json_schema(schema, spelling=spelling)
    except EmptyLanguageError:
        assert not [each for each in INSTANCES if validator.is_valid(each)], schema
        return
    shortest = constraint.witness()
    assert shortest is not None
    repeated: list[str] = []
    value = json.loads(shortest, object_pairs_hook=lambda pairs: members_of(pairs, repeated))
    assert repeated or validator.is_valid(value), (schema, shortest)
    for instance in INSTANCES:
        found, wanted = accepted(constraint, instance, spelling != "plain"), validator.is_valid(instance)
        assert found is wanted, (schema, instance)


# --- small worlds -------------------------------------------------------------------------------------

WORLD: tuple[Any, ...] = (
    True,
    {"type": "integer"},
    {"type": ["string", "null"]},
    {"minimum": 1, "exclusiveMaximum": 10},
    {"multipleOf": 0.5, "not": {"multipleOf": 1}},
    {"minLength": 1, "maxLength": 2},
    {"pattern": "^a", "not": {"pattern": "b$"}},
    {"enum": ["a", 1, None, [1], {"a": 1}]},
    {"not": {"enum": ["a", 1, None, [1], {"a": 1}]}},
    {"const": 1.0},
    {"prefixItems": [{"type": "integer"}], "items": {"const": 1}},
    {"prefixItems": [True, False]},
    {"contains": {"const": 1}, "minContains": 2},
    {"contains": {"const": 1}, "maxContains": 1},
    {"contains": {"const": 1}, "minContains": 0, "maxContains": 1},
    {"contains": {"type": "integer"}, "minItems": 2, "maxItems": 2},
    {"not": {"items": {"type": "integer"}}},
    {"not": {"contains": {"type": "integer"}}},
    {"not": {"prefixItems": [{"type": "integer"}, {"type": "integer"}]}},
    {"items": {"enum": [1, 2, "a", "b"]}, "uniqueItems": True},
    {"uniqueItems": True, "maxItems": 1},
    {"properties": {"a": {"type": "integer"}}},
    {"properties": {"a": {"type": "integer"}}, "required": ["b", "a"]},
    {"properties": {"a": {}, "b": {}}, "additionalProperties": False, "minProperties": 1},
    {"properties": {"a": {}, "b": {}}, "maxProperties": 1},
    {"patternProperties": {"^a": {"type": "integer"}, "b$": {"const": 2}}},
    {"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": {"type": "null"}},
    {"propertyNames": {"maxLength": 1}},
    {"not": {"propertyNames": {"maxLength": 1}}},
    {"not": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}},
    {"not": {"additionalProperties": {"type": "integer"}}},
    {"not": {"additionalProperties": {"type": "integer"}}, "required": ["a"]},
    {"not": {"minProperties": 2}, "not2": 1},
    {"dependentRequired": {"a": ["b"], "b": ["a"]}},
    {"dependentSchemas": {"a": {"required": ["b"]}}, "properties": {"b": {"const": 1}}},
    {"if": {"required": ["a"]}, "then": {"minProperties": 2}, "else": {"type": "object"}},
    {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"oneOf": [{"type": "integer"}, {"minimum": 2}]},
    {"anyOf": [{"type": "integer"}, {"properties": {"a": {"const": "a"}}, "type": "object"}]},
    {
        "allOf": [
            {"properties": {"a": {"minimum": 1}}},
            {"properties": {"a": {"maximum": 1}}, "required": ["a"]},
        ]
    },
)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("schema", WORLD, ids=json.dumps)
def test_every_small_instance_is_judged_as_the_library_does(schema: Any, spelling: Spelling) -> None:
    check(schema, spelling)


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"type": "string", "not": {"pattern": "(?!)"}}},
        {"items": {"type": "string", "pattern": "a", "not": {"pattern": "b(?!)"}}},
        {"patternProperties": {"(?!)": False}},
        {"patternProperties": {"(?!)": {"type": "string"}}, "additionalProperties": {"type": "integer"}},
        {"propertyNames": {"not": {"pattern": "(?!)"}}},
        {"propertyNames": {"pattern": "^(?:(?!)|a)"}},
    ],
    ids=json.dumps,
)
def test_patterns_that_match_nothing(schema: Any) -> None:
    check(schema)


@pytest.mark.parametrize(
    "pair",
    [pair for k, pair in enumerate(itertools.combinations(WORLD[1:], 2)) if k % 9 == 0],
    ids=json.dumps,
)
@pytest.mark.parametrize("combine", ["allOf", "anyOf", "oneOf"])
def test_pairs_are_combined_as_the_library_does(combine: str, pair: tuple[Any, Any]) -> None:
    try:
        check({combine: list(pair)})
    except UnsupportedSchemaError as error:
        pytest.skip(f"refused: {error}")


@given(schemas(), st.sampled_from(SPELLINGS))
@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_schemas_are_judged_as_the_library_does(schema: Any, spelling: Spelling) -> None:
    try:
        check(schema, spelling)
    except (UnsupportedSchemaError, BudgetExceeded) as error:
        assert str(error)


@in_parts(40, 500, schemas(), st.sampled_from(SPELLINGS))
def test_many_random_schemas_are_judged_as_the_library_does(schema: Any, spelling: Spelling) -> None:
    try:
        check(schema, spelling)
    except (UnsupportedSchemaError, BudgetExceeded) as error:
        assert str(error)


# --- spelling -----------------------------------------------------------------------------------------


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner, max_size=3
            )
        ),
        max_leaves=12,
    )
)
@settings(max_examples=60, deadline=None)
def test_any_value_has_all_texts_of_json_dumps(value: Any) -> None:
    spelled: tuple[Spelling, ...] = ("ascii", "plain")
    for ascii_only, spelling in zip((True, False), spelled, strict=True):
        anything, everything = json_value(spelling=spelling), json_value(spelling="any")
        for layout in LAYOUTS:
            text = json.dumps(value, ensure_ascii=ascii_only, **layout)
            assert anything.accepts(text) and everything.accepts(text)
    assert json_object(spelling="any").accepts(json.dumps(value)) is isinstance(value, dict)


def test_depth_is_counted() -> None:
    flat, two = json_value(0), json_value(2)
    assert flat.accepts("1.5") and not flat.accepts("[]")
    assert two.accepts('[{"a": 1}]') and not two.accepts('[{"a": []}]')
    assert json_object(1).accepts('{"a": 1}') and not json_object(1).accepts('{"a": {}}')
    assert not json_object(1).accepts("1")
    with pytest.raises(ConstraintError):
        json_object(0)
    with pytest.raises(ConstraintError, match="max_depth=True must be a whole number"):
        json_value(True)


NESTED = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}, "b": {}}}


@pytest.mark.parametrize(
    ("whitespace", "there", "missing"),
    [
        (
            "flexible",
            ['{"a":[1,2],"b":{}}', '{"a": [1, 2]}', '{\n  "a": [\n    1\n  ]\n}'],
            ['{"a":  [1]}', "{ \n}", " {}"],
        ),
        ("compact", ['{"a":[1,2],"b":{}}'], ['{"a": [1]}', '{"a":[1, 2]}']),
        ("pretty", ['{\n  "a": [\n    1,\n    2\n  ]\n}', "{}"], ['{"a":[1]}', '{\n  "a":[]\n}']),
        (r"\t?", ['{\t"a"\t:\t[\t]\t}', '{"a":[1]}'], ['{ "a":[]}', '{\t\t"a":[]}']),
    ],
)
def test_white_space_is_as_asked_for(whitespace: str, there: list[str], missing: list[str]) -> None:
    constraint = json_schema(NESTED, whitespace=whitespace)
    assert [text for text in there if not constraint.accepts(text)] == []
    assert [text for text in missing if constraint.accepts(text)] == []


def test_white_space_is_nothing_else() -> None:
    with pytest.raises(ConstraintError, match="a pattern of JSON white space"):
        json_schema(True, whitespace="[ x]*")


def test_members_come_in_order_and_listed_ones_once() -> None:
    constraint = json_schema({"type": "object", "properties": {"b": {}, "a": {}}, "required": ["z", "y"]})
    assert constraint.accepts('{"b": 1, "a": 1, "z": 1, "y": 1}')
    assert constraint.accepts('{"b": 1, "y": 1, "q": 1, "z": 1, "p": 1}')
    assert not constraint.accepts('{"a": 1, "b": 1, "z": 1, "y": 1}')
    assert not constraint.accepts('{"b": 1, "b": 1, "z": 1, "y": 1}')
    constraint = json_schema(
        {"type": "object", "properties": {"b": {}, "a": {}}, "required": ["z", "y"]}, spelling="any"
    )
    assert not constraint.accepts('{"b": 1, "z": 1, "\\u0062": 1, "y": 1}')
    assert constraint.accepts('{"\\u0062": 1, "z": 1, "y": 1}')


def test_a_thousand_optional_members_stay_linear() -> None:
    names = [f"p{k}" for k in range(1000)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "additionalProperties": False,
    }
    constraint = json_schema(schema)
    assert constraint.accepts(json.dumps(dict.fromkeys(names[::7], 1)))
    assert not constraint.accepts('{"p7": 1, "p6": 1}')


# --- recursion and references -------------------------------------------------------------------------

TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/node"}},
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/node",
}


def test_recursion_through_references() -> None:
    constraint = json_schema(TREE)
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"next": deep}
    assert constraint.accepts(json.dumps(deep))
    assert not constraint.accepts('{"next": {"next": 1}}')
    negated = json_schema(
        {**TREE, "$ref": "#/$defs/not", "$defs": {**TREE["$defs"], "not": {"not": {"$ref": "#/$defs/node"}}}}
    )  # type: ignore[dict-item]
    assert negated.accepts('{"next": {"next": 1}}') and negated.accepts('{"next": {"other": {}}}')
    assert not negated.accepts('{"next": {"next": {}}}')


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"not": {"$ref": "#"}},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    ],
)
def test_a_schema_that_needs_itself_is_an_error(schema: Any) -> None:
    with pytest.raises(SchemaError):
        json_schema(schema)


def test_remote_documents_come_from_the_resolver_alone() -> None:
    schema = {"properties": {"a": {"$ref": "https://example.com/int#/$defs/i"}}}
    with pytest.raises(SchemaError, match="nothing is fetched") as caught:
        json_schema(schema)
    assert caught.value.pointer == "#/properties/a/$ref"
    asked: list[str] = []

    def resolver(uri: str) -> Any:
        asked.append(uri)
        return {"$defs": {"i": {"type": "integer"}}}

    constraint = json_schema(schema, resolver=resolver)
    assert asked == ["https://example.com/int"]
    assert constraint.accepts('{"a": 1}') and not constraint.accepts('{"a": "x"}')


# --- drafts -------------------------------------------------------------------------------------------


def test_older_drafts_are_understood() -> None:
    four = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "definitions": {"p": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}},
        "type": "array",
        "items": [{"$ref": "#/definitions/p", "maximum": 1}],
        "additionalItems": False,
    }
    constraint = json_schema(four)
    assert constraint.accepts("[7]")
    assert not constraint.accepts("[0]") and not constraint.accepts("[7, 7]")
    assert json_schema({"const": 1}, draft="draft-04").accepts("2")
    assert not json_schema({"const": 1}, draft="draft-06").accepts("2")
    with pytest.raises(SchemaError, match="draft"):
        json_schema(True, draft="draft-3")


def test_in_draft_04_a_fraction_of_zeros_makes_no_integer() -> None:
    mixed = {"anyOf": [{"type": "integer"}, {"enum": [2.5]}]}
    for draft, spelled in ("draft-04", ["7", "2.5"]), ("draft-06", ["7", "7.0", "2.5"]):
        constraint = json_schema(mixed, draft=draft, spelling="any")
        assert [text for text in ("7", "7.0", "2.5", "3.5") if constraint.accepts(text)] == spelled
    bounded = json_schema({"anyOf": [{"type": "integer"}, {"minimum": 99.5}]}, draft="draft-04")
    assert bounded.accepts("100.0") and not bounded.accepts("99.0")
    for schema in ({"type": "number"}, {"minimum": 0}, {"multipleOf": 0.5}):
        assert json_schema(schema, draft="draft-04").accepts("7.0")


# --- errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"properties": {"a/b": {"type": "strange"}}}, "#/properties/a~1b/type"),
        ({"minimum": "3"}, "#/minimum"),
        ({"allOf": []}, "#/allOf"),
        ({"items": {"pattern": "(" }}, "#/items/pattern"),
        ({"$ref": "#/$defs/missing"}, "#/$ref"),
        ({"anyOf": [{"required": "a"}, {"type": "null"}]}, "#/anyOf/0/required"),
        ("{", "#"),
        ({"$schema": 4}, "#/$schema"),
    ],
)  # fmt: skip
def test_a_broken_schema_is_named_by_its_pointer(schema: Any, pointer: str) -> None:
    with pytest.raises(SchemaError) as caught:
        json_schema(schema)
    assert caught.value.pointer == pointer
    assert not isinstance(caught.value, UnsupportedSchemaError)


SMALL_OBJECT = {"type": "object", "properties": {"b": {"type": "boolean"}}, "additionalProperties": False}
UNSUPPORTED = [
    (
        {"properties": {"a": {"uniqueItems": True, "minItems": 4, "items": SMALL_OBJECT}}},
        "#/properties/a/uniqueItems",
        '{"a": [1, 1]}',
    ),
    ({"type": "string", "pattern": r"^(a*)\1$"}, "#/pattern", '"b"'),
    ({"type": "string", "format": "idn-hostname"}, "#/format", '"b"'),
    ({"not": {"type": "string", "format": "regex"}}, "#/not", '"(a"'),
]


@pytest.mark.parametrize(("schema", "pointer", "wider"), UNSUPPORTED)
def test_what_is_out_of_reach_is_refused_or_relaxed(schema: Any, pointer: str, wider: str) -> None:
    with pytest.raises(UnsupportedSchemaError) as caught:
        json_schema(schema)
    assert caught.value.pointer == pointer
    constraint = json_schema(schema, on_unsupported="relax")
    assert pointer in [each.pointer for each in constraint.relaxed]
    assert constraint.accepts(wider)


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "integer", "minimum": 0.2, "maximum": 0.8},
        {"enum": []},
        {"type": "object", "required": ["a"], "properties": {"a": False}},
        {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}},
    ],
)
def test_a_schema_without_values_is_an_error(schema: Any) -> None:
    with pytest.raises(EmptyLanguageError):
        json_schema(schema)


def test_hostile_schemas_end_soon() -> None:
    deep: Any = {"type": "null"}
    for _ in range(400):
        deep = {"allOf": [deep]}
    with pytest.raises(TokenfstError):
        json_schema(deep)
    below: Any = {"type": "null"}
    for _ in range(300):
        below = {"type": "array", "items": below, "minItems": 1}
    assert json_schema(below).accepts("[" * 300 + "null" + "]" * 300)
    many = json_schema({"enum": [f"value {k}" for k in range(10_000)]})
    assert many.accepts('"value 77"') and not many.accepts('"value 10000"')
    long = json_schema({"type": "string", "maxLength": 10**9, "minLength": 10})
    assert long.accepts('"0123456789"') and not long.accepts('"012345678"')
    with pytest.raises(TokenfstError):
        json_schema({"type": "array", "maxItems": 10**9, "contains": {"const": 1}, "minContains": 10**8})


class _Person:
    pass


@pytest.mark.parametrize(
    ("schema", "pointer", "said"),
    [
        ({"type": str}, "#/type", 'write "string"'),
        ({"type": ["null", int]}, "#/type/1", "the Python type int"),
        ({"properties": {"a/b": int}}, "#/properties/a~1b", 'write {"type": "integer"}'),
        ({"items": {"anyOf": [{"type": "null"}, float]}}, "#/items/anyOf/1", 'write {"type": "number"}'),
        ({"properties": {"a": _Person}}, "#/properties/a", "model_json_schema()"),
        ({"enum": [1, {2}]}, "#/enum/1", "{2} is not a JSON value"),
        ({"const": (1, (b"x",))}, "#/const/1/0", "b'x' is not a JSON value"),
    ],
)
def test_a_value_that_is_no_json_is_named_with_its_place(schema: Any, pointer: str, said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        json_schema(schema)
    assert caught.value.pointer == pointer and said in str(caught.value)


def test_a_file_in_place_of_its_text_is_told_how_to_read_it(tmp_path: Path) -> None:
    path = tmp_path / "person.json"
    path.write_text("{}")
    with path.open() as file:
        for given in ("person.json", str(path), "schemas/a-b.json", path, file):
            with pytest.raises(SchemaError, match=r"read_text\(\)"):
                json_schema(given)
    assert json_schema(path.read_text()).accepts("1")
    with pytest.raises(SchemaError, match="Expecting value"):
        json_schema("person")
    with pytest.raises(SchemaError, match=r"write list\[_Person\] for a list of values"):
        json_schema([_Person])
