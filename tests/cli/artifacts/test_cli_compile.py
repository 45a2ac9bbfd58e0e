"""``tokenfst compile``: what it writes, what it refuses, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.programs.command_line import TOY_END, tokenfst, toy, write_toy

from tokenfst import (
    Budget,
    Language,
    TokenAutomaton,
    Vocabulary,
    compile,
    estimate,
    lark_grammar,
    one_token,
    regex,
)
from tokenfst.cli.artifacts.compiling import Meter
from tokenfst.cli.input.budgets import BudgetOptions
from tokenfst.decoding.compiling import estimate as estimating
from tokenfst.decoding.compiling.estimate import Estimate
from tokenfst.decoding.token_automata.sizes import Stats
from tokenfst.errors import ConstraintError


@pytest.fixture
def spec(tmp_path: Path) -> str:
    return write_toy(tmp_path)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out.safetensors"


def estimated(language: Language) -> Estimate:
    return estimate(language, toy())


def only_the_vocabulary_in(folder: Path) -> bool:
    return [path.name for path in folder.iterdir()] == ["toy.json"]


# --- what it writes -----------------------------------------------------------------------------------


def test_the_artifact_is_the_one_that_python_saves(spec: str, target: Path, tmp_path: Path) -> None:
    done = tokenfst("compile", "(ab|0)+", "-v", spec, "-o", target)
    assert done.code == 0
    compile(regex("(ab|0)+"), toy()).expand().save(tmp_path / "python.safetensors")
    assert target.read_bytes() == (tmp_path / "python.safetensors").read_bytes()
    assert str(target) in done.out and "states    3" in done.out
    assert done.err.startswith("estimate: 3 states")


def test_json(spec: str, target: Path) -> None:
    done = tokenfst("compile", "(ab|0)+", "-v", spec, "-o", target, "--json")
    answer = done.json
    assert answer.pop("seconds") >= 0
    assert answer == {
        "command": "compile",
        "source": "regex('(ab|0)+')",
        "vocabulary": {"name": "toy", "size": 12, "fingerprint": toy().fingerprint},
        "estimate": {"exact": True, "states": 3, "table_bytes": 3 * (4 * 4 + 13), "mask_bytes_at_most": 12},
        "output": str(target),
        "bytes": target.stat().st_size,
        "states": 3,
        "masks": 3,
        "dense_rows": 0,
        "distance": 1,
        "warnings": [],
    }
    assert done.err == ""


def test_the_same_command_writes_the_same_bytes(spec: str, target: Path) -> None:
    tokenfst("compile", "[ab]{1,9}", "-v", spec, "-o", target)
    before = target.read_bytes()
    assert tokenfst("compile", "[ab]{1,9}", "-v", spec, "-o", target).code == 0
    assert target.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "pattern"),
    [
        (b"ab\n", "ab"),
        (b"ab", "ab"),
        (b"ab\r\n", "ab"),
        (b"ab\n\n", "ab\n"),
        (b"\xef\xbb\xbf\xc3\xa9\n", "é"),
    ],
)
def test_a_pattern_from_a_file(content: bytes, pattern: str, spec: str, target: Path, tmp_path: Path) -> None:
    file = tmp_path / "pattern.regex"
    file.write_bytes(content)
    done = tokenfst("check", "--file", file, "--json", pattern)
    assert done.code == 0 and done.json["source"] == f"regex({pattern!r})"


def test_flags_are_those_of_re(spec: str, target: Path) -> None:
    assert tokenfst("compile", "A B", "-v", spec, "-o", target, "--flags", "ix").code == 0
    assert tokenfst("check", target, "ab", "AB").code == 0
    assert tokenfst("check", target, "a b").code == 1


def test_the_estimate_alone(spec: str) -> None:
    done = tokenfst("compile", "[ab]{3}", "-v", spec, "--estimate", "--json")
    assert done.code == 0 and done.json["estimate"]["states"] == 4
    assert tokenfst("compile", "[ab]{3}", "-v", spec, "--estimate").out.startswith("4 states, tables")


def test_python_estimates_what_the_command_prints(spec: str) -> None:
    for pattern in ("[ab]{3}", "(ab|0)+", "(a|b)*a(a|b){12}"):
        done = tokenfst("compile", pattern, "-v", spec, "--estimate", "--json")
        assert done.json["estimate"] == estimated(regex(pattern)).as_json()
        made = compile(regex(pattern), toy()).expand().stats().states
        assert estimated(regex(pattern)).states == made - 1  # without DEAD
    with pytest.raises(ConstraintError, match=r"needs a stack: take truncate\(depth\)"):
        estimate(lark_grammar('start: "(" start ")" | "a"'), toy())
    with pytest.raises(ConstraintError, match="constrains tokens"):
        estimated(one_token())


def test_an_estimate_that_stops_is_a_lower_bound() -> None:
    found = estimated(regex("(a|b)*a(a|b){30}"))
    assert not found.exact and found.states >= 1000
    assert found.as_json()["table_bytes"] is None and "more than" in str(found)
    for length in (9, 12):
        language = regex(f"(a|b)*a(a|b){{{length}}}")
        assert estimated(language).states == language.size().states


def test_an_estimate_whose_time_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was "more than 1 state", since the states were made in another automaton than the one that it asked."""
    monkeypatch.setattr(estimating, "_ESTIMATE", Budget(states=1 << 30, bytes=1 << 40, seconds=0.2))
    assert estimated(regex("(a|b)*a(a|b){30}")).states == 4_000


