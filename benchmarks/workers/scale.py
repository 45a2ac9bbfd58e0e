"""The needs of a fleet with 400 workers and 10^6 constraints: a simulation from measured costs.

    python -m benchmarks.workers.scale measure     # a sample of MaskBench, a folder, S3 by moto: to scale.json
    python -m benchmarks.workers.scale simulate    # docs/data/scale.json, docs/images/scale-*.svg (by matplotlib)

``measure`` measures the CPU time of the front end and of compilation, the sizes of entries, the requests that each
call of a store makes, and the time of these calls. ``Assumed`` has all assumptions; they are printed. The simulation
uses a fixed seed, so it prints the same figures each time.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import logging
import os
import random
import tempfile
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring.measure import Figure
from benchmarks.measuring.record import report

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DATA = ROOT.parent / "shared" / "maskbench" / "all.jsonl.gz"
MEASURED = HERE / "scale.json"
PICTURES = ROOT / "docs" / "images"


# --- what is measured ---------------------------------------------------------------------------------------------


def documents(number: int) -> list[dict[str, Any]]:
    """``number`` schemas of MaskBench as documents, drawn at random."""
    with gzip.open(DATA, "rt") as file:
        rows = [json.loads(line)["schema"] for line in file]
    random.Random(0).shuffle(rows)
    return [{"json_schema": row} for row in rows[:number]]


def measure(number: int) -> dict[str, Any]:
    import tokenfst
    from tokenfst import Budget, Store
    from tokenfst.errors import TokenfstError

    vocabulary = tokenfst.load_vocabulary("mistral:tekken_240911")
    some = documents(number)
    requests, s3_ms = on_s3(vocabulary, some[:40])
    compiled, read, sizes, refused, keys = [], [], [], 0, []
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        for document in some:
            began = time.process_time()
            try:
                key, _ = store.ensure(document, vocabulary, Budget(seconds=30), expand=False)
            except TokenfstError:
                refused += 1
                continue
            compiled.append(1e3 * (time.process_time() - began))
            keys.append(key)
            began = time.process_time()
            store.compile_document(document, vocabulary, expand=False)
            read.append(1e3 * (time.process_time() - began))
            sizes.append(len(store.artifact(key)))
        folder_ms = timed(lambda: store.get(keys[0], vocabulary))
    return {
        "schemas": len(some),
        "refused": refused,
        "compile_ms": [round(each, 3) for each in compiled],
        "read_ms": [round(each, 3) for each in read],
        "bytes": sizes,
        "folder_get_ms": folder_ms,
        "moto_ms": s3_ms,
        "s3_requests": requests,
    }


def timed(call: Callable[[], object]) -> float:
    """The milliseconds of a call by the clock: the least of many, because the computer has other work too."""
    taken = []
    for _ in range(50):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return round(1e3 * min(taken), 3)


def on_s3(
    vocabulary: Any, some: list[dict[str, Any]]
) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Two tables about a store on moto's S3 server: for each call of the store, the mean number of requests of each
    kind for a document; and the milliseconds of calls.
    """
    import s3fs
    from moto.server import ThreadedMotoServer

    from tokenfst import Store
    from tokenfst.errors import TokenfstError

    os.environ |= {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    logging.getLogger("werkzeug").setLevel("ERROR")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {"endpoint_url": f"http://{host}:{port}"}
    s3fs.S3FileSystem(**options).mkdir("fleet")
    seen: Counter[str] = Counter()
    call = s3fs.S3FileSystem._call_s3

    async def counted(self: Any, method: str, *given: Any, **more: Any) -> Any:
        seen[method] += 1
        return await call(self, method, *given, **more)

    s3fs.S3FileSystem._call_s3 = counted
    found = {}
    try:
        good = []
        for document in some:
            try:
                Store("memory://x").ensure(document, vocabulary, expand=False)
                good.append(document)
            except TokenfstError:
                continue
        store = Store("s3://fleet/store", storage_options=options)
        keys: list[str] = []
        calls: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
            ("compile and put", lambda each: keys.append(store.ensure(each, vocabulary, expand=False)[0])),
            ("known to ensure", lambda each: store.ensure(each, vocabulary, expand=False)),
            ("compile_document", lambda each: store.compile_document(each, vocabulary, expand=False)),
        ]
        taken = {}
        for name, run in calls:
            seen.clear()
            began = time.perf_counter()
            for document in good:
                run(document)
            taken[name] = round(1e3 * (time.perf_counter() - began) / len(good), 2)
            found[name] = {method: number / len(good) for method, number in seen.items()}
        for name, turn in (("get, first of a day", 0), ("get, later", 1)):
            if not turn:
                store = Store("s3://fleet/store", storage_options=options)
            seen.clear()
            began = time.perf_counter()
            for key in keys:
                store.get(key, vocabulary)
            taken[name] = round(1e3 * (time.perf_counter() - began) / len(keys), 2)
            found[name] = {method: number / len(keys) for method, number in seen.items()}
    finally:
        s3fs.S3FileSystem._call_s3 = call
        server.stop()
    return found, taken


