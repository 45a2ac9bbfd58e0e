"""What reading a schema costs: steps that are counted, the clock of its budget, and nothing left for the collector."""

import gc
import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokenfst
from tokenfst import Budget, errors
from tokenfst._native import plain_parts
from tokenfst.automata.json_schema.reading import typed_keywords
from tokenfst.automata.json_schema.sets import strings as schema_strings
from tokenfst.automata.json_schema.sets.work import Work, text_parts
from tokenfst.common.clock_cache import Recent

_PATTERNS = [
    {"anyOf": [{"pattern": f"{chr(97 + i)}{j}.*{chr(97 + i * 7 % 26)}"} for j in range(4)]} for i in range(5)
]
_DEEP: dict[str, Any] = {"type": "string", "pattern": "a"}
for _i in range(10):
    _DEEP = {"not": {"allOf": [_DEEP, {"not": {"type": "string", "pattern": f"b{_i}.*c"}}]}}
SLOW: dict[str, Any] = {
    "alternatives of patterns": {"type": "string", "allOf": _PATTERNS},
    "many patterns of which one holds": {
        "type": "string",
        "oneOf": [{"pattern": f"{chr(97 + i % 26)}{i}"} for i in range(80)],
    },
    "nested complements": _DEEP,
    "constants": {"enum": [{"a": i, "b": [i] * 10} for i in range(8_000)]},
    "kinds of objects": {
        "allOf": [
            {"anyOf": [{"properties": {f"{i}{j}": {"minLength": j}}, "required": [f"{i}"]} for j in range(9)]}
            for i in range(9)
        ]
    },
    "kinds of items": {
        "items": {"type": "string"},
        "allOf": [{"contains": {"enum": [f"a{i}", f"b{i}"]}} for i in range(9)],
    },
    "kinds of items that overlap": {
        "items": {"type": "object"},
        "allOf": [{"contains": {"required": [f"a{i}"]}} for i in range(9)],
    },
    "names in many classes": {
        "patternProperties": {f"{chr(97 + i)}.*{i}": {"minLength": i} for i in range(40)}
    },
}


@pytest.mark.parametrize("name", SLOW)
def test_seconds_are_seen(name: str) -> None:
    begin = time.process_time()
    with pytest.raises(errors.BudgetExceeded, match=r"0\.001 seconds; it grew in .*#"):
        tokenfst.json_schema(SLOW[name], budget=Budget(seconds=0.001))
    assert time.process_time() - begin < 1.5  # reading the first part, on a machine with much else to do


