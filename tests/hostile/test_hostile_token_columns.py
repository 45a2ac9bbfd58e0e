"""Artifacts of version 2 that break one rule each about their columns of tokens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokenfst
from tokenfst import TokenAutomaton, Vocabulary, one_token, regex, special_token
from tokenfst.decoding.artifacts import artifact
from tokenfst.errors import ArtifactCorruptError

VOCABULARY = Vocabulary([b"a", b"b", b"ab", b"", b"", b""], 3, {"<t>": 4, "<u>": 5})
BOUNDARY = 0xFFFFFFFF


def arrays() -> dict[str, Any]:
    language = regex("a*") + special_token("<t>") + one_token() + special_token("<u>")
    return dict(tokenfst.compile(language, VOCABULARY).arrays())


def load(path: Path, altered: dict[str, Any]) -> TokenAutomaton:
    path.write_bytes(artifact.serialize(altered, VOCABULARY.fingerprint, len(VOCABULARY), "it"))
    return TokenAutomaton.load(path, VOCABULARY)


def test_it_loads_unaltered(tmp_path: Path) -> None:
    assert arrays()["token_columns"].tolist() == [[4, 2], [5, 3], [BOUNDARY, 4]]
    assert load(tmp_path / "it", arrays()).matcher().accept_tokens([0, 4, 2, 5, 3])


def columns(value: list[list[int]]) -> Callable[[dict[str, Any]], None]:
    def change(given: dict[str, Any]) -> None:
        given["token_columns"] = np.array(value, np.uint32)

    return change


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (columns([[5, 2], [4, 3], [BOUNDARY, 4]]), "ascend by token"),
        (columns([[4, 2], [4, 3]]), "ascend by token"),
        (columns([[BOUNDARY, 4], [4, 2]]), "ascend by token"),
        (columns([[4, 5]]), "columns of no byte"),
        (columns([[4, 0]]), "columns of no byte"),
        (columns([[BOUNDARY, 1]]), "columns of no byte"),
        (columns([[2, 2]]), "have no bytes"),
        (columns([[6, 2]]), "have no bytes"),
    ],
)
def test_broken(change: Callable[[dict[str, Any]], None], rule: str, tmp_path: Path) -> None:
    altered = arrays()
    change(altered)
    with pytest.raises(ArtifactCorruptError, match=rule):
        load(tmp_path / "it", altered)


def test_columns_and_the_version_go_together(tmp_path: Path) -> None:
    path = tmp_path / "it"
    load(path, arrays())
    data = path.read_bytes().replace(b'"version":"2"', b'"version":"1"')
    path.write_bytes(data)
    with pytest.raises(ArtifactCorruptError, match="tensors are those of version 2"):
        TokenAutomaton.load(path, VOCABULARY)


def test_any_table_is_safe(tmp_path: Path) -> None:
    """Whatever the table says, walking it reads and writes where it may."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        altered = arrays()
        table = altered["table"] = altered["table"].copy()
        table[1:] = rng.integers(0, len(table), table[1:].shape, np.uint32)
        automaton = load(tmp_path / "it", altered)
        matcher = automaton.matcher()
        for token in rng.integers(0, len(VOCABULARY), 20).tolist():
            if not matcher.is_terminated():
                matcher.accept_token(token)
                matcher.forced_bytes()
