"""How the benchmarks measure: samples of times, and the figures that are made from them.

A sample is taken after warm-up calls and with the garbage collector off. Its figures are the median and the least
value. A call of ``LONG`` or more is measured by the processor time of the process, so that other work on the computer
is not counted. A shorter call is measured by the clock, which costs less to read. The process is pinned to one CPU,
so every library runs on one, however many threads it starts.
"""

from __future__ import annotations

import gc
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from time import perf_counter_ns, process_time_ns
from typing import Any

OURS = "tokenfst"
LONG = 100_000
"""The nanoseconds from which a call is measured by processor time and not by the clock."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    ``what``: the thing that is measured; ``who``: the library. ``median`` and ``least`` are in ``unit``: seconds
    ("s"), "bytes", "count" or "x" (a ratio). If they are None, ``note`` says why there is no figure. ``target``: an
    upper bound for the median. ``at_least``: a lower bound for the ratio of the median to our median.
    """

    what: str
    who: str
    median: float | None
    least: float | None = None
    runs: int = 1
    unit: str = "s"
    target: float | None = None
    at_least: float | None = None
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@contextmanager
def quiet() -> Iterator[None]:
    """A context without garbage collection, except once at its beginning."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def sample(
    function: Callable[..., object],
    *,
    runs: int,
    setup: Callable[[], tuple[Any, ...]] = tuple,
    warm_up: int = 1,
) -> list[float]:
    """The seconds of each of ``runs`` calls ``function(*setup())``, after ``warm_up`` calls; ``setup`` is not timed."""
    seconds = []
    with quiet():
        for run in range(-warm_up, runs):
            arguments = setup()
            begin_cpu = process_time_ns()
            begin = perf_counter_ns()
            function(*arguments)
            spent = perf_counter_ns() - begin
            if run >= 0:
                seconds.append((process_time_ns() - begin_cpu if spent >= LONG else spent) / 1e9)
    return seconds


def figure(what: str, who: str, seconds: Sequence[float], **more: Any) -> Figure:
    """The figure of a sample."""
    return Figure(what, who, statistics.median(seconds), min(seconds), len(seconds), **more)


def clock_overhead() -> float:
    """Seconds that an empty timed section seems to take."""
    return statistics.median(sample(lambda: None, runs=2001))


def pin_to_one_cpu() -> int | None:
    """Bind this process, and its children from now on, to one CPU. Returns the CPU's number; None if the system cannot.

    ``os.cpu_count()`` returns 1 afterwards, because libraries choose their number of threads by it.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    cpu = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    os.cpu_count = lambda: 1
    return cpu


def shown(value: float | None, unit: str) -> str:
    """A figure with its unit, for people; "-" if there is none."""
    if value is None:
        return "-"
    if unit == "count":
        return f"{value:,.0f}"
    if unit == "x":
        return f"{digits(value)} x"
    if unit == "bytes":
        return f"{digits(value / 1e6)} MB" if value >= 1e5 else f"{digits(value / 1e3)} kB"
    for scale, name in ((1e-6, "ns"), (1e-3, "µs"), (1.0, "ms")):
        if value < scale:
            return f"{digits(value / scale * 1e3)} {name}"
    return f"{digits(value)} s"


def digits(value: float) -> str:
    """A number with three significant digits; from 100 on, as a whole number."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
