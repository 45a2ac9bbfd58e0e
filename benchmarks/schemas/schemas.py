"""JSON Schema beside llguidance and xgrammar: real schemas, with valid and invalid documents.

The schemas are a development split of MaskBench (``../shared/maskbench``). The libraries take turns: each schema goes
to all of them before the next one, so that other work on the computer affects them alike. Each library runs in a
process of its own (``runner``). All records are written to a file, one JSON object on each line, with the reasons of
all refusals and the numbers of the documents that were judged wrongly.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.masks.compilation import TEKKEN
from benchmarks.measuring.libraries import World
from benchmarks.measuring.measure import OURS, Figure
from benchmarks.schemas.runner import LIMIT, Record, Runner

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "maskbench" / "dev.jsonl.gz"
RECORDS = ROOT / "build" / "benchmark-schemas.jsonl"
SAMPLE, SEED = 200, 7
PEERS = ("llguidance", "xgrammar")


def schemas(world: World, count: int | None = SAMPLE, records: Path = RECORDS) -> Iterator[Figure]:
    """The verdicts, times and memory of all libraries over ``count`` schemas (None: all of them)."""
    if not DATA.is_file():
        yield Figure("JSON schemas", OURS, None, note="the schemas are not beside the repository")
        return
    rows = sample_of(DATA, count)
    found: dict[str, list[Record]] = {}
    records.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        file = stack.enter_context(records.open("w", buffering=1))
        runners = [stack.enter_context(Runner(who, TEKKEN)) for who in (OURS, *world.installed(*PEERS))]
        for row in rows:
            for runner in runners:
                record = runner.run(row)
                found.setdefault(runner.who, []).append(record)
                file.write(json.dumps(asdict(record)) + "\n")
    yield from figures(found, f"records: {records}")


def sample_of(data: Path, count: int | None) -> list[dict[str, Any]]:
    """The first ``count`` rows in a random order that is the same every time; None: all rows."""
    return [json.loads(line) for line in lines_of(data, count)]


def lines_of(data: Path, count: int | None) -> list[bytes]:
    """The same sample as JSON texts, which take less memory than the rows."""
    with gzip.open(data) as file:
        lines = list(file)
    random.Random(SEED).shuffle(lines)
    return lines[:count]


def figures(found: dict[str, list[Record]], note: str = "") -> Iterator[Figure]:
    """The figures of the libraries' records."""
    number = len(next(iter(found.values())))
    yield from _verdicts(found, number, note)
    yield from _times(found, number)
    yield from _memory(found, number)


def _verdicts(found: dict[str, list[Record]], number: int, note: str) -> Iterator[Figure]:
    counts: dict[str, tuple[Callable[[Record], object], float | None]] = {
        "right about all documents": (lambda each: each.passed, None),
        "refused (at most 3%)": (lambda each: each.refused, int(0.03 * number)),
        f"stopped after {LIMIT:g} s": (lambda each: each.trouble == "timeout", 0),
        "crashed": (lambda each: each.trouble == "crash", 0),
        "error in the midst of a document": (
            lambda each: each.trouble and each.trouble not in ("timeout", "crash"),
            0,
        ),
        "accepts invalid documents": (lambda each: each.accepts_invalid, 0),
        "rejects valid documents, because of the order of members": (lambda each: each.other_order, None),
        "rejects valid documents, unexplained": (lambda each: each.rejects_valid, 0),
    }
    for what, (holds, target) in counts.items():
        for who, records in found.items():
            hit = sum(bool(holds(each)) for each in records)
            yield Figure(
                f"JSON schemas, of {number:,}: {what}",
                who,
                hit,
                runs=number,
                unit="count",
                target=target if who == OURS else None,
                note=note if who == OURS and what.startswith("right") else "",
            )


def _times(found: dict[str, list[Record]], number: int) -> Iterator[Figure]:
    first = {
        who: {
            each.schema: LIMIT if each.first_mask is None else each.first_mask
            for each in records
            if not each.refused
        }
        for who, records in found.items()
    }
    what = f"JSON schemas, of {number:,} without refused ones: schema to first mask"
    seconds = {who: list(known.values()) for who, known in first.items()}
    yield from _summaries(what, seconds, {"p50": 1, "p90": None, "p99": 1, "mean": None, "max": None})
    if len(first) > 1:
        shared = set.intersection(*(set(known) for known in first.values()))
        what = f"JSON schemas, the {len(shared):,} that none refuses: schema to their first mask"
        seconds = {who: [known[schema] for schema in shared] for who, known in first.items()}
        yield from _summaries(what, seconds, {"p50": None, "p90": None, "p99": None, "mean": None})
    steps = {who: [step for each in records for step in each.steps] for who, records in found.items()}
    what = "JSON schemas, mask + advance along the documents"
    yield from _summaries(what, steps, {"mean": 8, "p50": 8, "p99": None, "p99.9": 10, "max": None})


def _summaries(
    what: str, seconds: dict[str, list[float]], names: dict[str, float | None]
) -> Iterator[Figure]:
    """One figure for each summary and library. ``names`` maps each summary to the target for llguidance's ratio."""
    for name, ratio in names.items():
        for who, values in seconds.items():
            if values:
                yield Figure(
                    f"{what}, {name}",
                    who,
                    summary(name, values),
                    runs=len(values),
                    at_least=ratio if who == "llguidance" else None,
                )


def summary(name: str, values: Sequence[float]) -> float:
    """A summary by its name: ``"mean"``, ``"max"``, or a percentile such as ``"p99.9"``, which is always one of the
    values.
    """
    if name == "mean":
        return fmean(values)
    share = 1.0 if name == "max" else float(name.removeprefix("p")) / 100
    return float(np.quantile(values, share, method="higher"))


def _memory(found: dict[str, list[Record]], number: int) -> Iterator[Figure]:
    for name, target in {"p50": None, "p99": None, "max": 200e6}.items():
        for who, records in found.items():
            sizes = [each.memory for each in records if each.memory is not None]
            if sizes:
                yield Figure(
                    f"JSON schemas, of {number:,}: peak memory of one, {name}",
                    who,
                    summary(name, sizes),
                    runs=len(sizes),
                    unit="bytes",
                    target=target if who == OURS else None,
                )
