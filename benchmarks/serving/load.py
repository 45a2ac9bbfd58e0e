"""Load on ``tokenfst serve``: many clients, some of which send bombs and broken bodies.

    python -m benchmarks.serving.load --clients 200 --seconds 600 [--save]

Each client sends a request, waits for the answer, and pauses for a random time (``--think``: the mean in seconds). Of
100 requests, 90 are about schemas of ``../shared/maskbench``, whose popularity follows Zipf's law; this process has
computed the right answers beforehand. 5 are bombs, which are constraints that take more time or memory than a request
may have. 5 have broken bodies. The program prints the latencies of answers from the server's cache and of other
answers, the number of wrong answers, and the memory of the server's processes over time. ``--save`` writes the
figures to docs/data/server.json.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.measuring.measure import Figure
from benchmarks.measuring.record import report
from tokenfst import Budget, json_schema
from tokenfst.errors import TokenfstError

DATA = Path(__file__).resolve().parents[3] / "shared" / "maskbench" / "all.jsonl.gz"
BOMBS: list[dict[str, Any]] = [
    {"constraint": {"regex": "(a|b)*a(a|b){40}c"}, "expand": True},
    {"constraint": {"regex": "((a{0,900}){0,900}){0,900}b"}, "expand": True},
    {"constraint": {"json_schema": {"enum": [["x" * 400] * 400]}}, "expand": True},
    {"constraint": {"regex": "(?=.*a.{20})(?=.*b.{20})(?=.*c.{20}).*"}, "expand": True},
]
BROKEN = [b"", b"{", b"[]", b'{"constraint": ', b"\xff\xfe\x00", b"[" * 50_000, b'{"constraint": 3}']


@dataclass
class Right:
    """A good request, and what its answer must contain."""

    path: str
    body: bytes
    wanted: dict[str, Any]


@dataclass
class Seen:
    """The measurements of a run: latencies in seconds of answers from the cache and of other answers, counts of
    statuses, and descriptions of wrong answers.
    """

    cached: list[float] = field(default_factory=list)
    made: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    """The seconds by which this process itself was late; the latencies include such delays."""
    front: list[int] = field(default_factory=list)
    """The memory of the front process in MiB, at several times."""
    metrics: str = ""
    """The text of the server's /metrics at the end."""


def good_requests(number: int) -> list[Right]:
    """Requests about schemas of MaskBench, with the right answers, which are computed here."""
    found = []
    with gzip.open(DATA, "rt") as file:
        for row in map(json.loads, islice(file, 4 * number)):
            try:
                constraint = json_schema(row["schema"], budget=Budget(seconds=5))
                text = constraint.shortest()
            except TokenfstError:
                continue
            if text is None or len(json.dumps(row["schema"])) > 20_000:
                continue
            document = {"json_schema": row["schema"]}
            body = json.dumps(
                {"constraint": document, "texts": [text.decode(), "x" + text.decode()]}
            ).encode()
            found.append(Right("/v1/check", body, {"accepted": [True, False]}))
            body = json.dumps({"constraint": document}).encode()
            found.append(Right("/v1/constraints", body, {}))
            if len(found) >= number:
                break
    return found


