"""The tables of README.md and docs/ say what docs/data/*.json says, and each file says where its figures come from."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "data"
FILES = sorted(path for path in DATA.glob("*.json") if path.name != "leaderboard.json")


@pytest.fixture(scope="module")
def script() -> Any:
    before = sys.path[:]
    found = runpy.run_path(str(ROOT / "docs" / "figures.py"))
    sys.path[:] = before
    return SimpleNamespace(**found)


def test_pages_say_what_the_files_say(script: Any) -> None:
    stale = [page.name for page in script.pages() if script.filled(page.read_text()) != page.read_text()]
    assert not stale, f"{', '.join(stale)}: run python docs/figures.py"
    assert {"README.md", "benchmarks.md"} <= {page.name for page in script.pages()}


def test_a_page_that_was_changed_by_hand_is_found(script: Any) -> None:
    page = (ROOT / "README.md").read_text()
    line = next(line for line in page.splitlines() if "right about every document" in line)
    assert script.filled(page.replace(line, line.replace("**1", "**9"))) == page


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_says_where_its_figures_come_from(script: Any, path: Path) -> None:
    runs = script.load(path)
    assert runs and all(run.figures and run.commit and run.machine for run in runs)
    assert len({run.command for run in runs}) == len(runs)
    assert any(table.file == path.stem for table in script.TABLES.values()), f"no page shows {path.name}"


def test_each_table_stands_on_a_page(script: Any) -> None:
    shown = {match["name"] for page in script.pages() for match in script.MARK.finditer(page.read_text())}
    assert shown == set(script.TABLES) | set(script.SPECIAL)


def test_figures_in_sentences_come_from_the_files(script: Any) -> None:
    marks = [match for page in script.pages() for match in script.SINGLE.finditer(page.read_text())]
    assert {match["name"] for match in marks} == set(script.INLINE)
    page = "takes <!-- figure: store-line -->99 ms<!-- / --> a line"
    figure = script.INLINE["store-line"].text()
    assert script.filled(page) == page.replace("99 ms", figure) != page
    assert (
        script.INLINE["tags-parse-rate"].text() == f"{script.digits(1 / _seconds(script, 'tags-parse'))} MB"
    )
    with pytest.raises(AssertionError, match="has no"):
        script.Single("store", "a figure that nothing measures").text()


def _seconds(script: Any, name: str) -> float:
    single = script.INLINE[name]
    (found,) = [
        each.median
        for run in script.load(DATA / f"{single.file}.json")
        for each in run.figures
        if (each.what, each.who) == (single.what, single.who)
    ]
    return float(found)


def test_the_tables_of_the_benchmarks_are_all_made(script: Any) -> None:
    """No line of a table stands outside of the marks."""
    page = script.MARK.sub("", (ROOT / "docs" / "benchmarks.md").read_text())
    assert not [line for line in page.splitlines() if line.startswith("|")]


def test_the_leaderboards_page_is_made_from_its_file(script: Any) -> None:
    from benchmarks.leaderboard import page

    results = json.loads((DATA / "leaderboard.json").read_text())
    assert (ROOT / "docs" / "leaderboard.md").read_text() == page.page(results)


def test_a_run_takes_the_place_of_an_older_one_of_its_command(script: Any, tmp_path: Path) -> None:
    from benchmarks.measuring import record

    def run(command: str, value: float) -> Any:
        return record.Run(
            command, "2026-11-26", "abc", "a machine", (script.Figure("a step", "tokenfst", value),)
        )

    for command, value in (("one", 1.0), ("two", 2.0), ("one", 3.0)):
        path = record.save("steps", run(command, value), tmp_path)
    assert [(each.command, each.figures[0].median) for each in record.load(path)] == [
        ("two", 2.0),
        ("one", 3.0),
    ]
    for wrong in ('{"figures": []}', '{"runs": [{"command": "x"}]}', "no JSON"):
        path.write_text(wrong)
        with pytest.raises(record.DataError, match=r"steps\.json"):
            record.load(path)


def test_a_benchmark_prints_its_figures_and_keeps_them_if_asked(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from benchmarks.measuring import record

    written = []
    monkeypatch.setattr(record, "save", lambda name, run: written.append((name, run)))
    monkeypatch.setattr(sys, "argv", ["a benchmark"])
    figures = [script.Figure("a step", "time", 2e-6), script.Figure("a price", "CPU", None, note="$1")]
    record.report("steps", iter(figures))
    assert capsys.readouterr().out == "a step, time: 2 µs\na price, CPU: $1\n" and not written
    monkeypatch.setattr(sys, "argv", ["a benchmark", "--save"])
    record.report("steps", iter(figures), "a note")
    ((name, run),) = written
    assert (name, run.figures, run.note) == (
        "steps",
        tuple(figures),
        "a note",
    ) and "--save" not in run.command


def test_the_best_figure_is_bold_and_ratios_are_to_the_first(script: Any) -> None:
    figures = {who: script.Figure("", who, value, 1e-6) for who, value in (("ours", 2e-6), ("theirs", 5e-6))}
    plan = script.Table("", ratio=True, least=True)
    assert script._cells(plan, figures, ["ours", "theirs", "none"], "least") == [
        "**2 µs** (1 µs)",
        "5 µs (1 µs), 2.5 x",
        "",
    ]
    assert script._cells(script.Table(""), figures, ["ours", "theirs"], "most") == ["2 µs", "**5 µs**"]


def test_figures_written_by_a_benchmark_do_not_change_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.measuring import record

    monkeypatch.setattr(record, "ROOT", tmp_path)
    assert record.commit() == ""
    data, code = tmp_path / "docs" / "data" / "steps.json", tmp_path / "code.py"
    data.parent.mkdir(parents=True)
    for path in (data, code):
        path.write_text("1")
    for words in ("init -q", "add .", "-c user.name=n -c user.email=n@n commit -q -m one"):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True)
    clean = record.commit()
    assert re.fullmatch("[0-9a-f]{7,}", clean)
    data.write_text("2")
    assert record.commit() == clean
    code.write_text("2")
    assert record.commit() == f"{clean}-dirty"
