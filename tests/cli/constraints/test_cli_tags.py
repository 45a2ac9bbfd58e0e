"""``--structural-tag`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.programs.command_line import tokenfst, write_toy

from tokenfst import load, load_vocabulary

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def tag(begin: str) -> dict[str, Any]:
    inner = {
        "type": "tag",
        "begin": begin,
        "content": {"type": "json_schema", "json_schema": SCHEMA},
        "end": "!",
    }
    return {
        "type": "structural_tag",
        "format": {"type": "triggered_tags", "triggers": [begin], "tags": [inner]},
    }


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tag.json").write_text(json.dumps(tag("a")))
    return tmp_path


def test_texts_are_checked() -> None:
    words = ["check", "--structural-tag", "tag.json"]
    assert tokenfst(*words, 'x a{"a":1}! y', "x").code == 0
    assert tokenfst(*words, 'x a{"b":1}! y').code == 1
    assert tokenfst(*words, "--depth", "0", 'a{"a":1}!').code == 0


def test_a_tag_is_compiled(folder: Path) -> None:
    spec = write_toy(folder)
    (folder / "tag.json").write_text(
        json.dumps({"type": "tag", "begin": "a", "content": {"type": "any_text"}, "end": "b"})
    )
    words = ("compile", "--structural-tag", "tag.json", "-v", spec, "-o", "out.safetensors")
    assert tokenfst(*words).code == 0
    assert tokenfst(*words, "--tag-vocabulary", spec, "--special-tokens", "both").code == 0
    vocabulary = load_vocabulary(spec)
    matcher = load("out.safetensors", vocabulary).matcher()
    assert matcher.accept_token(vocabulary.ids(b"a")[0])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--structural-tag", "tag.json", "--template", "a"], "give one"),
        (["--special-tokens", "text", "a"], "go with --structural-tag"),
        (["--structural-tag", "none.json"], "none.json"),
        (["--structural-tag", "bad.json"], "bad.json: #/format/excludes/0: must be a string"),
        (["--structural-tag", "schema.json"], "schema.json: #/json_schema/type"),
        (["--structural-tag", "empty.json"], "empty.json: #/json_schema: no JSON value"),
    ],
)
def test_what_is_refused(words: list[str], message: str, folder: Path) -> None:
    bad = {"type": "structural_tag", "format": {"type": "any_text", "excludes": [1]}}
    (folder / "bad.json").write_text(json.dumps(bad))
    for name, schema in (("schema", {"type": "x"}), ("empty", {"enum": [1], "type": "string"})):
        (folder / f"{name}.json").write_text(json.dumps({"type": "json_schema", "json_schema": schema}))
    done = tokenfst("check", *words, "x")
    assert done.code == 2 and message in done.err
