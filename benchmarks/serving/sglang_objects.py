"""The cost of the grammar objects of SGLang's backends, without the engine: the masks of a step, and accepted tokens.

    build/engines/sglang/bin/python -m benchmarks.serving.sglang_objects        # after `make test-sglang`

SGLang's scheduler is a process of its own that polls while it waits. In the engine's figures
(benchmarks.serving.sglang) this polling hides the cost of the backends. Here each backend makes its objects from the
same schemas. They are called as the scheduler calls them: ``fill_vocab_mask_batched`` for the rows of a step,
``accept_token`` for each row. Tokens are drawn at random from the masks, and the CPU time of these calls is counted.
Between two steps 8 MB are read, as a model's step would do, so that the caches are as cold as in an engine. Backends
take turns. Each turn begins with nothing compiled, and with one run that is not counted.

The backends, texts and schemas are those of ``vllm``. ``--save`` writes the figures to docs/data.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measuring.measure import Figure
from benchmarks.serving.engine_runs import CUT, FAR, FAR_AWAY, KEPT, OURS, ROOM, ROOT, candidates, named, save
from tokenfst.errors import TokenLimitError

BACKENDS = (OURS, FAR, CUT, "xgrammar", "llguidance")
AT_LEAST = 8
LIBRARIES = ("sglang", "xgrammar", "llguidance")
sys.path.append(str(ROOT / "tests"))


def backend_of(name: str, tokenizer: Any) -> Any:
    """A new backend of SGLang, with nothing compiled."""
    width, ends = len(tokenizer), [tokenizer.eos_token_id]
    if name == "xgrammar":
        from sglang.srt.constrained.xgrammar_backend import XGrammarGrammarBackend

        return XGrammarGrammarBackend(tokenizer, vocab_size=width, model_eos_token_ids=ends)
    if name == "llguidance":
        from sglang.srt.constrained.llguidance_backend import GuidanceBackend

        return GuidanceBackend(tokenizer, n_vocab=width, eos_token_ids=ends)
    from tokenfst.decoding.engines.sglang_backend import TokenfstGrammarBackend

    return TokenfstGrammarBackend(tokenizer, width, ends)


class Runs:
    """One backend, and the runs that measure it."""

    def __init__(self, name: str, tokenizer: Any, seed: int) -> None:
        self._name, self._width = name, len(tokenizer)
        self._backend = backend_of(name, tokenizer)
        self._draw = np.random.default_rng(seed)
        self._templates: dict[str, Any] = {}
        self._model = np.ones(1 << 20)  # 8 MB

    def grammar(self, schema: str) -> Any:
        """A new object for a request; None if the backend refuses the schema."""
        from sglang.srt.constrained.base_grammar_backend import InvalidGrammarObject

        if schema not in self._templates:
            self._templates[schema] = self._backend.dispatch_json(schema)
        template = self._templates[schema]
        if template is None or isinstance(template, InvalidGrammarObject):
            return None
        made = template.copy()
        if hasattr(made, "begin"):
            try:
                made.begin((), {OURS: ROOM, FAR: FAR_AWAY}.get(self._name))
            except TokenLimitError:
                return None
        return made

    def run(self, schemas: Sequence[str]) -> tuple[int, float]:
        """The number of tokens that were written for all requests together, and the CPU seconds of the calls."""
        from sglang.srt.constrained.base_grammar_backend import GrammarRow

        live = [self.grammar(schema) for schema in schemas]
        mask = live[0].allocate_vocab_mask(self._width, len(live), "cpu")
        tokens, spent = 0, 0.0
        for _ in range(ROOM):
            self._model.sum()
            rows = [GrammarRow(row, grammar) for row, grammar in enumerate(live)]
            mask.fill_(-1)
            begin = time.thread_time()
            type(live[0]).fill_vocab_mask_batched(rows, mask)
            spent += time.thread_time() - begin
            chosen = [self._choose(mask[row].numpy()) for row in range(len(live))]
            begin = time.thread_time()
            for grammar, token in zip(live, chosen, strict=True):
                grammar.accept_token(token)
            ended = [grammar.is_terminated() for grammar in live]
            spent += time.thread_time() - begin
            tokens += len(live)
            live = [grammar for grammar, over in zip(live, ended, strict=True) if not over]
            if not live:
                break
        return tokens, spent

    def _choose(self, row: Any) -> int:
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: self._width]
        allowed = np.flatnonzero(bits)
        return int(allowed[self._draw.integers(len(allowed))])


def usable(tokenizer: Any, backends: Sequence[str]) -> list[str]:
    """Schemas that every backend accepts and whose texts are long."""
    rows = candidates()
    for name in backends:
        if name not in (FAR, CUT):
            runs = Runs(name, tokenizer, 0)
            rows = [row for row in rows if runs.grammar(row) is not None and runs.run([row])[0] >= ROOM // 2]
    return rows[:KEPT]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backends", nargs="*", default=BACKENDS, choices=BACKENDS)
    parser.add_argument("--concurrency", nargs="*", type=int, default=(1, 16, 64))
    parser.add_argument("--save", action="store_true", help="also write the figures to docs/data")
    options = parser.parse_args()
    from support.engines.serving import tiny_tokenizer

    say = partial(print, flush=True)
    tokenizer = tiny_tokenizer()
    schemas = usable(tokenizer, options.backends)
    say(
        f"{len(schemas)} schemas; load {os.getloadavg()[0]:.1f}; {options.rounds} rounds; {ROOM} tokens at most"
    )
    figures = []
    for together in options.concurrency:
        number = max(together, AT_LEAST)
        asked = [schemas[each % len(schemas)] for each in range(number)]
        costs: dict[str, list[float]] = {name: [] for name in options.backends}
        for turn in range(options.rounds):
            for name in options.backends:
                runs = Runs(name, tokenizer, turn)
                runs.run(asked[:KEPT])
                found = [runs.run(asked[first : first + together]) for first in range(0, number, together)]
                tokens, seconds = map(sum, zip(*found, strict=True))
                costs[name].append(seconds / tokens)
        for name, values in costs.items():
            say(
                f"{together:3} at once {name:16} {median(values) * 1e6:7.2f} us a token ({min(values) * 1e6:.2f})"
            )
            figures.append(
                Figure(f"{together} at once", named(name), median(values), min(values), options.rounds)
            )
    if options.save:
        tables = {"sglang-objects": figures}
        save(tables, "sglang", "benchmarks.serving.sglang_objects", LIBRARIES, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
