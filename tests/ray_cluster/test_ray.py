"""Batches and decoding on a real local Ray: what one process makes is what a cluster makes, and nothing is lost.

It needs Ray in an environment of its own: ``make test-ray``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="needs Ray: make test-ray")
pytest.importorskip("ray.data", reason="needs ray[data]: make test-ray")

from support.engines.local_ray import actors, local_ray
from support.programs.command_line import tokenfst as tokenfst_command
from support.worlds.stores import SMALL

import tokenfst.ray
from tests.decoding.store.test_batch import BAD, GOOD
from tokenfst import Budget, Store, compile, gbnf
from tokenfst.decoding.store import batch
from tokenfst.decoding.store.signatures import new_private_key, public_key
from tokenfst.errors import ConstraintError
from tokenfst.ray.artifacts import shelf

LINES = 2000
BUDGET = Budget(states=3000, seconds=60)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with local_ray():
        yield


def told(outcomes: Any) -> list[tuple[Any, ...]]:
    return sorted((each.line, each.id, each.state, each.key, each.place, each.reason) for each in outcomes)


def test_a_cluster_makes_what_processes_make(tmp_path: Path) -> None:
    lines = [json.dumps(each) for each in GOOD] + ["", *(line for line, _, _ in BAD)]
    ours = list(batch.compile_batch(lines, Store(tmp_path / "a"), SMALL, BUDGET, expand=True))
    theirs = list(
        tokenfst.ray.compile_batch(lines, Store(tmp_path / "b"), SMALL, BUDGET, expand=True, jobs=2)
    )
    assert told(ours) == told(theirs)
    for each in Store(tmp_path / "a").list():
        assert Store(tmp_path / "a").artifact(each.key) == Store(tmp_path / "b").artifact(each.key)
    again = tokenfst.ray.compile_batch(lines, Store(tmp_path / "b"), SMALL, BUDGET, expand=True)
    assert Counter(each.state for each in again) == {"known": len(GOOD), "failed": len(BAD)}
    assert list(tokenfst.ray.compile_batch([], Store(tmp_path / "b"), SMALL)) == []


def test_the_package_imports_no_ray() -> None:
    code = "import sys, tokenfst; tokenfst.ray; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_dataset_of_lines(tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text("\n".join(json.dumps(each) for each in GOOD))
    dataset = ray.data.read_text(str(tmp_path / "lines.jsonl"))
    found = list(tokenfst.ray.compile_batch(dataset, Store(tmp_path / "a"), SMALL))
    assert sorted(each.id for each in found) == sorted(str(each["id"]) for each in GOOD)
    with pytest.raises(ConstraintError, match="no column 'x': it has \\['text'\\]"):
        tokenfst.ray.compile_batch(dataset, Store(tmp_path / "a"), SMALL, column="x")


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    lines = [json.dumps({"id": str(number), "regex": f"a{{{number}}}b"}) for number in range(1, LINES + 1)]
    left: list[int] = []

    def kill_one() -> None:
        while len(list(store.list())) < 10:
            time.sleep(0.05)
        left.append(LINES - len(list(store.list())))
        os.kill(actors("MapWorker")[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    found = list(tokenfst.ray.compile_batch(lines, store, SMALL, jobs=2))
    killer.join()
    assert left[0] > 0  # it was in the middle
    assert sorted(each.line for each in found) == list(range(1, LINES + 1))
    assert all(each.state in ("put", "known") and each.key in store for each in found)
    assert len(list(store.list())) == LINES


def test_who_demands_signatures_does_not_share_artifacts_with_who_does_not(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    plain, strict = Store(tmp_path), Store(tmp_path, trusted_keys=[public_key(new_private_key())])
    key, _ = plain.ensure({"regex": "a"}, SMALL)
    first = shelf(plain)
    assert len(ray.get(first.find.remote(key))) == 1
    again = shelf(Store(tmp_path))
    assert len(ray.get(again.find.remote(key))) == 1 and ray.get(first.reads.remote()) == 1
    with pytest.raises(ray.exceptions.RayTaskError, match="is not signed"):
        ray.get(shelf(strict).find.remote(key))


def load_counting() -> Any:
    """A model that likes token 97 best, then ascending ones."""
    import torch

    def model(ids: torch.Tensor) -> torch.Tensor:
        return -torch.arange(len(SMALL)).sub(97).abs().float().repeat(len(ids), 1)

    return model, lambda text: list(text.encode())


def test_rows_are_held_to_their_constraints(tmp_path: Path) -> None:
    documents = [
        {"regex": "[a-c]{2}z"},
        {"json_schema": {"enum": [1, 20]}},
        {"regex": "a("},
        {"regex": "x{50}"},
    ]
    rows = [
        {"prompt": f"row {number}", "constraint": json.dumps(documents[number % 4]), "number": number}
        for number in range(24)
    ]
    store = Store(tmp_path)
    made = tokenfst.ray.generate(
        ray.data.from_items(rows, override_num_blocks=6),
        load_counting,
        store,
        SMALL,
        max_new_tokens=20,
        batch_size=4,
        workers=2,
        options={"width": len(SMALL)},
    )
    found = sorted(made.take_all(), key=lambda row: row["number"])
    assert [row["number"] for row in found] == list(range(24))
    for row in found:
        text, error = row["text"], row["error"]
        if row["number"] % 4 == 0:
            assert text == "aaz" and row["finished"] and not error
        elif row["number"] % 4 == 1:
            assert text.strip() in ("1", "20") and not error
        elif row["number"] % 4 == 2:
            assert "position 1" in error and not text
        else:
            assert "the least number from here is 50" in error and not text
    # The actor did not end with the workers: it counts what they read, and each artifact was read once.
    assert ray.get(shelf(store).reads.remote()) == 3
    with pytest.raises(ConstraintError, match="no column 'constraint'"):
        tokenfst.ray.generate(ray.data.from_items([{"prompt": "a"}]), load_counting, store, SMALL)


def test_a_text_that_fits_is_written_where_a_stack_makes_its_distance_an_upper_bound(tmp_path: Path) -> None:
    grammar = 'root ::= ")" a "("\na ::= ")" b "("\nb ::= ")" a "(" | "x" | root'  # (( may be one token
    assert compile(gbnf(grammar), SMALL).distance() == 5
    rows = [{"prompt": "row", "constraint": json.dumps({"gbnf": grammar})}]
    for most, complete in ((4, True), (3, False)):
        made = tokenfst.ray.generate(
            ray.data.from_items(rows),
            load_counting,
            Store(tmp_path),
            SMALL,
            max_new_tokens=most,
            expand=False,
            options={"width": len(SMALL)},
        )
        (row,) = made.take_all()
        assert row["finished"] == complete and bool(row["error"]) != complete
        assert (
            row["text"] == ("))x((" if complete else "") and ("least number is 4" in row["error"]) != complete
        )


def test_a_model_by_its_folder(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    from small_model import FOLDER, load

    vocabulary = load().vocabulary
    rows = [{"prompt": "record: name\njson:", "constraint": json.dumps({"json_schema": {"type": "boolean"}})}]
    dataset = ray.data.from_items(rows)
    made = tokenfst.ray.generate(dataset, str(FOLDER), Store(tmp_path), vocabulary, max_new_tokens=8)
    (row,) = made.take_all()
    assert row["text"].strip() in ("true", "false") and row["finished"] and len(row["tokens"]) <= 8


def test_the_command_line_compiles_on_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lines.jsonl").write_text('{"id": "a", "regex": "a+"}\n{"id": "b", "regex": "("}\n')
    Path("v.json").write_text(json.dumps({"tokens": ["a", "b", ""], "eos_token_id": 2}))
    given = "--batch lines.jsonl --vocabulary tokens:v.json --store s --engine ray --jobs 2 --json"
    done = tokenfst_command("compile", *given.split())
    assert done.code == 1 and (done.json["put"], done.json["failed"]) == (1, 1), done.err
    assert done.json["failures"][0]["line"] == 2 and len(list(Store("s").list())) == 1