class Connection:
    """A minimal client of HTTP/1.1 over one connection. With 200 clients the pool of httpx would add seconds."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes) -> Answer:
        """The answer. Raises ``OSError`` or ``EOFError`` if the connection fails."""
        if self._ends is None:
            self._ends = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._ends
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        answer = Answer(
            int(head[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))
        )
        if headers.get("connection") == "close":
            self.close()
        return answer

    def close(self) -> None:
        if self._ends is not None:
            self._ends[1].close()
            self._ends = None


@dataclass
class Answer:
    """An answer of the server."""

    status: int
    headers: dict[str, str]
    body: bytes


async def client(
    port: int, rights: list[Right], rng: random.Random, think: float, until: float, seen: Seen
) -> None:
    http = Connection(port)
    weights = [1 / (place + 1) for place in range(len(rights))]
    while time.perf_counter() < until:
        kind = rng.random()
        right = None
        if kind < 0.05:
            path, body = "/v1/constraints", json.dumps(rng.choice(BOMBS)).encode()
        elif kind < 0.10:
            path, body = "/v1/constraints", rng.choice(BROKEN)
        else:
            (right,) = rng.choices(rights, weights)
            path, body = right.path, right.body
        began = time.perf_counter()
        try:
            response = await http.post(path, body)
        except (OSError, EOFError) as error:
            seen.wrong.append(f"{type(error).__name__}: {error}")
            http.close()
            continue
        seconds = time.perf_counter() - began
        what = "good" if right is not None else "bomb" if kind < 0.05 else "broken"
        seen.statuses[f"{what} {response.status}"] += 1
        judge(right, response, what, seen)
        if right is not None and response.status == 200:
            (seen.cached if response.headers["x-cache"] == "hit" else seen.made).append(seconds)
        if response.status in (429, 503):
            await asyncio.sleep(int(response.headers["retry-after"]) * rng.random() * 2)
        await asyncio.sleep(rng.expovariate(1 / think))


async def tick(seen: Seen) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.02)
        seen.late.append(time.perf_counter() - began - 0.02)


def judge(right: Right | None, response: Answer, what: str, seen: Seen) -> None:
    """Check an answer, and add a description to ``seen.wrong`` if it is not one of those that are right."""
    if response.status == 429 or (response.status == 503 and b'"overloaded"' in response.body):
        return
    if right is None:
        allowed = {"bomb": {200, 422}, "broken": {400}}[what]
        if response.status not in allowed:
            seen.wrong.append(f"{what}: {response.status} {response.body[:200]!r}")
        return
    if response.status != 200:
        seen.wrong.append(f"{right.path}: {response.status} {response.body[:200]!r}")
    elif "accepted" in right.wanted:
        got = [each["accepted"] for each in json.loads(response.body)["results"]]
        if got != right.wanted["accepted"]:
            seen.wrong.append(f"{right.path}: {got}")
    elif right.wanted.setdefault("id", json.loads(response.body)["id"]) != json.loads(response.body)["id"]:
        seen.wrong.append(f"{right.path}: another id")


def memory(process: int) -> tuple[int, int]:
    """The memory in MiB (proportional set size) of the front process, and of all processes of the server together."""
    tree, todo = [], [process]
    while todo:
        tree.append(todo.pop())
        for task in Path(f"/proc/{tree[-1]}/task").glob("*/children"):
            todo += map(int, task.read_text().split())
    sizes = []
    for each in tree:
        try:
            (size,) = re.findall(r"^Pss:\s+(\d+)", Path(f"/proc/{each}/smaps_rollup").read_text(), re.M)
        except (OSError, ValueError):
            continue
        sizes.append(int(size) // 1024)
    return sizes[0], sum(sizes)


async def load(
    port: int, process: int, rights: list[Right], given: argparse.Namespace
) -> tuple[Seen, list[str]]:
    seen = Seen()
    lines = []
    began = time.perf_counter()
    until = began + given.seconds
    tasks = [
        asyncio.create_task(client(port, rights, random.Random(number), given.think, until, seen))
        for number in range(given.clients)
    ]
    ticking = asyncio.create_task(tick(seen))
    while time.perf_counter() < until:
        await asyncio.sleep(max(1.0, given.seconds / 12))
        front, whole = await asyncio.to_thread(memory, process)
        seen.front.append(front)
        answered = sum(seen.statuses.values())
        now = time.perf_counter() - began
        lines.append(f"{now:5.0f} s: {front} MiB in front, {whole} MiB in all, {answered:,} answers")
        print(lines[-1], flush=True)
    await asyncio.gather(*tasks)
    ticking.cancel()
    seen.metrics = metrics = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    lines += [line for line in metrics.splitlines() if line.startswith("tokenfst_workers_replaced")]
    lines += [line for line in metrics.splitlines() if line.startswith("tokenfst_late_seconds_bucket")]
    return seen, lines


def own_buckets(metrics: str) -> dict[float, float]:
    """For each bound in seconds, the share of the answers from the cache, over all routes, that took the server no
    longer.
    """
    found: Counter[float] = Counter()
    for le, number in re.findall(r'request_seconds_bucket\{cached="yes",le="([^"]+)",[^}]*\} (\S+)', metrics):
        found[float(le)] += int(float(number))
    whole = found[float("inf")]
    return {le: found[le] / max(whole, 1) for le in sorted(found) if le < 0.3}


def percentiles(what: str, seconds: list[float], *, count: bool = True) -> Iterator[Figure]:
    """The number of times, and their percentiles."""
    if count:
        yield Figure(what, "answers", len(seconds), unit="count")
    seconds = sorted(seconds)
    for who, part in (("median", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("most", 1.0)):
        if seconds:
            yield Figure(what, who, seconds[min(len(seconds) - 1, int(len(seconds) * part))])


def figures(seen: Seen) -> Iterator[Figure]:
    """All figures of a run."""
    yield from percentiles("kept by the server", seen.cached)
    yield from percentiles("made by a worker, beside the bombs", seen.made)
    yield from percentiles("how late the process was that measured", seen.late, count=False)
    for status, number in sorted(seen.statuses.items()):
        yield Figure(f"answers: {status}", "number", number, unit="count")
    yield Figure("wrong answers", "number", len(seen.wrong), unit="count")
    replaced = re.findall(r'^tokenfst_workers_replaced(?:_total)?\{why="(\w+)"\} (\S+)', seen.metrics, re.M)
    for why, times in replaced:
        yield Figure(f"workers replaced, {why}", "number", float(times), unit="count")
    for name, size in (("least", min(seen.front)), ("most", max(seen.front))):
        yield Figure(f"memory of the front process, {name}", "number", size << 20, unit="bytes")
    (cpu,) = re.findall(r"^process_cpu_seconds_total (\S+)", seen.metrics, re.M)
    each = float(cpu) / sum(seen.statuses.values())
    yield Figure("CPU time of the front process, an answer", "number", each)
    for le, part in own_buckets(seen.metrics).items():
        what = f"kept answers within {1e3 * le:g} ms by the server's own clock"
        yield Figure(what, "number", None, note=f"{part:.2%}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--think", type=float, default=2.0)
    parser.add_argument("--schemas", type=int, default=400, help="number of different good requests")
    parser.add_argument("--limit", default="2", help="seconds that the server gives a request")
    parser.add_argument("--save", action="store_true", help="also write docs/data/server.json")
    given = parser.parse_args()
    rights = good_requests(given.schemas)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tokenfst", "serve", "--store", f"{folder}/store", "--port", "0"]
        command += ["--vocabulary", "mistral:tekken_240911", "--seconds", given.limit, "--queue", "256"]
        with (Path(folder) / "log").open("w") as log:
            process = subprocess.Popen([*command, "--log-level", "info"], stderr=log)
        try:
            port = 0
            while not port:
                time.sleep(0.2)
                for line in (Path(folder) / "log").read_text().splitlines():
                    event = json.loads(line)
                    if event["event"] == "listening":
                        port = event["port"]
            seen, lines = asyncio.run(load(port, process.pid, rights, given))
            print(*lines[-21:], sep="\n")
        finally:
            process.terminate()
            code = process.wait()
    print(f"load of the computer: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    report("server", figures(seen), keep=given.save)
    print(f"wrong:   {len(seen.wrong)}", *seen.wrong[:5], sep="\n  ")
    print(f"the server ended with the code {code}")
    return 1 if seen.wrong or code else 0


if __name__ == "__main__":
    sys.exit(main())
