"""Files of measured figures: ``docs/data/NAME.json``, from which docs/figures.py fills the pages.

A file contains runs. A run has figures, and the command, the day, the commit and the computer by which they were
measured. A new run replaces an older one with the same command; runs with other commands stay, so that each column of a
table may come from a run of its own.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import tokenfst
from benchmarks.measuring.measure import Figure, shown

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "docs" / "data"
UNITS = ("s", "bytes", "count", "x")


class DataError(ValueError):
    """A file of figures is malformed."""


@dataclass(frozen=True, slots=True)
class Run:
    """Figures that one command measured.

    ``machine``: the processor, and how busy the computer was. ``versions``: those of the libraries. ``note``: what else
    the figures depend on, or where they were copied from if the command wrote no file at its time.
    """

    command: str
    date: str
    commit: str
    machine: str
    figures: tuple[Figure, ...]
    versions: str = ""
    note: str = ""


def load(path: Path) -> list[Run]:
    """The runs of a file. Raises ``DataError``, which names the place of the fault."""
    try:
        written = json.loads(path.read_text())["runs"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path.name} is not a file of figures: {error!r}; a benchmark's --save writes one"
        ) from error
    return [_run(each, f"{path.name}, run {number}") for number, each in enumerate(written)]


def save(name: str, run: Run, folder: Path = DATA) -> Path:
    """Write a run to the file ``NAME.json``, in place of an older run with the same command. Returns the path."""
    path = folder / f"{name}.json"
    others = [each for each in load(path) if each.command != run.command] if path.is_file() else []
    folder.mkdir(parents=True, exist_ok=True)
    runs = [_written(each) for each in (*others, run)]
    path.write_text(json.dumps({"runs": runs}, indent=1, ensure_ascii=False) + "\n")
    return path


def report(name: str, figures: Iterable[Figure], note: str = "", *, keep: bool | None = None) -> list[Figure]:
    """Print figures as they come, and return them as a list. If ``keep`` is true, also write them to ``NAME.json``;
    None means to do so if ``--save`` is among the arguments of the process.
    """
    found = []
    for each in figures:
        found.append(each)
        print(f"{each.what}, {each.who}: {each.note or shown(each.median, each.unit)}", flush=True)
    if "--save" in sys.argv if keep is None else keep:
        libraries = f"tokenfst {tokenfst.__version__}, Python {platform.python_version()}"
        save(name, run_now(found, libraries, note))
    return found


def run_now(figures: Iterable[Figure], versions: str = "", note: str = "", command: str = "") -> Run:
    """A run with these figures, of today, this commit and this computer. ``command``: by default that of this
    process.
    """
    return Run(
        command or _command(sys.orig_argv),
        datetime.now(UTC).strftime("%Y-%m-%d"),
        commit(),
        computer(),
        tuple(figures),
        versions,
        note,
    )


def commit() -> str:
    """The commit of the sources, with ``-dirty`` if they were changed since; empty outside of a checkout.

    Changes in docs/data do not count, because benchmarks write their figures there.
    """

    def said(*asked: str) -> str:
        return subprocess.run(
            ["git", *asked], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()

    number = said("rev-parse", "--short=7", "HEAD")
    changed = said("status", "--porcelain", "--untracked-files=no", "--", ":!docs/data")
    return f"{number}-dirty" if number and changed else number


def computer() -> str:
    """The processor, the number of cores, and the load."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cores = len(names) or os.cpu_count()
    return f"{names[0] if names else platform.machine()}, {cores} cores, load {os.getloadavg()[0]:.0f}"


def _command(words: Sequence[str]) -> str:
    """A command line as a reader would type it: ``python`` for the interpreter, without ``--save`` and ``--out``."""
    kept = [word for before, word in pairwise(words) if word not in ("--save", "--out") and before != "--out"]
    return " ".join(["python", *kept])


def _written(run: Run) -> dict[str, Any]:
    plain = asdict(run)
    defaults = {each.name: each.default for each in fields(Figure)}
    figures = [
        {
            name: value
            for name, value in each.items()
            if name in ("what", "who", "median") or value != defaults[name]
        }
        for each in plain.pop("figures")
    ]
    return {name: value for name, value in plain.items() if value} | {"figures": figures}


def _run(written: Any, place: str) -> Run:
    try:
        figures = tuple(Figure(**each) for each in written["figures"])
        run = Run(**{**written, "figures": figures})
    except (TypeError, KeyError) as error:
        raise DataError(
            f"{place}: {error}; a run has {', '.join(each.name for each in fields(Run))}"
        ) from error
    missing = [name for name in ("command", "date", "commit", "machine") if not getattr(run, name)]
    if missing:
        raise DataError(f"{place}: {' and '.join(missing)} must say where the figures come from")
    if strange := {each.unit for each in figures} - set(UNITS):
        raise DataError(f"{place}: the unit {sorted(strange)[0]!r} is none of {', '.join(UNITS)}")
    return run
