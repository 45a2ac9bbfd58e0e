"""The cost of a constraint in SGLang: one engine for each backend, all with the same tiny random model, take turns.

    build/engines/sglang/bin/python -m benchmarks.serving.sglang        # after `make test-sglang`

SGLang's scheduler is a process of its own and keeps one backend for its life. So each backend has an engine, whose
processes are stopped (SIGSTOP) while another engine is measured. A round is one run of each engine. Ratios are
computed within a round; the program prints their median over the rounds.

Times are CPU time of all processes of the engine (``/proc/PID/task/*/schedstat``, in nanoseconds). They include the
scheduler's polling while it waits. Wall-clock time on a shared computer would depend more on neighbours than on the
code.

Requests are those of ``vllm``: JSON Schemas of MaskBench that all backends accept and whose texts are long.
``sglang_objects`` measures the backends' own calls. ``--save`` writes the figures to docs/data.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measuring.measure import Figure
from benchmarks.serving.engine_runs import FREE, KEPT, ROOM, ROOT, candidates, save

BACKENDS = (FREE, "tokenfst", "xgrammar", "llguidance")
LIBRARIES = ("sglang", "xgrammar", "llguidance")
ENVIRONMENT = {"SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
PROMPT = "Say something."
sys.path.append(str(ROOT / "tests"))


def serve(backend: str, model: str, pipe: Any) -> None:
    """Run an engine that answers requests from a pipe, until it receives None."""
    os.setsid()  # so that the processes it starts can be stopped with it
    import sglang

    engine = sglang.Engine(
        model_path=model,
        device="cpu",
        dtype="bfloat16",
        attention_backend="torch_native",
        sampling_backend="pytorch",
        grammar_backend="tokenfst" if backend == FREE else backend,
        context_length=256,
        max_total_tokens=8192,
        mem_fraction_static=0.1,
        disable_cuda_graph=True,
        disable_overlap_schedule=True,
        disable_radix_cache=True,
        skip_server_warmup=True,
        sleep_on_idle=True,
        log_level="error",
    )
    pipe.send("ready")
    while (asked := pipe.recv()) is not None:
        kind, schemas = asked
        try:
            pipe.send(first_token(engine, schemas[0]) if kind == "first" else lengths(engine, schemas))
        except Exception as error:  # any type, as backends have their own; the other side gets the text
            pipe.send(repr(error))
    engine.shutdown()


def params(schema: str | None) -> dict[str, Any]:
    """The sampling parameters of a request."""
    found: dict[str, Any] = {"max_new_tokens": ROOM, "temperature": 1.0, "ignore_eos": schema is None}
    return found if schema is None else {**found, "json_schema": schema}


def lengths(engine: Any, schemas: Sequence[str | None]) -> list[int]:
    """The number of tokens that are written for each request, when all are sent at once."""
    found = engine.generate([PROMPT] * len(schemas), [params(schema) for schema in schemas])
    return [each["meta_info"]["completion_tokens"] for each in found]


def first_token(engine: Any, schema: str | None) -> float:
    """The CPU seconds of all processes up to the first token."""
    begin = spent(os.getpid())
    taken = None
    for _ in engine.generate(PROMPT, params(schema), stream=True):
        taken = spent(os.getpid()) - begin if taken is None else taken
    assert taken is not None
    return taken


def family(process: int) -> list[int]:
    """The ids of a process and of all its descendants."""
    found = [process]
    for each in found:
        for thread in Path(f"/proc/{each}/task").glob("*"):
            found += map(int, (thread / "children").read_text().split())
    return found


def spent(process: int) -> float:
    """The CPU seconds of a process and all its descendants so far."""
    ran = 0
    for each in family(process):
        for thread in Path(f"/proc/{each}/task").glob("*/schedstat"):
            ran += int(thread.read_text().split()[0])
    return ran / 1e9


class Engine:
    """The client of ``serve``; the engine's processes run only while they answer."""

    def __init__(self, backend: str, model: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=serve, args=(backend, str(model), other))
        self._process.start()
        other.close()
        assert self._pipe.recv() == "ready"
        assert self._process.pid is not None
        self._id: int = self._process.pid
        self._send(signal.SIGSTOP)

    def _send(self, what: signal.Signals) -> None:
        for each in family(self._id):
            os.kill(each, what)

    def ask(self, kind: str, schemas: Sequence[str | None]) -> tuple[Any, float]:
        """The answer of ``serve``, and the CPU seconds that it took."""
        self._send(signal.SIGCONT)
        begin = spent(self._id)
        self._pipe.send((kind, list(schemas)))
        answer = self._pipe.recv()
        seconds = spent(self._id) - begin
        self._send(signal.SIGSTOP)
        return answer, seconds

    def close(self) -> None:
        """End the engine's processes."""
        self._send(signal.SIGCONT)
        self._pipe.send(None)
        self._process.join(30)
        for each in family(self._id) if self._process.is_alive() else ():
            os.kill(each, signal.SIGKILL)


