"""``--choices``: labels from a file, on every command that takes a constraint."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.programs.command_line import tokenfst, toy, write_toy

from tokenfst import TokenAutomaton, verify_labels


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.txt"
    path.write_bytes(b"ab\r\naba\n01\n")
    return path


def test_compile_makes_what_the_labels_are(labels: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.safetensors"
    assert tokenfst("compile", "--choices", labels, "-v", write_toy(tmp_path), "-o", target).code == 0
    assert verify_labels(TokenAutomaton.load(target, toy()), ["ab", "aba", "01"])


def test_several_labels(labels: Path) -> None:
    several = ["check", "-c", str(labels), "--separator", "-"]
    assert tokenfst(*several, "01-ab", "aba-ab-01").code == 0
    assert tokenfst(*several, "ab-ab").code == 1
    assert tokenfst(*several, "--repeats", "ab-ab").code == 0
    assert tokenfst(*several, "--most", "1", "ab-01").code == 1
    assert tokenfst(*several, "--least", "2", "ab-01").code == 0
    assert tokenfst(*several, "--least", "2", "ab").code == 1
    assert tokenfst(*several, "--least", "0", "--", "").code == 0


def test_leading_spaces(labels: Path) -> None:
    words = ["check", "-c", str(labels), "--leading-space"]
    assert tokenfst(*words, "required", " ab").code == 0 and tokenfst(*words, "required", "ab").code == 1
    assert tokenfst(*words, "optional", " ab", "ab").code == 0 and tokenfst(*words, "none", " ab").code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--most", "2"], "go with --choices"),
        (["--leading-space", "optional"], "go with --choices"),
        (["-c", "LABELS", "--separator", "-", "--least", "4"], "no selection of 4"),
        (["-c", "LABELS", "--most", "2"], "go with --separator"),
        (["-c", "LABELS", "--separator", "b"], "'ab' holds the separator 'b'"),
        (["-c", "LABELS", "-g", "json"], "two constraints"),
        (["-c", "LABELS", "--flags", "i"], "--file and --flags cannot be combined"),
        (["-c", "EMPTY"], "line 2 is empty"),
        (["-c", "TWICE"], "twice.txt: the label 'x' occurs 2 times"),
        (["-c", "LABELS", "ab"], "the labels come from"),
    ],
)
def test_what_is_refused(words: list[str], message: str, labels: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("a\n\nb\n")
    (tmp_path / "twice.txt").write_text("x\ny\nx\n")
    files = {"LABELS": labels, "EMPTY": tmp_path / "empty.txt", "TWICE": tmp_path / "twice.txt"}
    done = tokenfst("sample", *[str(files.get(word, word)) for word in words])
    assert done.code == 2 and message in done.err.replace("\n", " ")
