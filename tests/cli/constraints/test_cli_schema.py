"""JSON Schemas on the command line: what every command does with one, and what is said of bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.programs.command_line import tokenfst, write_toy

from tokenfst import Vocabulary

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 9}, "age": {"type": "integer", "maximum": 150}},
    "required": ["name"],
    "additionalProperties": False,
}
FILES: dict[str, Any] = {
    "person.json": PERSON,
    "integer.json": {"type": "integer"},
    "any.json": {},
    "list.json": [1],
    "circular.json": {"$ref": "#"},
    "unsupported.json": {"type": "array", "items": {"type": "string", "pattern": r"^(a*)\1$"}},
    "invalid.json": {"properties": {"a/b": {"minimum": "3"}}},
    "empty.json": {"type": "integer", "minimum": 2, "maximum": 1},
    "remote.json": {"properties": {"a": {"$ref": "https://example.com/i"}}},
    "open.json": {"properties": {"a": {}}},
    "four.json": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
    "date.json": {"type": "string", "format": "date"},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with schemas, in which commands run."""
    monkeypatch.chdir(tmp_path)
    for name, schema in FILES.items():
        (tmp_path / name).write_text(json.dumps(schema))
    (tmp_path / "broken.json").write_text('{"a":')
    (tmp_path / "latin.json").write_bytes(b'{"title": "\xe9"}')
    return tmp_path


# --- commands -----------------------------------------------------------------------------------------


def test_check(folder: Path) -> None:
    done = tokenfst("check", "--json-schema", "person.json", '{"name": "Ada"}', '{"name": 1}', "--json")
    assert done.code == 1
    assert done.json["source"] == "json_schema('person.json')"
    right, wrong = done.json["results"]
    assert right["accepted"] and not wrong["accepted"] and wrong["byte"] == 9


@pytest.mark.parametrize("words", [[], ["--depth", "1"]])
def test_samples_are_valid(folder: Path, words: list[str]) -> None:
    done = tokenfst("sample", "--json-schema", "person.json", "-n", "20", "--seed", "3", *words, "--json")
    assert done.code == 0, done.err
    for sample in done.json["samples"]:
        jsonschema.validate(json.loads(sample["text"]), PERSON)


def test_compile_makes_an_artifact_of_its_own_language(folder: Path) -> None:
    toy = write_toy(folder)
    words = ["--json-schema", "integer.json", "--vocabulary", toy, "-o", "integer.safetensors"]
    assert tokenfst("compile", *words).code == 0
    assert tokenfst("check", "integer.safetensors", "--", "-10").code == 0
    assert tokenfst("check", "integer.safetensors", "01").code == 1


def test_compile_of_any_value_makes_a_push_down_automaton(folder: Path) -> None:
    Vocabulary([*(bytes((byte,)) for byte in range(256)), b""], 256).to_json(folder / "bytes.json")
    vocabulary = ["-v", "tokens:bytes.json"]
    done = tokenfst("compile", "--json-schema", "any.json", *vocabulary, "-o", "any.safetensors", "--json")
    assert done.code == 0, done.err
    assert tokenfst("inspect", "any.safetensors", "--json").json["stack"] is not None


def test_a_recursive_schema_is_sampled_with_and_without_a_depth(folder: Path) -> None:
    for depth in ([], ["--depth", "1"]):
        done = tokenfst("sample", "--json-schema", "any.json", *depth, "--json")
        assert done.code == 0
        for each in done.json["samples"]:
            json.loads(bytes.fromhex(each["hex"]))


def test_draw_and_lint(folder: Path) -> None:
    assert "digraph" in tokenfst("draw", "--json-schema", "person.json").out
    for name in ("person.json", "integer.json"):
        assert tokenfst("lint", "--json-schema", name, "--json").json["clean"]


def test_lint_finds_keywords_that_constrain_nothing(folder: Path) -> None:
    Path("typo.json").write_text('{"type": "object", "propertes": {"a": {}}, "weight": 3, "x-order": 1}')
    done = tokenfst("lint", "--json-schema", "typo.json")
    assert done.code == 1
    assert "#/propertes: propertes is no keyword and constrains nothing: did you mean properties?" in done.out
    assert "note: #/weight: weight is no keyword and constrains nothing [other-keyword]" in done.out
    assert "x-order" not in done.out
    found = tokenfst("lint", "--json-schema", "typo.json", "--json").json
    assert [(each["kind"], each["rule"], each["note"]) for each in found["findings"]] == [
        ("unknown-keyword", "#/propertes", False),
        ("other-keyword", "#/weight", True),
    ]
    assert not found["clean"]
    Path("note.json").write_text('{"type": "object", "weight": 3}')
    assert tokenfst("lint", "--json-schema", "note.json").code == 0


def test_a_schema_in_place_of_a_pattern(folder: Path) -> None:
    Path("old.schema").write_text('{"type": "string"}')
    Path("new.schema").write_text('{"type": "integer"}')
    for words, said in (
        (("diff", "old.schema", "new.schema"), "both names end in .json"),
        (("diff", "--files", "old.schema", "new.schema"), "old.schema holds a JSON object"),
        (("diff", "person.json", "none.json"), "none.json is none: there is no such file"),
        (
            ("diff", "person.json", "new.schema"),
            "new.schema is none: the name of a schema's file ends in .json",
        ),
        (("diff", "a*", "person.json"), "a* is none"),
        (("check", "--file", "old.schema", "x"), "--json-schema FILE"),
    ):
        done = tokenfst(*words)
        assert done.code == 2 and said in done.err, done.err
    Path("braces").write_text(r"\{}")
    assert tokenfst("check", "--file", "braces", "{}").code == 0


