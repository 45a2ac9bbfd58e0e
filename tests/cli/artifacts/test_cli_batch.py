"""``tokenfst compile --batch``: a store, a summary, an exit code; wrong options."""

from __future__ import annotations

import codecs
import json
import os
import sys
import threading
from dataclasses import fields
from pathlib import Path

import pytest
from support.programs.command_line import tokenfst, toy, write_toy

from tokenfst import Store
from tokenfst.cli.constraints.options import ConstraintOptions


@pytest.fixture
def spec(tmp_path: Path) -> str:
    return write_toy(tmp_path)


def test_a_batch(tmp_path: Path, spec: str) -> None:
    lines = [{"id": "one", "regex": "(ab)+"}, {"id": "two", "regex": "a|b"}, {"id": "three", "regex": "(a"}]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, lines[:2])))
    words = ["compile", "--batch", tmp_path / "b.jsonl", "-v", spec, "--store", tmp_path / "s"]
    done = tokenfst(*words, "--keys", tmp_path / "keys")
    assert done.code == 0 and "2 lines into" in done.out and done.err == ""
    store = Store(tmp_path / "s")
    keys = {each["id"]: each["key"] for each in map(json.loads, (tmp_path / "keys").read_text().splitlines())}
    assert not store.get(keys["one"], toy()).is_expanded
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = tokenfst(*words, "--json")
    assert done.code == 1
    answer = done.json
    assert (answer["lines"], answer["put"], answer["known"], answer["failed"]) == (3, 0, 2, 1)
    (failure,) = answer["failures"]
    assert (failure["line"], failure["id"], failure["place"]) == (3, "three", "position 0")
    assert "line 3 (three): missing )" in tokenfst(*words).err


@pytest.mark.parametrize("from_stdin", [False, True])
def test_a_line_that_is_not_utf8_is_called_so(from_stdin: bool, tmp_path: Path, spec: str) -> None:
    """Only that line fails, and neither for an escape nor for a character that was put in its place."""
    lines = b'{"regex": "a"}\n{"regex": "\xff"}\n{"regex": "b"}\n'
    (tmp_path / "b.jsonl").write_bytes(lines)
    given = "-" if from_stdin else tmp_path / "b.jsonl"
    words = ["compile", "--batch", given, "-v", spec, "--store", tmp_path / "s", "--json"]
    done = tokenfst(*words, stdin=lines) if from_stdin else tokenfst(*words)
    assert done.code == 1 and (done.json["put"], done.json["failed"]) == (2, 1)
    assert done.json["failures"][0]["reason"] == "it is not UTF-8: byte 0xff at column 12"
    assert done.json["failures"][0]["line"] == 2


