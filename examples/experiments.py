"""What the experiments share: their command line, and how a table and a figure come under docs/experiments/."""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "experiments"


@dataclass(frozen=True)
class Experiment:
    """One run. ``name``: of the files. ``full``: more of everything. Torch computes on one thread."""

    name: str
    title: str
    full: bool
    folder: Path
    begin: float

    @classmethod
    def start(cls, name: str, description: str) -> Experiment:
        """Read the command line; ``description``: the calling module's text, whose first line is the title."""
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--full", action="store_true", help="more of everything: takes far longer")
        parser.add_argument("--folder", type=Path, default=FOLDER, help="where the table and the figure go")
        options = parser.parse_args()
        torch.set_num_threads(1)
        title = description.strip().splitlines()[0].split(": ", 1)[0].rstrip(".")
        return cls(name, title, options.full, options.folder, time.perf_counter())

    def note(self, text: str) -> None:
        """A line on the terminal, with the time since the start."""
        print(f"{time.perf_counter() - self.begin:6.0f} s  {text}", flush=True)

    def write(
        self, settings: str, tables: Sequence[str], draw: Callable[[Any], None], columns: int = 2
    ) -> None:
        """``NAME.md`` with the command, the settings and the tables; ``NAME.png`` of what ``draw`` makes of axes."""
        from matplotlib.figure import Figure

        self.folder.mkdir(parents=True, exist_ok=True)
        figure = Figure(figsize=(4.6 * columns, 3.6), layout="constrained")
        draw(figure.subplots(1, columns))
        figure.savefig(self.folder / f"{self.name}.png", dpi=110)
        command = f"python examples/{Path(sys.argv[0]).name}" + (" --full" if self.full else "")
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
    """A table in Markdown. Numbers with a fraction get three significant digits, but at least one decimal."""
    lines = [
        heading,
        ["---"] + ["---:"] * (len(heading) - 1),
        *([cell(item) for item in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def cell(item: object) -> str:
    if not isinstance(item, float):
        return str(item)
    return f"{item:.1f}" if abs(item) >= 10 else f"{item:.2f}" if abs(item) >= 1 else f"{item:.3f}"
