"""The leaderboard: masks that differ are decided by texts, a run goes on where it stopped, its page says what ran."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokenfst


class Asked:
    """A library's process, in this one; ``denied``: a token that its masks leave out, ``added``: one that they add."""

    def __init__(self, modules: Any, who: str, constraint: Any, denied: int = -1, added: int = -1) -> None:
        self.who, self._answers = who, modules("schemas.mask_by_mask").ANSWERS
        library = modules("measuring.libraries").Tokenfst(BYTES)
        walk = library.walk(tokenfst.compile(constraint, BYTES))
        self._walk = walk if denied < 0 and added < 0 else self._changed(modules, walk, denied, added)

    def _changed(self, modules: Any, walk: Any, denied: int, added: int) -> Any:
        def fill() -> None:
            walk.fill()
            words = walk.bitmask.view("uint32")[0]
            if denied >= 0:
                words[denied >> 5] &= ~np.uint32(1 << (denied & 31))
            if added >= 0:
                words[added >> 5] |= np.uint32(1 << (added & 31))

        def accept(token: int) -> bool:
            return token == added or walk.accept(token)

        return modules("measuring.libraries").Walk(fill, accept, walk.bitmask, walk.restart)

    def ask(self, question: str, *arguments: Any) -> Any:
        return self._answers[question](self._walk, *arguments)


BYTES = tokenfst.Vocabulary([*(bytes([byte]) for byte in range(256)), b""], 256)


def test_masks_that_differ_are_decided_by_texts(modules: Any) -> None:
    masks = modules("schemas.mask_by_mask")
    world = masks.world_of(BYTES.tokens, 256)
    judge = masks.schema_judge({"type": "integer"})
    constraint = tokenfst.json_schema({"type": "integer"})
    ours, same = Asked(modules, "a", constraint), Asked(modules, "b", constraint)
    narrow, wide = (
        Asked(modules, "c", constraint, denied=ord("7")),
        Asked(modules, "d", constraint, added=ord("x")),
    )
    document = [*b"12", 256]
    assert masks.compared([ours, same], [document], world, judge) == ({"a|b": [3, 0, 0]}, [])
    pairs, (case,) = masks.compared([ours, narrow], [document], world, judge)
    assert pairs == {"a|c": [3, 3, 3]}
    assert (case.kind, case.wrong, case.right, case.token) == ("narrow", ("c",), ("a",), "7") and judge(
        case.text
    )
    _, (case,) = masks.compared([ours, wide], [document], world, judge)
    assert (case.kind, case.wrong, case.token) == ("wide", ("d",), "x") and judge(case.text) is False
    spaced = Asked(modules, "e", tokenfst.json_schema({"type": "integer"}, surrounding="flexible"))
    pairs, cases = masks.compared([ours, spaced], [document], world, judge)
    assert pairs == {"a|e": [3, 3, 0]} and not cases


def test_the_judge_of_texts(modules: Any) -> None:
    judge = modules("schemas.mask_by_mask").schema_judge(
        {"type": "object", "properties": {"a": {"format": "date"}}}
    )
    assert judge('{"b": [1e5]}') and judge('{"a": "2024-02-29"}')
    assert judge("[]") is False and judge("{") is False and judge('{"b": NaN}') is False
    assert judge('{"b": 1, "b": 2}') is None and judge('{"a": "x"}') is None