def test_padding_and_end_tokens(spec: str, target: Path) -> None:
    done = tokenfst(
        "compile", "a", "-v", spec, "--vocab-size", "40", "--eos-token-id", "7", "-o", target, "--json"
    )
    assert done.json["vocabulary"]["size"] == 40
    options = ["-v", spec, "--vocab-size", "40", "--eos-token-id", "7"]
    assert tokenfst("check", target, "-t", "0,7", *options).code == 0
    assert tokenfst("check", target, "-t", f"0,{TOY_END}", *options).code == 1


def test_an_artifact_compiled_again_for_another_vocabulary(spec: str, target: Path, tmp_path: Path) -> None:
    assert tokenfst("compile", "(ab)+", "-v", spec, "-o", target).code == 0
    other = Vocabulary([b"a", b"b", b""], 2)
    other.to_json(tmp_path / "other.json")
    again = tmp_path / "again.safetensors"
    assert tokenfst("compile", target, "-v", f"tokens:{tmp_path / 'other.json'}", "-o", again).code == 0
    matcher = TokenAutomaton.load(again, other).matcher()
    assert matcher.accept_tokens([0, 1, 0, 1, 2]) and matcher.is_terminated()
    assert tokenfst("inspect", again, "--json").json["source"] == "regex('(ab)+')"


def test_a_real_vocabulary(tmp_path: Path, tekken: Vocabulary) -> None:
    target = tmp_path / "date.safetensors"
    spec = "mistral:tekken_240911"
    assert tokenfst("compile", "(19|20)[0-9]{2}-[01][0-9]", "-v", spec, "-o", target).code == 0
    ids = tekken.encode_greedy(b"1999-12")
    assert tokenfst("check", target, "--tokens", ",".join(map(str, ids)), "-v", spec).code == 0
    no = tokenfst("check", target, "--tokens", ",".join(map(str, ids[:-1])), "-v", spec, "--json")
    assert no.code == 1
    (result,) = no.json["results"]
    assert result["token"] == len(ids) - 1 and result["stops_early"]
    assert [each["text"] for each in result["allowed"]["tokens"]] == list("01234567")
    assert result["allowed"]["count"] == 10


# --- what it refuses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(ab", "error: missing ), unterminated subpattern (position 0)\n  (ab\n  ^\n"),
        ("a)b", "error: unbalanced parenthesis (position 1)\n  a)b\n   ^\n"),
        ("a(?!)", "the language is empty"),
        (r"(a)\1", "a back-reference"),
    ],
)
def test_bad_patterns(pattern: str, message: str, spec: str, target: Path, tmp_path: Path) -> None:
    done = tokenfst("compile", pattern, "-v", spec, "-o", target)
    assert done.code == 2 and done.out == ""
    assert done.err.startswith("error: ") and message in done.err
    assert only_the_vocabulary_in(tmp_path)


def test_bombs_end_in_exit_code_3_and_name_the_part(spec: str, target: Path, tmp_path: Path) -> None:
    done = tokenfst("compile", "(a{1,5000}){1,5000}", "-v", spec, "-o", target)
    assert done.code == 3 and "(a{1,5000}){1,5000}" in done.err and "--budget-positions" in done.err
    done = tokenfst("compile", "(a|b)*a(a|b){30}", "-v", spec, "-o", target, "--budget-states", "5000")
    assert done.code == 3 and "5,000 states" in done.err and "(a|b){30}" in done.err
    assert "--budget-states" in done.err and "Budget(" not in done.err
    assert only_the_vocabulary_in(tmp_path)