@pytest.mark.parametrize("name", SLOW)
def test_slow_schemas_end_whatever_the_clock_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They end within steps that take about a second; here ten times as long is granted, as CPU time. Where the clock
    goes a thousand times as fast, the result is the same.
    """

    def outcome() -> object:
        for known in ("_texts", "_listed_texts"):
            monkeypatch.setattr(schema_strings, known, Recent(512))
        try:
            return bytes(tokenfst.json_schema(SLOW[name], budget=Budget(seconds=1e9)).program().code)
        except errors.BudgetExceeded as error:
            assert error.resource == "positions" and "#" in error.where
            return str(error)
        except errors.UnsupportedSchemaError as error:
            return str(error)

    begin = time.process_time()
    expected = outcome()
    assert time.process_time() - begin < 15
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: 1000 * real())
    assert outcome() == expected


def test_steps_are_counted() -> None:
    work = Work(Budget(positions=640))
    work.place = "#/here"
    for _ in range(10):
        work.tick()
    with pytest.raises(errors.BudgetExceeded, match="640 positions; it grew in #/here"):
        work.tick()


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "object",
            "properties": {"a": {"type": ["string", "object"]}, "b": {"items": {"$ref": "#"}}},
        },
        {
            "anyOf": [{"minProperties": 2}, {"not": {"required": ["a"]}}, {"pattern": "a+"}],
            "maxProperties": 9,
        },
        {"type": "array", "contains": {"type": "string"}, "maxContains": 3, "items": {"$ref": "#"}},
        {"allOf": [{"contains": {"enum": [f"a{i}", 1]}} for i in range(4)], "items": {"enum": ["a0", 1, 2]}},
        {"properties": {"a": {"items": {"type": "object"}}, "b": {"uniqueItems": True}}},
        {"properties": {"a": {"type": "object", "properties": {"b": {"pattern": "("}}}, "b": {"items": {}}}},
        {"type": "integer", "enum": ["a"]},
        {"not": {"not": {"oneOf": [{"required": ["a", "b"]}, {"required": ["a", "c"]}], "type": "object"}}},
    ],
    ids=lambda schema: next(iter(schema)),
)
def test_nothing_is_left_for_the_collector(schema: dict[str, Any]) -> None:
    """Neither by a schema that is made nor by one that is refused: what a schema took is freed with it."""

    def make() -> None:
        with suppress(errors.ConstraintError):
            tokenfst.json_schema(schema)

    make()  # what is made once
    gc.collect()
    gc.disable()
    try:
        make()
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_is_left_as_it_was(collects: bool) -> None:
    """It does not run while a schema is read, and does afterwards if it did before; also where a schema is refused."""
    large = {"properties": {f"p{k}": {"type": "object", "properties": {f"q{k}": {}}} for k in range(300)}}
    seen: list[str] = []
    threshold, enabled = gc.get_threshold(), gc.isenabled()

    def note(phase: str, info: dict[str, int]) -> None:
        place: FrameType | None = sys._getframe()
        while place is not None:
            if place.f_code.co_name == "write":
                seen.append(phase)
            place = place.f_back

    (gc.enable if collects else gc.disable)()
    gc.set_threshold(10)
    gc.callbacks.append(note)
    try:
        tokenfst.json_schema(large)
        assert gc.isenabled() is collects
        for refused in ({"type": "integer", "enum": ["a"]}, {"$ref": "#/nowhere"}):
            with pytest.raises(errors.TokenfstError):
                tokenfst.json_schema(refused)
            assert gc.isenabled() is collects
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*threshold)
        (gc.enable if enabled else gc.disable)()
    assert not seen


def test_what_is_left_out_does_not_depend_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern whose reading takes too long is not relaxed: the user's time is up."""

    def slow(pattern: str, budget: Budget | None) -> tokenfst.Language:
        raise errors.BudgetExceeded("seconds", 1.0, f"the pattern {pattern}")

    monkeypatch.setattr(typed_keywords, "ecma_pattern", slow)
    typed_keywords._pattern.cache_clear()
    with pytest.raises(errors.BudgetExceeded, match=r"#/properties/a \(the pattern slow\)"):
        tokenfst.json_schema({"properties": {"a": {"pattern": "slow"}}}, on_unsupported="relax")


def _shared(levels: int, inner: Any, around: Callable[[Any], Any]) -> Any:
    for _ in range(levels):
        inner = around(inner)
    return inner


_SHARED: dict[str, Any] = {
    "unknown keywords": _shared(60, {}, lambda each: {"a": each, "b": each}),
    "members": _shared(60, {}, lambda each: {"properties": {"a": each, "b": each}}),
    "nested deeper than recursion goes": _shared(
        5000, {}, lambda each: {"properties": {"a": each, "b": each}}
    ),
    "what is not plain": _shared(60, {"minimum": Decimal("0.5")}, lambda each: {"allOf": [each, each]}),
    "a constant": {"const": _shared(60, [], lambda each: [each, each])},
    "a constant of tuples": {"enum": [_shared(60, (), lambda each: (each, each))]},
}