def test_lint_says_what_a_provider_does_not_take(folder: Path) -> None:
    done = tokenfst("lint", "--json-schema", "open.json", "--strict", "openai", "--json")
    assert done.code == 1 and {each["kind"] for each in done.json["findings"]} == {"strict"}
    assert all(each["rule"].startswith("#") for each in done.json["findings"])
    assert tokenfst("lint", "--grammar", "json", "--strict", "openai").code == 2


# --- options ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "accepted", "refused"),
    [
        (["person.json", "--whitespace", "compact"], '{"name":""}', '{"name": ""}'),
        (["person.json", "--whitespace", "pretty"], '{\n"name": ""\n}', '{"name": ""}'),
        (["person.json", "--whitespace", r"\t?"], '{\t"name":""}', '{ "name":""}'),
        (["person.json", "--spelling", "any"], '{"n\\u0061me": ""}', '{"n\\u0061m": ""}'),
        (["person.json", "--spelling", "ascii"], '{"name": "\\u00e9"}', '{"name": "é"}'),
        (["person.json"], '{"name": "é"}', '{"name": "\\u00e9"}'),
        (["person.json", "--indent", "2"], '{\n  "name": ""\n}', '{"name": ""}'),
        (["person.json", "--separators", " ,", " :"], '{"name" :""}', '{"name": ""}'),
        (["person.json", "--surrounding", "flexible"], '\n{"name": ""}', '\t{"name": ""}'),
        (["open.json", "--additional-properties", "forbid"], '{"a": 1}', '{"b": 1}'),
        (["open.json", "--repeated-names", "forbid"], '{"a": 1}', '{"b": 1, "b": 1}'),
        (["four.json", "--draft", "draft-04"], "1", "0"),
        (["date.json"], '"2024-02-29"', '"2023-02-29"'),
        (["date.json", "--formats", "annotate"], '"x"', "1"),
        (["remote.json", "--document", "https://example.com/i=integer.json"], '{"a": 1}', '{"a": "x"}'),
    ],
)
def test_options(folder: Path, words: list[str], accepted: str, refused: str) -> None:
    done = tokenfst("check", "--json-schema", *words, "--json", "--", accepted, refused)
    assert [each["accepted"] for each in done.json["results"]] == [True, False], done.err


def test_what_is_relaxed_is_a_warning(folder: Path) -> None:
    relaxed = ["--json-schema", "unsupported.json", "--on-unsupported", "relax"]
    done = tokenfst("check", *relaxed, '["b"]')
    assert done.code == 0
    assert done.err.startswith("warning: left out: #/items/pattern: ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.json"], "missing.json: No such file"),
        (["."], "Is a directory"),
        (["broken.json"], "broken.json: #: the schema is not a JSON text: Expecting value"),
        (["latin.json"], "latin.json is not UTF-8 at byte 11"),
        (["list.json"], "list.json: #: a schema is an object or a boolean, not an array"),
        (["circular.json"], "circular.json: #/$ref: this reference leads back to itself"),
        (["unsupported.json"], "unsupported.json: #/items/pattern: "),
        (["invalid.json"], "invalid.json: #/properties/a~1b/minimum: must be a number"),
        (["empty.json"], "empty.json: no JSON value satisfies the schema"),
        (
            ["remote.json"],
            "remote.json: #/properties/a/$ref: 'https://example.com/i' is not in this document",
        ),
        (["remote.json", "--document", "x"], "--document takes URI=FILE, not 'x'"),
        (["remote.json", "--document", "x=missing.json"], "missing.json: No such file"),
        (["any.json", "--whitespace", "x*"], "a pattern of JSON white space"),
        (["any.json", "--whitespace", "("], "missing ), unterminated subpattern"),
        (["any.json", "--draft", "2021"], "'--draft'"),
        (["any.json", "--spelling", "minimal"], "'--spelling'"),
        (["any.json", "--indent", "65"], "'--indent'"),
        (["any.json", "--separators", ",", ";"], "';' must be ':'"),
        (["any.json", "--indent", "2", "--whitespace", "compact"], "both say"),
        (["any.json", "--grammar", "json"], "--grammar and --json-schema are two constraints"),
        (["any.json", "--flags", "i"], "cannot be combined with --json-schema"),
        (["any.json", "--start", "x"], "--start and --syntax go with --grammar"),
    ],
)
def test_bad_input_is_named(folder: Path, words: list[str], message: str) -> None:
    done = tokenfst("check", "--json-schema", *words, "1")
    assert done.code == 2 and done.out == ""
    assert done.err.startswith("error: ") and message in done.err and done.err.count("\n") <= 3


@pytest.mark.parametrize(
    "option",
    [
        "--whitespace=compact",
        "--spelling=plain",
        "--indent=2",
        "--surrounding=none",
        "--draft=2020-12",
        "--formats=assert",
        "--on-unsupported=relax",
        "--document=a=b",
    ],
)
def test_options_of_schemas_need_a_schema(folder: Path, option: str) -> None:
    done = tokenfst("check", "a", "a", option)
    assert done.code == 2 and f"{option.partition('=')[0]} goes with --json-schema" in done.err
