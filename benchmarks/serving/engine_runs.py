"""What the benchmarks of engines share: the schemas of their requests, and the files of their figures."""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.measuring import record
from benchmarks.measuring.measure import Figure

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT.parent / "shared" / "maskbench" / "dev.jsonl.gz"
FREE, OURS = "unconstrained", "tokenfst"
FAR, CUT = "tokenfst-far", "tokenfst-cut-off"
NAMES = {FAR: "tokenfst, limit far away", CUT: "tokenfst, texts cut off", "guidance": "llguidance"}
"""The names of backends in the tables, where they differ."""
SEED, ROOM, KEPT = 11, 64, 24
FAR_AWAY = 8 * ROOM
"""The limit of new tokens for the masks of "tokenfst-far"; its texts are cut off after ``ROOM`` tokens, as the
others'.
"""


def candidates() -> list[str]:
    """Schemas of MaskBench in a random order, from which a benchmark chooses those that all backends accept."""
    with gzip.open(SCHEMAS, "rt") as lines:
        rows = [json.dumps(json.loads(line)["schema"]) for line in lines]
    random.Random(SEED).shuffle(rows)
    return [row for row in rows if len(row) < 4000][: 3 * KEPT]


def named(backend: str) -> str:
    """The name of a backend in the tables."""
    return NAMES.get(backend, backend)


def save(
    tables: dict[str, list[Figure]], environment: str, module: str, libraries: Sequence[str], rounds: int
) -> None:
    """Write each table's figures to docs/data, as a run of ``module`` in the engine's environment."""
    given = " ".join(word for word in sys.argv[1:] if word != "--save")
    command = f"build/engines/{environment}/bin/python -m {module} {given}".rstrip()
    versions = ", ".join(f"{name} {version(name)}" for name in libraries)
    busy = "; other jobs shared the two cores" if os.getloadavg()[0] > 2 else ""
    notes = {
        name: "medians of schemas, one request each"
        if name.endswith("first")
        else f"medians of {rounds} rounds"
        for name in tables
    }
    runs = {
        name: record.run_now(figures, versions, notes[name] + busy, command)
        for name, figures in tables.items()
    }  # all runs are made before a file changes, since a changed file would change the name of the commit
    for name, run in runs.items():
        record.save(name, run)
