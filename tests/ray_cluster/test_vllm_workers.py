"""Offline decoding on a real local Ray whose actors run the real vLLM, with a tiny random model, on the CPU.

It needs Ray and vLLM in one environment: ``make test-ray-vllm``.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="needs Ray: make test-ray-vllm")
pytest.importorskip("ray.data", reason="needs ray[data]: make test-ray-vllm")
pytest.importorskip("vllm", reason="needs vLLM: make test-ray-vllm")

from support.engines.local_ray import actors, local_ray
from support.engines.serving import tiny_model

import tokenfst.ray
from tokenfst import Store, Vocabulary
from tokenfst.errors import ConstraintError, VocabularyMismatchError
from tokenfst.ray.artifacts import shelf

MOST = 24
ENGINE = {"max_model_len": 128, "enforce_eager": True, "dtype": "bfloat16", "max_num_seqs": 4}
OPTIONS = {"temperature": 1.0, "seed": 7}
SCHEMA = {
    "type": "object",
    "properties": {"b": {"enum": [1, 20]}, "a": {"type": "boolean"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
DOCUMENTS: list[dict[str, Any]] = [
    {"regex": "[a-c]{2}z"},
    {"json_schema": SCHEMA, "property_order": "any", "whitespace": "compact"},
    {"lark": 'start: "(" start ")" | "x"'},
    {"regex": "a("},
    {"regex": "x{500}"},
]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with local_ray(HF_HUB_OFFLINE="1", VLLM_CPU_KVCACHE_SPACE="1", OMP_NUM_THREADS="1"):
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def vocabulary(model: Path) -> Vocabulary:
    from transformers import AutoConfig, AutoTokenizer

    width = AutoConfig.from_pretrained(model).vocab_size
    return Vocabulary.from_huggingface(AutoTokenizer.from_pretrained(model), size=width)


def decoded(model: Path, store: Store, vocabulary: Vocabulary, rows: list[dict[str, Any]]) -> Any:
    return tokenfst.ray.generate(
        ray.data.from_items(rows, override_num_blocks=len(rows) // 4),
        str(model),
        store,
        vocabulary,
        max_new_tokens=MOST,
        batch_size=4,
        options=OPTIONS,
        engine="vllm",
        engine_options=ENGINE,
    )


def rows_of(count: int) -> list[dict[str, Any]]:
    return [
        {"prompt": f"row {number}:", "constraint": json.dumps(DOCUMENTS[number % 5]), "number": number}
        for number in range(count)
    ]


def check(row: dict[str, Any], vocabulary: Vocabulary) -> None:
    text, kind, error = row["text"], row["number"] % 5, row["error"]
    assert vocabulary.decode(row["tokens"]).decode() == text and len(row["tokens"]) <= MOST
    if kind == 0:
        assert re.fullmatch("[a-c]{2}z", text) and row["finished"] and not error
    elif kind == 1:
        found = json.loads(text)
        assert found["b"] in (1, 20) and found["a"] in (True, False) and len(found) == 2 and not error
    elif kind == 2:
        assert re.fullmatch(r"(\(*)x(\)*)", text) and text.count("(") == text.count(")"), text
        assert row["finished"] and not error
    elif kind == 3:
        assert "position 1" in error and not text and not row["finished"]
    else:
        assert "tokens" in error and "max_new_tokens" in error and not text


def test_rows_are_held_to_their_constraints(model: Path, vocabulary: Vocabulary, tmp_path: Path) -> None:
    store = Store(tmp_path)
    made = decoded(model, store, vocabulary, rows_of(20))
    found = sorted(made.take_all(), key=lambda row: int(row["number"]))
    assert [row["number"] for row in found] == list(range(20))
    for row in found:
        check(row, vocabulary)
    # The actor lives as long as the dataset: it counts what the workers read, and each artifact was read once.
    assert ray.get(shelf(store).reads.remote()) == 4


def test_an_engine_that_is_killed_loses_nothing(model: Path, vocabulary: Vocabulary, tmp_path: Path) -> None:
    store, killed = Store(tmp_path), []

    def kill_one() -> None:
        while not list(store.list()) or not actors("VLLMDecoder"):  # the first batch is on its way
            time.sleep(0.05)
        killed.append(actors("VLLMDecoder")[0])
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    found = sorted(
        decoded(model, store, vocabulary, rows_of(20)).take_all(), key=lambda row: int(row["number"])
    )
    killer.join()
    assert killed and [row["number"] for row in found] == list(range(20))
    for row in found:
        check(row, vocabulary)


def test_another_vocabulary_is_refused(model: Path, vocabulary: Vocabulary, tmp_path: Path) -> None:
    other = Vocabulary([*vocabulary.tokens[:-1], b"another"], eos_token_id=list(vocabulary.eos_token_ids))
    with pytest.raises(Exception, match="is not that of the model") as caught:
        decoded(model, Store(tmp_path), other, rows_of(4)).take_all()
    assert VocabularyMismatchError.__name__ in str(caught.value)


def test_arguments_that_do_not_fit(model: Path, vocabulary: Vocabulary, tmp_path: Path) -> None:
    rows, store = ray.data.from_items(rows_of(1)), Store(tmp_path)
    with pytest.raises(ConstraintError, match="by its folder or name"):
        tokenfst.ray.generate(rows, lambda: None, store, vocabulary, engine="vllm")
    with pytest.raises(ConstraintError, match="engine_options belong to"):
        tokenfst.ray.generate(rows, str(model), store, vocabulary, engine_options={"a": 1})
    with pytest.raises(ConstraintError, match="engine is"):
        tokenfst.ray.generate(rows, str(model), store, vocabulary, engine="other")
