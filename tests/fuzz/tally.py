"""A tally of fuzzing: how often and for how long each target has run in all, added up over many runs.

The file is JSON: for each target the number of executions, the processor time in seconds, the greatest number of code
edges that one run covered (libFuzzer's ``cov``; absent where mutations were blind), and the last commit that was
fuzzed. ``docs/data/fuzzing.json`` is the tally of the project; docs/reliability.md quotes it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from support.running.shards import commit


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
    """Add what one run says of itself to the tally."""
    counts = json.loads(tally.read_text()) if tally.exists() else {}
    entry = counts.setdefault(name, {"executions": 0, "cpu_seconds": 0.0})
    executed = re.search(r"stat::number_of_executed_units: (\d+)|: (\d+) inputs in ", messages)
    entry["executions"] += int(executed[1] or executed[2]) if executed else 0
    entry["cpu_seconds"] = round(entry["cpu_seconds"] + seconds, 1)
    if edges := re.findall(r"\bcov: (\d+)", messages):
        entry["edges"] = max(entry.get("edges", 0), int(edges[-1]))
    entry["commit"] = commit()[:12]
    tally.parent.mkdir(parents=True, exist_ok=True)
    tally.write_text(json.dumps(dict(sorted(counts.items())), indent=1) + "\n")
