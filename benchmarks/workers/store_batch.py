"""All schemas of MaskBench into a store, by several processes; then once more, when the store has them; then out of it.

    python -m benchmarks.workers.store_batch --jobs 2

The schemas are ``../shared/maskbench``, the vocabulary is Tekken. CPU time is that of all processes, starting them
among it; on a machine that others use as well the wall clock says little.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import tempfile
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from statistics import median

import tokenfst
from tokenfst import Store, Vocabulary
from tokenfst.decoding.store.batch import compile_batch

DATA = Path(__file__).resolve().parents[3] / "shared" / "maskbench" / "all.jsonl.gz"
READ = 300
"""Entries that are read one by one."""


def cpu_seconds() -> float:
    """Of this process and of those that have ended."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def fill(lines: list[str], store: Store, vocabulary: Vocabulary, jobs: int, expand: bool) -> str:
    """A batch, in words."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    outcomes = Counter(
        each.state for each in compile_batch(lines, store, vocabulary, jobs=jobs, expand=expand)
    )
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    what = f"{len(lines):,} lines: {dict(sorted(outcomes.items()))}"
    return f"{what}, CPU time {cpu:.1f} s ({1e3 * cpu / len(lines):.2f} ms a line), wall clock {wall:.1f} s"


def get(store: Store, keys: list[str], vocabulary: Vocabulary) -> str:
    """Entries read one by one, in words."""
    taken = []
    for key in keys:
        began = time.process_time()
        store.get(key, vocabulary)
        taken.append(time.process_time() - began)
    middle, most = 1e3 * median(taken), 1e3 * max(taken)
    return f"{len(keys)} entries read: CPU time {middle:.2f} ms each in the median, {most:.1f} at most"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schemas", type=int, help="how many, from the first on")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--expand", action="store_true", help="tables in place of programs")
    given = parser.parse_args()
    vocabulary = tokenfst.load_vocabulary("mistral:tekken_240911")
    with gzip.open(DATA, "rt") as file:
        rows = map(json.loads, islice(file, given.schemas))
        lines = [json.dumps({"id": row["id"], "json_schema": row["schema"]}) for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"{folder}/store")
        print("first: ", fill(lines, store, vocabulary, given.jobs, given.expand))
        print("again: ", fill(lines, store, vocabulary, given.jobs, given.expand))
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        entries = list(store.list())
        size = sum(each.bytes for each in entries)
        print(f"{len(entries):,} entries, {size:,} bytes; {peak / 1024:.0f} MiB in the largest process")
        keys = [each.key for each in entries[:: max(1, len(entries) // READ)]]
        print("folder:", get(store, keys, vocabulary))
        cached = Store(f"{folder}/store", cache=f"{folder}/cache")
        get(cached, keys, vocabulary)
        print("cache: ", get(cached, keys, vocabulary))


if __name__ == "__main__":
    main()
