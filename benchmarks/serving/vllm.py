"""What a constraint costs in vLLM: one engine with a tiny random model, its backends taken in turns.

    build/engines/vllm-0.32.0/bin/python -m benchmarks.serving.vllm        # after `make test-vllm`

The engine runs in this process, on a CPU, and is told before each run which backend it has, so that all of them meet
the same weights, caches and neighbours. A round is one run of each; a ratio is taken within a round, and
the median of the rounds is printed. Time is CPU time of the whole process, threads that compile and fill masks
included: on a shared machine wall-clock time says more about neighbours than about the code. The time of the backend's
own calls, which fill masks and take tokens, is measured inside of the engine and is the steadier figure.

"tokenfst-cut-off" is tokenfst without a word about ``max_tokens``, which is what the others do: their texts may end
anywhere, where ours are whole.

With ``--spin 10`` each step of the model takes 10 ms of CPU time more, as a larger model's would, and ratios are those
of the time of a step: texts of the backends end after different numbers of tokens, and a step takes as long for a few
texts as for many.

Requests are JSON Schemas of MaskBench that all backends take. They are given so many tokens that nearly all of them
write to the end; the random model hardly ever closes a string by itself.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT.parent / "shared" / "maskbench" / "dev.jsonl.gz"
OURS, FREE, CUT = "tokenfst", "unconstrained", "tokenfst-cut-off"
BACKENDS = (FREE, OURS, CUT, "xgrammar", "guidance")
SEED, ROOM, KEPT = 11, 64, 24
AT_LEAST = 8
"""So many requests in each run, one after the other where fewer are under way at once."""
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
        executor = self.core.model_executor
        executor.execute_model = self.spun(executor.execute_model, spin)
        manager = self.core.structured_output_manager
        for name in ("grammar_bitmask", "accept_tokens"):
            setattr(manager, name, self.timed(getattr(manager, name)))

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same, with its CPU seconds in ``own``."""

        def call(*arguments: Any) -> Any:
            begin = time.process_time()
            try:
                return function(*arguments)
            finally:
                self.own += time.process_time() - begin

        return call

    def spun(self, function: Callable[..., Any], seconds: float) -> Callable[..., Any]:
        """The same, with its calls counted in ``steps``, each of which takes so many CPU seconds more."""

        def call(*arguments: Any, **named: Any) -> Any:
            self.steps += 1
            end = time.thread_time() + seconds
            while time.thread_time() < end:
                pass
            return function(*arguments, **named)

        return call

    def choose(self, backend: str) -> None:
        """Serve by this backend from now on, with nothing compiled."""
        from tokenfst.decoding.engines import vllm_backend, vllm_plugin

        vllm_plugin._front_ends.clear()
        kind: Any = vllm_backend.TokenfstBackend
        whole = _whole(kind)
        kind.compile_request = _cut_off if backend == CUT else whole
        manager = self.core.structured_output_manager
        if manager.backend is not None:
            manager.backend.destroy()
        manager.backend, manager._grammar_bitmask = None, None
        if hasattr(manager, "backend_name"):
            manager.backend_name = None
        for config in (self.llm.llm_engine.vllm_config, self.core.vllm_config, manager.vllm_config):
            config.structured_outputs_config.backend = OURS if backend in (FREE, CUT) else backend

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
        """Whether the front end lets a request through."""
        config = self.llm.llm_engine.vllm_config
        tokenizer = self.llm.get_tokenizer()
        try:
            self.params(schema)._validate_structured_outputs(
                config.model_config, config.structured_outputs_config, tokenizer
            )
        except Exception:  # each backend has its own
            return False
        return True

    def lengths(self, schemas: Sequence[str | None]) -> list[int]:
        """How many tokens are written for each."""
        params = [self.params(schema) for schema in schemas]
        outputs = self.llm.generate(["Say something."] * len(params), params, use_tqdm=False)
        return [len(output.outputs[0].token_ids) for output in outputs]

    def run(self, schemas: Sequence[str | None]) -> tuple[int, float]:
        """How many tokens were written for these requests together, and the CPU seconds that they took."""
        self.own, self.steps, begin = 0.0, 0, time.process_time()
        tokens = sum(self.lengths(schemas))
        return tokens, time.process_time() - begin

    def first_token(self, schema: str | None) -> float:
        """CPU seconds from a request to its first token."""
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
    """The backend's own way to compile a request."""
    return _original.setdefault(kind, kind.compile_request)


