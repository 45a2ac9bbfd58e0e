"""The benchmark over JSON schemas: one schema at a time, the figures of all, and libraries that die or hang."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import json
import pickle
import sqlite3
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import tokenfst

ROW: dict[str, Any] = {
    "id": "made up",
    "schema": {"properties": {"a": {"type": "integer"}, "b": {"type": "array"}}, "required": ["a"]},
    "tests": [
        {"valid": True, "data": {"a": 1, "b": [{"x": "é"}]}},
        {"valid": False, "data": {"a": "1"}},
        {"valid": True, "data": {"b": [], "a": 1}},
        {"valid": False, "data": {"a": 2}},
        {"valid": True, "data": {"a": "1", "b": {}}},
    ],
}


def test_a_schema_is_walked_along_its_documents_and_judged(modules: Any) -> None:
    libraries, runner = modules("measuring.libraries"), modules("schemas.runner")
    vocabulary = tokenfst.Vocabulary([*(bytes([byte]) for byte in range(256)), b""], eos_token_id=256)
    ours = libraries.Tokenfst(vocabulary)

    def encode(text: str) -> list[int]:
        return list(text.encode())

    record, walk = runner.measured(ours, ROW, encode, 256, 0.0)
    assert record.first_mask > 0 and not record.refused and not record.trouble and not record.passed
    assert (record.accepts_invalid, record.rejects_valid) == ([3], [2, 4])
    whole, other = (len(json.dumps(ROW["tests"][k]["data"], ensure_ascii=False).encode()) + 1 for k in (0, 3))
    assert len(record.steps) == whole + len('{"a": "') + len('{"b') + other + len('{"a": "')
    runner.explain(record, walk, ROW, encode, 256)
    assert (record.other_order, record.rejects_valid) == ([2], [4])
    assert record.moved == ['#: "a" before "b"']
    assert (
        runner.first_moved({"a/b": [{"x": 1, "y": 2}]}, {"a/b": [{"y": 2, "x": 1}]})
        == '#/a~1b/0: "y" before "x"'
    )
    assert runner.first_moved([{"x": 1}], [{"x": 1}]) is None
    refused, walk = runner.measured(ours, ROW | {"schema": {"type": "nothing"}}, encode, 256, 0.0)
    assert refused.refused and refused.first_mask is None and walk is None

    def broken(schema: Any) -> Any:
        return ours.no_such_method(schema)

    ours.compile_schema = broken
    fault, walk = runner.measured(ours, ROW, encode, 256, 0.0)
    assert (
        "no_such_method" in fault.trouble and not fault.refused and fault.first_mask is None and walk is None
    )


def test_figures_of_records(modules: Any) -> None:
    schemas, runner, run = modules("schemas.schemas"), modules("schemas.runner"), modules("measuring.table")
    ours = [
        runner.Record("1", "tokenfst", 0.001, [1e-6, 3e-6], memory=300_000_000),
        runner.Record("2", "tokenfst", refused="SchemaError: it is none"),
        runner.Record("3", "tokenfst", trouble="timeout"),
        runner.Record("4", "tokenfst", 0.002, [2e-6], accepts_invalid=[0]),
    ]
    theirs = [runner.Record(str(k), "llguidance", 0.01, [1e-5]) for k in range(4)]
    found = list(schemas.figures({"tokenfst": ours, "llguidance": theirs}))
    values = {(each.what.rpartition(": ")[2], each.who): each for each in found}

    def verdict(what: str, who: str) -> str:
        mine = values[what, "tokenfst"]
        return str(run.judge(values[what, who], mine))

    assert values["right about all documents", "tokenfst"].median == 1
    assert values["right about all documents", "llguidance"].median == 4
    assert verdict("refused (at most 3%)", "tokenfst") == "<= 0 MISSED"
    assert verdict("stopped after 20 s", "tokenfst") == "<= 0 MISSED"
    assert verdict("rejects valid documents, unexplained", "tokenfst") == "<= 0 met"
    assert verdict("schema to first mask, p50", "llguidance") == "ratio >= 1 met"
    assert verdict("schema to first mask, p99", "llguidance") == "ratio >= 1 MISSED"
    assert values["schema to first mask, p99", "tokenfst"].median == 20.0
    shared = [values["schema to their first mask, p99", who] for who in ("tokenfst", "llguidance")]
    assert [each.median for each in shared] == [20.0, 0.01]
    assert all("the 2 that none refuses" in each.what for each in shared)
    assert verdict("peak memory of one, max", "tokenfst") == "<= 200 MB MISSED"
    assert schemas.summary("p50", [3.0, 1.0, 2.0]) == 2.0 and schemas.summary("p99.9", [1.0, 2.0]) == 2.0


@pytest.mark.skipif(
    importlib.util.find_spec("mistral_common") is None, reason="Tekken comes with mistral-common"
)
def test_a_library_that_dies_is_a_record(modules: Any) -> None:
    runner = modules("schemas.runner").Runner("tokenfst", "mistral:tekken_240911")
    with runner:
        first = runner.run(ROW)
        assert first.other_order == [2] and first.rejects_valid == [4] and first.memory is not None
        runner.process.kill()
        assert runner.run(ROW).trouble == "crash"


@pytest.mark.soak
def test_a_library_that_takes_too_long_is_started_again(modules: Any) -> None:
    with modules("schemas.runner").Runner("tokenfst", "mistral:tekken_240911", limit=0.0) as runner:
        assert runner.run(ROW).trouble == "timeout"
        runner.limit = 60.0
        assert runner.run(ROW).other_order == [2]


def test_the_sample_is_the_same_every_time(modules: Any, tmp_path: Path) -> None:
    schemas = modules("schemas.schemas")
    with gzip.open(tmp_path / "rows.gz", "wt") as file:
        file.writelines(json.dumps({"id": k}) + "\n" for k in range(50))
    few, many = schemas.sample_of(tmp_path / "rows.gz", 10), schemas.sample_of(tmp_path / "rows.gz", None)
    assert many[:10] == few and len(many) == 50 and few != sorted(few, key=lambda row: row["id"])


def test_published_schemas_are_read_from_pickles_that_are_never_loaded(modules: Any, tmp_path: Path) -> None:
    class Answer:
        def __init__(self, url: str, body: bytes) -> None:
            self.url, self.body = url, body

        def __reduce__(self) -> Any:
            return sys.exit, (), {"body": self.body, "url": self.url}

    documents = {
        "https://a.org/one.json": {"$ref": "two"},
        "https://a.org/two": {"type": "integer", "title": "two"},
        "https://a.org/far.json": {"$ref": "https://elsewhere.org/far.json"},
        "https://a.org/wrong.json": {"type": "no such type"},
        "https://a.org/hard.json": {"pattern": r"^(a*)\1$", "type": "string"},
        "https://a.org/catalog.json": {"schemas": [], "version": 1},
    }
    with contextlib.closing(sqlite3.connect(tmp_path / "cache.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE responses (key TEXT, value BLOB)")
        for url, each in documents.items():
            each = each if url.endswith("catalog.json") else {"$id": url, **each}
            connection.execute(
                "INSERT INTO responses VALUES (?, ?)",
                (url, pickle.dumps(Answer(url, json.dumps(each).encode()))),
            )
    published = modules("schemas.published")
    assert published.documents_of(tmp_path / "cache.sqlite").keys() == documents.keys()
    first = islice(published.figures(tmp_path / "cache.sqlite"), len(published.WHAT))
    found = {each.what: each.median for each in first}
    assert found == {
        "schemas": 5,
        "taken": 2,
        "refused": 1,
        "break the specification": 1,
        "refer to documents that are not at hand": 1,
    }
