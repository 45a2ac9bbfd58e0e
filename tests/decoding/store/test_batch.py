"""Batches: every line has an outcome, whatever it is, and what is known is not compiled again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.worlds.stores import SMALL

from tokenfst import Budget, Store, json_schema
from tokenfst.decoding.store import batch
from tokenfst.decoding.store.batch import Outcome, Pool, compile_batch, compile_line
from tokenfst.decoding.store.documents import Document
from tokenfst.errors import (
    ConstraintError,
    NotInStoreError,
    PatternSyntaxError,
    SchemaError,
    StoreError,
    StoreWarning,
)

GOOD: list[dict[str, Any]] = [
    {
        "id": "schema",
        "json_schema": {"type": "array", "items": {"type": "integer"}},
        "indent": 1,
    },
    {"id": "pattern", "regex": "ab+", "flags": "i"},
    {"id": "gbnf", "gbnf": 'root ::= "(" root ")" | "x" root | "x" | root "y"'},
    {"id": "lark", "lark": 'begin: "a" begin | "b"', "start": "begin"},
    {"id": "ebnf", "ebnf": 'root ::= "a" | "b"'},
    {
        "id": "tag",
        "structural_tag": {"type": "structural_tag", "format": {"type": "const_string", "value": "a"}},
    },
    {"id": 7, "json_schema": {"enum": [[1, 2]]}, "separators": [",", ":"]},
]
BAD: list[tuple[str, str, str]] = [
    ("nonsense", "", "not JSON: Expecting value at column 1"),
    ('{"regex": "a"', "", "not JSON"),
    ('{"id": "x", "regex": "a", "regex": "b"}', "", "the name 'regex' twice"),
    ("[1]", "", r"not a JSON object, but the JSON value \[1\]"),
    ("[" * 100_000, "", "nested too deeply"),
    ('{"regex": ' + "9" * 5000 + "}", "", "^it has an integer of more than 4,300 digits$"),
    ("{}", "", "a document has one of 'json_schema'"),
    ('{"id": "e", "regexp": "a"}', "", "this one has none, only 'id', 'regexp'"),
    ('{"regex": "a", "gbnf": "b"}', "", "'regex' and 'gbnf'"),
    ('{"regex": 1}', "", "'regex' is a text, not a number"),
    ('{"regex": "a", "flags": "q"}', "", "'flags' are some of the letters"),
    ('{"regex": "a", "budget": 1}', "", "no option 'budget'"),
    ('{"regex": "a(b"}', "position 1", "unterminated subpattern"),
    ('{"regex": "(a|b)*a(a|b){40}c", "id": "bomb"}', "", "more than"),
    ('{"regex": "a(?!)"}', "", "no string satisfies"),
    ('{"json_schema": {"properties": {"a": {"type": "x"}}}}', "#/properties/a/type", "must be one of"),
    ('{"json_schema": {}, "spelling": "odd"}', "", "spelling"),
    ('{"json_schema": {}, "indent": [1]}', "", "indent"),
    ('{"lark": "start: nothing"}', "position 7", "the rule 'nothing' is not defined"),
    ('{"structural_tag": {}}', "#", "missing"),
    ('{"gbnf": "root ::= root"}', "", "has no word"),
]


def test_every_line_has_an_outcome(tmp_path: Path) -> None:
    lines = [json.dumps(each) for each in GOOD] + ["", "  \n"] + [line for line, _, _ in BAD]
    store = Store(tmp_path)
    budget = Budget(states=3000, seconds=20)
    found = sorted(
        compile_batch(lines, store, SMALL, budget, jobs=2, expand=True), key=lambda each: each.line
    )
    assert len(found) == len(GOOD) + len(BAD)
    for each, document in zip(found, GOOD, strict=False):
        assert (each.state, each.id) == ("put", str(document["id"])), each
        assert store.get(each.key, SMALL).matcher()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Document, "constraint", None)  # no front end runs
            assert store.compile_document(document, SMALL).source == store.get(each.key, SMALL).source
    for each, (_, place, reason) in zip(found[len(GOOD) :], BAD, strict=True):
        assert each.state == "failed" and each.place == place and re.search(reason, each.reason), each
        assert each.line > len(GOOD) + 2
    assert {each.key for each in store.list()} == {each.key for each in found if each.key}
    again = sorted(compile_batch(lines, store, SMALL, budget, expand=True), key=lambda each: each.line)
    assert [each.state for each in again] == ["known"] * len(GOOD) + ["failed"] * len(BAD)
    assert [each.key for each in again] == [each.key for each in found]


def test_a_batch_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    lines = [json.dumps({"regex": f"a{{{number}}}"}) for number in range(1, 60)]
    store = Store(tmp_path)
    run = compile_batch(lines, store, SMALL)
    first = [next(run) for _ in range(25)]
    run.close()
    assert {each.state for each in first} == {"put"}
    states = [each.state for each in compile_batch(lines, store, SMALL, jobs=2)]
    assert states.count("known") >= 25 and states.count("put") + states.count("known") == 59
    assert len(list(store.list())) == 59


def test_of_equal_lines_one_is_put(tmp_path: Path) -> None:
    lines = [json.dumps({"regex": text}) for text in ("a|b", "b|a", "[ab]", "a|b")]
    found = list(compile_batch(lines, Store(tmp_path), SMALL))
    assert sorted(each.state for each in found) == ["known", "known", "known", "put"]
    assert len({each.key for each in found}) == 1


class Fault(BaseException):
    """What no line can be the reason of."""


def die(*args: Any) -> Outcome:
    if "killer" in args[1]:
        os.kill(os.getpid(), signal.SIGKILL)
    if "fault" in args[1]:
        raise Fault
    return compile_line(*args)


def serve(*args: Any) -> None:
    batch.compile_line = die
    REAL(*args)


REAL = batch._serve


def test_a_line_that_kills_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_serve", serve)
    lines = [json.dumps({"regex": "a" * number, "id": number}) for number in range(1, 50)]
    lines[3] = lines[20] = json.dumps({"regex": "killer", "id": "k"})
    lines[30] = json.dumps({"regex": "fault"})
    found = sorted(compile_batch(lines, Store(tmp_path), SMALL, jobs=2), key=lambda each: each.line)
    assert [each.line for each in found] == list(range(1, 50))
    assert [each.line for each in found if each.state == "failed"] == [4, 21, 31]
    assert "ended with the code -9" in found[3].reason and "ended with the code 70" in found[30].reason


def test_what_the_front_ends_raise_comes_through(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(PatternSyntaxError):
        store.compile_document({"regex": "a("}, SMALL)
    with pytest.raises(SchemaError):
        store.compile_document({"json_schema": {"type": "x"}}, SMALL)
    with pytest.raises(ConstraintError):
        store.compile_document({}, SMALL)
    with pytest.raises(ConstraintError, match="under 'json_schema' or its options: Object of type set"):
        store.compile_document({"json_schema": {"enum": {1}}}, SMALL)
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"not": deep}
    with pytest.raises(ConstraintError, match="'json_schema' is nested too deeply"):
        store.compile_document({"json_schema": deep}, SMALL)
    with pytest.raises(ConstraintError, match="has no option 1"):
        store.compile_document({"regex": "a", 1: 2, "b": 3}, SMALL)
    with pytest.raises(TypeError):
        store.compile_document([], SMALL)
    with pytest.raises(ValueError, match="jobs"):
        compile_batch([], store, SMALL, jobs=0)
    assert list(compile_batch([], store, SMALL)) == []


def test_what_is_remembered_of_documents(tmp_path: Path) -> None:
    store = Store(tmp_path)
    schema = {"type": "object", "properties": {"b": {"const": 1}, "a": {"const": 2}}, "required": ["a", "b"]}
    other = {**schema, "properties": {"a": {"const": 2}, "b": {"const": 1}}}
    key, made = store.ensure({"json_schema": schema}, SMALL)
    assert made and store.ensure({"json_schema": schema, "id": "x"}, SMALL) == (key, False)
    assert store.ensure({"json_schema": other}, SMALL)[0] != key  # members come in this order
    assert store.ensure({"json_schema": schema}, SMALL, expand=False)[0] != key
    assert store.compile(json_schema(schema), SMALL).source == store.get(key, SMALL).source
    store.remove(key)
    with pytest.raises(NotInStoreError):
        store.get(key, SMALL)
    assert store.ensure({"json_schema": schema}, SMALL) == (key, True)
    (path,) = [
        path for path in (tmp_path / "documents").rglob("*") if path.is_file() and path.read_text() == key
    ]
    path.write_text("nonsense")
    assert store.ensure({"json_schema": schema}, SMALL) == (key, False)
    assert path.read_text() == key
    entry = tmp_path / "artifacts" / key[:2] / key
    entry.write_bytes(b"damaged")
    with pytest.warns(StoreWarning, match="compiled again"):
        assert store.compile_document({"json_schema": schema}, SMALL).is_expanded
    assert store.verify() == []
    os.utime(path, (0, 0))
    store.prune(unused_days=1)
    assert not path.exists()


def test_a_pool_goes_on_with_the_same_processes(tmp_path: Path) -> None:
    pool = Pool(Store(tmp_path), SMALL, None, expand=False, jobs=1)
    try:
        (first,) = pool.run(iter([(1, '{"regex": "a"}')]))
        (process,) = pool._idle.values()
        second = sorted(
            pool.run(iter([(2, '{"regex": "a"}'), (3, '{"regex": "("}')])), key=lambda each: each.line
        )
        assert [first.state, *(each.state for each in second)] == ["put", "known", "failed"]
        assert [each.line for each in second] == [2, 3] and list(pool._idle.values()) == [process]
        assert not list(pool.run(iter(())))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        (after,) = pool.run(iter([(4, '{"regex": "a"}')]))
        assert after.line == 4 and after.state in ("known", "failed")
        (last,) = pool.run(iter([(5, '{"regex": "a"}')]))
        assert last.state == "known"
    finally:
        pool.close()
    assert not pool._idle


def test_a_store_in_memory_is_refused() -> None:
    """Its processes would report that they have stored what nobody else sees."""
    pytest.importorskip("fsspec")
    with pytest.raises(StoreError, match="memory of one process, and a batch runs in several"):
        compile_batch(['{"regex": "a"}'], Store("memory://batch"), SMALL)


def test_a_script_without_a_guard_is_told(tmp_path: Path) -> None:
    """Each process reads the script again, and would begin the batch again: Python refuses."""
    script = tmp_path / "script.py"
    script.write_text(
        "import tokenfst\n"
        "from tokenfst.decoding.store.batch import compile_batch\n"
        "vocabulary = tokenfst.Vocabulary([*(bytes([byte]) for byte in range(256)), b''], eos_token_id=256)\n"
        f"store = tokenfst.Store({str(tmp_path / 'store')!r})\n"
        'print(list(compile_batch([\'{"regex": "a"}\'], store, vocabulary)))\n'
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("tokenfst.errors.StoreError: ")
    assert '`if __name__ == "__main__":`' in done.stderr.splitlines()[-1]
