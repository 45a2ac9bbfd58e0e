"""Does a step cost more in a longer text? The time of a step along 10,000 tokens, and its slope."""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.masks.steps import TEXT, token_stream
from benchmarks.measuring import patterns
from benchmarks.measuring.libraries import Library, World
from benchmarks.measuring.measure import OURS, Figure, quiet

COUNT, BLOCK, REPEATS = 10_000, 1_000, 5
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "cost-per-step.png"


def length(world: World) -> Iterator[Figure]:
    """The median of the times of mask + advance in blocks of 1,000 tokens; each time includes one reading of the
    clock.
    """
    curves: dict[str, dict[str, list[float]]] = {}
    for title, pattern, opening, body in (
        ("digits", patterns.DIGITS, "", "1234567890"),
        ("JSON string interior", patterns.STRING, '"', TEXT),
    ):
        curves[title] = {}
        for library in (world.ours, *world.peers("xgrammar", "llguidance", "outlines-core")):
            head, tokens = token_stream(world, opening, body, COUNT)
            blocks = curve(library, library.compile(pattern), head, tokens)
            curves[title][library.name] = blocks
            slope = float(np.polyfit(range(len(blocks)), blocks, 1)[0])
            yield Figure(
                f"step by length: {title}",
                library.name,
                statistics.median(blocks) / 1e9,
                min(blocks) / 1e9,
                REPEATS,
                note=f"slope {slope:+.1f} ns per 1,000 tokens; blocks of 1,000 in ns: "
                + " ".join(f"{block:.0f}" for block in blocks),
            )
    if importlib.util.find_spec("matplotlib") is not None:
        _draw(curves)


def curve(library: Library, compiled: Any, head: list[int], tokens: list[int]) -> list[float]:
    """The nanoseconds of a step in each block: the median over the steps of the medians over the repeats."""
    steps = step_times(library, compiled, head, tokens)
    return [float(np.median(steps[at : at + BLOCK])) for at in range(0, len(tokens), BLOCK)]


def step_times(
    library: Library, compiled: Any, head: list[int], tokens: list[int]
) -> npt.NDArray[np.float64]:
    """The nanoseconds of each step, the median of the repeats; they include one reading of the clock."""
    repeats = []
    for _ in range(REPEATS):
        walk = library.walk(compiled)
        for token in head:
            walk.accept(token)
        fill, accept = walk.fill, walk.accept
        times = [0] * len(tokens)
        with quiet():
            for i, token in enumerate(tokens):
                begin = perf_counter_ns()
                fill()
                accept(token)
                times[i] = perf_counter_ns() - begin
        repeats.append(times)
    steps: npt.NDArray[np.float64] = np.median(np.array(repeats), axis=0)
    return steps


def _draw(curves: dict[str, dict[str, list[float]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(curves), figsize=(10, 4), sharey=True, layout="constrained")
    for panel, (title, lines) in zip(panels, curves.items(), strict=True):
        for name, blocks in lines.items():
            at = [BLOCK * (i + 1) for i in range(len(blocks))]
            bold = name == OURS
            panel.plot(
                at, [b / 1e3 for b in blocks], marker="o", markersize=3, lw=2.2 if bold else 1.2, label=name
            )
        panel.set(title=title, xlabel="tokens generated", yscale="log")
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.grid(alpha=0.3, which="both")
    panels[0].set_ylabel("mask + advance, µs (median of 1,000 steps)")
    panels[-1].legend(frameon=False)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=120)