def test_the_leaderboard_runs_what_is_missing_and_writes_its_page(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board, page = modules("leaderboard.run"), modules("leaderboard.page")
    monkeypatch.setattr(page, "DATA", tmp_path / "data" / "leaderboard.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "leaderboard.md")
    monkeypatch.setattr(page, "IMAGES", tmp_path)
    monkeypatch.setattr(modules("leaderboard.kept"), "FOLDER", tmp_path / "records")

    class InProcess:
        """A runner in this process."""

        runs = 0

        def __init__(self, who: str, source: str, limit: float, **settings: Any) -> None:
            self.who = who
            assert settings == board.SETTINGS.get(who, {})
            self.asked = Asked(modules, who, tokenfst.regex("a|b"))
            self.ask = self.asked.ask

        def run(self, row: Any) -> Any:
            InProcess.runs += 1
            lost = {"refused": "no"} if self.who == "xgrammar" else {}
            return modules("schemas.runner").Record(
                row["id"], self.who, 0.1, [1e-6], first_mask_cpu=0.1, memory=5, **lost
            )

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *error: object) -> None: ...

    monkeypatch.setattr(board, "Runner", InProcess)
    monkeypatch.setattr(board, "encoder", lambda source: lambda text: list(text.encode()))
    monkeypatch.setattr(board, "version", lambda name: "1.0")
    monkeypatch.setattr(tokenfst, "load_vocabulary", lambda source: BYTES)
    rows = [{"id": f"case {k}", "regex": "a|b", "tests": [{"valid": True, "text": "a"}]} for k in range(3)]
    monkeypatch.setitem(board.SUITES, "patterns", lambda count: rows[:count])
    engines = ["tokenfst", "llguidance", "xgrammar"]
    board.run("patterns", 2, engines, folder=tmp_path)
    assert InProcess.runs == 6
    board.run("patterns", 3, engines[:2], folder=tmp_path)
    assert InProcess.runs == 8
    board.run("patterns", 1, [*engines, "outlines-core"], folder=tmp_path)
    assert InProcess.runs == 12
    before = board.records_of("patterns", tmp_path)
    board.run("patterns", 3, engines, folder=tmp_path, alone=True)
    assert InProcess.runs == 13, "others ran again"
    after = board.records_of("patterns", tmp_path)
    assert [each["masks"] for each in after] == [each["masks"] for each in before]
    assert all("xgrammar" in each["records"] for each in after)
    monkeypatch.setitem(
        board.SETTINGS, "xgrammar", {"cache_bytes": 1}
    )  # made with other settings: again, with all
    board.run("patterns", 1, engines, folder=tmp_path, alone=True)
    assert InProcess.runs == 13, "alone, only what is missing"
    board.run("patterns", 1, engines, folder=tmp_path)
    assert InProcess.runs == 16
    (tmp_path / "leaderboard-patterns-7.svg").write_text("of an earlier page")
    found = {"patterns": board.records_of("patterns", tmp_path)}
    assert len(found["patterns"]) == 3
    page.write(found, {"date": "today", "machine": "one", "python": "3", "limit": "10"}, {"patterns": 3})
    written = json.loads((tmp_path / "data" / "leaderboard.json").read_text())["suites"]["patterns"]
    first, second = written["tables"]
    assert written["ran"] == {"tokenfst": 3, "llguidance": 3, "xgrammar": 3, "outlines-core": 1}
    assert [(each["cases"], each["side_by_side"]) for each in (first, second)] == [(3, 3), (1, 1)]
    assert [len(each["engines"]) for each in (first, second)] == [3, 4]
    assert first["engines"]["tokenfst"]["passed"] == 3 and first["engines"]["xgrammar"]["refused"] == 3
    assert written["masks"]["pairs"]["llguidance|tokenfst"] == [6, 0, 0]
    text = (tmp_path / "leaderboard.md").read_text()
    assert "**3 of 3 cases**" in text and "tokenfst 1.0 | **3**" in text
    board.run("patterns", 3, ["glrmask", "lm-format-enforcer"], folder=tmp_path, alone=True)
    later = board.records_of("patterns", tmp_path)
    assert all("glrmask" in each["records"] for each in later)
    assert [each["masks"] for each in later] == [each["masks"] for each in found["patterns"]], "two new ones"
    assert "| | Regular expressions, 3 |" in text and "| llguidance | **3** |\n| outlines-core | 1 |" in text
    assert "in llguidance, outlines-core, tokenfst and xgrammar" in text.replace("\n", " ")
    assert written["seconds"] == pytest.approx(dict.fromkeys(written["ran"], 0.1), abs=1e-3)
    assert "<svg" in (tmp_path / "leaderboard-patterns-1.svg").read_text()
    assert not (tmp_path / "leaderboard-patterns-7.svg").exists(), "a picture of an earlier page is left"
    shutil.rmtree(tmp_path / "patterns")  # another machine has only what the repository keeps
    ran = InProcess.runs
    board.run("patterns", 3, ["tokenfst"], folder=tmp_path)
    assert InProcess.runs == ran + 3, "of what no file has"
    modules("leaderboard.kept").write("patterns", later, set())
    shutil.rmtree(tmp_path / "patterns")
    board.run("patterns", 3, [*engines[:2], "glrmask", "lm-format-enforcer"], folder=tmp_path)
    assert InProcess.runs == ran + 3, "what the repository keeps was run again"
    assert len(page.fewer({"patterns": later[:2]})) == 3 and page.fewer({"patterns": later}) == []


def test_records_are_kept_in_the_repository(modules: Any, tmp_path: Path) -> None:
    kept, page = modules("leaderboard.kept"), modules("leaderboard.page")
    blank = {"refused": "", "trouble": "", "accepts_invalid": [], "other_order": [], "rejects_valid": []}
    blank |= {"version": "1.0", "settings": {}, "run": "first"}
    steps = [2.5e-6, 4.51e-7, 4.49e-7]
    ran = blank | {"first_mask_cpu": 0.0123456, "memory": 123_456, "steps": steps, "spent": sum(steps)}
    refused = blank | {"refused": "x" * 99, "first_mask_cpu": None, "memory": None, "steps": [], "spent": 0.0}
    narrow = {"kind": "narrow", "wrong": ("b",), "right": ("a",), "before": "", "token": "7"}
    proved = {
        "pairs": {"a|b": [9, 3, 2]},
        "size": 5,
        "cases": [narrow | {"text": "7"}, narrow | {"text": "777"}],
    }
    cases = [
        {"id": name, "records": {"a": ran | {"moved": ["x"]}, "b": each}, "masks": {"a,b": proved}}
        for name, each in (("two", refused), ("one", ran))
    ]
    path = kept.write("patterns", cases, {"one"}, tmp_path)
    found = kept.read("patterns", tmp_path)
    assert list(found) == ["one", "two"] and kept.read("grammars", tmp_path) == {}
    rounded = ran | {
        "first_mask_cpu": 0.0123,
        "memory": 123_000,
        "steps": [4.5e-7, 4.5e-7, 2.5e-6],
        "spent": 3.4e-6,
    }
    assert found["one"]["records"] == {"a": rounded, "b": rounded}
    assert found["two"]["records"]["a"] == rounded | {"steps": None}
    assert found["two"]["records"]["b"] == refused | {"refused": "x" * kept.MESSAGE, "steps": None}
    given, kept_masks = page.masks(cases), page.masks(list(found.values()))
    assert kept_masks == given | {"smallest": kept_masks["smallest"]}
    assert kept_masks["smallest"]["b narrow"]["text"] == given["smallest"]["b narrow"]["text"] == "7"
    assert (
        sum(each["text"] is not None for case in found.values() for each in case["masks"]["a,b"]["cases"])
        == 1
    )
    before = path.read_bytes()
    kept.write("patterns", found.values(), {"one", "two"}, tmp_path)
    assert path.read_bytes() == before, "what was read is written as it was"


def test_fast_libraries_come_first(modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = modules("leaderboard.run")
    monkeypatch.setattr(modules("leaderboard.kept"), "FOLDER", tmp_path)
    passes = []
    monkeypatch.setattr(
        board, "run", lambda suite, count, engines, alone: passes.append((suite, count, engines))
    )
    monkeypatch.setattr(board, "pin_to_one_cpu", lambda: None)
    monkeypatch.setattr(board, "version", lambda name: None if name == "glrmask" else "1.0")
    monkeypatch.setattr(board.page, "write", lambda *given: None)
    assert board.main(["--suite", "grammars", "--suite", "patterns", "--number", "2"]) == 0
    fast = ["tokenfst", "llguidance"]
    every = [*fast, "xgrammar", "lm-format-enforcer", "outlines-core"]
    assert passes == [
        (suite, 2, engines) for engines in (fast, every[:3], every) for suite in ("grammars", "patterns")
    ]
    assert set(board.LIBRARIES) == {who for each in board.PASSES for who in each}


def test_a_long_document_is_tried_whole_before_the_search(
    modules: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of so many members that the search for an order has to give up among them."""
    runner = modules("schemas.runner")
    monkeypatch.setattr(runner, "ORDER_PROBES", 20)
    names = [f"n{k}" for k in range(30)]
    row = {
        "id": "long",
        "schema": {"properties": {name: {"type": "integer"} for name in names}, "required": names},
        "tests": [{"valid": True, "data": dict.fromkeys(reversed(names), 1)}],
    }
    ours = modules("measuring.libraries").Tokenfst(BYTES)
    record, walk = runner.measured(ours, row, lambda text: list(text.encode()), 256, 0.0)
    assert record.rejects_valid == [0]
    runner.explain(record, walk, row, lambda text: list(text.encode()), 256)
    assert (record.other_order, record.rejects_valid) == ([0], [])


def test_a_name_that_only_another_branch_lists_comes_last(modules: Any) -> None:
    """``m`` is no string, so the branch that lists it does not hold, and it comes after ``o`` as an unlisted name."""
    runner = modules("schemas.runner")
    names = [f"n{k}" for k in range(9)]
    listed = {name: {"type": "integer"} for name in names}
    schema = {
        "type": "object",
        "properties": {
            "i": {
                "type": "object",
                "allOf": [
                    {
                        "anyOf": [
                            {"properties": {"u": {"type": "string"}}},
                            {"properties": {"m": {"type": "string"}}},
                        ]
                    },
                    {"properties": {"o": {"type": "object", "properties": listed}}},
                ],
            }
        },
    }
    data = {"i": {"m": dict.fromkeys(names, 1), "o": dict.fromkeys(names, 1)}}
    row = {"id": "branches", "schema": schema, "tests": [{"valid": True, "data": data}]}
    ours = modules("measuring.libraries").Tokenfst(BYTES)
    record, walk = runner.measured(ours, row, lambda text: list(text.encode()), 256, 0.0)
    assert record.rejects_valid == [0]
    runner.explain(record, walk, row, lambda text: list(text.encode()), 256)
    assert record.moved == ['#/i: "o" before "m"'] and not record.rejects_valid


def test_the_cases_of_the_leaderboard_are_judged_by_others(modules: Any) -> None:
    board = modules("leaderboard.run")
    rows = list(board.patterns(None))
    for row in rows:
        judge, ours = board.judge_of(row), tokenfst.regex(row["regex"])
        assert all(
            judge(test["text"]) == test["valid"] == ours.accepts(test["text"]) for test in row["tests"]
        )
        assert {test["valid"] for test in row["tests"]} == {True, False}
    assert sum(row["regex"].startswith(("(?i)", "(?s)", "(?m)", "(?a)")) for row in rows) >= 7, (
        "flags are lost"
    )
    judge = board.judge_of({"lark": 'start: ws "a" ws\nws: /[ \\t\\n\\r]*/\n'})
    assert judge("a") and judge(" a ") and not judge("b") and not judge("")


def test_steps_are_compared_within_one_run(modules: Any) -> None:
    page = modules("leaderboard.page")
    plain = {"refused": "", "trouble": "", "version": "1", "first_mask_cpu": 1.0, "memory": 1}
    plain |= {key: [] for key in ("accepts_invalid", "rejects_valid", "other_order")}

    def case(*runs: str, kept: bool = True) -> dict[str, Any]:
        steps = [1.0] if len(set(runs)) == 1 else [99.0]
        made = {
            who: plain | {"steps": steps if kept else None, "run": run}
            for who, run in zip("ab", runs, strict=True)
        }
        return {"id": "case", "records": made, "masks": {}}

    apart, left_out = case("first", "second"), case("first", "first", kept=False)
    found = page.table([case("first", "first"), apart, left_out], "ab")
    assert (found["cases"], found["side_by_side"], found["one_run"]) == (3, 1, True)
    assert [found["engines"][who]["step"]["mean"] for who in "ab"] == [1.0, 1.0]
    only = page.table([apart, left_out], "ab")
    assert only["side_by_side"] == 1 and not only["one_run"] and only["engines"]["a"]["step"]["mean"] == 99.0
    assert page.table([left_out], "ab")["engines"]["a"]["step"]["mean"] is None


def test_the_page_says_which_libraries_ran_all_of_maskbench(modules: Any) -> None:
    page = modules("leaderboard.page")
    assert page._whole({"of": 3, "ran": {"a": 3, "b": 1, "c": 3}}) == (
        "Of MaskBench's 3 schemas a and c ran all, b 1."
    )
    assert page._whole({"of": 3, "ran": {"a": 3}}) == "Of MaskBench's 3 schemas a ran all."
    assert page._whole({"of": 3, "ran": {"a": 2}}) == "No library ran all of MaskBench's 3 schemas yet."


def test_what_a_case_takes_counts_the_limit_where_it_was_stopped(modules: Any) -> None:
    page = modules("leaderboard.page")
    ran = {"first_mask_cpu": 1.0, "spent": 1.0, "trouble": ""}
    stopped = {"first_mask_cpu": None, "spent": 0.0, "trouble": "timeout"}
    found = page.seconds([{"records": {"a": ran, "b": ran}}, {"records": {"a": stopped}}], 10.0)
    assert found == {"a": 6.0, "b": 2.0}


def test_records_of_older_settings_are_counted(modules: Any) -> None:
    page = modules("leaderboard.page")
    plain, kept = {}, {"settings": {"cache_bytes": 1}}
    cases = [{"records": {"a": plain, "b": kept}}, {"records": {"a": plain, "b": plain}}]
    assert page.older(cases) == {"b": 1} and page.older(cases[:1]) == {}
