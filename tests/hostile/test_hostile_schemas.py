"""Schemas that are broken, contradictory or enormous: a typed error with its place, or a bounded success, no hang."""

from __future__ import annotations

import hashlib
import json
import random
import time
from typing import Any, Literal

import pytest

from tokenfst import Budget, Vocabulary, allocate_token_bitmask, compile
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import (
    EmptyLanguageError,
    SchemaError,
    TokenfstError,
    TokenLimitError,
    UnsupportedSchemaError,
)

LONGEST = 20.0
"""Seconds of CPU time on a slow machine; each of these takes about one at most."""
NAMES = [f"p{k}" for k in range(1000)]
NINES = "9" * 10_000


@pytest.fixture(autouse=True)
def _clock() -> Any:
    began = time.process_time()
    yield
    assert time.process_time() - began < LONGEST


def nested(depth: int, keyword: str = "items") -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {keyword: schema}
    return schema


def circle() -> dict[str, Any]:
    schema: dict[str, Any] = {}
    schema["properties"] = {"a": schema}
    return schema


BROKEN: list[tuple[str, Any, str, str]] = [
    ("type", {"properties": {"a": {"type": 1}}}, "#/properties/a/type", "must be one of"),
    ("required", {"items": {"required": "a"}}, "#/items/required", "must be an array of strings"),
    ("no schema", {"items": 3}, "#/items", "must be a schema"),
    ("a list", [{"type": "null"}], "#", "not an array"),
    ("null in text", "null", "#", "not null"),
    ("list in text", "[]", "#", "not an array"),
    ("$ref: 1", {"$ref": 1}, "#/$ref", "must be a string"),
    ("$ref: list", {"properties": {"a": {"$ref": ["#"]}}}, "#/properties/a/$ref", "must be a string"),
    ("$ref: #", {"$ref": "#"}, "#/$ref", "leads back to itself"),
    ("$ref nowhere", {"$ref": "#/$defs/a"}, "#/$ref", "leads nowhere"),
    ("$ref elsewhere", {"$ref": "https://example.com/"}, "#/$ref", "nothing is fetched"),
    ("$schema: 4", {"$schema": 4}, "#/$schema", "must be a URI"),
    ("NaN", '{"minimum": NaN}', "#", "NaN is not a JSON number"),
    ("Infinity", '{"enum": [-Infinity]}', "#", "-Infinity is not a JSON number"),
    ("float NaN", {"maximum": float("nan")}, "#/maximum", "must be a number"),
    ("float Infinity", {"minLength": float("inf")}, "#/minLength", "must be an integer"),
    ("constant NaN", {"const": float("nan")}, "#/const", "not a JSON number"),
    ("nested NaN", {"enum": [[float("inf")]]}, "#/enum", "not a JSON number"),
    ("Python", {"const": b"x"}, "#/const", "is not a JSON value"),
    ("a set", {"enum": [{1, 2}]}, "#/enum/0", "is not a JSON value"),
    ("a name", {"properties": {1: {}}}, "#/properties", "must be an object of schemas"),
    ("a constant's name", {"const": {1: 2}}, "#/const", "the name 1 of a member is not a string: write '1'"),
    ("a listed name", {"enum": ["a", {None: 2}]}, "#/enum", "the name None of a member is not a string"),
    (
        "a needing name",
        {"dependentRequired": {1: ["a"]}},
        "#/dependentRequired",
        "must be an object of arrays",
    ),
    ("bytes", b"{}", "#", "a schema is an object, a boolean, JSON text or a Python type, not b'{}'"),
    ("a number", 3, "#", "JSON text or a Python type, not 3"),
    ("a circle", circle(), "#", "Circular"),
    ("twice", '{"type": "string", "type": "integer"}', "#", "has the name 'type' twice"),
    ("deep text", '{"items":' * 5000 + "{}" + "}" * 5000, "#", "nested too deeply"),
    ("very deep text", "[" * 100_000, "#", "nested too deeply"),
    ("negative", {"maxItems": -1}, "#/maxItems", "not negative"),
    ("fraction", '{"maxLength": 1.5}', "#/maxLength", "must be an integer"),
    ("multipleOf 0", {"multipleOf": 0}, "#/multipleOf", "greater than 0"),
    ("pattern", {"patternProperties": {"[": {}}}, "#/patternProperties/[", "is no ECMA-262 pattern"),
]


