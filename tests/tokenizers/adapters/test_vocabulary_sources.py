"""``load_vocabulary`` and the ``tokens:`` file format."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tokenfst.errors import MissingDependencyError, VocabularyError
from tokenfst.tokenizers.adapters.mistral import _locate, from_mistral
from tokenfst.tokenizers.adapters.sources import load_vocabulary
from tokenfst.tokenizers.adapters.token_file import read_token_file

DOCUMENT: dict[str, Any] = {
    "tokens": ["a", "é", {"hex": "ff"}, {"bytes": [226, 129]}, "", "</s>"],
    "eos_token_id": 5,
    "special_tokens": {"</s>": 5},
}


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_tokens_files(tmp_path: Path) -> None:
    path = write(tmp_path / "v.json", DOCUMENT)
    vocabulary = load_vocabulary(f"tokens:{path}")
    assert vocabulary.tokens == (b"a", "é".encode(), b"\xff", b"\xe2\x81", b"", b"")
    assert vocabulary.special_tokens == {"</s>": 5}
    assert vocabulary.name == f"tokens:{path}"
    assert load_vocabulary(f"tokens:{path}", 10, eos_token_id=[5, 9]).eos_token_ids == (5, 9)
    initial = ["A", *DOCUMENT["tokens"][1:]]
    contextual = read_token_file(
        write(path, DOCUMENT | {"initial_tokens": initial, "start_absorbs": True, "name": "toy"}), size=8
    )
    assert contextual.initial_bytes(0) == b"A" and contextual.start_absorbs
    assert contextual.name == "toy" and len(contextual) == 8


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tokens": "abc"}, "tokens must be a list"),
        ({"tokens": []}, "at least one token"),
        ({"tokens": ["a", 3]}, r"tokens\[1\] is 3"),
        ({"tokens": ["a", {"hex": "0"}]}, r"tokens\[1\]"),
        ({"tokens": ["a", {"hex": 5}]}, r"tokens\[1\]"),
        ({"tokens": ["a", {"bytes": [256]}]}, r"tokens\[1\]"),
        ({"tokens": ["a", {"bytes": 1 << 60}]}, r"tokens\[1\]"),
        ({"tokens": ["a", {"hex": "00", "bytes": [0]}]}, r"tokens\[1\]"),
        ({"tokens": ["a", "\ud800"]}, r"tokens\[1\]"),
        ({"eos_token_id": 6}, "end token id 6"),
        ({"eos_token_id": "</s>"}, "eos_token_id must be"),
        ({"eos_token_id": True}, "end token id True"),
        ({"special_tokens": 5}, "special_tokens must be"),
        ({"special_tokens": {"x": "y"}}, "special token id 'y'"),
        ({"initial_tokens": ["a"]}, "1 initial forms for 6 tokens"),
        ({"extra": 1}, "unknown key 'extra'"),
    ],
)
def test_broken_tokens_files(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = write(tmp_path / "v.json", DOCUMENT | changes)
    with pytest.raises(VocabularyError, match=words) as caught:
        load_vocabulary(f"tokens:{path}")
    assert str(path) in str(caught.value)


def test_files_that_are_not_json(tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    with pytest.raises(VocabularyError, match="cannot read"):
        load_vocabulary(f"tokens:{path}")
    for content, words in [
        (b"", "not a JSON file"),
        (b"\xff\xfe\xfd", "not a JSON file"),
        (b"[" * 100_000, "not a JSON file"),
        (b"[1]", "a JSON list where an object"),
        (b'{"tokens": ["a"]}', "'eos_token_id' is missing"),
    ]:
        path.write_bytes(content)
        with pytest.raises(VocabularyError, match=words):
            load_vocabulary(f"tokens:{path}")


def test_every_kind_of_name(tmp_path: Path) -> None:
    model = _locate("tokenizer.model.v1")
    assert (
        load_vocabulary(f"spm:{model}")
        == load_vocabulary("mistral:tokenizer.model.v1")
        == from_mistral(model)
    )
    specification = {"model": {"vocab": {"a": 0, "b": 1}}, "decoder": {"type": "Fuse"}}
    path = write(tmp_path / "tokenizer.json", specification)
    assert load_vocabulary(f"hf:{path}", eos_token_id=1).tokens == (b"a", b"")
    (tmp_path / "t.tiktoken").write_text("YQ== 0\nYg== 1\n")
    assert load_vocabulary(f"tiktoken:{tmp_path / 't.tiktoken'}", 3, eos_token_id=2).tokens == (
        b"a",
        b"b",
        b"",
    )


def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for spec in ("tiktoken:cl100k_base", "hf:some/model", "mistral:tekken_240911"):
        with pytest.raises(MissingDependencyError, match=r'pip install "tokenfst\['):
            load_vocabulary(spec)


@pytest.mark.parametrize("spec", ["", "tekken", "mistral:", ":x", "huggingface:x", "tokens"])
def test_names_that_mean_nothing(spec: str) -> None:
    with pytest.raises(VocabularyError, match="does not name a vocabulary: write one of mistral:"):
        load_vocabulary(spec)


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ("mistral_common/data/tekken_240911.json", "mistral:"),
        ("tekken_240911", "mistral:"),
        ("cl100k_base.tiktoken", "tiktoken:"),
        ("llama/tokenizer.model", "spm:"),
        ("llama/tokenizer.json", "hf:"),
        ("mistralai/Mistral-7B", "hf:"),
    ],
)
def test_a_name_without_its_kind_is_recognized(spec: str, meant: str) -> None:
    with pytest.raises(VocabularyError, match=re.escape(f" is {meant + spec!r}") + "$"):
        load_vocabulary(spec)
