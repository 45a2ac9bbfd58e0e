"""Near texts on the command line: what transducers, case, normal forms and edits make of a constraint."""

from __future__ import annotations

from pathlib import Path

import pynini
import pytest
from support.programs.command_line import tokenfst, toy, write_toy

from tokenfst import (
    TokenAutomaton,
    case_insensitive,
    compile,
    normalization_insensitive,
    regex,
    rewrite,
    within_edits,
)
from tokenfst.automata.openfst.files import read_fst
from tokenfst.errors import UnspellableWarning

ESCAPE = "0 0 <other> <other>\n0 1 0x0a \\\n1 0 <eps> n\n0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "escape.txt").write_text(ESCAPE)
    (tmp_path / "double.txt").write_text("0 0 <any> <any>\n0 1 <eps> !\n1\n")
    pynini.closure(pynini.union(pynini.cross("a", "b"), "c")).optimize().write(str(tmp_path / "ab.fst"))
    (tmp_path / "labels.txt").write_text("Zürich\nGenève\n")
    (tmp_path / "broken.txt").write_text("0 1 98 b\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "accepted", "refused"),
    [
        (["hello", "--within-edits", "1"], ["hello", "helo", "hellos", "jello"], ["hell0s"]),
        (["hello", "--within-edits", "1", "--transpositions"], ["hlelo"], ["holle"]),
        (["é", "--within-edits", "1"], ["", "x"], ["xyz"]),
        (["k", "--case-insensitive"], ["K", "\u212a"], ["ck"]),
        (["straße", "--case-insensitive"], ["STRAẞE"], ["STRASSE"]),
        (["straße", "--case-insensitive", "--full-folding"], ["STRASSE"], ["STRASE"]),
        (["é", "--normalization-insensitive", "NFC"], ["e\u0301", "é"], ["e"]),
        (["ﬁ", "--normalization-insensitive", "NFKC"], ["fi"], ["f"]),
        (["a\nb", "--rewrite", "escape.txt"], ["a\\nb"], ["a\nb"]),
        (["a\nb", "--rewrite", "escape.txt", "--rewrite", "double.txt"], ["a\\nb!"], ["a\\nb"]),
        (["ac", "--rewrite", "ab.fst", "--byte-zero", "0"], ["bc"], ["ac"]),
        (["-c", "labels.txt", "--within-edits", "1"], ["Zurich", "Geneve"], ["Zrich!"]),
        (["-c", "labels.txt", "--case-insensitive", "--within-edits", "1"], ["ZURICH"], ["URICH"]),
        (["-g", "json", "--depth", "0", "--within-edits", "1"], ["12", "tru", "[}"], ["tr"]),
        (["--template", "{a}!", "--hole", "a=x|y", "--case-insensitive"], ["X!"], ["z!"]),
    ],
)
def test_check(
    words: list[str], accepted: list[str], refused: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    given = words if words[0].startswith("-") else ["--", words[0]]
    rest = [] if words[0].startswith("-") else words[1:]
    for text, code in [*[(text, 0) for text in accepted], *[(text, 1) for text in refused]]:
        assert tokenfst("check", *rest, *given, text).code == code, text


def test_the_order_is_fixed(folder: Path) -> None:
    """Transducers, case, normal forms, edits: an edit may break what the others made equal, and not the other way."""
    by_hand = rewrite(regex("é\n"), read_fst(folder / "escape.txt"))
    by_hand = within_edits(normalization_insensitive(case_insensitive(by_hand)), 1)
    words = ["--within-edits", "1", "--normalization-insensitive", "NFC", "--case-insensitive"]
    words += ["--rewrite", str(folder / "escape.txt")]
    for text in ["É\\N", "e\u0301\\n", "E\u0300\\n", "é\n", "e\\n", "n", "é\\nxx"]:
        assert (tokenfst("check", *words, "é\n", text).code == 0) == by_hand.accepts(text), text


def test_bytes_are_edited(folder: Path) -> None:
    assert tokenfst("check", "é", "--within-edits", "1", "--edit-bytes", "\udcc3").code == 0
    assert tokenfst("check", "é", "--within-edits", "1", "\udcc3").code == 1


def test_compile_makes_what_python_makes(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.safetensors"
    words = ["compile", "ab", "--within-edits", "1", "--case-insensitive", "-v", write_toy(tmp_path)]
    assert tokenfst(*words, "-o", str(target)).code == 0
    with pytest.warns(UnspellableWarning):
        wanted = compile(within_edits(case_insensitive(regex("ab")), 1), toy()).expand()
    found = TokenAutomaton.load(target, toy())
    assert found.to_fst().num_states() == wanted.to_fst().num_states()
    assert pynini.equivalent(found.to_fst(), wanted.to_fst())


def test_an_artifact_is_changed_too(tmp_path: Path) -> None:
    target, spec = tmp_path / "out.safetensors", write_toy(tmp_path)
    assert tokenfst("compile", "ab", "-v", spec, "-o", str(target)).code == 0
    assert tokenfst("check", str(target), "--within-edits", "1", "aab").code == 0
    assert tokenfst("check", str(target), "--within-edits", "1", "-v", spec, "-t", "0").code == 0
    assert tokenfst("check", str(target), "-v", spec, "-t", "0").code == 1


def test_sample_draw_and_diff() -> None:
    done = tokenfst("sample", "abc", "--within-edits", "1", "-n", "5", "--seed", "3", "--json")
    assert all(within_edits(regex("abc"), 1).accepts(each["text"]) for each in done.json["samples"])
    assert "[Aa]" in tokenfst("draw", "a", "--case-insensitive").out
    assert tokenfst("diff", "abc", "aBc").code == 1
    assert tokenfst("diff", "abc", "aBc", "--case-insensitive").code == 0
    assert tokenfst("diff", "abc", "abd", "--within-edits", "1", "--includes").code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x", "--full-folding"], "goes with --case-insensitive"),
        (["x", "--transpositions"], "go with --within-edits"),
        (["x", "--edit-bytes"], "go with --within-edits"),
        (["x", "--byte-zero", "0"], "goes with --rewrite"),
        (["x", "--within-edits", "-1"], "--within-edits"),
        (["x", "--normalization-insensitive", "NFX"], "NFKD"),
        (["x", "--rewrite", "gone.fst"], "gone.fst: No such file"),
        (["x", "--rewrite", "broken.txt"], "broken.txt: line 1: '98' is no letter"),
        (["x", "--rewrite", "ab.fst", "--within-edits", "x"], "--within-edits"),
        (["-g", "json", "--case-insensitive"], "add --depth N"),
        (["--ltlf", "F a", "--within-edits", "1"], "sequences of symbols"),
        (["(?P<IMAGE>)", "--case-insensitive"], "constrains tokens"),
    ],
)
def test_what_is_refused(
    words: list[str], message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    done = tokenfst("draw", *words)
    assert done.code == 2 and message in done.err.replace("\n", " ")


def test_labels_that_are_no_bytes_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "wide.fst"
    machine = pynini.Fst()
    machine.add_states(2)
    machine.set_start(0).set_final(1)
    machine.add_arc(0, pynini.Arc(300, 300, 0, 1))
    machine.write(str(path))
    done = tokenfst("sample", "x", "--rewrite", str(path))
    assert done.code == 2 and "wide.fst: it has no symbol tables" in done.err and "--byte-zero" in done.err
    done = tokenfst("sample", "x", "--rewrite", str(path), "--byte-zero", "1")
    assert done.code == 2 and "wide.fst: input label 300" in done.err


def test_a_budget_that_is_too_small() -> None:
    done = tokenfst("sample", "(?:abc|defgh|ijk)+", "--within-edits", "4", "--budget-states", "50")
    assert done.code == 3 and "--budget-states" in done.err