def test_the_budget_in_bytes_and_seconds(spec: str, target: Path) -> None:
    bomb = "(a|b)*a(a|b){30}"
    assert tokenfst("compile", bomb, "-v", spec, "-o", target, "--budget-bytes", "1M").code == 3
    assert tokenfst("compile", bomb, "-v", spec, "-o", target, "--budget-seconds", "0.05").code == 3
    for wrong in ("--budget-bytes=lots", "--budget-bytes=0", "--budget-seconds=0", "--budget-seconds=nan"):
        assert tokenfst("compile", "a", "-v", spec, "-o", target, wrong).code == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "a CONSTRAINT is needed"),
        (["a"], "--output"),
        (["a", "-o", "x.safetensors"], "--vocabulary"),
        (["a", "-o", "x.bin", "-v", "tokens:x"], "must end in .safetensors"),
        (["a", "-o", "no/where/x.safetensors", "-v", "tokens:x"], "there is no folder no/where"),
        (["a", "-o", "x.safetensors", "-v", "tokens:nope.json"], "nope.json"),
        (["a", "-o", "x.safetensors", "-v", "nonsense"], "does not name a vocabulary"),
        (
            ["a", "-o", "x.safetensors", "-v", "tokens:x", "--flags", "q"],
            "--flags must consist of the letters imsxa",
        ),
        (["a", "b", "-o", "x.safetensors"], "b"),
        (["--file", "nope.regex", "-o", "x.safetensors", "-v", "tokens:x"], "nope.regex: No such file"),
        (["a", "--file", "nope.regex"], "nope.regex"),
        (["-[ab]", "-o", "x.safetensors"], "goes after --"),
    ],
)
def test_bad_command_lines(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tokenfst("compile", *words)
    assert done.code == 2 and done.out == ""
    assert done.err.startswith("error: ") and message in done.err and "Traceback" not in done.err


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a\xff")
    done = tokenfst("check", "--file", tmp_path / "x", "a")
    assert done.code == 2 and "is not UTF-8 at byte 1" in done.err


def test_strings_that_no_tokens_spell_give_a_warning_with_a_witness(spec: str, target: Path) -> None:
    done = tokenfst("compile", "[a-c]+", "-v", spec, "-o", target)
    assert done.code == 0 and "warning: " in done.err and "b'c'" in done.err
    assert len(tokenfst("compile", "[a-c]+", "-v", spec, "-o", target, "--json").json["warnings"]) == 1
    done = tokenfst("compile", "xyz", "-v", spec, "-o", target)
    assert done.code == 2 and "b'xyz'" in done.err and "no matcher could be made" in done.err
    assert target.stat().st_size and tokenfst("check", target, "b").code == 0  # the one before stays


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("1", 1),
        ("1500B", 1500),
        ("2k", 2048),
        ("1.5M", 1572864),
        ("2G", 2 << 30),
        ("1GiB", 1 << 30),
        ("3 T", 3 << 40),
    ],
)
def test_sizes(written: str, size: int) -> None:
    assert BudgetOptions(budget_bytes=written).read().bytes == size


# --- what it leaves alone -----------------------------------------------------------------------------


def test_only_artifacts_are_replaced_without_force(spec: str, target: Path) -> None:
    target.write_bytes(b"the weights of a model")
    done = tokenfst("compile", "a", "-v", spec, "-o", target)
    assert done.code == 2 and "--force" in done.err
    assert target.read_bytes() == b"the weights of a model"
    assert tokenfst("compile", "a", "-v", spec, "-o", target, "--force").code == 0
    assert tokenfst("compile", "b", "-v", spec, "-o", target).code == 0
    assert tokenfst("check", target, "b").code == 0


def test_an_empty_file_is_replaced(spec: str, target: Path) -> None:
    target.touch()
    assert tokenfst("compile", "a", "-v", spec, "-o", target).code == 0


def test_failure_leaves_the_older_artifact(spec: str, target: Path) -> None:
    tokenfst("compile", "a", "-v", spec, "-o", target)
    before = target.read_bytes()
    bomb = tokenfst("compile", "(a|b)*a(a|b){30}", "-v", spec, "-o", target, "--budget-states", "5000")
    assert bomb.code == 3 and target.read_bytes() == before


def test_a_folder_is_no_output(spec: str, target: Path) -> None:
    target.mkdir()
    done = tokenfst("compile", "a", "-v", spec, "-o", target, "--force")
    assert done.code == 2 and "it is a folder" in done.err


# --- progress -----------------------------------------------------------------------------------------


def stats(states: int, masks: int) -> Stats:
    return Stats(states, masks, 0, 0, 0, False)


def test_the_meter_measures_each_step_by_itself() -> None:
    language: Language = regex("[ab]{99}")
    meter = Meter(estimated(language))  # 100 states and DEAD
    assert meter.read(stats(1, 0), 10.0) == ("states (step 1 of 3)", 101, 1, "1 of 101 states")
    _, _, done, text = meter.read(stats(51, 0), 11.0)
    assert done == 51 and text == "51 of 101 states, 50 states/s, 1.0 s left"
    assert meter.read(stats(101, 0), 12.0)[0] == "distances (step 2 of 3)"
    assert meter.read(stats(90, 0), 13.0, silence=2.0)[0] == "distances (step 2 of 3)"
    assert meter.read(stats(101, 1), 20.0)[3] == "1 of 101 states"
    assert meter.read(stats(101, 11), 21.0)[3] == "11 of 101 states, 10 states/s, 9.0 s left"


def test_the_meter_without_an_estimate_tells_no_time() -> None:
    meter = Meter(estimated(regex("(a|b)*a(a|b){30}")))
    meter.read(stats(0, 0), 0.0)
    assert meter.read(stats(5000, 0), 2.0) == (
        "states (step 1 of 3)",
        None,
        5000,
        "5,000 states, 2,500 states/s",
    )
