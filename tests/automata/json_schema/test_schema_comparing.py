"""Schemas compared as sets of values: against the jsonschema library on small worlds, recursive ones, and reports."""

from __future__ import annotations

import copy
import itertools
import json
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.programs.command_line import tokenfst

from reference.json.json_schema_worlds import INSTANCES, schemas
from tokenfst import json_schema, regex
from tokenfst.automata.json_schema.changes import schema_changes
from tokenfst.automata.languages.answer import Side
from tokenfst.errors import (
    AlgebraError,
    BudgetExceeded,
    EmptyLanguageError,
    SchemaError,
    UnsupportedSchemaError,
)

TREE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["value"],
    "additionalProperties": False,
}
PERSON = {
    "$defs": {"age": {"type": "integer", "minimum": 1}},
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"$ref": "#/$defs/age"},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}},
    },
    "required": ["name"],
}


def changed(schema: Any, *way: str | int, to: Any) -> Any:
    """A copy of a schema with another value at a place."""
    made = copy.deepcopy(schema)
    part = made
    for step in way[:-1]:
        part = part[step]
    part[way[-1]] = to
    return made


def valid(schema: Any, value: Any) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def check_inclusion(wide: Any, narrow: Any) -> bool | None:
    """Whether one schema includes the other, checked with all small instances and by the witness; None if refused."""
    try:
        left, right = json_schema(wide), json_schema(narrow)
        answer = left.includes(right)
    except (EmptyLanguageError, UnsupportedSchemaError, BudgetExceeded):
        return None
    lost = [value for value in INSTANCES if valid(narrow, value) and not valid(wide, value)]
    if answer:
        assert not lost
        return True
    assert answer.side is Side.RIGHT and answer.witness is not None
    value = json.loads(answer.witness)
    assert valid(narrow, value) and not valid(wide, value)
    assert all(len(answer.witness) <= len(compact(value)) for value in lost)
    return False


@settings(max_examples=150, deadline=None)
@given(schemas(), schemas())
def test_inclusion_of_random_schemas(one: Any, other: Any) -> None:
    check_inclusion(one, other)
    check_inclusion({"anyOf": [one, other]}, other)
    check_inclusion(one, {"allOf": [one, other]})


@settings(max_examples=60, deadline=None)
@given(schemas(), schemas())
def test_unions_include_and_intersections_are_included(one: Any, other: Any) -> None:
    assert check_inclusion({"anyOf": [one, other]}, other) is not False
    assert check_inclusion(one, {"allOf": [one, other]}) is not False
    assert check_inclusion(one, {"$defs": {"x": one}, "$ref": "#/$defs/x"}) is not False