def _cut_off(self: Any, request: Any, *, counted: bool) -> Any:
    return _original[type(self)](self, request, counted=False)


def usable(engine: Engine, backends: Sequence[str]) -> list[str]:
    """Schemas that every backend takes, and whose texts are long."""
    with gzip.open(SCHEMAS, "rt") as lines:
        rows = [json.dumps(json.loads(line)["schema"]) for line in lines]
    random.Random(SEED).shuffle(rows)
    rows = [row for row in rows if len(row) < 4000][: 3 * KEPT]
    for backend in backends:
        if backend not in (FREE, CUT):
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
        "--width", type=int, default=64, help="of the model: 2048 and 4 layers take 10 ms and more"
    )
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument(
        "--spin", type=float, default=0, metavar="MS", help="more CPU time for each step of the model"
    )
    options = parser.parse_args(arguments)
    from support.engines.serving import tiny_model

    engine = Engine(
        tiny_model(Path(tempfile.mkdtemp()), width=options.width, layers=options.layers), options.spin / 1e3
    )
    schemas = usable(engine, options.backends)
    print(
        f"{len(schemas)} schemas; load {os.getloadavg()[0]:.1f}; {options.rounds} rounds; {ROOM} tokens at most"
    )
    firsts: dict[tuple[str, str], list[float]] = {}
    for backend in options.backends:
        engine.choose(backend)
        for known in ("new", "seen"):
            for schema in schemas[: 2 * options.rounds]:
                taken = engine.first_token(None if backend == FREE else schema)
                firsts.setdefault((backend, known), []).append(taken)
    for (backend, known), values in firsts.items():
        print(f"first token, {known:5} {backend:14} {median(values) * 1e3:8.2f} ms", flush=True)
    for together in options.concurrency:
        rates: dict[str, list[float]] = {backend: [] for backend in options.backends}
        lengths: dict[str, list[float]] = {backend: [] for backend in options.backends}
        own: dict[str, list[float]] = {backend: [] for backend in options.backends}
        steps: dict[str, list[float]] = {backend: [] for backend in options.backends}
        for _ in range(options.rounds):
            for backend in options.backends:
                engine.choose(backend)
                number = max(together, AT_LEAST)
                asked = [schemas[each % len(schemas)] for each in range(number)]
                if backend != FREE:
                    engine.run(asked[:KEPT])  # compiles
                tokens, seconds, calls, taken = 0, 0.0, 0.0, 0
                for first in range(0, number, together):
                    batch: Sequence[str | None] = asked[first : first + together]
                    more, spent = engine.run([None] * together if backend == FREE else batch)
                    tokens, seconds, calls = tokens + more, seconds + spent, calls + engine.own
                    taken += engine.steps
                rates[backend].append(tokens / seconds)
                lengths[backend].append(tokens / number)
                own[backend].append(calls / tokens)
                steps[backend].append(seconds / taken)
        for backend in options.backends:
            ratios = [
                free / own for free, own in zip(rates[options.backends[0]], rates[backend], strict=True)
            ]
            if options.spin:
                pairs = zip(steps[backend], steps[options.backends[0]], strict=True)
                ratios = [own / free for own, free in pairs]
            print(
                f"{together:3} at once {backend:14} {median(rates[backend]):8.0f} tokens/s, "
                f"{1e3 * median(steps[backend]):.2f} ms a step, "
                f"{median(ratios):5.2f} x the time of {options.backends[0]} ({min(ratios):.2f}-{max(ratios):.2f}), "
                f"{median(lengths[backend]):.0f} tokens each; the backend's own calls "
                f"{median(own[backend]) * 1e6:.1f} us a token ({min(own[backend]) * 1e6:.1f})",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
