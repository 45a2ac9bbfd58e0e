"""Pytest options that run a part of the tests, and keep a record of which parts have run.

``--shard=3/12`` runs the third of twelve parts; ``--shard=commit/12`` takes the part that the commit's hash chooses. A
part is chosen by each test's name, so it does not change when other tests come or go. ``--record=FILE`` adds a line of
JSON for each test that ran, ``--left`` leaves out the tests that passed according to that file, and
``--stop-after=SECONDS`` starts no test later than that. The summary at the end says what ran, for how long, and how
much is left.
"""

from __future__ import annotations

import json
import subprocess
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
NOT_STARTED = "not started: --stop-after"
STARTED = time.monotonic()


def commit() -> str:
    """The hash of the commit that is checked out, in hexadecimal."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def part_of(shard: str, head: str) -> tuple[int, int]:
    """The number of the part that ``K/N`` or ``commit/N`` names, counted from 0, and the number of parts."""
    which, _, parts = shard.partition("/")
    if not parts.isdecimal() or int(parts) < 1:
        raise pytest.UsageError(f"--shard takes K/N or commit/N with N of at least 1, not {shard!r}")
    count = int(parts)
    if which == "commit":
        return int(head, 16) % count, count
    if not which.isdecimal() or not 1 <= int(which) <= count:
        raise pytest.UsageError(f"--shard takes K/N with K from 1 to N, not {shard!r}")
    return int(which) - 1, count


def is_in_part(name: str, part: int, parts: int) -> bool:
    """Whether the test of this name is in this part. Every test is in exactly one."""
    return zlib.crc32(name.encode()) % parts == part


def passed_before(record: Path) -> set[str]:
    """The names of the tests that passed the last time that they ran, according to a record."""
    last: dict[str, bool] = {}
    if record.exists():
        for line in record.read_text().splitlines():
            entry = json.loads(line)
            last[entry["test"]] = entry["outcome"] == "passed"
    return {name for name, passed in last.items() if passed}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("shards", "run a part of the tests")
    group.addoption("--shard", metavar="K/N", help="run part K of N; commit/N: by the commit's hash")
    group.addoption("--record", metavar="FILE", type=Path, help="add a line of JSON for each test that ran")
    group.addoption("--left", action="store_true", help="leave out the tests that passed, says the record")
    group.addoption("--stop-after", metavar="SECONDS", type=float, help="start no test later than this")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the part. Comes last, so that what it counts as all is what ``-m`` and ``-k`` have left."""
    everything = [item.nodeid for item in items]
    kept = items
    if shard := config.getoption("--shard"):
        part, parts = part_of(shard, commit())
        kept = [item for item in kept if is_in_part(item.nodeid, part, parts)]
    if config.getoption("--left"):
        if not (record := config.getoption("--record")):
            raise pytest.UsageError("--left needs --record FILE, which says what has run")
        done = passed_before(record)
        kept = [item for item in kept if item.nodeid not in done]
    chosen = {item.nodeid for item in kept}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = kept
    counts = {"all": len(everything), "chosen": len(kept)}
    config.stash[COUNTS] = counts
    if hasattr(config, "workeroutput"):
        config.workeroutput["shards"] = counts


COUNTS = pytest.StashKey[dict[str, int]]()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take a worker's counts: under pytest-xdist only the workers collect tests."""
    if counts := getattr(node, "workeroutput", {}).get("shards"):
        node.config.stash[COUNTS] = counts


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    limit = item.config.getoption("--stop-after")
    if limit is not None and time.monotonic() - STARTED > limit:
        pytest.skip(NOT_STARTED)


def ran(terminalreporter: Any) -> Iterator[tuple[str, float, str]]:
    """The name, the seconds and the outcome of each test that ran."""
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            if report.when == "call" or outcome == "error":
                yield report.nodeid, report.duration, outcome


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    shard, record = config.getoption("--shard"), config.getoption("--record")
    if not (shard or record) or COUNTS not in config.stash:
        return
    counts, done = config.stash[COUNTS], list(ran(terminalreporter))
    what = f" of part {shard}" if shard else ""
    seconds = sum(each[1] for each in done)
    lines = [f"ran {len(done)} of {counts['chosen']} tests{what}, in {seconds:.0f} s of their own time"]
    if record:
        record.parent.mkdir(parents=True, exist_ok=True)
        with record.open("a") as file:
            for name, took, outcome in done:
                entry = {"test": name, "outcome": outcome, "seconds": round(took, 3), "commit": commit()}
                file.write(json.dumps(entry) + "\n")
        left = counts["all"] - len(passed_before(record))
        lines.append(f"{max(left, 0)} of {counts['all']} are left, says {record}: run them with --left")
    else:
        lines.append(f"{counts['all'] - len(done)} of {counts['all']} are left")
    terminalreporter.section("parts of the tests")
    for line in lines:
        terminalreporter.line(line)