@pytest.mark.parametrize("name", _SHARED)
def test_objects_are_as_large_as_their_text(name: str) -> None:
    """What is shared 60 deep stands for 2^60 values. They are counted, not gone through."""
    begin = time.process_time()
    with pytest.raises(
        errors.BudgetExceeded, match=r"10,000,000 positions; it grew in # \(the values of its"
    ):
        tokenfst.json_schema(_SHARED[name])
    document = {"https://example.com/a": _SHARED[name]}
    with pytest.raises(errors.BudgetExceeded, match=r"positions; it grew in .*#/\$ref \(the values of its"):
        tokenfst.json_schema({"$ref": "https://example.com/a"}, resolver=document.get)
    assert time.process_time() - begin < 5


def test_an_object_in_itself_is_no_json() -> None:
    own: dict[str, Any] = {}
    own["properties"] = {"a": own, "b": own}
    for schema in (own, {"$defs": {"a": own}}, {"properties": own}):
        with pytest.raises(errors.SchemaError, match="Circular reference"):
            tokenfst.json_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"const": _shared(21, {}, lambda each: {"a": each, "b": each})},
        {"enum": [_shared(21, [], lambda each: [each, each])]},
    ],
    ids=["objects", "arrays"],
)
def test_constants_look_at_the_clock(schema: dict[str, Any]) -> None:
    begin = time.process_time()
    with pytest.raises(errors.BudgetExceeded, match=r"0\.5 seconds; it grew in #"):
        tokenfst.json_schema(schema, budget=Budget(seconds=0.5))
    assert time.process_time() - begin < 10  # in full, it is half a minute


def test_schemas_of_a_resource_look_at_the_clock() -> None:
    """Where anchors are looked for, and where identifiers make a resource of each place."""
    inner = _shared(
        15, {}, lambda each: {"properties": {name: {"$id": f"{name}/", **each} for name in ("a", "b")}}
    )
    schema = {"$ref": "#x", "$defs": {"x": {"$anchor": "x"}, "y": inner}}
    assert tokenfst.json_schema(schema).accepts("1")
    with pytest.raises(errors.BudgetExceeded, match=r"0\.05 seconds; it grew in #"):
        tokenfst.json_schema(schema, budget=Budget(seconds=0.05))


@given(
    st.recursive(
        st.sampled_from([None, True, 1, 1.5, "a", Decimal(1)]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
            | inner.map(lambda each: [each, {"a": each}, each])
        ),
    )
)
def test_parts_are_those_of_the_text(value: Any) -> None:
    text = json.loads(json.dumps(value, default=int))

    def parts(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return 1 + sum(map(parts, inner))

    assert text_parts(value, Work()) == text_parts(text, Work()) == plain_parts(text) == parts(text)
    assert text_parts((value, value), Work()) == 1 + 2 * parts(text)
    assert plain_parts((value, value)) == 0


@pytest.mark.parametrize(
    ("body", "leaf", "keyword"),
    [
        (lambda each: {"allOf": [each, each]}, {"properties": {"a": {}}}, "unevaluatedProperties"),
        (lambda each: {"anyOf": [each, each]}, {"type": "object"}, "unevaluatedProperties"),
        (lambda each: {"if": each, "then": each, "else": each}, {}, "unevaluatedProperties"),
        (lambda each: {"dependentSchemas": {"a": each, "b": each}}, {}, "unevaluatedProperties"),
        (lambda each: {"allOf": [each, each]}, {"prefixItems": [{}]}, "unevaluatedItems"),
    ],
    ids=["allOf", "anyOf", "if", "dependentSchemas", "items"],
)
def test_what_is_evaluated_is_followed_once(body: Callable[[Any], Any], leaf: Any, keyword: str) -> None:
    """References that double each other 25 times lead to 26 sub-schemas."""
    schemas = {f"d{k}": body({"$ref": f"#/$defs/d{k + 1}"}) for k in range(25)} | {"d25": leaf}
    begin = time.process_time()
    made = tokenfst.json_schema({"$ref": "#/$defs/d0", keyword: False, "$defs": schemas})
    assert time.process_time() - begin < 5
    assert made.accepts('{"a": 1}') == ("properties" in leaf or keyword == "unevaluatedItems")
    assert made.accepts("{}")
