"""``tokenfst repair``."""

from __future__ import annotations

import json
from pathlib import Path

from support.programs.command_line import tokenfst


def test_texts_are_repaired() -> None:
    done = tokenfst("repair", "ab+c", "abbc", "ac", "xabc")
    assert (done.code, done.out) == (0, "abbc\nabc\nabc\n")


def test_a_file_as_a_whole(tmp_path: Path) -> None:
    schema, broken = tmp_path / "s.json", tmp_path / "broken.json"
    properties = {"a": {"type": "boolean"}}
    closed = {"type": "object", "properties": properties, "required": ["a"], "additionalProperties": False}
    schema.write_text(json.dumps(closed))
    broken.write_text('{"a": tru')
    done = tokenfst("repair", "--json-schema", str(schema), "--text-file", str(broken), "--json")
    answer = json.loads(done.out)
    assert done.code == 0
    assert answer["results"][0]["repaired"] == '{"a": true}'
    assert [edit["new"] for edit in answer["results"][0]["edits"]] == ["e", "}"]


def test_the_name_of_a_file_stands_for_its_text(tmp_path: Path) -> None:
    schema, broken = tmp_path / "s.json", tmp_path / "broken.json"
    schema.write_text('{"type": "array", "items": {"type": "integer"}}')
    broken.write_text("[1, 2")
    done = tokenfst("repair", str(broken), "--json-schema", str(schema))
    assert (done.code, done.out) == (0, "[1, 2]\n") and "is a file" in done.err
    broken.unlink()
    assert tokenfst("repair", "--json-schema", str(schema), "[1").out == "[1]\n"
    assert tokenfst("repair", "a+", "a" * 5000).out == "a" * 5000 + "\n"


def test_an_object_with_further_members(tmp_path: Path) -> None:
    schema, broken = tmp_path / "s.json", tmp_path / "broken.json"
    schema.write_text(json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}}))
    broken.write_text('{"a": 1, "b": [2}')
    done = tokenfst("repair", "--json-schema", str(schema), "--text-file", str(broken))
    assert (done.code, done.out) == (0, '{"a": 1, "b": [2]}\n')
    broken.write_text('{"b": 1, "b": 2}')
    done = tokenfst("repair", "--json-schema", str(schema), "--text-file", str(broken))
    assert done.code != 0 and "repeats a name" in done.err


def test_costs_and_what_cannot_be() -> None:
    assert tokenfst("repair", "ab|b", "c", "--replace", "0.5").out == "b\n"
    assert tokenfst("repair", "b", "c", "--insert", "inf", "--replace", "inf").code != 0


def test_grammars_and_recursive_schemas(tmp_path: Path) -> None:
    assert tokenfst("repair", "--grammar", "json", '[{"a": [1, 2}]').out == '[{"a": [1, 2]}]\n'
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps({"type": "array", "items": {"$ref": "#"}}))
    assert tokenfst("repair", "--json-schema", str(schema), "[[], []").out == "[[], []]\n"


def test_a_name_without_a_file_is_a_text_and_said_to_be_one(tmp_path: Path) -> None:
    schema = tmp_path / "s.json"
    schema.write_text('{"type": "array", "items": {"type": "integer"}}')
    done = tokenfst("repair", str(tmp_path / "brokn.json"), "--json-schema", str(schema))
    assert (
        done.code == 0
        and "there is no file" in done.err
        and "brokn.json: the text itself is repaired" in done.err
    )
    for text in ("[1, 2", "[1.5", "a b.json"):
        assert tokenfst("repair", text, "--json-schema", str(schema)).err == ""