@pytest.mark.parametrize(
    ("schema", "pointer", "message"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN]
)
def test_what_is_no_schema_is_named(schema: Any, pointer: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        json_schema(schema)
    assert not isinstance(caught.value, UnsupportedSchemaError)
    assert caught.value.pointer == pointer and message in caught.value.reason
    with pytest.raises(SchemaError):  # what is wrong is no keyword to leave out
        json_schema(schema, on_unsupported="relax")


REFUSED: list[tuple[str, Any, str]] = [
    ("1e999999999", '{"minimum": 1e999999999}', "#/minimum"),
    ("1e-999999", '{"multipleOf": 1e-999999}', "#/multipleOf"),
    ("const 1e99999999", '{"const": 1e99999999}', "#/const"),
    ("10,000 digits", f'{{"type": "integer", "minimum": {NINES}}}', "#/minimum"),
    ("const of 10,000 digits", f'{{"const": {NINES}}}', "#/const"),
    ("minLength 1e400", '{"minLength": 1e400}', "#/minLength"),
    ("minItems of 10,000 digits", f'{{"minItems": {NINES}}}', "#/minItems"),
    ("wrong $schema", {"$schema": "https://example.com/x"}, "#/$schema"),
    ("a constant of 5 MB", {"const": "x" * 5_000_000}, "#/const"),
    ("a pattern of 1 MB", {"pattern": "ab" * 500_000}, "#/pattern"),
    ("a deep constant", {"const": json.loads("[" * 900 + "]" * 900)}, "#/const"),
    ("deep not", nested(5000, "not"), "#" + "/not" * 31),
    ("deep arrays", nested(20_000), "#" + "/items" * 4001),
    (
        "many counted names",
        {"properties": {name: {} for name in NAMES}, "maxProperties": 500, "additionalProperties": False},
        "#",
    ),
]


@pytest.mark.parametrize(
    ("schema", "pointer"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_what_is_too_large_is_refused_by_its_pointer(schema: Any, pointer: str) -> None:
    with pytest.raises(UnsupportedSchemaError) as caught:
        json_schema(schema)
    assert caught.value.pointer == pointer
    assert len(str(caught.value)) < 600


LARGE: list[tuple[str, Any, str, str]] = [
    ("1e400", '{"type": "integer", "minimum": 1e400}', "1" + "0" * 400, "9" * 400),
    ("maxLength 1e9", {"type": "string", "maxLength": 10**9}, '"x"', "1"),
    ("minLength 1e9", {"type": "string", "minLength": 10**9}, "", '"x"'),
    ("maxLength 1e3", '{"type": "string", "maxLength": 1e3}', '"x"', f'"{"x" * 1001}"'),
    ("maxLength 10,000 digits", f'{{"type": "string", "maxLength": {NINES}}}', '"x"', "1"),
    ("maxItems 1e6", {"type": "array", "maxItems": 10**6}, "[1, [2]]", "{}"),
    ("maxItems 1e12", {"type": "array", "maxItems": 10**12}, "[1, [2]]", "{}"),
    ("minItems 1e6", {"type": "array", "minItems": 10**6}, "", "[1]"),
    ("maxProperties 1e6", {"type": "object", "maxProperties": 10**6}, '{"a": 1}', "[]"),
    ("1,000 names", {"properties": {n: {"type": "null"} for n in NAMES}}, '{"p3": null}', '{"p3": 1}'),
    (
        "200 required",
        {"type": "object", "required": NAMES[:200]},
        json.dumps(dict.fromkeys(sorted(NAMES[:200]))),
        "{}",
    ),
    (
        "5 of 200 names",
        {
            "type": "object",
            "properties": {name: {} for name in NAMES[:200]},
            "minProperties": 5,
            "additionalProperties": False,
        },
        json.dumps(dict.fromkeys(NAMES[:5])),
        json.dumps(dict.fromkeys(NAMES[:4])),
    ),
    ("10,000 strings", {"enum": [f"v{k}" for k in range(10_000)]}, '"v77"', '"v10000"'),
    (
        "80 conditions",
        {
            "type": "object",
            "required": ["k"],
            "allOf": [
                {"if": {"properties": {"k": {"const": k}}}, "then": {"required": [f"r{k}"]}}
                for k in range(80)
            ],
        },
        '{"k": 7, "r7": 1}',
        '{"k": 7, "r8": 1}',
    ),
    ("any of 10,000 numbers", {"anyOf": [{"const": 3 * k} for k in range(10_000)]}, "9999", "9998"),
    ("one of 10,000 constants", {"oneOf": [{"const": f"v{k}"} for k in range(10_000)]}, '"v77"', '"v10000"'),
    (
        "one of 3,000 kinds",
        {
            "oneOf": [
                {"properties": {"k": {"const": k}}, "required": ["k"], "type": "object"} for k in range(3000)
            ]
        },
        '{"k": 77}',
        '{"k": 3000}',
    ),
    ("10,000 integers", {"enum": list(range(0, 30_000, 3))}, "2997", "2998"),
    ("3,900 levels", nested(3900), "[[[]]]", "[[["),
    ("700 levels", '{"type": "array", "items":' * 700 + "{}" + "}" * 700, "[[[]]]", "[[[1]]]"),
    (
        "5 MB of definitions",
        {
            "$defs": {
                f"d{k}": {"type": "object", "properties": {name: {"title": "x" * 50} for name in NAMES[:60]}}
                for k in range(1200)
            },
            "$ref": "#/$defs/d77",
        },
        "{}",
        "1",
    ),
]


@pytest.mark.parametrize(
    ("schema", "accepted", "refused"), [case[1:] for case in LARGE], ids=[case[0] for case in LARGE]
)
def test_what_is_large_is_lazy(schema: Any, accepted: str, refused: str) -> None:
    constraint = json_schema(schema)
    assert not accepted or constraint.accepts(accepted)
    assert not constraint.accepts(refused)
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), b""], 256)
    matcher = compile(constraint, vocabulary).matcher()
    mask = allocate_token_bitmask(1, len(vocabulary))
    for byte in (accepted or refused).encode()[:4]:
        matcher.fill_next_token_bitmask(mask, 0)
        if not matcher.accept_token(byte):
            break


