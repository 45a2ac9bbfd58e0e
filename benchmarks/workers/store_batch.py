"""All schemas of MaskBench are put into a store by several processes, then put again, then read one by one.

    python -m benchmarks.workers.store_batch --jobs 2 [--save]

The schemas are those of ``../shared/maskbench``, the vocabulary is Tekken's. CPU time is that of all processes, with
their start. The wall clock says little on a computer that others use as well.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import median

import tokenfst
from benchmarks.measuring.measure import Figure
from benchmarks.measuring.record import report
from tokenfst import Store, Vocabulary
from tokenfst.decoding.store.batch import compile_batch

DATA = Path(__file__).resolve().parents[3] / "shared" / "maskbench" / "all.jsonl.gz"
READ = 300
"""Entries that are read one by one."""


def cpu_seconds() -> float:
    """The CPU seconds of this process and of its children that have ended."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def fill(
    who: str, lines: list[str], store: Store, vocabulary: Vocabulary, jobs: int, expand: bool
) -> Iterator[Figure]:
    """The figures of one batch."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    outcomes = Counter(
        each.state for each in compile_batch(lines, store, vocabulary, jobs=jobs, expand=expand)
    )
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    yield Figure("lines", who, len(lines), unit="count")
    for state in ("put", "known", "failed"):
        yield Figure(state, who, outcomes[state], unit="count")
    yield Figure("CPU time", who, cpu)
    yield Figure("CPU time of a line", who, cpu / len(lines))
    yield Figure("wall clock", who, wall)


def get(where: str, store: Store, keys: list[str], vocabulary: Vocabulary) -> Figure:
    """The figure of entries that are read one by one."""
    taken = []
    for key in keys:
        began = time.process_time()
        store.get(key, vocabulary)
        taken.append(time.process_time() - began)
    return Figure("an entry read", where, median(taken), min(taken), len(taken))


def figures(lines: list[str], vocabulary: Vocabulary, jobs: int, expand: bool) -> Iterator[Figure]:
    """All figures, as they are measured."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"{folder}/store")
        for who in ("first", "again"):
            yield from fill(who, lines, store, vocabulary, jobs, expand)
        entries = list(store.list())
        yield Figure("entries", "size", sum(each.bytes for each in entries), unit="bytes")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        yield Figure("the largest process", "size", peak, unit="bytes")
        keys = [each.key for each in entries[:: max(1, len(entries) // READ)]]
        yield get("folder", store, keys, vocabulary)
        cached = Store(f"{folder}/store", cache=f"{folder}/cache")
        for key in keys:
            cached.get(key, vocabulary)
        yield get("cache", cached, keys, vocabulary)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schemas", type=int, help="number of schemas, from the first on")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--expand", action="store_true", help="put expanded automata in place of programs")
    parser.add_argument("--save", action="store_true", help="write docs/data/store.json")
    given = parser.parse_args()
    vocabulary = tokenfst.load_vocabulary("mistral:tekken_240911")
    with gzip.open(DATA, "rt") as file:
        rows = map(json.loads, islice(file, given.schemas))
        lines = [json.dumps({"id": row["id"], "json_schema": row["schema"]}) for row in rows]
    report("store", figures(lines, vocabulary, given.jobs, given.expand), keep=given.save)


if __name__ == "__main__":
    main()
