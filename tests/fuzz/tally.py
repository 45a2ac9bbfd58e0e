"""A tally of fuzzing: how often and for how long each target has run in all, added up over many runs.

The file is one of ``docs/data`` (``benchmarks.measuring.record``): for each target its executions, its processor time,
and the greatest number of code edges that one run covered (libFuzzer's ``cov``; absent where mutations were blind).
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.measuring.measure import Figure
from benchmarks.measuring.record import load, run_now, save

COMMAND = "python -m tests.fuzz --tally docs/data/fuzzing.json"
EXECUTIONS, SECONDS, EDGES = "executions", "processor time", "edges covered"


def run(command: list[str], cwd: Path) -> tuple[int, str, float]:
    """Run a fuzzer; its exit status, its messages (which are printed as well), and its processor time in seconds."""
    before = os.times()
    process = subprocess.Popen(
        command, cwd=cwd, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, errors="replace"
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        sys.stdout.write(line)
        lines.append(line)
    status, after = process.wait(), os.times()
    took = after.children_user + after.children_system - before.children_user - before.children_system
    return status, "".join(lines), took


def add(tally: Path, name: str, messages: str, seconds: float) -> None:
    """Add what one run says of itself to the tally. Runs that end at the same time wait for each other."""
    folder = os.open(tally.resolve().parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        _add(tally, name, messages, seconds)
    finally:
        os.close(folder)


def _add(tally: Path, name: str, messages: str, seconds: float) -> None:
    runs = load(tally) if tally.is_file() else []
    figures = {(each.what, each.who): each for run in runs for each in run.figures}

    def put(who: str, value: float, unit: str) -> None:
        figures[name, who] = Figure(name, who, value, unit=unit)

    def known(who: str) -> float:
        return figures[name, who].median if (name, who) in figures else 0

    executed = re.search(r"stat::number_of_executed_units: (\d+)|: (\d+) inputs in ", messages)
    put(EXECUTIONS, known(EXECUTIONS) + (int(executed[1] or executed[2]) if executed else 0), "count")
    put(SECONDS, round(known(SECONDS) + seconds, 1), "s")
    if edges := re.findall(r"\bcov: (\d+)", messages):
        put(EDGES, max(known(EDGES), int(edges[-1])), "count")
    ordered = [figures[key] for key in sorted(figures)]
    save(tally.stem, dataclasses.replace(run_now(ordered), command=COMMAND), tally.resolve().parent)
