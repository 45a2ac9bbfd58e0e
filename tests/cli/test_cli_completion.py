"""What shells complete: commands, options, and the names and files that they take."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tokenfst.automata.notations.bundled import bundled_grammars
from tokenfst.cli.input.completion import grammars, vocabularies


def test_grammars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert grammars("") == list(bundled_grammars())
    assert "json" in grammars("js") and grammars("no such name") == []
    (tmp_path / "own.lark").touch()
    (tmp_path / ".hidden").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "deep.gbnf").touch()
    assert grammars("ow") == ["own.lark"] and grammars("fo") == ["folder/"]
    assert grammars("folder/") == ["folder/deep.gbnf"] and grammars("missing/") == []
    assert grammars(f"{tmp_path}/o") == [f"{tmp_path}/own.lark"]


def test_vocabularies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.json").touch()
    assert vocabularies("t") == ["tiktoken:", "tokens:"]
    assert vocabularies("tokens:") == ["tokens:toy.json"]
    assert vocabularies("symbols:") == [] and vocabularies("nothing:") == []


def test_names_that_mistral_common_carries() -> None:
    pytest.importorskip("mistral_common")
    assert "mistral:tekken_240911" in vocabularies("mistral:tekken")


ASKED = {"tokenfst do": "doctor", "tokenfst check --gram": "--grammar", "tokenfst lint -g js": "json"}


@pytest.mark.parametrize(("words", "wanted"), ASKED.items())
def test_a_shell_asks(words: str, wanted: str) -> None:
    asked = {"_TOKENFST_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-m", "tokenfst"],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert wanted in done.stdout.split(), done
