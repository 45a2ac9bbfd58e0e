"""``--token-class`` and ``--tokenization``: what the command line says about tokens as such."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.programs.command_line import tokenfst

import tokenfst as library
from tokenfst import TokenAutomaton, Vocabulary

VOCABULARY = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"ab", b"", b"", b""],
    257,
    {"</s>": 257, "<t>": 258, "<i>": 259},
    split_pattern=r"\s+|\S+",
)
TOKENS = {"a": ord("a"), "b": ord("b"), "ab": 256, "end": 257, "<t>": 258, "<i>": 259}


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "vocabulary.json"
    VOCABULARY.to_json(path)
    return f"tokens:{path}"


def test_compile_and_inspect(spec: str, tmp_path: Path) -> None:
    target = tmp_path / "out.safetensors"
    words = ["compile", r"(?P<IMAGE>)+a(?P<TEXT_TOKEN>)", "-v", spec, "--token-class", "IMAGE=258,259"]
    done = tokenfst(*words, "-o", str(target))
    assert done.code == 0, done.err
    matcher = TokenAutomaton.load(target, library.load_vocabulary(spec)).matcher()
    assert matcher.accept_tokens([258, 259, ord("a"), 256, 257])
    assert tokenfst("inspect", str(target)).code == 0
    assert "constrains tokens" in tokenfst(*words, "--estimate").err


def test_an_artifact_that_speaks_of_tokens_is_a_constraint(spec: str, tmp_path: Path) -> None:
    target = str(tmp_path / "out.safetensors")
    words = [r"(?P<IMAGE>)+a(?P<TEXT_TOKEN>)", "-v", spec, "--token-class", "IMAGE=258,259"]
    assert tokenfst("compile", *words, "-o", target).code == 0
    assert tokenfst("check", target, "-v", spec, "-t", "258,259,97,256").code == 0
    assert tokenfst("check", target, "-v", spec, "-t", "258,97,97,97").code == 1
    drawn = tokenfst("sample", target, "-v", spec, "--seed", "1", "--json").json["samples"][0]["tokens"]
    assert drawn == tokenfst("sample", *words, "--seed", "1", "--json").json["samples"][0]["tokens"]
    assert '[label="<t>, <i>"]' in tokenfst("draw", target, "-v", spec).out


def test_an_artifact_with_a_stack_is_a_constraint(spec: str, tmp_path: Path) -> None:
    target = str(tmp_path / "out.safetensors")
    assert tokenfst("compile", "-g", "json", "-v", spec, "-o", target).code == 0
    assert tokenfst("check", target, "-v", spec, "-t", "91,93").code == 0
    assert tokenfst("check", target, "-v", spec, "-t", "91,91").code == 1
    assert tokenfst("sample", target, "-v", spec, "--seed", "1", "--max-new-tokens", "9").code == 0


@pytest.mark.parametrize("stack", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        ["check", "FILE", "a"],
        ["sample", "FILE"],
        ["draw", "FILE"],
        ["draw", "FILE", "-v", "SPEC", "--minimize"],
        ["diff", "FILE", "a"],
        ["compile", "FILE", "-v", "SPEC", "--estimate"],
        ["check", "FILE", "--within-edits", "1", "-v", "SPEC", "-t", "97"],
        ["check", "FILE", "--tokenization", "canonical", "-v", "SPEC", "-t", "97"],
    ],
)
def test_what_such_artifacts_do_not_tell(words: list[str], stack: bool, spec: str, tmp_path: Path) -> None:
    target = str(tmp_path / "out.safetensors")
    source = ["-g", "json"] if stack else ["a(?P<TEXT_TOKEN>)"]
    assert tokenfst("compile", *source, "-v", spec, "-o", target).code == 0
    done = tokenfst(*[{"FILE": target, "SPEC": spec}.get(word, word) for word in words])
    assert done.code == 2 and "only be walked by tokens" in done.err and "--tokens" in done.err


def test_check_and_sample(spec: str) -> None:
    words = ["-v", spec, "--token-class", "IMAGE=258"]
    assert tokenfst("check", "(?P<IMAGE>)a", *words, "-t", "258,97").code == 0
    assert tokenfst("check", "(?P<IMAGE>)a", *words, "-t", "259,97").code == 1
    drawn = tokenfst("sample", "(?P<IMAGE>){2}a", *words, "--json")
    assert '"tokens": [258, 258, 97]' in drawn.out
    assert "only a vocabulary defines" in tokenfst("check", "(?P<IMAGE>)a", "a").err.replace("\n", " ")


def test_canonical_sequences(spec: str) -> None:
    words = ["check", "ab", "-v", spec, "--tokenization", "canonical"]
    assert tokenfst(*words, "-t", "256").code == 0
    assert tokenfst(*words, "-t", "97,98").code == 1
    assert tokenfst("check", "ab", "-v", spec, "-t", "97,98").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--token-class", "IMAGE"], "takes NAME=ID,ID"),
        (["--token-class", "IMAGE=x"], "takes NAME=ID,ID"),
        (["--token-class", "IMAGE=258", "--token-class", "IMAGE=259"], "each name once"),
        (["--token-class", "IMAGE=257"], "end token"),
        ([], "nobody said which tokens"),
        (["--token-class", "IMAGE=258", "--tokenization", "canonical"], "defined for text only"),
    ],
)
def test_what_is_refused(words: list[str], message: str, spec: str) -> None:
    done = tokenfst("sample", "(?P<IMAGE>)", "-v", spec, *words)
    assert done.code == 2 and message in done.err.replace("\n", " ")
