"""What a constraint costs in SGLang: an engine for each backend, all with one tiny random model, taken in turns.

    build/engines/sglang/bin/python -m benchmarks.serving.sglang        # after `make test-sglang`

SGLang's scheduler is a process of its own and has one backend for its life, so there is an engine for each, in
processes that are stopped (SIGSTOP) while another one's turn is measured. A round is one run of each; a ratio is taken
within a round, and the median of the rounds is printed. Time is CPU time of all processes of the engine in nanoseconds
(``/proc/PID/task/*/schedstat``), the scheduler's waiting among it, which polls: on a shared computer wall-clock time
says more about neighbours than about the code.

Requests are those of ``vllm``: JSON Schemas of MaskBench that all backends take, whose texts are long. The figures of
the backends' own calls are those of ``sglang_objects``. ``--save`` writes the figures to docs/data.
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
    """An engine that answers through a pipe, until it is told to stop."""
    os.setsid()  # what it starts can be stopped with it
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
        except Exception as error:  # of each backend its own, told to the other side
            pipe.send(repr(error))
    engine.shutdown()


def params(schema: str | None) -> dict[str, Any]:
    """Of a request."""
    found: dict[str, Any] = {"max_new_tokens": ROOM, "temperature": 1.0, "ignore_eos": schema is None}
    return found if schema is None else {**found, "json_schema": schema}


def lengths(engine: Any, schemas: Sequence[str | None]) -> list[int]:
    """How many tokens are written for each, all of them asked for at once."""
    found = engine.generate([PROMPT] * len(schemas), [params(schema) for schema in schemas])
    return [each["meta_info"]["completion_tokens"] for each in found]


def first_token(engine: Any, schema: str | None) -> float:
    """CPU seconds of all processes to the first token."""
    begin = spent(os.getpid())
    taken = None
    for _ in engine.generate(PROMPT, params(schema), stream=True):
        taken = spent(os.getpid()) - begin if taken is None else taken
    assert taken is not None
    return taken


def family(process: int) -> list[int]:
    """A process and all that it has started."""
    found = [process]
    for each in found:
        for thread in Path(f"/proc/{each}/task").glob("*"):
            found += map(int, (thread / "children").read_text().split())
    return found


def spent(process: int) -> float:
    """CPU seconds of a process and all that it has started, so far."""
    ran = 0
    for each in family(process):
        for thread in Path(f"/proc/{each}/task").glob("*/schedstat"):
            ran += int(thread.read_text().split()[0])
    return ran / 1e9


class Engine:
    """The other side of ``serve``, whose processes run only while they are asked."""

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
        """What ``serve`` answers, and the CPU seconds that it took."""
        self._send(signal.SIGCONT)
        begin = spent(self._id)
        self._pipe.send((kind, list(schemas)))
        answer = self._pipe.recv()
        seconds = spent(self._id) - begin
        self._send(signal.SIGSTOP)
        return answer, seconds

    def close(self) -> None:
        """End its processes."""
        self._send(signal.SIGCONT)
        self._pipe.send(None)
        self._process.join(30)
        for each in family(self._id) if self._process.is_alive() else ():
            os.kill(each, signal.SIGKILL)


def usable(engines: dict[str, Engine]) -> list[str]:
    """Schemas that every backend takes, and whose texts are long."""
    rows = candidates()
    for backend, engine in engines.items():
        if backend != FREE:
            found = [engine.ask("lengths", [row])[0] for row in rows]
            rows = [row for row, each in zip(rows, found, strict=True) if long_enough(each)]
    return rows[:KEPT]


def long_enough(answer: Any) -> bool:
    """Of a list of one number; a text is an error."""
    return isinstance(answer, list) and answer[0] >= ROOM // 2


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--backends", nargs="*", default=BACKENDS, choices=BACKENDS)
    parser.add_argument("--concurrency", nargs="*", type=int, default=(1, 16, 64))
    parser.add_argument("--save", action="store_true", help="write the figures to docs/data, too")
    options = parser.parse_args(arguments)
    from support.engines.serving import tiny_model

    os.environ |= ENVIRONMENT
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # of processes that are spawned
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
    """The figures, by table."""
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