SMALL: list[Any] = [
    True,
    {"type": "integer"},
    {"type": "number"},
    {"type": ["string", "null"]},
    {"enum": [1, "a", None]},
    {"const": {"a": 1}},
    {"type": "object", "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    {"type": "array", "items": {"type": "integer"}},
    {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"}},
    {"oneOf": [{"type": "integer"}, {"minimum": 0}]},
    {"not": {"type": "object"}},
    TREE,
]


def test_all_pairs_of_a_few_schemas() -> None:
    known = range(len(SMALL))
    answers = {(i, j): check_inclusion(SMALL[i], SMALL[j]) for i, j in itertools.product(known, known)}
    unique = 9  # arrays whose items do not all differ are refused where they would have to be written
    arrays = (0, 10, 11)  # they have arrays of any strings
    assert {pair for pair, answer in answers.items() if answer is None} == {(unique, j) for j in arrays}
    assert all(answers[i, i] for i in known)
    assert all(answers[0, i] for i in known)
    for i, j, k in itertools.product(known, known, known):
        if answers[i, j] and answers[j, k]:
            assert answers[i, k] is not False


def test_recursive_schemas() -> None:
    old = json_schema(TREE)
    wider = json_schema(changed(TREE, "properties", "value", to={"type": "number"}))
    assert wider.includes(old)
    answer = old.includes(wider)
    assert not answer and answer.value == {"value": 0.1}
    assert str(answer) == 'no: the right schema alone allows {"value":0.1}'
    flat = json_schema(
        changed(TREE, "properties", "children", to={"type": "array", "items": {"$ref": "#"}, "maxItems": 1})
    )
    answer = flat.equivalent(old)
    assert answer.side is Side.RIGHT
    assert answer.value == {"value": 0, "children": [{"value": 0}, {"value": 0}]}
    renamed = {
        "$ref": "#/$defs/node",
        "$defs": {"node": changed(TREE, "properties", "children", "items", "$ref", to="#/$defs/node")},
    }
    assert json_schema(renamed).equivalent(old)


def test_spelling_and_order_are_no_difference() -> None:
    a = json_schema(PERSON, whitespace="compact")
    b = json_schema(
        {**PERSON, "properties": dict(reversed(PERSON["properties"].items()))}, property_order="any"
    )
    assert a.equivalent(b)
    assert json_schema({"const": 1.0}).equivalent(json_schema({"const": 1}))
    assert json_schema({"type": "integer"}).includes(regex("[1-9]"))
    assert not json_schema({"type": "integer"}).includes(regex("[0-9]+"))


def test_differences_are_schemas() -> None:
    left = json_schema(PERSON).difference(json_schema(changed(PERSON, "required", to=["name", "age"])))
    assert left.parse(left.witness() or b"") == {"name": ""}
    assert left.accepts('{"name":"x"}') and not left.accepts('{"name":"x","age":3}')
    with pytest.raises(EmptyLanguageError):
        left.difference(json_schema(PERSON))
    with pytest.raises(AlgebraError, match="is not a schema"):
        json_schema(PERSON).difference(regex("a"))
    with pytest.raises(AlgebraError, match="additional_properties"):
        json_schema(PERSON, additional_properties="forbid").includes(json_schema(PERSON))


def test_each_document_has_its_own_draft_and_references() -> None:
    old = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "number",
        "minimum": 3,
        "exclusiveMinimum": True,
    }
    new = {"type": "number", "exclusiveMinimum": 3}
    assert json_schema(old).equivalent(json_schema(new))
    for name in ("definitions", "$defs"):
        a = json_schema({name: {"x": {"type": "integer"}}, "$ref": f"#/{name}/x"})
        b = json_schema({name: {"x": {"type": "string"}}, "$ref": f"#/{name}/x"})
        assert not a.includes(b) and not b.includes(a)
    parts = {"https://example.org/part": {"type": "integer"}}
    outside = json_schema({"$ref": "https://example.org/part"}, resolver=parts.get)
    assert outside.equivalent(json_schema({"type": "integer"}))
    named = {"$id": "https://example.org/tree", **TREE}
    assert json_schema(changed(named, "properties", "value", to=True)).includes(json_schema(named))
    called = {
        "$id": "https://example.org/called",
        "$defs": {"part": {"type": "string"}},
        "additionalProperties": {"$ref": "#/$defs/part"},
    }
    looser = changed(called, "$defs", "part", to={"type": ["string", "null"]})
    answer = json_schema(called).includes(json_schema(looser))  # one name, and one text around the difference
    assert not answer and answer.value == {"": None}
    nested = {
        "$id": "/x",
        "properties": {"a": {"$id": "/x/a", "items": {"$id": "/x/a/items", "type": "integer"}}},
    }
    without = changed(nested, "properties", "a", to={"$id": "/x/a"})
    assert json_schema(without).includes(json_schema(nested))
    assert json_schema(nested).includes(json_schema(without)).value == {"a": [""]}
    inner = {"$id": "https://example.org/a", "$defs": {"b": {"$id": "b", "type": "integer"}}, "$ref": "b"}
    with pytest.raises(UnsupportedSchemaError, match=r"a reference could mean either: leave \$id out"):
        json_schema(inner).includes(json_schema(changed(inner, "$defs", "b", "type", to="string")))


DRAFTED = [
    {"const": 1},
    {"type": "integer"},
    {"minimum": 1, "exclusiveMinimum": True},
    {"exclusiveMinimum": 1},
    '{"dependentRequired": {"a": ["b"]}}',
    True,
]
VALUES = ["0", "1", "1.0", "2", "1.5", '"x"', "{}", '{"a":1}', '{"a":1,"b":2}', "[]", "null"]


@pytest.mark.parametrize("drafts", [("draft-04", None), ("draft-06", "2020-12"), ("draft-04", "draft-07")])
def test_each_document_has_the_draft_with_which_it_was_made(drafts: tuple[str | None, str | None]) -> None:
    made = []
    for draft in drafts:
        for schema in DRAFTED:
            with suppress(SchemaError):  # some drafts have no such keyword, or another form of it
                made.append(json_schema(schema, draft=draft, spelling="any"))
    assert len(made) >= 9
    for a, b in itertools.product(made, repeat=2):
        counterexamples = [text for text in VALUES if a.accepts(text) and not b.accepts(text)]
        answer = b.includes(a)
        assert bool(answer) <= (not counterexamples)
        if not answer:
            assert answer.text is not None and a.accepts(answer.text) and not b.accepts(answer.text)


def test_options_that_no_common_reading_has_are_refused() -> None:
    date = {"type": "string", "format": "date"}
    strict, loose = json_schema(date), json_schema(date, formats="annotate")
    for ask in (strict.includes, strict.equivalent, strict.difference, partial(schema_changes, strict)):
        with pytest.raises(
            AlgebraError,
            match=r"formats='(assert', the other one with 'annotate|annotate', the other one with 'assert)'",
        ):
            ask(loose)
    assert json_schema({"type": "string"}).equivalent(json_schema({"type": "string"}, formats="assert"))
    reference, integer = {"$ref": "urn:x"}, {"type": "integer"}

    def referring(document: Any, draft: str | None = None) -> Any:
        return json_schema(reference, resolver={"urn:x": document}.get, draft=draft)

    assert referring(integer).equivalent(referring('{"type": "integer"}'))
    with pytest.raises(UnsupportedSchemaError, match="different documents for 'urn:x': rename one"):
        referring(integer).equivalent(referring({"type": "string"}))
    with pytest.raises(UnsupportedSchemaError, match=r"'urn:x' has no \$schema"):
        referring(integer).equivalent(referring(integer, draft="draft-04"))


# --- reports ------------------------------------------------------------------------------------------


def test_a_report_names_places_and_values() -> None:
    new = changed(
        changed(PERSON, "$defs", "age", "minimum", to=0), "properties", "tags", "items", "maxLength", to=3
    )
    new = changed(
        changed(new, "required", to=["name", "age"]),
        "properties",
        "name",
        to={"type": "string", "title": "N"},
    )
    report = schema_changes(json_schema(PERSON), json_schema(new))
    assert not report.backward_compatible and not report.forward_compatible
    places = {change.pointer: (change.kind, change.keywords) for change in report.changes}
    assert places == {
        "#": ("other", ("required",)),
        "#/$defs/age": ("wider", ("minimum",)),
        "#/properties/tags/items": ("narrower", ("maxLength",)),
    }
    for change in report.changes:
        assert change.lost is not None and change.gained is not None
    assert "#/$defs/age: allows more values (minimum)\n  allowed now: 0" in str(report)
    same = schema_changes(json_schema(PERSON), json_schema({"description": "people", **PERSON}))
    assert str(same) == "equivalent: both versions allow the same values" and not same.changes


def test_a_new_optional_member_is_narrower_at_the_object() -> None:
    new = changed(PERSON, "properties", "city", to={"type": "string"})
    report = schema_changes(json_schema(PERSON), json_schema(new))
    assert [(change.pointer, change.kind, change.keywords) for change in report.changes] == [
        ("#", "narrower", ("properties",))
    ]
    assert (not report.lost and report.lost.value["city"] is not None) or report.lost.value == {
        "name": "",
        "city": None,
    }


def test_the_command_tells_versions_apart(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(PERSON))
    new.write_text(json.dumps(changed(PERSON, "required", to=["name", "age"])))
    done = tokenfst("diff", str(old), str(new))
    assert (
        done.code == 1
        and "not backward compatible" in done.out
        and 'no longer allowed: {"name":""}' in done.out
    )
    back = tokenfst("diff", str(new), str(old))
    assert back.code == 0 and "backward compatible: every value" in back.out
    assert tokenfst("diff", str(new), str(old), "--includes").code == 1
    answer = tokenfst("diff", str(old), str(new), "--json")
    assert answer.code == 1 and answer.json["backward_compatible"] is False
    assert answer.json["changes"][0]["keywords"] == ["required"]
    assert tokenfst("diff", str(old), str(new), "--flags", "i").code == 2
    new.write_text('{"type": "nothing"}')
    refused = tokenfst("diff", str(old), str(new))
    assert refused.code == 2 and "new.json" in refused.err and "#/type" in refused.err


@settings(max_examples=40, deadline=None)
@given(schemas(), schemas(), st.sampled_from(["properties", "items"]))
def test_reports_agree_with_inclusion(one: Any, other: Any, keyword: str) -> None:
    wrap = (
        (lambda part: {"properties": {"k": part}})
        if keyword == "properties"
        else (lambda part: {"items": part})
    )
    try:
        a, b = json_schema(wrap(one)), json_schema(wrap(other))
        report = schema_changes(a, b)
    except (EmptyLanguageError, UnsupportedSchemaError, BudgetExceeded):
        return
    assert report.backward_compatible == bool(b.includes(a))
    assert report.forward_compatible == bool(a.includes(b))
    assert bool(report.changes) == (not a.equivalent(b))
