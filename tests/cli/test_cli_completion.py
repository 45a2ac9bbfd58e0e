"""What shells complete: commands, options, and the names and files that they take."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tokenfst.automata.notations.bundled import bundled_grammars
from tokenfst.cli.input.completion import grammars, join_divided_words, vocabularies


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


@pytest.mark.parametrize(
    ("words", "place", "joined", "at"),
    [
        ("tokenfst vocab mistral : tek", 4, "tokenfst vocab mistral:tek", 2),
        ("tokenfst vocab mistral :", 3, "tokenfst vocab mistral:", 2),
        ("tokenfst check -v mistral : tek x", 6, "tokenfst check -v mistral:tek x", 4),
        ("tokenfst check a : b", 4, "tokenfst check a : b", 4),
        ("tokenfst check x -v hf : y", 2, "tokenfst check x -v hf:y", 2),
    ],
)
def test_words_that_a_colon_divided_are_joined(words: str, place: int, joined: str, at: int) -> None:
    asked = {"COMP_WORDS": words.replace(" ", "\n"), "COMP_CWORD": str(place)}
    kind = join_divided_words(asked)
    assert kind == ("mistral:" if joined.split(" ")[at].startswith("mistral:") else "")
    assert asked == {"COMP_WORDS": joined.replace(" ", "\n"), "COMP_CWORD": str(at)}


def test_a_colon_divides_words_in_a_real_bash(tmp_path: Path) -> None:
    """What is typed in a terminal: bash itself divides the words and puts the answer in."""
    pytest.importorskip("mistral_common")
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    (tmp_path / "tokenfst").write_text(f'#!/bin/sh\nexec {sys.executable} -m tokenfst "$@"\n')
    (tmp_path / "tokenfst").chmod(0o755)
    child, terminal = pty.fork()
    if child == 0:
        path = f"{tmp_path}:{os.environ['PATH']}"
        os.execvpe("bash", ["bash", "--norc", "-i"], os.environ | {"TERM": "dumb", "PS1": "$ ", "PATH": path})
    try:
        os.write(terminal, b'eval "$(tokenfst --show-completion bash)"; echo re""ady\n')
        _read_until(terminal, b"ready")
        os.write(terminal, b"echo x; tokenfst vocab mistral:tekken_24091\t")
        _read_until(terminal, b"mistral:tekken_240911")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


def _read_until(terminal: int, wanted: bytes) -> None:
    found, until = b"", time.monotonic() + 120
    while wanted not in found:
        assert time.monotonic() < until, found
        if select.select([terminal], [], [], 1)[0]:
            found += os.read(terminal, 65_536)


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