def test_a_batch_of_tables_from_stdin(tmp_path: Path, spec: str) -> None:
    words = ["compile", "--batch", "-", "-v", spec, "--store", tmp_path, "--expand", "--jobs", "2", "--json"]
    done = tokenfst(*words, stdin=b'{"regex": "(ab)+"}\n\xff\n')
    assert done.code == 1 and done.json["put"] == 1 and "not UTF-8" in done.json["failures"][0]["reason"]
    (entry,) = Store(tmp_path).list()
    assert Store(tmp_path).get(entry.key, toy()).is_expanded


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--batch", "b"], "--batch needs --store URL"),
        (["--batch", "b", "--store", "s", "a+"], "cannot be combined with CONSTRAINT"),
        (["--batch", "b", "--store", "s", "--output", "x.safetensors"], "cannot be combined with"),
        (["--batch", "b", "--store", "s", "--tokenization", "canonical"], "cannot be combined with --batch"),
        (["--batch", "b", "--store", "s", "--flags", "i"], "--flags cannot be combined with --batch"),
        (["--batch", "b", "--store", "s", "--grammar", "json"], "--grammar cannot be combined with --batch"),
        (["--batch", "b", "--store", "s", "--file", "b"], "--file cannot be combined with --batch"),
        (["--batch", "b", "--store", "s", "--spelling", "any"], "--spelling cannot be combined with --batch"),
        (["--batch", "b", "--store", "s", "--within-edits", "0"], "--within-edits cannot be combined with"),
        (["--batch", "b", "--store", "s", "--hole", "a=b"], "--hole cannot be combined with --batch"),
        (
            ["--batch", "b", "--store", "memory://s"],
            "in the memory of one process, and a batch runs in several",
        ),
        (["a+", "--store", "s"], "--store needs --batch"),
        (["a+", "--jobs", "3"], "--jobs needs --batch"),
        (["--batch", "nothing.jsonl", "--store", "s"], "nothing.jsonl"),
        (["--batch", "b", "--store", "/dev/null"], "cannot open the store"),
    ],
)
def test_wrong_options(
    words: list[str], says: str, spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b").write_text("")
    done = tokenfst("compile", *words, "-v", spec)
    assert done.code == 2 and says in done.err


def test_the_options_that_a_batch_refuses_have_the_names_of_their_fields() -> None:
    """The refusal names an option after its field."""
    page = tokenfst("compile", "--help").out
    for each in fields(ConstraintOptions):
        if each.name != "constraint":
            assert f"--{each.name.replace('_', '-')[:18]}" in page, each.name


@pytest.mark.parametrize("from_stdin", [False, True])
def test_a_byte_order_mark_is_no_part_of_the_first_line(from_stdin: bool, tmp_path: Path, spec: str) -> None:
    lines = codecs.BOM_UTF8 + b'{"id": "a", "regex": "a"}\r\n\r\n{"id": "b", "regex": "b"}\r\n'
    (tmp_path / "b.jsonl").write_bytes(lines)
    given = "-" if from_stdin else tmp_path / "b.jsonl"
    words = ["compile", "--batch", given, "-v", spec, "--store", tmp_path / "s", "--json"]
    done = tokenfst(*words, stdin=lines) if from_stdin else tokenfst(*words)
    assert done.code == 0 and done.json["put"] == 2


def test_an_id_neither_breaks_nor_fills_the_line_of_its_failure(tmp_path: Path, spec: str) -> None:
    lines = [{"id": "x\nerror: line 7: forged\x1b[31m", "regex": "("}, {"id": "i" * 9999, "regex": "("}]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = tokenfst("compile", "--batch", tmp_path / "b.jsonl", "-v", spec, "--store", tmp_path / "s")
    first, second = done.err.splitlines()
    assert first.startswith(r"error: line 1 (x\nerror: line 7: forged\x1b[31m): ") and len(second) < 200


def test_a_batch_from_a_pipe(tmp_path: Path, spec: str) -> None:
    """What can be read once only is not counted before."""
    os.mkfifo(tmp_path / "pipe")
    feeding = threading.Thread(target=(tmp_path / "pipe").write_text, args=['{"regex": "(ab)+"}\n'])
    feeding.start()
    done = tokenfst("compile", "--batch", tmp_path / "pipe", "-v", spec, "--store", tmp_path / "s", "--json")
    feeding.join()
    assert done.code == 0 and done.json["put"] == 1


def test_keys_do_not_replace_the_batch(tmp_path: Path, spec: str) -> None:
    source = tmp_path / "b.jsonl"
    source.write_text('{"regex": "(ab)+"}\n')
    done = tokenfst("compile", "--batch", source, "-v", spec, "--store", tmp_path / "s", "--keys", source)
    assert done.code == 2 and "its lines would be lost" in done.err and source.read_text()


def test_without_ray_it_is_named(tmp_path: Path, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:
        if name.startswith(("ray.", "tokenfst.ray.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)  # importing it fails, as where it is not installed
    (tmp_path / "b").write_text("")
    words = ["compile", "--batch", tmp_path / "b", "-v", spec, "--store", tmp_path / "s", "--engine", "ray"]
    done = tokenfst(*words)
    assert done.code == 2 and 'pip install "tokenfst[ray]"' in done.err