@pytest.mark.parametrize("order", ["schema", "any"])
def test_a_limit_of_tokens_on_a_long_document(order: Literal["schema", "any"]) -> None:
    item = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    schema = json_schema(
        {"type": "array", "items": item, "minItems": 2000}, property_order=order, budget=Budget(seconds=5)
    )
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), b""], 256)
    automaton = compile(schema, vocabulary)
    least = automaton.matcher().distance()
    text = json.dumps([{"name": ""}] * 2000, separators=(",", ":"))
    assert schema.shortest() == text.encode() and least == len(text) == 24_001
    assert automaton.matcher(least + 1).max_tokens_left == least + 1
    with pytest.raises(TokenLimitError, match=str(least)):
        automaton.matcher(least - 1)


def test_the_distance_of_many_required_members() -> None:
    names = [f"p{k}" for k in range(1600)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "required": names,
    }
    constraint = json_schema(schema)
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), b""], 256)
    automaton = compile(constraint, vocabulary, budget=Budget(seconds=2))
    assert automaton.matcher().distance() == len(constraint.shortest())


COUNTLESS: list[tuple[str, Any]] = [
    ("maxLength 1e9", {"type": "string", "maxLength": 10**9}),
    (
        "lengths around 1e6",
        {"type": "string", "minLength": 20, "maxLength": 10**6, "pattern": "^[a-z]+( [a-z]+)*$"},
    ),
    (
        "10,000 long strings",
        {"enum": [hashlib.sha256(bytes((k & 255, k >> 8))).hexdigest()[:40] for k in range(10_000)]},
    ),
]


@pytest.mark.parametrize("schema", [case[1] for case in COUNTLESS], ids=[case[0] for case in COUNTLESS])
def test_a_token_budget_over_more_states_than_anyone_goes_through(schema: Any) -> None:
    constraint = json_schema(schema)
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), b"ab", b" a", b""], 258)
    matcher = compile(constraint, vocabulary).matcher(80)
    mask, rng, text = allocate_token_bitmask(1, len(vocabulary)), random.Random(7), b""
    while not matcher.is_terminated() and matcher.max_tokens_left:
        matcher.fill_next_token_bitmask(mask, 0)
        allowed = [token for token in range(258) if mask[0, token >> 5] >> (token & 31) & 1]
        token = rng.choice(allowed or [258])
        assert matcher.accept_token(token)
        text += vocabulary.tokens[token] if token < 258 else b""
    assert constraint.accepts(text)


def test_a_token_budget_that_is_far_too_small_is_an_error() -> None:
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), b""], 256)
    for schema in {"type": "object", "minProperties": 10**6}, {"type": "string", "minLength": 10**9}:
        with pytest.raises(TokenLimitError, match="into 30 tokens") as caught:
            compile(json_schema(schema), vocabulary).matcher(30)
        assert "4294967295" not in str(caught.value)


def test_a_large_schema_as_text() -> None:
    """5 MB of alternatives, and their complement: more kinds of objects than are told apart."""
    branches = [
        {
            "type": "object",
            "properties": {f"k{i}_{j}": {"type": "string", "description": "x" * 40} for j in range(20)},
            "required": [f"k{i}_0"],
        }
        for i in range(2700)
    ]
    text = json.dumps({"anyOf": branches})
    assert len(text) > 4_900_000
    language = json_schema(text)
    assert language.accepts('{"k2699_0": "a"}') and not language.accepts('{"k2699_1": "a"}')
    with pytest.raises(UnsupportedSchemaError, match="more than 600 kinds"):
        json_schema({"not": json.loads(text)})


def test_the_budget_bounds_what_is_written() -> None:
    wide = {
        "properties": {
            name: {"type": "object", "properties": {"a": {"minLength": k}}} for k, name in enumerate(NAMES)
        }
    }
    with pytest.raises(TokenfstError, match="states"):
        json_schema(wide, budget=Budget(states=100))
    with pytest.raises(TokenfstError, match="seconds"):
        json_schema(wide, budget=Budget(seconds=1e-6))


def test_contradictions_deep_inside_are_found() -> None:
    schema: dict[str, Any] = {"type": "string", "minLength": 3, "maxLength": 2}
    for _ in range(200):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    with pytest.raises(EmptyLanguageError):
        json_schema(schema)