# --- what is simulated --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Assumed:
    """The assumptions: the fleet, the popularity of constraints, and a storage that is far away."""

    workers: int = 400
    workers_of_a_computer: int = 8
    constraints: int = 1_000_000
    requests_per_second_of_a_worker: float = 2.0
    hours: float = 1.0
    popularity: float = 1.0  # Zipf's exponent
    kept_by_a_worker: int = 1_000  # automata
    cache_of_a_computer: int = 1 << 30  # bytes
    round_trip_ms: float = 20.0
    reads_per_second: float = 5_500.0  # of one prefix, as S3's documentation promises
    writes_per_second: float = 3_500.0
    dollars_per_1000_writes: float = 0.005
    dollars_per_1000_reads: float = 0.0004
    dollars_per_cpu_hour: float = 0.04


class Lru:
    """A cache whose entries have at most the size ``most`` together; the least recently used entries are dropped
    first.
    """

    def __init__(self, most: float) -> None:
        self._most, self._held = most, 0.0
        self._kept: OrderedDict[int, float] = OrderedDict()

    def use(self, key: int, size: float) -> bool:
        """Use an entry, and add it if it is missing. Returns whether it was there."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return True
        self._kept[key] = size
        self._held += size
        while self._held > self._most:
            _, gone = self._kept.popitem(last=False)
            self._held -= gone
        return False


@dataclass
class Run:
    """The needs of one way to run the fleet. ``waits``: milliseconds for each request. The other arrays have one value
    for each minute: busy CPUs, reads, writes and bytes for each second.
    """

    name: str
    waits: np.ndarray
    cpu: np.ndarray
    reads: np.ndarray
    writes: np.ndarray
    bytes: np.ndarray


def simulate(found: dict[str, Any], given: Assumed, way: str, seed: int = 1) -> Run:
    """Simulate one way to run the fleet.

    - ``alone``: each worker compiles all constraints that it does not have in memory;
    - ``store``: workers read from a store what another worker has compiled;
    - ``store and cache``: each computer also keeps the entries that it has read;
    - ``filled``: the same, and all constraints are compiled beforehand;
    - ``filled, by keys``: the same, and workers get keys in place of documents;
    - ``by keys, no notes``: the same, and workers do not note the use of entries (``Store(note_use=False)``).
    """
    rng = np.random.default_rng(seed)
    compile_ms, size, read_ms = (np.array(found[name], float) for name in ("compile_ms", "bytes", "read_ms"))
    which = rng.integers(len(compile_ms), size=given.constraints)
    total = int(given.workers * given.requests_per_second_of_a_worker * 3600 * given.hours)
    weights = 1.0 / np.arange(1, given.constraints + 1) ** given.popularity
    wanted = np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(total)).clip(
        max=given.constraints - 1
    )
    worker = rng.integers(given.workers, size=total)
    minute = np.arange(total) * int(60 * given.hours) // total
    minutes = int(60 * given.hours)
    cpu, reads, writes, moved = (np.zeros(minutes) for _ in range(4))
    waits = np.zeros(total)
    own = [Lru(given.kept_by_a_worker) for _ in range(given.workers)]
    computers = [Lru(given.cache_of_a_computer) for _ in range(given.workers // given.workers_of_a_computer)]
    there = np.full(given.constraints, way.startswith(("filled", "by keys")))
    told: set[tuple[int, int]] = set()
    made, document, entry = (
        requests(found, call) for call in ("compile and put", "compile_document", "get, first of a day")
    )
    for at, (constraint, who, when) in enumerate(
        zip(wanted.tolist(), worker.tolist(), minute.tolist(), strict=True)
    ):
        if own[who].use(constraint, 1):
            continue
        kind, asked = which[constraint], np.zeros(2)
        computer = computers[who // given.workers_of_a_computer]
        if way == "alone":
            cost = compile_ms[kind]
        elif not there[constraint]:
            there[constraint] = True
            computer.use(constraint, size[kind])
            cost, asked = compile_ms[kind], np.array(made)
            moved[when] += size[kind]
        else:
            cost = read_ms[kind]
            if "keys" not in way:  # a request finds the key of the document
                asked += np.array(document) - np.array(entry)
            if way == "store" or not computer.use(constraint, size[kind]):
                asked += np.array(entry)
                moved[when] += size[kind]
            if "no notes" in way or (who, constraint) in told:  # a use is noted once a day
                asked[1] = 0
            elif asked[1]:
                told.add((who, constraint))
        cpu[when] += cost
        reads[when] += asked[0]
        writes[when] += asked[1]
        waits[at] = cost + asked.sum() * given.round_trip_ms
    return Run(way, waits, cpu / 60e3, reads / 60, writes / 60, moved / 60)


def requests(found: dict[str, Any], call: str) -> tuple[float, float]:
    """The number of requests of a call that read, and of those that write."""
    kinds = found["s3_requests"][call]
    writes = sum(number for name, number in kinds.items() if name.startswith(("put", "create")))
    return sum(kinds.values()) - writes, writes


STYLES = {
    "alone": ("-", "tab:blue"),
    "store": ("-", "tab:orange"),
    "store and cache": ("--", "tab:green"),
    "filled": ("-", "tab:red"),
    "filled, by keys": (":", "tab:purple"),
    "by keys, no notes": ("-.", "black"),
}
WAYS = ("alone", "store", "store and cache", "filled", "filled, by keys", "by keys, no notes")


NAMES = {
    "alone": "alone: each worker compiles",
    "store": "a store",
    "store and cache": "a store, and a cache on each computer",
    "filled": "the same, filled beforehand",
    "filled, by keys": "filled, and workers get keys",
    "by keys, no notes": "the same, and they note no use (`Store(note_use=False)`)",
}
CALLS = {
    "compile and put": "compile and put",
    "known to ensure": "known already (`ensure`, a batch run again)",
    "compile_document": "`compile_document`, its first use of a day in a process",
    "get, first of a day": "`get` by key, first use of a day in a process",
    "get, later": "`get` by key, later",
}


def text(what: str, who: str, words: str) -> Figure:
    """A cell of a table that is not a single number."""
    return Figure(what, who, None, note=words)


def costs(found: dict[str, Any]) -> Iterator[Figure]:
    """The measured costs, as rows of tables."""
    for what, key, unit, scale in (
        ("front end, compile, put", "compile_ms", "s", 1e-3),
        ("out of the store, by the document", "read_ms", "s", 1e-3),
        ("size of an artifact", "bytes", "bytes", 1.0),
    ):
        values = np.array(found[key]) * scale
        yield Figure(what, "mean", float(values.mean()), unit=unit)
        for part, name in ((50, "median"), (90, "90 %"), (99, "99 %"), (100, "most")):
            yield Figure(what, name, float(np.percentile(values, part)), unit=unit)
    for call, name in CALLS.items():
        read, write = requests(found, call)
        yield Figure(name, "reads", read, unit="count")
        yield Figure(name, "writes", write, unit="count")
        yield Figure(name, "from moto's server", found["moto_ms"][call] / 1e3)


def needs(run: Run, given: Assumed) -> Iterator[Figure]:
    """The needs of one way to run the fleet, as a row of a table."""
    used = max((run.reads / given.reads_per_second).max(), (run.writes / given.writes_per_second).max())
    day = 86_400 * (
        run.reads[-1] * given.dollars_per_1000_reads / 1000
        + run.writes[-1] * given.dollars_per_1000_writes / 1000
        + run.cpu[-1] * given.dollars_per_cpu_hour / 3600
    )
    late = run.waits[len(run.waits) // 2 :]
    what = NAMES[run.name]
    for who, values, digits in (
        ("CPUs busy, first minute / last", run.cpu, 2),
        ("reads/s, first / last", run.reads, 0),
        ("writes/s, first / last", run.writes, 0),
    ):
        yield text(what, who, f"{values[0]:,.{digits}f} / {values[-1]:,.{digits}f}")
    yield text(what, "most of a limit", f"{100 * used:.0f} %")
    yield text(what, "$ a day at the last rate", f"{day:,.0f}")
    waits = ", ".join(f"{np.percentile(late, part):.0f} ms" for part in (50, 99, 99.9))
    yield text(what, "wait for the first mask: p50, p99, p99.9", waits)


def fill(found: dict[str, Any], given: Assumed) -> Iterator[Figure]:
    """The cost of compiling all constraints beforehand, by different numbers of processes."""
    seconds = given.constraints * float(np.mean(found["compile_ms"])) / 1e3
    read, write = requests(found, "compile and put")
    for cpus in (2, 16, 64, given.workers):
        busy = seconds / cpus
        trips = given.constraints * (read + write) * given.round_trip_ms / 1e3 / cpus
        rate = given.constraints * write / (busy + trips)
        bound = given.constraints * write / given.writes_per_second / 3600
        more = f"; the limit of a prefix makes it {bound:.2f} h" if rate > given.writes_per_second else ""
        what = f"{cpus} processes"
        yield text(what, "work each", f"{busy / 3600:.2f} h")
        yield text(what, "waiting each", f"{trips / 3600:.2f} h")
        yield text(what, "writes/s", f"{rate:,.0f}{more}")
    prices = read * given.dollars_per_1000_reads + write * given.dollars_per_1000_writes
    for who, words in (
        (
            "CPU",
            f"{seconds / 3600:.1f} hours of one CPU (${seconds / 3600 * given.dollars_per_cpu_hour:.2f})",
        ),
        ("requests", f"${given.constraints * prices / 1000:.2f}"),
        ("size", f"{given.constraints * float(np.mean(found['bytes'])) / 1e9:.1f} GB"),
    ):
        yield text("all of them", who, words)


# --- pictures -----------------------------------------------------------------------------------------------------


def draw(found: dict[str, Any], runs: list[Run], given: Assumed) -> None:
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("svg")
    mpl.rcParams.update(
        {"svg.hashsalt": "tokenfst", "svg.fonttype": "path", "font.size": 9, "figure.facecolor": "white"}
    )
    minutes = np.arange(1, len(runs[0].cpu) + 1)

    def save(figure: Any, name: str, top: float = 1.0) -> None:
        figure.tight_layout(rect=(0, 0, 1, top))
        figure.savefig(PICTURES / f"scale-{name}.svg", metadata={"Date": None})
        plt.close(figure)

    figure, axes = plt.subplots(figsize=(6, 3.2))
    times = np.sort(np.array(found["compile_ms"]))
    axes.plot(times, 100 * (1 - np.arange(len(times)) / len(times)), label="front end, compile, put")
    times = np.sort(np.array(found["read_ms"]))
    axes.plot(times, 100 * (1 - np.arange(len(times)) / len(times)), label="out of the store")
    axes.set(xscale="log", yscale="log", xlabel="CPU time, ms", ylabel="% of schemas that take longer")
    axes.legend()
    save(figure, "compile")
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.8))
    for run in runs:
        line, color = STYLES[run.name]
        left.plot(minutes, run.cpu, line, color=color, label=run.name)
        if run.name != "alone":
            right.plot(minutes, run.reads + run.writes, line, color=color)
    left.set(yscale="log", xlabel="minutes since the start", ylabel="CPUs busy, of the whole fleet")
    right.set(yscale="log", xlabel="minutes since the start", ylabel="requests to the storage a second")
    right.axhline(given.writes_per_second, color="gray", linestyle=":", label="limit of writes, S3")
    handles = left.get_legend_handles_labels()
    others = right.get_legend_handles_labels()
    both = [one + other for one, other in zip(handles, others, strict=True)]
    figure.legend(*both, loc="upper center", ncols=3, frameon=False)
    save(figure, "minutes", 0.82)
    figure, axes = plt.subplots(figsize=(6, 3.2))
    for run in runs:
        late = np.sort(run.waits[len(run.waits) // 2 :])
        share = 100 * (1 - np.arange(len(late)) / len(late))
        step = np.unique(
            np.concatenate(
                [
                    np.arange(0, len(late), max(1, len(late) // 500)),
                    np.arange(max(0, len(late) - 500), len(late)),
                ]
            )
        )
        line, color = STYLES[run.name]
        axes.plot(np.maximum(late[step], 0.1), share[step], line, color=color, label=run.name)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="wait before the first mask, ms (0.1: none)",
        ylabel="% of requests that wait longer",
    )
    axes.legend()
    save(figure, "waits")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "simulate"])
    parser.add_argument("--schemas", type=int, default=1500)
    parser.add_argument("--hours", type=float, default=1.0)
    given = parser.parse_args()
    if given.what == "measure":
        MEASURED.write_text(json.dumps(measure(given.schemas)) + "\n")
        return
    found = json.loads(MEASURED.read_text())
    assumed = Assumed(hours=given.hours)
    print("assumed:", ", ".join(f"{name} {value:g}" for name, value in asdict(assumed).items()))
    print(f"measured: {found['schemas']} schemas, {found['refused']} refused")
    runs = [simulate(found, assumed, way) for way in WAYS]
    note = f"{found['schemas']:,} schemas, of which {found['refused']} were refused, from benchmarks/workers/scale.json"
    rows = chain(costs(found), *(needs(run, assumed) for run in runs), fill(found, assumed))
    report("scale", rows, note, keep=True)
    if importlib.util.find_spec("matplotlib") is None:
        print("not drawn: docs/images/scale-*.svg, which need matplotlib (pip install matplotlib)")
    else:
        draw(found, runs, assumed)


if __name__ == "__main__":
    main()