def usable(engines: dict[str, Engine]) -> list[str]:
    """Schemas that every backend accepts and whose texts are long."""
    rows = candidates()
    for backend, engine in engines.items():
        if backend != FREE:
            found = [engine.ask("lengths", [row])[0] for row in rows]
            rows = [row for row, each in zip(rows, found, strict=True) if long_enough(each)]
    return rows[:KEPT]


def long_enough(answer: Any) -> bool:
    """Whether an answer is a list whose only number is at least half of ``ROOM``; a text would be an error message."""
    return isinstance(answer, list) and answer[0] >= ROOM // 2


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--backends", nargs="*", default=BACKENDS, choices=BACKENDS)
    parser.add_argument("--concurrency", nargs="*", type=int, default=(1, 16, 64))
    parser.add_argument("--save", action="store_true", help="also write the figures to docs/data")
    options = parser.parse_args(arguments)
    from support.engines.serving import tiny_model

    os.environ |= ENVIRONMENT
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # for processes that are spawned
    model = tiny_model(Path(tempfile.mkdtemp()))
    engines = {backend: Engine(backend, model) for backend in options.backends}
    try:
        tables = report(engines, options.rounds, options.concurrency)
    finally:
        for engine in engines.values():
            engine.close()
    if options.save:
        save(tables, "sglang", "benchmarks.serving.sglang", LIBRARIES, options.rounds)
    return 0


def report(engines: dict[str, Engine], rounds: int, concurrency: Sequence[int]) -> dict[str, list[Figure]]:
    """Measure, print, and return the figures by table."""
    say = partial(print, flush=True)
    schemas = usable(engines)
    say(f"{len(schemas)} schemas; load {os.getloadavg()[0]:.1f}; {rounds} rounds; {ROOM} tokens at most")
    firsts: dict[tuple[str, str], list[float]] = {}
    for number, schema in enumerate(schemas[: 2 * rounds]):
        new = schema.replace("{", f'{{"$comment": "{number}{time.time_ns()}", ', 1)  # to every backend
        for known in ("new", "seen"):
            for backend, engine in engines.items():
                answer, _ = engine.ask("first", [None if backend == FREE else new])
                if isinstance(answer, float):
                    firsts.setdefault((backend, known), []).append(answer)
    for (backend, known), values in sorted(firsts.items()):
        say(
            f"first token, {known:5} {backend:14} {median(values) * 1e3:8.2f} ms of CPU, {len(values)} schemas"
        )
    order = sorted(engines, key=lambda backend: backend == FREE)  # unconstrained last
    tables: dict[str, list[Figure]] = {"sglang": [], "sglang-ratios": []}
    tables["sglang-first"] = [
        Figure(f"first token, a {known} schema", backend, median(firsts[backend, known]))
        for known in ("new", "seen")
        for backend in order
    ]
    for together in concurrency:
        asked = [schemas[number % len(schemas)] for number in range(together)]
        costs: dict[str, list[float]] = {backend: [] for backend in engines}
        for turn in range(rounds + 1):
            for backend, engine in engines.items():
                found, seconds = engine.ask("lengths", [None] * together if backend == FREE else asked)
                if turn:  # the first one compiles
                    costs[backend].append(seconds / sum(found))
        for backend in order:
            values, at = costs[backend], f"{together} at once"
            ratios = [own / free for own, free in zip(values, costs[FREE], strict=True)]
            tables["sglang"].append(Figure(at, backend, median(values), min(values), rounds))
            if backend != FREE:
                tables["sglang-ratios"].append(Figure(at, backend, median(ratios), min(ratios), rounds, "x"))
            say(
                f"{together:3} at once {backend:14} {1 / median(values):8.0f} tokens a second of CPU, "
                f"{median(values) * 1e6:7.0f} us a token ({min(values) * 1e6:.0f}); {median(ratios):.2f} x "
                f"{FREE} ({min(ratios):.2f}-{max(ratios):.2f})"
            )
    return tables


if __name__ == "__main__":
    sys.exit(main())
