"""What the experiments share: their command line, and the files with tables and a figure in docs/experiments/."""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

T = TypeVar("T")

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "experiments"


@dataclass(frozen=True)
class Experiment:
    """One run of an experiment, for which torch uses one thread. ``name``: the name of its files, without an ending.
    ``size``: "quick", "usual" or "full". ``begin``: the clock at the start.
    """

    name: str
    title: str
    size: str
    folder: Path
    begin: float

    @classmethod
    def start(cls, name: str, description: str) -> Experiment:
        """Read the command line. ``description``: the docstring of the calling module; the title is its first line up
        to the colon.
        """
        parser = argparse.ArgumentParser(description=description)
        sizes = parser.add_mutually_exclusive_group()
        sizes.add_argument("--full", action="store_true", help="a larger run, which takes far longer")
        sizes.add_argument("--quick", action="store_true", help="a small run, to see whether it works")
        parser.add_argument(
            "--folder", type=Path, default=FOLDER, help="the folder for the table and the figure"
        )
        options = parser.parse_args()
        torch.set_num_threads(1)
        title = description.strip().splitlines()[0].split(": ", 1)[0].rstrip(".")
        size = "full" if options.full else "quick" if options.quick else "usual"
        return cls(name, title, size, options.folder, time.perf_counter())

    def pick(self, quick: T, usual: T, full: T) -> T:
        """The one of the three values that belongs to the size of this run."""
        return {"quick": quick, "usual": usual, "full": full}[self.size]

    def note(self, text: str) -> None:
        """Print a line with the time since the start."""
        print(f"{time.perf_counter() - self.begin:6.0f} s  {text}", flush=True)

    def write(
        self, settings: str, tables: Sequence[str], draw: Callable[[Any], None], columns: int = 2
    ) -> None:
        """Write ``NAME.md`` with the command, the settings and the tables, and ``NAME.png``, whose axes ``draw``
        fills.
        """
        from matplotlib.figure import Figure

        self.folder.mkdir(parents=True, exist_ok=True)
        figure = Figure(figsize=(4.6 * columns, 3.6), layout="constrained")
        draw(figure.subplots(1, columns))
        figure.savefig(self.folder / f"{self.name}.png", dpi=110)
        command = f"python examples/{Path(sys.argv[0]).name}" + self.pick(" --quick", "", " --full")
        seconds = time.perf_counter() - self.begin
        parts = [
            f"# {self.title}",
            f"Written by `{command}` on {time.strftime('%Y-%m-%d')}, in {seconds:.0f} s on two slow shared cores "
            f"(Python {platform.python_version()}, torch {torch.__version__.split('+')[0]}, one thread).",
            settings,
            *tables,
            f"![{self.title}]({self.name}.png)",
        ]
        path = self.folder / f"{self.name}.md"
        path.write_text("\n\n".join(parts) + "\n")
        self.note(f"written: {path.name}, {self.name}.png")


def table(heading: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown. Columns of numbers are aligned on the right; ``cell`` rounds floats."""
    aligned = ["---:" if isinstance(item, int | float) else "---" for item in rows[0]]
    lines = [heading, aligned, *([cell(item) for item in row] for row in rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def cell(item: object) -> str:
    if not isinstance(item, float):
        return str(item)
    return f"{item:.1f}" if abs(item) >= 10 else f"{item:.2f}" if abs(item) >= 1 else f"{item:.3f}"
